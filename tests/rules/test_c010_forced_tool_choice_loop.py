from collections.abc import Sequence

import pytest

from deltatape.conversation import check_conversation
from deltatape.model.finding import Blame, Confidence, Finding, Severity
from helpers.chat import FINISH
from helpers.exchanges import FINISH_TEXT, TEXT, USER, asks, assistant, call, digests, result

Json = dict[str, object]
NAMED = {"type": "function", "function": {"name": "get"}}
SAME = [*call(), FINISH]
OTHER = [*call("get", '{"a":2}'), FINISH]
ANSWER = assistant(("c1", "get", '{"a":1}'))
ROUND = [ANSWER, result("c1")]
TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": {}}} for name in ("get", "answer")
]


def forced(
    choice: object, chunks: list[object], after: Sequence[Json] = ROUND, tools: int = 1
) -> list[Finding]:
    offered = TOOLS[:tools]
    tape = digests(
        (asks(USER, tool_choice=choice, tools=offered), SAME),
        (asks(USER, *after, tool_choice=choice, tools=offered), chunks),
    )
    return [finding for finding in check_conversation(tape) if finding.code == "C010"]


def test_a_named_tool_that_is_still_forced_when_its_result_is_there() -> None:
    (finding,) = forced(NAMED, SAME)
    assert finding.message == (
        "the request brings tool results and still has tool_choice 'get': the model may not answer,"
        " it calls get again"
    )
    assert (finding.exchange, finding.severity) == (2, Severity.WARNING)
    assert (finding.blame, finding.confidence) == (Blame.APP, Confidence.LIKELY)
    assert len(finding.excluded) == 2
    assert finding.evidence == '{"a":1}'


def test_where_the_model_may_choose_only_a_repeated_call_tells() -> None:
    assert not forced("required", OTHER)
    (finding,) = forced("required", SAME)
    assert "tool_choice 'required'" in finding.message


def test_a_tool_that_was_not_called_yet_may_end_the_run() -> None:
    assert not forced("required", SAME, tools=2)
    assert forced(NAMED, SAME, tools=2)


@pytest.mark.parametrize(
    "after",
    [
        [ANSWER, result("c1", "1 validation error: city is missing")],
        [*ROUND, {"role": "user", "content": "And in Rome?"}],
    ],
    ids=["correction", "new question"],
)
def test_a_correction_and_a_new_question_are_no_loop(after: Sequence[Json]) -> None:
    assert not forced(NAMED, SAME, after)


@pytest.mark.parametrize(
    ("choice", "chunks"), [("auto", SAME), (None, SAME), (NAMED, [TEXT, FINISH_TEXT])]
)
def test_what_may_be_answered_is_no_loop(choice: object, chunks: list[object]) -> None:
    assert not forced(choice, chunks)


def test_it_is_told_once_in_a_conversation() -> None:
    tape = digests(
        (asks(USER, tool_choice=NAMED), SAME),
        (asks(USER, *ROUND, tool_choice=NAMED), SAME),
        (asks(USER, *ROUND, *ROUND, tool_choice=NAMED), SAME),
    )
    found = [finding for finding in check_conversation(tape) if finding.code == "C010"]
    assert [finding.exchange for finding in found] == [2]
