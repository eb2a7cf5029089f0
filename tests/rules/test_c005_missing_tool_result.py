from dataclasses import replace

import pytest

from deltatape.conversation import check_conversation
from deltatape.model.digest import Digest
from deltatape.model.finding import Blame, Confidence, Finding, Severity
from helpers.chat import FINISH
from helpers.exchanges import FINISH_TEXT, TEXT, USER, asks, assistant, call, digests, result

TWO = [*call("get"), *call("put", '{"b":2}', 1), FINISH]
BOTH = assistant(("c1", "get", '{"a":1}'), ("c2", "put", '{"b":2}'))
MORE: dict[str, object] = {"role": "user", "content": "And tomorrow?"}
SAYS = [TEXT, FINISH_TEXT]


def missing(tape: list[Digest]) -> list[Finding]:
    return [finding for finding in check_conversation(tape) if finding.code == "C005"]


def test_one_of_two_results_is_missing() -> None:
    (finding,) = missing(digests((asks(USER), TWO), (asks(USER, BOTH, result("c1")), SAYS)))
    assert finding.message == (
        "the history goes on after call 1 (put, c2) of #1 without its result; this provider took it"
    )
    assert (finding.severity, finding.blame) == (Severity.WARNING, Blame.APP)
    assert (finding.confidence, finding.evidence) == (Confidence.POSSIBLE, '{"b":2}')
    assert finding.against is not None
    assert finding.against.exchange == 1
    assert finding.against.asked is not None


def test_it_is_an_error_if_the_provider_refused_the_request() -> None:
    tape = digests((asks(USER), TWO), (asks(USER, BOTH, MORE), []))
    found = missing([tape[0], replace(tape[1], status=400)])
    assert [finding.severity for finding in found] == [Severity.ERROR] * 2
    assert [finding.confidence for finding in found] == [Confidence.LIKELY] * 2
    about = replace(tape[1], status=400, error="tool_call_ids without response messages: c1, c2")
    found = missing([tape[0], about])
    assert [finding.confidence for finding in found] == [Confidence.PROVEN] * 2
    assert found[0].excluded[0].because == "it refused the request with 400"
    assert all("; the provider refused the request (400)" in each.message for each in found)


def test_without_an_answer_nothing_is_said_about_it() -> None:
    tape = digests((asks(USER, BOTH, result("c1")), []))
    (finding,) = missing([replace(tape[0], status=None)])
    assert finding.message == "the history goes on after a call (put, c2) without its result"
    assert finding.against is None


def test_a_call_is_reported_once_and_early_ones_are_found_too() -> None:
    tape = digests(
        (asks(USER, BOTH, result("c1"), assistant(text="Hi"), MORE), SAYS),
        (asks(USER, BOTH, result("c1"), assistant(text="Hi"), MORE, assistant(text="H"), MORE), []),
        (asks(BOTH, result("c1"), MORE), []),
    )
    assert [finding.exchange for finding in missing(tape)] == [1]


@pytest.mark.parametrize(
    "history",
    [
        [USER, BOTH],
        [USER, BOTH, result("c2"), result("c1")],
        [USER, BOTH, {"role": "tool", "content": "ok"}, MORE],
        [USER, assistant(("c1", "get", "{}"), ("c1", "get", "{}")), result("c1")],
        [USER, assistant((None, "get", "{}"), (None, "get", "")), result("get"), result("get")],
        [USER, assistant(("c1", "get", "{}")), result("get")],
        [USER, assistant(("c1", "get", "{}")), assistant(text="Hi")],
    ],
)
def test_histories_with_nothing_missing(history: list[dict[str, object]]) -> None:
    assert not missing(digests((asks(*history), [])))


def test_where_calls_have_no_ids_each_result_answers_one() -> None:
    twice = assistant((None, "get", "{}"), (None, "get", '{"a":1}'))
    (finding,) = missing(digests((asks(USER, twice, result("get"), MORE), [])))
    assert finding.evidence == '{"a":1}'


def test_a_result_that_comes_late_was_missing_before() -> None:
    tape = digests(
        (asks(USER, BOTH, result("c1"), MORE), SAYS),
        (asks(USER, BOTH, result("c1"), MORE, result("c2"), MORE), []),
    )
    assert [finding.exchange for finding in missing(tape)] == [1]
