"""The flight recorder at work: rotates the tapes of a run, pins what matters, sweeps the rest."""

import asyncio

from deltatape.gateway.tapes import OpenTape, TapeBook
from deltatape.store.ring import Ring

LOOK_S = 1.0
"""How often to look whether a tape is due."""
PATIENCE_S = 60.0
"""How long to go on with the old tape where no new one could be made."""


class Flight:
    """Keeps `book` within the budget of `ring`."""

    def __init__(self, ring: Ring, book: TapeBook) -> None:
        self._ring = ring
        self._book = book
        self._timer: asyncio.TimerHandle | None = None
        book.on_closed = self._closed

    def start(self) -> None:
        """Begin; needs a running loop."""
        self._sweep()
        self._look()

    def stop(self) -> None:
        """Rotate no more."""
        if self._timer is not None:
            self._timer.cancel()

    def _look(self) -> None:
        due = [
            tape
            for tape in self._book.written()
            if self._ring.segment_due(tape.writer.size, tape.writer.now_ns())
        ]
        failed = [tape for tape in due if not self._book.rotate(tape)]
        wait_s = PATIENCE_S if failed else LOOK_S
        self._timer = asyncio.get_running_loop().call_later(wait_s, self._look)

    def _closed(self, tape: OpenTape) -> None:  # noqa: ARG002 - which one does not matter
        self._sweep()

    def _sweep(self) -> None:
        """In a thread: unlinking gigabytes takes a moment."""
        running = [tape.writer.path for tape in self._book.all() if tape.writer.path is not None]
        asyncio.get_running_loop().run_in_executor(None, self._ring.sweep, running)
