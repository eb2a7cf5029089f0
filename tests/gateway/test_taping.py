"""The recorder's side of an exchange: its times, and the guard around it."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from deltatape.gateway.recorder import ExchangeTaping
from deltatape.gateway.tapes import OpenTape
from deltatape.http1.head import ParsedResponseHead
from deltatape.model.exchange import EndReason, Framing, Source
from deltatape.store.writer import TapeWriter
from deltatape.tape.decode import decode_record
from deltatape.tape.payload import EndRecord
from deltatape.tape.tap import ExchangeTap, TapeTap
from helpers.tapes import MASKER, Lines

HEAD = ParsedResponseHead(
    status=200,
    reason=b"OK",
    http="1.1",
    fields=((b"Content-Type", b"text/event-stream"),),
    framing=Framing.CHUNKED,
    length=0,
    keep_alive=True,
)

STEPS: dict[str, Callable[[ExchangeTaping], None]] = {
    "request": lambda taping: taping.request(
        method="POST", target=b"/x", upstream="http://a", http="1.1", headers=((b"Host", b"a"),)
    ),
    "request-body": lambda taping: taping.request_body(b"{}"),
    "request-end": lambda taping: taping.request_end(),
    "sent": lambda taping: taping.sent(connect_ns=1, tls_ns=2, reused=False),
    "informational": lambda taping: taping.informational(HEAD),
    "response": lambda taping: taping.response(HEAD),
    "read": lambda taping: taping.read(b"data", (4,)),
    "trailers": lambda taping: taping.trailers(((b"X-T", b"1"),)),
    "delivered": lambda taping: taping.delivered(4),
    "idle": lambda taping: taping.watch(0),
    "note": lambda taping: taping.note("odd"),
    "end": lambda taping: taping.end(EndReason.COMPLETE, "detail"),
}
"""By the code of its record, each thing that is taped."""


class Ticking:
    """A clock that moves by one with each look."""

    def __init__(self) -> None:
        self.ns = -1

    def now_ns(self) -> int:
        self.ns += 1
        return self.ns

    def wall_ns(self) -> int:
        return 0


class Full:
    """A tape that refuses every line."""

    def put(self, exchange: int, line: bytes) -> None:
        raise OSError(f"no room for {len(line)} bytes of {exchange}")


@pytest.fixture
def tape(tmp_path: Path) -> Iterator[OpenTape]:
    """A tape on a ticking clock."""
    writer = TapeWriter.create(
        tmp_path, "x", clock=Ticking(), tool="test", source=Source.GATEWAY, alarm=print
    )
    writer.on_dirty = lambda: None  # a look at the clock is a tick
    yield OpenTape(None, writer, TapeTap(writer.put, MASKER), exchanges=1)
    writer.close()


def taping(
    tape: OpenTape, put: Callable[[int, bytes], None], alarms: list[str], *, bodies: bool = True
) -> ExchangeTaping:
    return ExchangeTaping(7, "ID", tape, ExchangeTap(1, put, MASKER), alarms.append, bodies=bodies)


def test_each_step_is_one_record_with_the_time_of_the_recorder(tape: OpenTape) -> None:
    lines, alarms = Lines(), list[str]()
    exchange = taping(tape, lines.put, alarms)
    for step in STEPS.values():
        step(exchange)
    records = [decode_record(line) for line in lines.all]
    assert [line.split(b'"')[1].decode() for line in lines.all] == list(STEPS)
    times = [record.t_ns for record in records]
    assert times == sorted(set(times))
    assert alarms == []


def test_the_end_tells_what_was_lost(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    nowhere = TapeWriter.create(
        tmp_path / "file", "x", clock=Ticking(), tool="test", source=Source.GATEWAY, alarm=print
    )
    nowhere.put(1, b"[0,1,lost]\n")
    lines = Lines()
    lost = OpenTape(None, nowhere, TapeTap(nowhere.put, MASKER), exchanges=1)
    exchange = taping(lost, lines.put, [])
    STEPS["request"](exchange)
    STEPS["end"](exchange)
    record = decode_record(lines.all[-1])
    assert record is not None
    assert isinstance(record.payload, EndRecord)
    assert record.payload.recorder["lost_records"] == 1
    assert record.payload.detail == "detail"


def test_watching_is_no_sign_of_life(tape: OpenTape) -> None:
    lines = Lines()
    exchange = taping(tape, lines.put, [])
    STEPS["request"](exchange)
    for _ in range(3):
        exchange.watch(3)  # each look at the clock is a tick
    STEPS["read"](exchange)
    exchange.watch(3)
    codes = [line.split(b'"')[1].decode() for line in lines.all]
    assert codes == ["request", "idle", "read"]


def test_a_body_that_is_not_wanted_is_counted(tape: OpenTape) -> None:
    lines = Lines()
    exchange = taping(tape, lines.put, [], bodies=False)
    for code in ("request", "request-body", "request-body", "request-end"):
        STEPS[code](exchange)
    codes = [line.split(b'"')[1].decode() for line in lines.all]
    assert codes == ["request", "note", "request-end"]
    assert b"the request's body, 4 bytes, was left out on demand" in lines.all[1]


@pytest.mark.parametrize("code", STEPS)
def test_a_failure_is_told_once_and_ends_the_taping_of_its_exchange(
    tape: OpenTape, code: str
) -> None:
    alarms: list[str] = []
    exchange = taping(tape, Full().put, alarms)
    STEPS[code](exchange)
    assert len(alarms) == 1
    assert alarms[0].startswith("exchange 1 is taped no further: OSError('no room for ")
    for step in STEPS.values():
        step(exchange)
    assert len(alarms) == 1
