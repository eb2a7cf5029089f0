from dataclasses import replace

import pytest

from deltatape.model.exchange import EndReason
from deltatape.model.finding import Blame, Severity
from helpers.chat import sse
from helpers.eventstream import event
from helpers.exchanges import FINISH_TEXT, TEXT, found, from_bytes, one, timed

HALF = sse(FINISH_TEXT, done=False)[:-1]


def test_an_event_without_blank_line_at_the_end_of_a_taped_body_is_an_error() -> None:
    finding = one(timed((0.1, TEXT), (0.2, HALF)), "W001")
    assert finding.severity is Severity.ERROR
    assert finding.blame is Blame.UPSTREAM
    assert finding.evidence.startswith("data: {")


def test_a_pasted_stream_may_have_lost_its_last_line_on_the_way() -> None:
    finding = one(from_bytes(sse(TEXT, FINISH_TEXT)[:-1]), "W001")
    assert finding.severity is Severity.WARNING
    assert finding.blame is None


def test_a_half_sentinel_loses_nothing() -> None:
    exchange = timed((0.1, TEXT), (0.2, FINISH_TEXT), (0.3, b"data: [DONE]\n"))
    assert one(exchange, "W001").severity is Severity.WARNING


def test_bytes_that_are_no_event_at_all_are_reported_too() -> None:
    assert one(timed((0.1, TEXT), (0.2, b"da")), "W001").severity is Severity.WARNING


@pytest.mark.parametrize(
    ("body", "message", "severity"),
    [
        (b'{"a":1}\n{"a":', "ends inside a line, after 5 bytes", Severity.ERROR),
        (b'[{"a":1},{"a":', "ends inside an element, after 5 bytes", Severity.ERROR),
        (b'[{"a":1}', "ends before the end of the array", Severity.WARNING),
        (event("x", 1) + event("y", 2)[:20], "inside a message, after 20 bytes", Severity.ERROR),
    ],
)
def test_the_last_event_of_every_kind_of_stream_must_be_whole(
    body: bytes, message: str, severity: Severity
) -> None:
    finding = one(timed((0.1, body), headers=()), "W001")
    assert message in finding.message
    assert (finding.severity, finding.blame) == (severity, Blame.UPSTREAM)
    assert finding.span
    assert finding.span.end == len(body)
    assert one(from_bytes(body), "W001").severity is Severity.WARNING


@pytest.mark.parametrize(
    "body", [b'{"a":1}\n{"a":2}', b'[{"a":1}]', event("x", 1), b'{"a":1}\r\n{"a":2}\r\n']
)
def test_other_streams_need_no_blank_line(body: bytes) -> None:
    assert not found(timed((0.1, body), headers=()), "W001")


def test_a_cut_explains_a_half_event() -> None:
    exchange = timed((0.1, TEXT), (0.2, HALF))
    assert exchange.end
    cut = replace(exchange, end=replace(exchange.end, reason=EndReason.UPSTREAM_RESET))
    assert not found(cut, "W001")


def test_terminated_events_are_fine() -> None:
    assert not found(timed((0.1, TEXT), (0.2, FINISH_TEXT)), "W001")
