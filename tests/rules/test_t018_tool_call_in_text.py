import pytest

from deltatape.model.finding import Blame, Confidence, Severity
from helpers.chat import FINISH, choice, request
from helpers.exchanges import call, found, one, pasted

CALL = '<tool_call>{"name": "get", "arguments": {"a":1}}</tool_call>'
TOOLS = request(get={"type": "object"}, put={})


def test_a_call_of_an_offered_tool_that_is_only_text_is_an_error() -> None:
    finding = one(pasted(choice({"content": CALL}, "stop"), request=TOOLS), "T018")
    assert finding.severity is Severity.ERROR
    assert (finding.blame, finding.confidence) == (Blame.UPSTREAM, Confidence.LIKELY)
    assert finding.message.startswith("call 0 (get) in the text (hermes) is of an offered tool")
    assert finding.evidence == CALL


def is_fact(text: str, question: str = "What is the weather?") -> bool:
    """Whether the rule only makes a remark that accuses nobody."""
    asked = {**TOOLS, "messages": [{"role": "user", "content": question}]}
    finding = one(pasted(choice({"content": text}, "stop"), request=asked), "T018")
    return (finding.severity, finding.blame) == (Severity.INFO, None)


def test_prose_that_goes_on_behind_a_call_is_about_calls() -> None:
    assert is_fact(f"Hermes models write {CALL} when they want a tool to run.")


def test_words_between_two_calls_are_prose_for_the_first() -> None:
    asked = {**TOOLS, "messages": []}
    text = f"{CALL} is followed by {CALL}"
    found_on = found(pasted(choice({"content": text}, "stop"), request=asked), "T018")
    assert {each.severity for each in found_on} == {Severity.INFO, Severity.ERROR}
    neighbours = pasted(choice({"content": CALL + CALL}, "stop"), request=asked)
    assert {each.severity for each in found(neighbours, "T018")} == {Severity.ERROR}


def test_a_question_about_the_notation_may_be_answered_in_it() -> None:
    assert is_fact(CALL, "How do models use <tool_call> tags?")
    assert not is_fact(CALL)


def test_special_tokens_and_further_calls_are_no_prose() -> None:
    assert not is_fact(f"I look it up. {CALL}<|im_end|>\n")
    assert not is_fact(f"{CALL} [/TOOL_CALLS]")


def test_the_second_of_two_calls_that_leaks_is_an_error() -> None:
    chunks = [*call(arguments='{"a":2}'), choice({"content": CALL}), FINISH]
    assert one(pasted(*chunks, request=TOOLS), "T018").severity is Severity.ERROR


def test_a_call_that_came_as_a_tool_call_too_is_a_warning() -> None:
    chunks = [choice({"content": CALL}), *call(), FINISH]
    finding = one(pasted(*chunks, request=TOOLS), "T018")
    assert finding.severity is Severity.WARNING
    assert "came as a tool call too" in finding.message


@pytest.mark.parametrize(
    ("asked", "blame", "why"),
    [
        (request(put={}), Blame.MODEL, "is none of the request's tools"),
        (request(), None, "came though the request offers no tools"),
        (None, None, "came though the request offers no tools"),
    ],
)
def test_a_call_of_a_tool_that_was_not_offered_is_a_warning(
    asked: dict[str, object] | None, blame: Blame | None, why: str
) -> None:
    finding = one(pasted(choice({"content": CALL}, "stop"), request=asked), "T018")
    assert (finding.severity, finding.blame) == (Severity.WARNING, blame)
    assert why in finding.message


def test_a_call_in_the_reasoning_is_information() -> None:
    exchange = pasted(choice({"reasoning_content": CALL}), choice({}, "stop"), request=TOOLS)
    finding = one(exchange, "T018")
    assert (finding.severity, finding.hint) == (Severity.INFO, "do not execute it")


def test_an_applications_own_protocol_and_an_open_call_are_no_matter_of_this_rule() -> None:
    generic = '<tool>{"tool_name": "get", "arguments": {}}</tool>'
    assert not found(pasted(choice({"content": generic}, "stop")), "T018")
    assert found(pasted(choice({"content": generic}, "stop"), request=TOOLS), "T018")
    assert not found(pasted(choice({"content": CALL[:30]}, "stop"), request=TOOLS), "T018")
