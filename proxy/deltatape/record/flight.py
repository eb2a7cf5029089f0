"""The flight recorder at work: rotates the tapes of a run, pins what matters, sweeps the rest."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from deltatape.gateway.tapes import OpenTape, TapeBook
from deltatape.store.ring import Ring

LOOK_S = 0.2
"""How often to look whether a tape is due."""
PINNING_S = 10.0
PATIENCE_S = 60.0
"""How long to go on with the old tape where no new one could be made."""


class Flight:
    """Keeps `book` within the budget of `ring`."""

    def __init__(
        self, ring: Ring, book: TapeBook, rotated: Callable[[OpenTape], None] | None = None
    ) -> None:
        """Args: rotated: is told of each tape that takes no new exchanges any more."""
        self._rotated = rotated
        self._ring = ring
        self._book = book
        self._timer: asyncio.TimerHandle | None = None
        self._pinning: set[asyncio.Future[tuple[Path, ...]]] = set()
        book.on_closed = self._closed

    def start(self) -> None:
        """Begin; needs a running loop."""
        self._sweep()
        self._look()

    async def stop(self) -> None:
        """Rotate no more, and let what is being pinned be pinned."""
        if self._timer is not None:
            self._timer.cancel()
        if self._pinning:
            await asyncio.wait(self._pinning, timeout=PINNING_S)

    def finding(self, wall_ns: int, then: Callable[[], None]) -> None:
        """Something was found in an exchange that ended then: keep what was taped around it.

        In a thread: there may be many segments. `then` is called when they have their names.
        """
        writers = [tape.writer for tape in self._book.all()]
        pinning = asyncio.get_running_loop().run_in_executor(
            self._book.pool, self._ring.finding, wall_ns, writers
        )
        self._pinning.add(pinning)
        pinning.add_done_callback(lambda done: self._pinned(done, then))

    def _pinned(self, done: "asyncio.Future[tuple[Path, ...]]", then: Callable[[], None]) -> None:
        self._pinning.discard(done)
        if not done.cancelled():
            then()

    def _look(self) -> None:
        due = [
            tape
            for tape in self._book.written()
            if self._ring.segment_due(tape.writer.size, tape.writer.now_ns())
        ]
        wait_s = LOOK_S
        for tape in due:
            if not self._book.rotate(tape):
                wait_s = PATIENCE_S
            elif self._rotated is not None:
                self._rotated(tape)
        self._timer = asyncio.get_running_loop().call_later(wait_s, self._look)

    def _closed(self, tape: OpenTape) -> None:  # noqa: ARG002 - which one does not matter
        self._sweep()

    def _sweep(self) -> None:
        """In a thread: unlinking gigabytes takes a moment."""
        running = [tape.writer.path for tape in self._book.all() if tape.writer.path is not None]
        asyncio.get_running_loop().run_in_executor(self._book.pool, self._ring.sweep, running)
