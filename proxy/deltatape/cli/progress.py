"""A progress bar on a terminal, removed at the end.

It shares the terminal with what is written meanwhile: `aside` takes it away and brings it back.
"""

import contextlib
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.progress import Progress


class Bar:
    """A bar on stderr; silent without a terminal or for a single step.

    Args:
        what: is counted, such as "tapes".
        total: how many steps there are.
    """

    def __init__(self, what: str, total: int) -> None:
        self._progress = _progress(what) if total > 1 and sys.stderr.isatty() else None
        if self._progress is not None:
            self._task = self._progress.add_task(what, total=total)

    def __enter__(self) -> Self:
        if self._progress is not None:
            self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._progress is not None:
            self._progress.stop()

    def step(self) -> None:
        if self._progress is not None:
            self._progress.advance(self._task)

    @contextlib.contextmanager
    def aside(self) -> Iterator[None]:
        """Hide the bar while others print."""
        self.__exit__()
        try:
            yield
        finally:
            self.__enter__()


def _progress(what: str) -> "Progress":
    # Where there is no terminal, loading these would take a moment for nothing.
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import (  # noqa: PLC0415
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn(what),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(elapsed_when_finished=True),
    )
    return Progress(*columns, console=Console(file=sys.stderr), transient=True)
