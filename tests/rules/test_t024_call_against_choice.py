import pytest

from deltatape.model.finding import Blame, Confidence, Severity
from helpers.chat import FINISH
from helpers.exchanges import USER, asks, call, found, one, pasted

TOOLS = [{"type": "function", "function": {"name": name}} for name in ("get", "put")]
GET = {"type": "function", "function": {"name": "get"}}


@pytest.mark.parametrize(
    ("choice", "called"), [("none", "get"), (GET, "put")], ids=["none", "another"]
)
def test_a_call_that_the_request_forbids_is_reported(choice: object, called: str) -> None:
    request = asks(USER, tools=TOOLS, tool_choice=choice)
    finding = one(pasted(*call(called), FINISH, request=request), "T024")
    assert (finding.severity, finding.blame) == (Severity.ERROR, Blame.UPSTREAM)
    assert finding.confidence is Confidence.PROVEN
    assert f"call 0 ({called}" in finding.message


@pytest.mark.parametrize("choice", [None, "auto", "required", GET])
def test_calls_that_are_allowed_are_fine(choice: object) -> None:
    request = asks(USER, tools=TOOLS, tool_choice=choice)
    assert not found(pasted(*call(), FINISH, request=request), "T024")


def test_a_choice_that_names_no_offered_tool_says_nothing() -> None:
    request = asks(USER, tools=TOOLS[1:], tool_choice=GET)
    assert not found(pasted(*call("put"), FINISH, request=request), "T024")
