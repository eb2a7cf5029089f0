from deltatape.model.finding import Blame, Confidence
from helpers.chat import FINISH, calls, choice, entry
from helpers.exchanges import call, found, one, pasted


def test_a_brace_too_many_is_reported() -> None:
    finding = one(pasted(calls(entry(0, "c1", name="get", arguments='{"a":1}}')), FINISH), "T016")
    assert finding.blame is Blame.UPSTREAM
    assert "are whole after 7 characters" in finding.message
    assert finding.evidence


def test_a_last_fragment_that_comes_twice_is_named() -> None:
    pieces = ['{"a"', ':"x', '"}', '"}']
    doubled = [calls(entry(0, arguments=piece)) for piece in pieces]
    finding = one(pasted(calls(entry(0, "c1", name="get")), *doubled, FINISH), "T016")
    assert finding.message == (
        "the arguments of call 0 (get) are whole after 9 characters, and then '\"}' follows:"
        " fragment 4 of 4 (event 4) repeats the one before it, and without it they are JSON"
    )
    assert (finding.blame, finding.confidence) == (Blame.UPSTREAM, Confidence.LIKELY)


def test_a_healthy_call_is_fine() -> None:
    assert not found(pasted(*call(), FINISH), "T016")


def test_what_follows_a_call_in_text_is_the_models() -> None:
    written = '<tool>{"tool_name": "get", "arguments": {"a": 1}}></tool>'
    finding = one(pasted(choice({"content": written}), choice({}, "stop")), "T016")
    assert finding.blame is Blame.MODEL
    assert "call 0 (get) in the text (tool) is whole JSON, and then '>' follows" in finding.message


def test_blanks_and_fences_around_a_call_in_text_are_fine() -> None:
    fenced = '<tool>\n```json\n{"tool_name": "get", "arguments": {}}\n```\n</tool>'
    assert not found(pasted(choice({"content": fenced}), choice({}, "stop")), "T016")
