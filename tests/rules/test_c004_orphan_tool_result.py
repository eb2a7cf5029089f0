from dataclasses import replace

from deltatape.conversation import check_conversation
from deltatape.model.digest import Digest
from deltatape.model.finding import Blame, Confidence, Finding, Severity
from helpers.chat import FINISH, calls, entry
from helpers.exchanges import USER, asks, assistant, call, digests, result

ONE = (asks(USER), [*call(), FINISH])
RIGHT = assistant(("c1", "get", '{"a":1}'))
MORE: dict[str, object] = {"role": "user", "content": "And tomorrow?"}


def orphans(tape: list[Digest]) -> list[Finding]:
    return [finding for finding in check_conversation(tape) if finding.code == "C004"]


def refused(tape: list[Digest]) -> list[Digest]:
    return [*tape[:-1], replace(tape[-1], status=400, failed=True)]


def test_a_result_without_its_call_is_proven_where_the_tape_delivered_the_call() -> None:
    (finding,) = orphans(digests(ONE, (asks(USER, result("c1")), [])))
    assert (finding.exchange, finding.line) == (2, 200)
    assert finding.message == (
        "the request brings the result of call 0 (get, c1) of #1, but no assistant message in it"
        " has that call"
    )
    assert (finding.severity, finding.blame) == (Severity.ERROR, Blame.APP)
    assert finding.confidence is Confidence.PROVEN
    assert finding.evidence == "result for 'c1'"


def test_both_places_are_told() -> None:
    (finding,) = orphans(digests(ONE, (asks(USER, result("c1")), [])))
    against = finding.against
    assert against is not None
    assert (against.tape, against.exchange, against.line) == ("x.tape", 1, 104)
    assert against.span is not None
    assert (against.asked, against.evidence) == (None, '{"a":1}')


def test_an_assistant_message_without_the_call_does_not_own_the_result() -> None:
    (finding,) = orphans(digests(ONE, (asks(USER, assistant(text="Hi"), result("c1")), [])))
    assert finding.confidence is Confidence.PROVEN


def test_a_result_is_reported_once_however_often_it_is_sent() -> None:
    tape = digests(
        ONE,
        (asks(USER, result("c1")), [*call(index=1), FINISH]),
        (asks(USER, result("c1"), result("c2")), []),
        (asks(MORE, MORE, result("c1"), result("c2")), []),
    )
    assert [(finding.exchange, finding.evidence) for finding in orphans(tape)] == [
        (2, "result for 'c1'"),
        (3, "result for 'c2'"),
    ]


def test_a_call_that_the_tape_did_not_deliver_makes_it_possible_only() -> None:
    lone = digests((asks(USER, result("c7")), []))
    (finding,) = orphans(lone)
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.POSSIBLE)
    assert "of the call 'c7', which no assistant message in it has" in finding.message
    assert finding.against is None
    (finding,) = orphans(refused(lone))
    assert (finding.severity, finding.confidence) == (Severity.ERROR, Confidence.LIKELY)
    assert finding.message.endswith("; the provider refused it (400)")


def test_a_history_that_was_cut_in_front_is_reported_only_if_it_was_refused() -> None:
    cut = digests(ONE, (asks(USER, RIGHT, result("c1")), []), (asks(MORE, result("c1"), MORE), []))
    assert not orphans(cut)
    (finding,) = orphans(refused(cut))
    assert "the history was cut off between the two" in finding.message
    assert finding.hint == "when a history is shortened, drop a call and its result together"
    assert finding.confidence is Confidence.LIKELY
    assert not orphans(digests((asks(result("c1"), result("c2"), USER), [])))


def test_a_history_that_the_provider_keeps_owns_its_calls() -> None:
    tape = digests(ONE, (asks(USER, result("c1")), []))
    assert not orphans([tape[0], replace(tape[1], previous="resp_1")])


def test_a_right_history_and_results_that_name_no_call_are_silent() -> None:
    nameless: dict[str, object] = {"role": "function", "name": "get", "content": "ok"}
    assert not orphans(digests(ONE, (asks(USER, RIGHT, result("c1")), [])))
    assert not orphans(digests(ONE, (asks(USER, nameless), [])))


def test_a_second_result_to_a_call_that_was_delivered_once() -> None:
    twice: tuple[dict[str, object], list[object]] = (
        asks(USER, RIGHT, result("c1"), result("c1")),
        [],
    )
    (finding,) = orphans(digests(ONE, twice))
    assert finding.message == (
        "the request brings a second result of call 0 (get, c1) of #1, which the wire delivered"
        " once"
    )
    assert finding.hint.startswith("run a call once")
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.POSSIBLE)
    (finding,) = orphans(refused(digests(ONE, twice)))
    assert (finding.severity, finding.confidence) == (Severity.ERROR, Confidence.LIKELY)
    assert len(orphans(digests(ONE, twice, twice))) == 1


def test_results_of_calls_that_share_an_id_or_use_it_again_are_no_second_ones() -> None:
    both = assistant(("c1", "get", '{"a":1}'), ("c1", "get", '{"a":1}'))
    shared = [*call(), *call(index=1), FINISH]
    tape = digests((asks(USER), shared), (asks(USER, both, result("c1"), result("c1")), []))
    said = replace(tape[0].calls[1], ids=("c1",), id="c1")
    assert not orphans([replace(tape[0], calls=(tape[0].calls[0], said)), tape[1]])
    again = [RIGHT, result("c1"), RIGHT, result("c1")]
    assert not orphans(digests(ONE, (asks(USER, *again), [])))
    assert not orphans(digests((asks(USER, RIGHT, result("c1"), result("c1")), [])))


def test_a_call_of_another_conversation_proves_nothing() -> None:
    random = [calls(entry(0, "call_9fA3kQz1b", name="get", arguments="{}")), FINISH]
    other = (asks(MORE), random)
    (finding,) = orphans(digests(other, (asks(USER, result("call_9fA3kQz1b")), [])))
    assert (finding.confidence, finding.excluded) == (Confidence.POSSIBLE, ())
    assert "of call 0 (get, call_9fA3kQz1b) of #1" in finding.message
    (finding,) = orphans(digests((asks(MORE), ONE[1]), (asks(USER, result("c1")), [])))
    assert "the call 'c1', which no assistant message in it has" in finding.message


def test_a_call_that_came_after_the_request_had_left_is_not_its() -> None:
    first, second = digests(ONE, (asks(USER, result("c1")), []))
    (finding,) = orphans([first, replace(second, t_ns=1)])
    assert finding.confidence is Confidence.POSSIBLE


def test_after_a_handoff_another_agent_may_see_the_result_only() -> None:
    other: dict[str, object] = {"role": "system", "content": "You forecast."}
    tool = {"type": "function", "function": {"name": "other", "parameters": {}}}
    tape = digests(ONE, (asks(other, USER, result("c1"), tools=[tool]), []))
    (finding,) = orphans(tape)
    assert finding.confidence is Confidence.POSSIBLE
