from dataclasses import replace

from deltatape.conversation import check_conversation, read_backs
from deltatape.model.digest import Digest
from deltatape.model.finding import Confidence
from helpers.scripted import RESPONSES_STORED, Call, Message, Turn, digests, result, user

ONE = Call(id="call_a", name="get", arguments={"a": 1})
TWO = Call(id="call_b", name="get", arguments={"a": 2})
ASKED = Turn(history=(user("Hi"),), answer=Message(role="assistant", calls=(ONE, TWO)), id="r1")


def after(*said: Message, previous: str = "r1") -> list[Digest]:
    """The digests of an answer with two calls, and of a request that goes on from it."""
    history = (*ASKED.history, ASKED.answer, *said)
    end = Message(role="assistant", text="Done.")
    return digests(
        RESPONSES_STORED, [ASKED, Turn(history=history, answer=end, id="r2", previous=previous)]
    )


def codes(found: list[Digest]) -> list[tuple[str, Confidence]]:
    told = check_conversation(found)
    return [(one.code, one.confidence) for one in told if one.code in ("C001", "C002", "C003")]


def test_results_tell_that_the_calls_were_known() -> None:
    tape = after(result(ONE), result(TWO))
    (link,) = read_backs(tape)
    assert (link.reply, link.later, link.confidence) == (tape[0], tape[1], Confidence.PROVEN)
    assert [pair.repetition.id for pair in link.pairs] == ["call_a", "call_b"]
    assert (link.lost, link.answered) == ((), ("call_a", "call_b"))
    assert link.repeated_calls == tuple(pair.repetition for pair in link.pairs)
    assert codes(tape) == []


def test_a_call_without_a_result_beside_one_with_a_result_is_lost() -> None:
    assert codes(after(result(TWO))) == [("C001", Confidence.LIKELY)]


def test_a_result_under_an_id_that_was_made_of_the_delivered_one_shows_the_change() -> None:
    doubled = replace(ONE, id="call_acall_a")
    assert codes(after(result(doubled), result(TWO))) == [("C003", Confidence.PROVEN)]


def test_who_goes_on_without_any_result_may_have_been_interrupted() -> None:
    assert not read_backs(after(user("Never mind.")))
    assert not read_backs(after(result(replace(ONE, id="other"))))


def test_in_a_conversation_results_may_have_been_stored_otherwise() -> None:
    first, second = after(result(TWO))
    (link,) = read_backs([replace(first, previous="conv"), replace(second, previous="conv")])
    assert (link.confidence, link.lost) == (Confidence.LIKELY, ())


def test_a_reply_that_is_not_on_the_tape_or_was_read_back_tells_nothing_more() -> None:
    assert not read_backs(after(result(ONE), previous="r0"))
    first, second = after(result(ONE), result(TWO))
    again = replace(second, exchange=3, reply_id="r3")
    assert len(read_backs([first, second, again])) == 1
