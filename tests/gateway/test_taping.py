"""The recorder's side of an exchange: its times, and the guard around it."""

from collections.abc import Callable, Mapping

import pytest

from deltatape.gateway.taping import Taping
from deltatape.http1.head import ResponseHead
from deltatape.model.exchange import EndReason, Framing
from deltatape.tape.decode import decode_record
from deltatape.tape.payload import Ending
from deltatape.tape.tap import ExchangeTap
from helpers.tapes import MASKER, Lines

HEAD = ResponseHead(
    status=200,
    reason=b"OK",
    http="1.1",
    fields=((b"Content-Type", b"text/event-stream"),),
    framing=Framing.CHUNKED,
    length=0,
    keep_alive=True,
)

STEPS: dict[str, Callable[[Taping], None]] = {
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
    "idle": lambda taping: taping.idle(),
    "note": lambda taping: taping.note("odd"),
    "end": lambda taping: taping.end(EndReason.COMPLETE, "detail"),
}
"""By the code of its record, each thing that is taped."""


class Ticking:
    """A recorder whose clock moves by one with each look."""

    def __init__(self) -> None:
        self.ns = 0

    def now_ns(self) -> int:
        self.ns += 1
        return self.ns

    def losses(self, exchange: int) -> Mapping[str, object]:
        return {"lost_records": exchange}


class Full:
    """A tape that refuses every line."""

    def put(self, exchange: int, line: bytes) -> None:
        raise OSError(f"no room for {len(line)} bytes of {exchange}")


def taping(put: Callable[[int, bytes], None], alarms: list[str]) -> Taping:
    return Taping(1, "ID", Ticking(), ExchangeTap(1, put, MASKER), alarms.append)


def test_each_step_is_one_record_with_the_time_of_the_recorder() -> None:
    lines, alarms = Lines(), list[str]()
    exchange = taping(lines.put, alarms)
    for step in STEPS.values():
        step(exchange)
    records = [decode_record(line) for line in lines.all]
    assert [line.split(b'"')[1].decode() for line in lines.all] == list(STEPS)
    assert [record.t_ns for record in records if record] == list(range(2, 2 + len(STEPS)))
    assert alarms == []


def test_the_end_tells_what_was_lost() -> None:
    lines = Lines()
    exchange = taping(lines.put, [])
    STEPS["request"](exchange)
    STEPS["end"](exchange)
    record = decode_record(lines.all[-1])
    assert record is not None
    assert isinstance(record.payload, Ending)
    assert record.payload.recorder == {"lost_records": 1}
    assert record.payload.detail == "detail"


def test_watching_is_no_sign_of_life() -> None:
    exchange = taping(Lines().put, [])
    STEPS["request"](exchange)
    heard = exchange.last_ns
    STEPS["idle"](exchange)
    assert exchange.last_ns == heard
    STEPS["read"](exchange)
    assert exchange.last_ns > heard


@pytest.mark.parametrize("code", STEPS)
def test_a_failure_is_told_once_and_ends_the_taping_of_its_exchange(code: str) -> None:
    alarms: list[str] = []
    exchange = taping(Full().put, alarms)
    STEPS[code](exchange)
    assert len(alarms) == 1
    assert alarms[0].startswith("exchange 1 is taped no further: OSError('no room for ")
    for step in STEPS.values():
        step(exchange)
    assert len(alarms) == 1
