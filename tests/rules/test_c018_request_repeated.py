from dataclasses import replace

import pytest

from deltatape.conversation import check_conversation
from deltatape.model.digest import Digest
from deltatape.model.finding import Blame, Confidence, Finding, Severity
from helpers.chat import FINISH, choice
from helpers.exchanges import FINISH_TEXT, TEXT, USER, asks, assistant, call, digests, result

STEP = (USER, assistant(("c1", "get", '{"a":1}')), result("c1"))
SAID = [TEXT, FINISH_TEXT]
TOOLS = [{"type": "function", "function": {"name": "get"}}]


def repeated(tape: list[Digest]) -> list[Finding]:
    return [each for each in check_conversation(tape) if each.code == "C018"]


def test_the_same_question_again_is_a_fact() -> None:
    (finding,) = repeated(digests((asks(USER), SAID), (asks(USER), SAID)))
    assert finding.message == (
        "the request of #1 came again 10.0 s later, after it had been answered in full"
    )
    assert (finding.exchange, finding.severity) == (2, Severity.INFO)
    assert (finding.blame, finding.confidence) == (None, Confidence.PROVEN)
    assert finding.against
    assert finding.against.exchange == 1


def test_the_same_step_of_an_agent_again_may_be_the_application() -> None:
    tape = digests((asks(USER), [*call(), FINISH]), (asks(*STEP), SAID), (asks(*STEP), SAID))
    (finding,) = repeated(tape)
    assert "came again with the same tool results 10.0 s later" in finding.message
    assert (finding.exchange, finding.severity) == (3, Severity.WARNING)
    assert (finding.blame, finding.confidence) == (Blame.APP, Confidence.POSSIBLE)


def test_a_conversation_that_is_run_again_is_a_fact() -> None:
    question, step = (asks(USER), [*call(), FINISH]), (asks(*STEP), SAID)
    found = repeated(digests(question, step, question, step))
    assert [(each.exchange, each.blame) for each in found] == [(3, None), (4, None)]


def test_at_once_is_not_told_in_seconds() -> None:
    first, second = digests((asks(USER), SAID), (asks(USER), SAID))
    (finding,) = repeated([first, replace(second, t_ns=first.t_ns)])
    assert finding.message == "the request of #1 came again at once, before its answer had ended"


def test_side_by_side_it_is_a_fact_of_an_agent_too() -> None:
    first, second = digests((asks(*STEP), SAID), (asks(*STEP), SAID))
    (finding,) = repeated([replace(first, end_ns=(second.t_ns or 0) + 1), second])
    assert finding.message.endswith("before its answer had ended")
    assert finding.blame is None


def test_it_is_told_whenever_the_number_has_doubled() -> None:
    found = repeated(digests(*[(asks(*STEP), SAID)] * 9))
    assert [each.exchange for each in found] == [2, 4, 8]
    assert (
        found[1].message == "the same request with the same tool results came 4 times, first as #1"
    )
    assert found[1].blame is None


@pytest.mark.parametrize(
    "other",
    [
        asks(USER, model="another"),
        asks(USER, tools=TOOLS),
        asks({"role": "system", "content": "Be kind."}, USER),
        asks({"role": "user", "content": "And tomorrow?"}),
        asks(USER, tool_choice="none"),
        {"input": "What?"},
    ],
)
def test_another_request_is_another(other: dict[str, object]) -> None:
    assert not repeated(digests((asks(USER), SAID), (other, SAID)))


def test_attempts_after_a_failure_are_none() -> None:
    first, second = digests((asks(USER), SAID), (asks(USER), SAID))
    assert not repeated([replace(first, whole=False, failed=True), second])
    assert not repeated([replace(first, lossy=True), second])
    assert not repeated(digests((asks(USER), [choice({}, "stop")]), (asks(USER), SAID)))


def test_without_times_and_on_another_tape() -> None:
    first, second = digests((asks(USER), SAID), (asks(USER), SAID))
    (finding,) = repeated([first, replace(second, t_ns=None)])
    assert finding.message == "the request of #1 came again, after it had been answered in full"
    assert not repeated([first, replace(second, tape="other.tape")])


def test_of_requests_that_nobody_can_read_nothing_is_known() -> None:
    unread = [
        replace(each, known=False) for each in digests((asks(USER), SAID), (asks(USER), SAID))
    ]
    assert not repeated(unread)
    stored = [replace(each, history=()) for each in digests((asks(USER), SAID), (asks(USER), SAID))]
    assert [each.evidence for each in repeated(stored)] == [""]
