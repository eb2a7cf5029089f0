"""Writes the records of one exchange, and keeps errors of taping away from the stream.

An error while taping ends the taping of that exchange and is reported once; the bytes go on.
Standard library only: mitmproxy's addon uses it, too.
"""

from collections.abc import Callable
from typing import Concatenate, ParamSpec, Protocol

from deltatape.model.exchange import EndReason
from deltatape.tape.tap import ExchangeTap

P = ParamSpec("P")


class Writer(Protocol):
    """The writer's methods that taping uses."""

    def now_ns(self) -> int:
        """Return nanoseconds since the tape's `recorded_at`."""


class GuardedTaping:
    """An exchange on its tape. Subclasses call `_write` for their other records.

    Attributes:
        number: its number on its tape.
        last_ns: the time of its last record, other than `idle`.
    """

    def __init__(
        self, number: int, writer: Writer, tap: ExchangeTap, alarm: Callable[[str], None]
    ) -> None:
        self.number = number
        self.last_ns = writer.now_ns()
        self._writer = writer
        self._tap: ExchangeTap | None = tap
        self._alarm = alarm

    def watch(self, every_ns: int) -> None:
        """Write that a silent exchange is still being recorded."""
        last = self.last_ns
        if self._writer.now_ns() - last >= every_ns:
            self._write(ExchangeTap.idle)
            self.last_ns = last

    def note(self, text: str) -> None:
        """Write a note."""
        self._write(ExchangeTap.note, text)

    def end(self, reason: EndReason, detail: str) -> None:
        """Write the end."""
        self._write(ExchangeTap.end, reason, detail=detail)

    def _write(
        self,
        write: Callable[Concatenate[ExchangeTap, int, P], None],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> None:
        """Write a record with the present time by a method of `ExchangeTap`."""
        self._write_at(self._writer.now_ns(), write, *args, **kwargs)

    def _write_at(
        self,
        now: int,
        write: Callable[Concatenate[ExchangeTap, int, P], None],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> None:
        tap = self._tap
        if tap is None:
            return
        try:
            write(tap, now, *args, **kwargs)
        except Exception as error:  # noqa: BLE001 - the guard: taping never harms a stream
            self._fail(error)
        else:
            self.last_ns = now

    def _fail(self, error: Exception) -> None:
        self._tap = None
        self._alarm(f"exchange {self.number} is taped no further: {error!r}")
