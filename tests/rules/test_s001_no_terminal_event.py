import json
from dataclasses import replace

import pytest

from deltatape.diagnose.rebuild import analyse
from deltatape.model.exchange import EndReason, Exchange, Framing, Source
from deltatape.model.finding import Blame, Confidence, Severity
from deltatape.rules._base import RuleContext
from deltatape.rules.s001_no_terminal_event import NoTerminalEvent
from deltatape.rules.settings import DEFAULTS
from helpers.chat import choice
from helpers.contexts import context_of
from helpers.exchanges import FINISH_TEXT, TEXT, found, from_bytes, one, pasted, timed


def test_a_body_that_ended_in_good_order_without_the_terminal_event_is_upstreams_fault() -> None:
    finding = one(timed((0.1, TEXT)), "S001")
    assert finding.message == "the stream ended without finish_reason and [DONE]"
    assert (finding.blame, finding.confidence) == (Blame.UPSTREAM, Confidence.PROVEN)
    assert finding.event == 0


@pytest.mark.parametrize("framed", ["{0}\n{0}\n", "[{0},\r\n{0}]"])
def test_every_format_of_streams_has_a_terminal_event(framed: str) -> None:
    body = framed.format(json.dumps(TEXT)).encode()
    finding = one(timed((0.1, body), headers=()), "S001")
    assert (finding.blame, finding.event) == (Blame.UPSTREAM, 1)


def test_a_broken_connection_looks_the_same_where_the_end_of_the_connection_ends_the_body() -> None:
    assert one(timed((0.1, TEXT), framing=Framing.CLOSE), "S001").blame is None


def test_a_pasted_stream_tells_nothing_of_the_transport() -> None:
    assert one(pasted(TEXT, done=False), "S001").blame is None


@pytest.mark.parametrize(
    ("reason", "fires"),
    [
        (EndReason.UPSTREAM_RESET, True),
        (EndReason.UPSTREAM_CLOSED, True),
        (EndReason.CLIENT_CLOSED, False),
        (EndReason.STOPPED, False),
        (None, False),
    ],
)
def test_only_an_end_that_upstream_made_counts(reason: EndReason | None, *, fires: bool) -> None:
    exchange = timed((0.1, TEXT))
    assert exchange.end
    end = replace(exchange.end, reason=reason) if reason else None
    findings = found(replace(exchange, end=end), "S001")
    assert [finding.blame for finding in findings] == ([Blame.TRANSPORT] if fires else [])


def test_an_error_instead_of_the_end_is_told_by_another_rule() -> None:
    assert not found(pasted(TEXT, {"error": {"message": "overloaded"}}, done=False), "S001")


def test_the_sentinel_or_the_finish_reason_is_enough() -> None:
    assert not found(pasted(TEXT, FINISH_TEXT, done=False), "S001")
    assert not found(pasted(TEXT, done=True), "S001")


def test_what_is_no_event_stream_or_no_success_is_not_looked_at() -> None:
    whole = b'{"choices":[{"index":0,"message":{"content":"Hi"}}]}'
    assert not found(from_bytes(whole, content_type="application/json"), "S001")
    assert not found(pasted(TEXT, done=False, status=500), "S001")


def test_a_stream_of_an_unknown_dialect_has_no_terminal_event() -> None:
    exchange = replace(
        Exchange.from_body(b"data: 1\n\n", content_type="text/event-stream", url="http://x/y"),
        source=Source.MITM,
    )
    assert not found(exchange, "S001")
    assert not context_of(exchange).recognised


def test_a_finish_reason_without_the_dialects_end_is_a_warning() -> None:
    analysis = analyse(pasted(TEXT, choice({}, "stop"), done=False))
    context = RuleContext(
        exchange=analysis.exchange,
        stream=replace(analysis.stream, events=()),
        asked=analysis.asked,
        reply=replace(analysis.reply, terminated=False, terminator="message_stop"),
        settings=DEFAULTS,
    )
    (finding,) = NoTerminalEvent().check(context)
    assert finding.severity is Severity.WARNING
    assert "there was a finish reason" in finding.message
