import pytest

from deltatape.model.finding import Blame, Confidence, Severity
from helpers.app import available, call, done, output, result, told, ui
from helpers.chat import FINISH, calls, entry
from helpers.exchanges import found, one, pasted


@pytest.mark.parametrize(
    ("arguments", "what", "severity"),
    [
        (10, "the number 10", Severity.ERROR),
        (1.5, "the number 1.5", Severity.ERROR),
        (True, "a truth value true", Severity.ERROR),
        ([1], "a list [1]", Severity.WARNING),
        ("Rome", "the string 'Rome'", Severity.WARNING),
        ("", "the string ''", Severity.WARNING),
        ('{"ci', """the string '{"ci', a piece of JSON""", Severity.ERROR),
        ('{"city":"Rome"}', "a string with an object in it", Severity.WARNING),
    ],
)
def test_arguments_that_are_no_object_are_told_as_what_they_are(
    arguments: object, what: str, severity: Severity
) -> None:
    finding = one(told(call("get", arguments), result(), done()), "A002")
    assert finding.message == f"the arguments of call 0 (get) are {what}, not an object"
    assert (finding.severity, finding.blame) == (severity, Blame.APP)
    sure = Confidence.LIKELY if severity is Severity.ERROR else Confidence.POSSIBLE
    assert finding.confidence is sure, "a contract may have text there, but no number"


def test_missing_arguments_are_a_warning_whether_or_not_there_is_a_name() -> None:
    for name in ("get", None):
        event = {"type": "tool_call", "name": name, "arguments": None}
        finding = one(told(event, result(), done()), "A002")
        assert "are missing or null, not an object" in finding.message
        assert finding.severity is Severity.WARNING


def test_a_number_in_place_of_an_object_is_told_without_a_name_too() -> None:
    finding = one(told(call(None, 10)), "A002")
    assert finding.message == "the arguments of call 0 are the number 10, not an object"


def test_what_is_no_json_or_free_text_or_never_whole_is_not_its_business() -> None:
    start = {"type": "tool-input-start", "toolCallId": "c1", "toolName": "get"}
    assert not found(told({"type": "start", "messageId": "m"}, start), "A002")
    assert not found(ui(available(value="*** Begin"), output()), "A002")
    broken = {**available(), "type": "tool-input-error", "input": '{"a": x', "errorText": "no"}
    assert not found(ui(broken), "A002")
    assert one(ui(available(value=7), output()), "A002").severity is Severity.ERROR


def test_objects_and_other_dialects_are_fine() -> None:
    assert not found(told(call(), result(), done()), "A002")
    assert not found(pasted(calls(entry(0, "c1", name="get", arguments="[1]")), FINISH), "A002")
    assert not found(told(call("get", [1]), result(), done()), "T006")
