"""The two things about a tape that may wait for a disk: syncing, and writing to a slow one.

Both threads are daemons and are waited for at most `_PATIENCE_S` at the end: a disk that hangs
must not keep the recorder, and with it the user's program, from ending.
"""

import threading
from collections.abc import Callable, Sequence

from deltatape.clock import Clock
from deltatape.store.ledger import Ledger

_PATIENCE_S = 10.0

_WAITING_BYTES = 64 << 20
"""How much may wait for a slow disk before records are lost."""

TOO_SLOW = "the disk is too slow"


def _start(run: Callable[[], None], name: str) -> threading.Thread | None:
    """A running daemon thread; None where the system has no more, or Python is shutting down."""
    thread = threading.Thread(target=run, name=name, daemon=True)
    try:
        thread.start()
    except RuntimeError:
        return None
    return thread


class SyncThread:
    """Syncs when asked to: at most one at work and one waiting, the caller never waits.

    Attributes:
        busy_since_ns: when the sync that is under way was begun; None while there is none.
    """

    def __init__(self, sync: Callable[[], None], clock: Clock) -> None:
        self.busy_since_ns: int | None = None
        self._sync = sync
        self._clock = clock
        self._wanted = threading.Event()
        self._closing = False
        self._thread: threading.Thread | None = None

    def want(self) -> None:
        """Sync soon; what is asked for while one waits is the same one."""
        self._wanted.set()
        if self._thread is None:
            self._thread = _start(self._run, "tape-sync")

    def close(self) -> bool:
        """Sync once more; False if the disk did not answer in time."""
        self._closing = True
        self.want()
        if self._thread is None:
            self._sync()
            return True
        self._thread.join(_PATIENCE_S)
        return not self._thread.is_alive()

    def _run(self) -> None:
        last = False
        while not last:
            self._wanted.wait()
            self._wanted.clear()
            last = self._closing
            self.busy_since_ns = self._clock.now_ns()
            self._sync()
            self.busy_since_ns = None


class WriterThread:
    """Takes lines off the recorder's hands when writing them has become slow.

    Args:
        write: writes lines of exchanges; called in the thread only.
        ledger: told of what does not fit the queue.
    """

    def __init__(
        self, write: Callable[[Sequence[int], Sequence[bytes]], None], ledger: Ledger
    ) -> None:
        self._write = write
        self._ledger = ledger
        self._changed = threading.Condition()
        self._exchanges: list[int] = []
        self._lines: list[bytes] = []
        self._waiting = 0
        self._closing = False
        self._thread = _start(self._run, "tape-writer")

    def put(self, exchanges: Sequence[int], lines: Sequence[bytes]) -> None:
        """Queue lines; they are lost, and counted, when too much waits already."""
        size = sum(map(len, lines))
        with self._changed:
            fits = self._waiting + size <= _WAITING_BYTES
            if fits:
                self._waiting += size
                self._exchanges.extend(exchanges)
                self._lines.extend(lines)
                self._changed.notify()
        if not fits:
            self._ledger.trouble(TOO_SLOW, f"taping fails: {TOO_SLOW}; the tape loses records")
            self._ledger.lost(exchanges, lines, TOO_SLOW)

    def close(self) -> bool:
        """Write what waits; False if the disk did not take it in time: then it is lost."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        if self._thread is None:
            self._run()
            return True
        self._thread.join(_PATIENCE_S)
        with self._changed:
            self._ledger.lost(self._exchanges, self._lines, TOO_SLOW)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._lines or self._closing)
                if not self._lines:
                    return
                exchanges, lines = self._exchanges, self._lines
                self._exchanges, self._lines = [], []
                self._waiting = 0
            self._write(exchanges, lines)
