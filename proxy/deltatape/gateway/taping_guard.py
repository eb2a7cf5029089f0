"""Keeps errors of taping away from the stream.

A failure of ours ends the taping of its exchange, is reported once, and the bytes go on. Standard
library only: mitmproxy's addon stands on it, too.
"""

from collections.abc import Callable, Mapping
from typing import Concatenate, ParamSpec, Protocol

from deltatape.tape.tap import ExchangeTap

P = ParamSpec("P")


class Writer(Protocol):
    """The writer's methods that taping uses."""

    def now_ns(self) -> int:
        """Return nanoseconds since the tape's `recorded_at`."""

    def losses(self, exchange: int) -> Mapping[str, object]:
        """Return what was lost of an exchange, for `end.recorder`."""


class GuardedTaping:
    """An exchange on its tape. Subclasses call `_write` for each record.

    Attributes:
        number: on its tape.
        last_ns: when it was last heard of.
    """

    def __init__(
        self, number: int, writer: Writer, tap: ExchangeTap, alarm: Callable[[str], None]
    ) -> None:
        self.number = number
        self.last_ns = writer.now_ns()
        self._writer = writer
        self._tap: ExchangeTap | None = tap
        self._alarm = alarm

    def _write(
        self,
        write: Callable[Concatenate[ExchangeTap, int, P], None],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> None:
        """Write a record with the present time by a method of `ExchangeTap`."""
        tap = self._tap
        if tap is None:
            return
        now = self._writer.now_ns()
        try:
            write(tap, now, *args, **kwargs)
        except Exception as error:  # noqa: BLE001 - the guard: taping never harms a stream
            self._fail(error)
        else:
            self.last_ns = now

    def _fail(self, error: Exception) -> None:
        self._tap = None
        self._alarm(f"exchange {self.number} is taped no further: {error!r}")
