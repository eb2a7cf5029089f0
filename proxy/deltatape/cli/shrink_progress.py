"""How far a search is: a line per pass that took something away, a moving one on a terminal."""

import contextlib
import sys
from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from deltatape.cli.terminal import say
from deltatape.render.shrink import amount_of
from deltatape.rules.words import count
from deltatape.trials.shrink import Step


class Progress:
    """Tells of a search."""

    def __init__(self) -> None:
        self._pass = ""
        self._last = ""
        """What was told last of how much is left."""
        self._step: Step | None = None
        shown = sys.stderr.isatty()
        self._console = Console(file=sys.stderr) if shown else Console(quiet=True)
        self._status = self._console.status("")

    @contextlib.contextmanager
    def shown(self) -> Iterator[None]:
        """While this lasts, the terminal shows it; in the end, what the last pass took away."""
        with self._status:
            yield
            if self._step is not None:
                self._tell(amount_of(self._step.exchanges).told, self._step.runs)

    def take(self, step: Step) -> None:
        """The search goes on."""
        self._step = step
        left = amount_of(step.exchanges).told
        if step.note:
            self._say(step.note)
        if step.what:
            self._tell(left, step.runs)
            self._pass = step.what
        self._status.update(Text(f"{self._pass}: {left} ({count(step.runs, 'run')})"))

    def _tell(self, left: str, runs: int) -> None:
        if left != self._last and self._pass:
            self._say(f"{self._pass}: {left} after {count(runs, 'run')}")
        self._last = left

    def _say(self, line: str) -> None:
        """A line above the moving one."""
        self._status.stop()
        say(line)
        self._status.start()
