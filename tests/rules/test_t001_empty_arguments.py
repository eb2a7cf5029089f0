from deltatape.model.asked import ToolSpec
from deltatape.model.finding import Blame, Severity
from deltatape.rules.t001_empty_arguments import required
from helpers.chat import FINISH, calls, entry, request
from helpers.exchanges import call, found, one, pasted

EMPTY = calls(entry(0, "c1", name="get", arguments=""))
NEEDS = {"type": "object", "required": ["city"]}


def test_no_arguments_for_a_tool_that_requires_some_is_an_error() -> None:
    finding = one(pasted(EMPTY, FINISH, request=request(get=NEEDS)), "T001")
    assert finding.severity is Severity.ERROR
    assert finding.blame is Blame.UPSTREAM
    assert "requires city" in finding.message
    assert '"arguments": ""' in finding.evidence


def test_no_arguments_for_an_unknown_tool_is_a_warning_that_blames_nobody() -> None:
    finding = one(pasted(EMPTY, FINISH), "T001")
    assert finding.severity is Severity.WARNING
    assert finding.blame is None


def test_a_tool_that_requires_nothing_may_be_called_with_nothing() -> None:
    assert not found(pasted(EMPTY, FINISH, request=request(get={"type": "object"})), "T001")


def test_arguments_are_fine() -> None:
    assert not found(pasted(*call(), FINISH, request=request(get=NEEDS)), "T001")


def test_an_odd_schema_requires_nothing_that_is_known() -> None:
    assert required(ToolSpec(name="get", parameters={"required": True})) == ()
    assert required(ToolSpec(name="get", parameters={"required": [1, "a"]})) == ("a",)
