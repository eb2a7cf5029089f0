from collections.abc import Sequence

from deltatape.conversation import check_conversation
from deltatape.model.digest import Digest
from deltatape.model.finding import Blame, Confidence, Finding, Severity
from helpers.chat import FINISH, calls, entry
from helpers.exchanges import FINISH_TEXT, TEXT, USER, asks, assistant, call, digests, result

ROUND = [assistant(("c1", "get", '{"a":1}')), result("c1")]
MORE: dict[str, object] = {"role": "user", "content": "And tomorrow?"}
FIRST = (asks(USER), [*call(), FINISH])


def reused(tape: Sequence[Digest]) -> list[Finding]:
    return [finding for finding in check_conversation(tape) if finding.code == "T026"]


def test_a_new_call_with_the_id_of_a_delivered_one() -> None:
    (finding,) = reused(digests(FIRST, (asks(USER, *ROUND), [*call("put"), FINISH])))
    assert finding.message == (
        "call 0 (put, c1) of #2 has the id of call 0 (get, c1) of #1: a result under this id may be"
        " taken for that of the other call"
    )
    assert (finding.severity, finding.exchange) == (Severity.WARNING, 2)
    assert (finding.blame, finding.confidence) == (Blame.UPSTREAM, Confidence.LIKELY)
    assert finding.excluded[0].because == "the wire delivered the id in #1 and again in #2"
    assert finding.against
    assert finding.against.exchange == 1


def test_it_is_told_once_for_each_id_and_in_one_finding_per_reply() -> None:
    both = calls(entry(0, "c1", name="a", arguments="{}"), entry(1, "c2", name="b", arguments="{}"))
    again = [assistant(("c1", "a", "{}"), ("c2", "b", "{}")), result("c1"), result("c2")]
    tape = digests(
        (asks(USER), [both, FINISH]),
        (asks(USER, *again), [both, FINISH]),
        (asks(USER, *again, *again), [both, FINISH]),
    )
    (finding,) = reused(tape)
    assert finding.exchange == 2
    assert "(and 1 more ids)" in finding.message


def test_other_ids_and_a_request_that_is_sent_again_are_fine() -> None:
    other = calls(entry(0, "c9", name="get", arguments='{"a":1}'))
    assert not reused(digests(FIRST, (asks(USER, *ROUND), [other, FINISH])))
    assert not reused(digests(FIRST, FIRST))
    assert not reused(digests(FIRST, (asks(USER, *ROUND), [TEXT, FINISH_TEXT])))


def test_an_id_that_only_the_history_has_is_a_remark_about_nobody() -> None:
    (finding,) = reused(digests((asks(USER, *ROUND, MORE), [*call(), FINISH])))
    assert (finding.severity, finding.blame) == (Severity.INFO, None)
    assert "no reply on the tape delivered" in finding.message


def test_in_a_trimmed_history_an_equal_call_shows_that_the_wire_delivered_it() -> None:
    later = asks(MORE, *ROUND, MORE)
    (finding,) = reused(digests(FIRST, (later, [*call("put"), FINISH])))
    assert finding.blame is Blame.UPSTREAM
    other = asks(MORE, assistant(("c1", "get", '{"a":2}')), result("c1"), MORE)
    (finding,) = reused(digests(FIRST, (other, [*call("put"), FINISH])))
    assert finding.blame is None


def test_another_conversation_may_have_the_same_ids() -> None:
    tape = digests(FIRST, (asks(MORE), [*call(), FINISH]))
    assert not reused(tape)
