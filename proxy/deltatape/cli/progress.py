"""A bar that shows how far a long run is: on a terminal only, and gone when it is done.

It shares the terminal with what is written meanwhile: `aside` takes it away and brings it back.
"""

import contextlib
import sys
from collections.abc import Iterator
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


class Bar:
    """A bar on stderr; nothing where that is no terminal, or for a single step.

    Args:
        what: is counted, such as "tapes".
        total: how many steps there are.
    """

    def __init__(self, what: str, total: int) -> None:
        shown = total > 1 and sys.stderr.isatty()
        columns = (
            TextColumn(what),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(elapsed_when_finished=True),
        )
        console = Console(file=sys.stderr) if shown else Console(quiet=True)
        self._progress = Progress(*columns, console=console, transient=True, disable=not shown)
        self._task = self._progress.add_task(what, total=total)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def step(self) -> None:
        """One more is done."""
        self._progress.advance(self._task)

    @contextlib.contextmanager
    def aside(self) -> Iterator[None]:
        """While this lasts the terminal is free for others."""
        self._progress.stop()
        try:
            yield
        finally:
            self._progress.start()
