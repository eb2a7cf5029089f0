"""The guard around a tap: a failure of ours is told once and harms no stream."""

from collections.abc import Callable

from deltatape.gateway.taping_guard import GuardedTaping
from deltatape.tape.tap import ExchangeTap
from helpers.tapes import MASKER, Lines


class Ticking:
    """A clock that moves by one with each look."""

    def __init__(self) -> None:
        self.ns = 0

    def now_ns(self) -> int:
        self.ns += 1
        return self.ns


class Idler(GuardedTaping):
    """Writes one kind of record."""

    def idle(self) -> None:
        self._write(lambda tap, now: tap.idle(now))


def guarded(put: Callable[[int, bytes], None], alarms: list[str]) -> Idler:
    return Idler(3, Ticking(), ExchangeTap(3, put, MASKER), alarms.append)


def test_what_is_written_is_heard_of() -> None:
    lines, alarms = Lines(), list[str]()
    exchange = guarded(lines.put, alarms)
    exchange.idle()
    assert exchange.last_ns == 2
    assert lines.all == [b'[2,3,"idle",{}]\n']
    assert alarms == []


def test_a_failure_is_told_once_and_ends_the_taping() -> None:
    def full(exchange: int, line: bytes) -> None:
        raise OSError(f"no room for {len(line)} bytes of {exchange}")

    alarms: list[str] = []
    exchange = guarded(full, alarms)
    exchange.idle()
    exchange.idle()
    assert len(alarms) == 1
    assert alarms[0].startswith("exchange 3 is taped no further: OSError(")
    assert exchange.last_ns == 1
