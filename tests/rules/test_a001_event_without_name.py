import pytest

from deltatape.model.finding import Blame, Confidence, Severity
from helpers.app import available, call, done, output, result, told, ui
from helpers.chat import FINISH, calls, entry
from helpers.exchanges import found, one, pasted, timed


@pytest.mark.parametrize("name", [None, "", 5, {"a": 1}])
def test_a_call_without_a_name_is_an_error_of_the_application(name: object) -> None:
    finding = one(told(call(name), result(), done()), "A001")
    assert finding.message == "call 0 has no name: the page cannot know which tool it is of"
    assert (finding.severity, finding.blame) == (Severity.ERROR, Blame.APP)
    assert finding.evidence.startswith('{"type": "tool_call", "name": ')


def test_a_name_that_is_there_and_empty_is_proven_and_says_what_was_excluded() -> None:
    finding = one(timed((0.1, call(None, 10)), (0.2, result()), (0.3, done())), "A001")
    assert finding.confidence is Confidence.PROVEN
    (tried,) = finding.excluded
    assert tried.explanation == "the contract has the name elsewhere"
    assert tried.because == "the event has a field 'name' with nothing in it, and no other text"


@pytest.mark.parametrize(
    "event",
    [
        {"type": "tool_call", "toolName": "get", "arguments": {"a": 1}},
        {"type": "tool_call", "id": "c1", "arguments": {"a": 1}},
        {"type": "tool_call", "name": None, "label": "get", "arguments": {"a": 1}},
        {"type": "tool_call", "function": {"name": "get"}, "arguments": {"a": 1}},
    ],
)
def test_a_contract_that_names_its_tools_elsewhere_is_only_possibly_wrong(
    event: dict[str, object],
) -> None:
    finding = one(told(event, result(), done()), "A001")
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.POSSIBLE)


def test_the_same_holds_for_the_events_of_the_ai_sdk() -> None:
    assert one(ui(available(name=""), output()), "A001").blame is Blame.APP


def test_a_result_of_nobody_is_a_warning() -> None:
    finding = one(told(call(), result(None), done()), "A001")
    assert finding.severity is Severity.WARNING
    assert not found(told(call(id="c"), result(None, id="c"), done()), "A001")


def test_named_events_and_other_dialects_are_not_its_business() -> None:
    assert not found(told(call(), result(), done()), "A001")
    nameless = pasted(calls(entry(0, "c1", arguments="{}")), FINISH)
    assert not found(nameless, "A001")
    assert found(nameless, "T004")
    assert not found(told(call(None), result(), done()), "T004")
