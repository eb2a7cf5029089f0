from dataclasses import replace

import pytest

from deltatape.model.exchange import Exchange
from deltatape.model.finding import Blame, Confidence, Severity
from helpers.chat import choice, request
from helpers.exchanges import found, one, pasted, timed

CALL = '<tool_call>{"name": "get", "arguments": {"a":1}}</tool_call>'
CUT = CALL[:40]
TOOLS = request(get={"type": "object"})


def said(text: str, finish: str | None, channel: str = "content") -> Exchange:
    return pasted(choice({channel: text}), choice({}, finish), request=TOOLS)


@pytest.mark.parametrize(
    ("finish", "why", "blame", "confidence"),
    [
        ("length", "the provider cut the reply", None, Confidence.PROVEN),
        ("stop", "the reply went on to its regular end", Blame.UPSTREAM, Confidence.LIKELY),
        (None, "the stream ended without a finish reason", None, Confidence.LIKELY),
    ],
)
def test_a_call_that_is_cut_off_is_an_error_with_its_cause(
    finish: str | None, why: str, blame: Blame | None, confidence: Confidence
) -> None:
    finding = one(said(CUT, finish), "T019")
    assert finding.severity is Severity.ERROR
    assert (finding.blame, finding.confidence) == (blame, confidence)
    assert "is not closed: it is cut off" in finding.message
    assert why in finding.message


def test_a_cut_stream_is_a_cause() -> None:
    exchange = replace(timed((0.1, choice({"content": CUT})), request=TOOLS), end=None)
    assert "the stream was cut" in one(exchange, "T019").message


def test_whole_arguments_without_a_closing_tag_are_a_warning() -> None:
    finding = one(said(CALL.removesuffix("</tool_call>"), "stop"), "T019")
    assert finding.severity is Severity.WARNING
    assert "its arguments are whole, the closing tag is missing" in finding.message


def test_an_open_call_in_the_reasoning_is_information() -> None:
    assert one(said(CUT, "stop", "reasoning_content"), "T019").severity is Severity.INFO


def test_an_applications_own_protocol_is_reported_too() -> None:
    generic = pasted(choice({"content": '<tool>{"tool_name": "get", "arg'}, "stop"))
    assert one(generic, "T019").severity is Severity.ERROR


def test_closed_calls_and_talk_are_fine() -> None:
    assert not found(said(CALL, "stop"), "T019")
    assert not found(said("Use <tool_call> for that.", "stop"), "T019")


def test_a_notation_that_the_request_speaks_of_may_only_be_talked_about() -> None:
    question = {"role": "user", "content": "How do models use <tool_call> tags?"}
    asked = {**request(get={"type": "object"}), "messages": [question]}
    text = 'They begin with <tool_call>{"name": "get", "arguments": {'
    finding = one(pasted(choice({"content": text}, "stop"), request=asked), "T019")
    assert (finding.severity, finding.blame) == (Severity.INFO, None)
    assert finding.message.endswith("so the text may only be about it")
