"""What taping lost, per exchange and in all, and the alarms about it.

Losing records must be loud and must stay cheap: one alarm per kind of trouble, counts for the
rest. Safe to use from the writing thread and from the recorder's own.
"""

import threading
from collections.abc import Callable, Sequence

_REMEMBERED = 4096
"""Exchanges whose losses are kept: with a dead disk every exchange has some, for ever."""


class Ledger:
    """Counts losses; `alarm` gets one line per kind of trouble, from whichever thread meets it."""

    def __init__(self, alarm: Callable[[str], None]) -> None:
        self._alarm = alarm
        self._lock = threading.Lock()
        self._told: set[str] = set()
        self._of: dict[int, tuple[int, int, str]] = {}
        self.records = 0
        self.bytes = 0

    def trouble(self, kind: str, message: str) -> None:
        """Tell `message` unless trouble of this kind has been told."""
        with self._lock:
            if kind in self._told:
                return
            self._told.add(kind)
        self._alarm(message)

    def lost(self, exchanges: Sequence[int], lines: Sequence[bytes], error: str) -> None:
        """Count `lines`, each of the exchange at the same place of `exchanges`, as lost."""
        with self._lock:
            for exchange, line in zip(exchanges, lines, strict=True):
                records, size, _ = self._of.pop(exchange, (0, 0, ""))
                self._of[exchange] = (records + 1, size + len(line), error)
                self.records += 1
                self.bytes += len(line)
            while len(self._of) > _REMEMBERED:
                del self._of[next(iter(self._of))]

    def lost_after_all(self, records: int, size: int) -> None:
        """Count what had been written and is gone."""
        with self._lock:
            self.records += records
            self.bytes += size

    def of(self, exchange: int) -> dict[str, object]:
        """The losses of one exchange as `end.recorder` tells them; empty when there are none."""
        with self._lock:
            losses = self._of.get(exchange)
        if losses is None:
            return {}
        records, size, error = losses
        return {"lost_records": records, "lost_bytes": size, "error": error}
