import pytest

from deltatape.model.finding import Blame, Severity
from helpers.app import available, call, done, output, result, told, ui
from helpers.chat import FINISH, calls, entry
from helpers.exchanges import found, one, pasted


@pytest.mark.parametrize("name", [None, "", 5, {"a": 1}])
def test_a_call_without_a_name_is_an_error_of_the_application(name: object) -> None:
    finding = one(told(call(name), result(), done()), "A001")
    assert finding.message == "call 0 has no name: the page cannot know which tool it is of"
    assert (finding.severity, finding.blame) == (Severity.ERROR, Blame.APP)
    assert finding.evidence.startswith('{"type": "tool_call", "name": ')


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
