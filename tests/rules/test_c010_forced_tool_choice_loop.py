import pytest

from deltatape.conversation import check_conversation
from deltatape.model.finding import Blame, Confidence, Finding, Severity
from helpers.chat import FINISH
from helpers.exchanges import FINISH_TEXT, TEXT, USER, asks, assistant, call, digests, result

NAMED = {"type": "function", "function": {"name": "get"}}
OTHER = [*call("get", '{"a":2}'), FINISH]
ROUND = [assistant(("c1", "get", '{"a":1}')), result("c1")]


def forced(choice: object, chunks: list[object]) -> list[Finding]:
    tape = digests(
        (asks(USER, tool_choice=choice), [*call(), FINISH]),
        (asks(USER, *ROUND, tool_choice=choice), chunks),
    )
    return [finding for finding in check_conversation(tape) if finding.code == "C010"]


def test_a_named_tool_that_is_still_forced_when_its_result_is_there() -> None:
    (finding,) = forced(NAMED, OTHER)
    assert finding.message == (
        "the request brings tool results and still has tool_choice 'get': the model may not answer,"
        " it calls get again"
    )
    assert (finding.exchange, finding.severity) == (2, Severity.WARNING)
    assert (finding.blame, finding.confidence) == (Blame.APP, Confidence.LIKELY)
    assert finding.evidence == '{"a":2}'


def test_where_the_model_may_choose_only_a_repeated_call_tells() -> None:
    assert not forced("required", OTHER)
    (finding,) = forced("required", [*call(), FINISH])
    assert "tool_choice 'required'" in finding.message


def test_a_call_without_name_and_arguments_is_told() -> None:
    (finding,) = forced(NAMED, [*call(name="", arguments=""), FINISH])
    assert finding.message.endswith("it calls a tool without a name again")
    assert finding.evidence == "(no argument bytes)"


@pytest.mark.parametrize(
    ("choice", "chunks"), [("auto", OTHER), (None, OTHER), (NAMED, [TEXT, FINISH_TEXT])]
)
def test_what_may_be_answered_is_no_loop(choice: object, chunks: list[object]) -> None:
    assert not forced(choice, chunks)


def test_it_is_told_once_in_a_conversation() -> None:
    more = [assistant(("c1", "get", '{"a":2}')), result("c1")]
    tape = digests(
        (asks(USER, tool_choice=NAMED), [*call(), FINISH]),
        (asks(USER, *ROUND, tool_choice=NAMED), OTHER),
        (asks(USER, *ROUND, *more, tool_choice=NAMED), [*call("get", '{"a":3}'), FINISH]),
    )
    found = [finding for finding in check_conversation(tape) if finding.code == "C010"]
    assert [finding.exchange for finding in found] == [2]
