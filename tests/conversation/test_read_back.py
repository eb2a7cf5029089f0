import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from deltatape.conversation import check_conversation, read_backs
from deltatape.diagnose.digest import digest
from deltatape.model.digest import Digest, ReadBack
from deltatape.model.exchange import Tap
from deltatape.model.finding import Confidence, Finding, Severity
from deltatape.rules.c001_call_lost_by_app import CallLostByApp
from helpers.chat import FINISH
from helpers.corpus import ROOT, every_case, is_present, needs_corpus
from helpers.exchanges import (
    FINISH_TEXT,
    TEXT,
    USER,
    asks,
    assistant,
    call,
    digests,
    result,
)

ONE = [*call(), FINISH]
RIGHT = ("c1", "get", '{"a":1}')
WRONG = ("c1", "get", "")
SYSTEM: dict[str, object] = {"role": "system", "content": "Be brief."}
OTHER_SYSTEM: dict[str, object] = {"role": "system", "content": "It is 12:01."}
MORE: dict[str, object] = {"role": "user", "content": "Hello?"}


def codes(digests: list[Digest]) -> list[tuple[str, Confidence]]:
    return [(finding.code, finding.confidence) for finding in check_conversation(digests)]


def test_a_faithful_application_is_read_back_and_not_accused() -> None:
    tape = digests((asks(USER), ONE), (asks(USER, assistant(RIGHT), result("c1")), []))
    (read_back,) = read_backs(tape)
    assert (read_back.reply, read_back.later) == (tape[0], tape[1])
    assert (len(read_back.pairs), read_back.lost, read_back.extra) == (1, (), ())
    assert read_back.answered == ("c1",)
    assert not check_conversation(tape)


def test_an_unchanged_history_proves() -> None:
    tape = digests((asks(USER), ONE), (asks(USER, assistant(WRONG), result("c1")), []))
    assert codes(tape) == [("C002", Confidence.PROVEN)]


def test_the_history_that_follows_is_judged_once_and_old_messages_may_be_shortened_later() -> None:
    short = ("c1", "get", '{"a":"..."}')
    first, second = asks(USER, assistant(RIGHT), result("c1")), [TEXT, FINISH_TEXT]
    tape = digests(
        (asks(USER), ONE),
        (first, second),
        (asks(USER, assistant(short), result("c1"), assistant(text="Hello"), MORE), []),
        (asks(USER, assistant(text="We spoke of the weather."), MORE), []),
    )
    assert not check_conversation(tape)


def test_one_mistake_is_reported_once_however_often_it_is_repeated() -> None:
    wrong = [USER, assistant(WRONG), result("c1")]
    tape = digests(
        (asks(USER), ONE),
        (asks(*wrong), [TEXT, FINISH_TEXT]),
        (asks(*wrong, assistant(text="Hello"), MORE), []),
    )
    assert codes(tape) == [("C002", Confidence.PROVEN)]


@pytest.mark.parametrize(
    "answers",
    [
        ([*call("get"), FINISH], [TEXT, FINISH_TEXT]),
        ([TEXT, FINISH_TEXT], [*call("get"), FINISH]),
    ],
)
def test_a_regenerated_answer_that_fits_acquits(answers: tuple[list[object], list[object]]) -> None:
    tape = digests(
        (asks(USER), answers[0]),
        (asks(USER), answers[1]),
        (asks(USER, assistant(text="Hello"), MORE), []),
    )
    assert not check_conversation(tape)


def test_of_two_answers_to_the_same_history_none_is_accused_without_an_id() -> None:
    tape = digests(
        (asks(USER), ONE), (asks(USER), ONE), (asks(USER, assistant(text="What?"), MORE), [])
    )
    assert not read_backs(tape)


def test_of_two_answers_to_the_same_history_the_id_tells_which_is_meant() -> None:
    tape = digests(
        (asks(USER), [*call(index=0), FINISH]),
        (asks(USER), [*call(index=4), FINISH]),
        (asks(USER, assistant(("c5", "get", "")), result("c5")), []),
    )
    (finding,) = check_conversation(tape)
    assert "of #2" in finding.message


def test_a_failed_attempt_before_a_retry_is_no_answer() -> None:
    failed = [{"error": {"message": "overloaded"}}]
    tape = digests(
        (asks(USER), failed), (asks(USER), ONE), (asks(USER, assistant(text=""), MORE), [])
    )
    assert codes(tape) == [("C001", Confidence.PROVEN)]


def test_a_second_run_of_the_same_program_is_likely_at_most() -> None:
    tape = digests(
        (asks(USER), ONE),
        (asks(USER, assistant(RIGHT), result("c1")), []),
        (asks(USER), [*call(index=6), FINISH]),
        (asks(USER, assistant(text=""), MORE), []),
    )
    assert codes(tape) == [("C001", Confidence.LIKELY)]


def test_a_reply_that_was_read_back_by_its_id_is_not_judged_again() -> None:
    tape = digests(
        (asks(USER), ONE),
        (asks(USER, assistant(RIGHT), result("c1")), []),
        (asks(USER, assistant(WRONG), result("c1"), MORE), []),
        (asks(MORE, assistant(WRONG), result("c1"), MORE), []),
    )
    assert not check_conversation(tape)


def test_another_system_message_makes_a_lost_call_less_sure() -> None:
    tape = digests(
        (asks(SYSTEM, USER), ONE), (asks(OTHER_SYSTEM, USER, assistant(text=""), MORE), [])
    )
    assert codes(tape) == [("C001", Confidence.LIKELY)]


def test_conversations_that_begin_alike_are_told_apart_by_their_system_message() -> None:
    tape = digests(
        (asks(SYSTEM, USER), ONE),
        (asks(OTHER_SYSTEM, USER), [TEXT, FINISH_TEXT]),
        (asks(OTHER_SYSTEM, USER, assistant(text="Hello"), MORE), []),
        (asks(SYSTEM, USER, assistant(RIGHT), result("c1")), []),
    )
    assert not check_conversation(tape)
    assert [read_back.reply.exchange for read_back in read_backs(tape)] == [2, 1]


def test_in_a_trimmed_history_an_answered_id_proves_and_an_unanswered_one_makes_likely() -> None:
    answered = asks(MORE, assistant(WRONG), result("c1"))
    open_call = asks(MORE, assistant(WRONG), MORE)
    assert codes(digests((asks(USER), ONE), (answered, []))) == [("C002", Confidence.PROVEN)]
    assert codes(digests((asks(USER), ONE), (open_call, []))) == [("C002", Confidence.LIKELY)]


def test_an_id_that_two_replies_share_proves_nothing_in_a_trimmed_history() -> None:
    tape = digests(
        (asks(USER), ONE), (asks(SYSTEM, MORE), ONE), (asks(assistant(WRONG), result("c1")), [])
    )
    assert not check_conversation(tape)


def test_ids_of_two_replies_in_one_message_name_neither() -> None:
    tape = digests(
        (asks(USER), ONE),
        (asks(MORE), [*call(index=1), FINISH]),
        (asks(assistant(WRONG, ("c2", "get", "")), result("c1")), []),
    )
    assert not check_conversation(tape)


def test_an_id_that_belongs_elsewhere_does_not_accuse_the_reply_before() -> None:
    tape = digests(
        (asks(MORE), [*call(index=8), FINISH]),
        (asks(USER), [TEXT, FINISH_TEXT]),
        (asks(USER, assistant(("c9", "get", "")), result("c9")), []),
    )
    assert not check_conversation(tape)


def test_the_text_of_a_forced_call_may_be_kept_as_a_text() -> None:
    forced = {"type": "function", "function": {"name": "get"}}
    tape = digests(
        (asks(USER, tool_choice=forced), [*call(), FINISH_TEXT]),
        (asks(USER, assistant(text="1"), MORE), []),
    )
    assert not read_backs(tape)


def test_a_prefill_is_no_history() -> None:
    tape = digests((asks(USER), ONE), (asks(USER, assistant(text="Sure:")), []))
    assert not read_backs(tape)


def test_a_request_that_was_sent_while_the_answer_came_knows_nothing_of_it() -> None:
    tape = digests((asks(USER), ONE), (asks(USER, assistant(text=""), MORE), []))
    early = replace(tape[1], t_ns=1)
    assert not read_backs([tape[0], early])
    knows = digests((asks(USER), ONE), (asks(USER, assistant(WRONG), result("c1")), []))
    assert read_backs([knows[0], replace(knows[1], t_ns=1)])


def test_one_reply_may_come_back_as_several_messages() -> None:
    two = [*call("get"), *call("put", '{"b":2}', 1), FINISH]
    put = ("c2", "put", '{"b":2}')
    split = asks(
        USER, assistant(text="Well"), assistant(RIGHT), result("c1"), assistant(put), result("c2")
    )
    assert not check_conversation(digests((asks(USER), two), (split, [])))


def test_ids_of_its_own_make_a_change_likely_and_other_tools_another_reply() -> None:
    own = asks(USER, assistant(("x", "get", "")), result("x"))
    others = asks(USER, assistant(("x", "put", "")), result("x"))
    joined = asks(USER, assistant(("c1c1", "get", "")), result("c1c1"))
    unnamed = asks(USER, assistant((None, "get", "")), MORE)
    assert codes(digests((asks(USER), ONE), (own, []))) == [("C002", Confidence.LIKELY)]
    assert not codes(digests((asks(USER), ONE), (others, [])))
    assert ("C002", Confidence.PROVEN) in codes(digests((asks(USER), ONE), (joined, [])))
    assert ("C002", Confidence.PROVEN) in codes(digests((asks(USER), ONE), (unnamed, [])))


def test_a_reply_without_calls_is_never_held_against_the_application() -> None:
    edited = asks(USER, assistant(text="Goodbye"), MORE)
    assert not read_backs(digests((asks(USER), [TEXT, FINISH_TEXT]), (edited, [])))


def test_the_applications_own_endpoint_is_no_conversation_with_a_model() -> None:
    tape = digests((asks(USER), ONE), (asks(USER, assistant(WRONG), result("c1")), []))
    assert read_backs(tape)
    assert not read_backs([replace(tape[0], tap=Tap.APP), tape[1]])
    assert not check_conversation([tape[0], replace(tape[1], tap=Tap.APP)])


def test_requests_without_history_link_nothing() -> None:
    tape = digests((asks(), ONE), (asks(assistant(text=""), MORE), []))
    assert not read_backs(tape)


def test_conversations_go_on_across_tapes() -> None:
    first, second = digests((asks(USER), ONE), (asks(USER, assistant(WRONG), result("c1")), []))
    other = replace(second, tape="y.tape", t_ns=1)
    (finding,) = check_conversation([first, other])
    assert (finding.tape, finding.severity) == ("y.tape", Severity.ERROR)


def test_a_rule_that_fails_is_reported_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(_: CallLostByApp, read_back: ReadBack) -> Iterator[Finding]:
        raise KeyError(read_back.later.exchange)

    monkeypatch.setattr(CallLostByApp, "check", fail)
    tape = digests((asks(USER), ONE), (asks(USER, assistant(WRONG), result("c1")), []))
    assert [finding.code for finding in check_conversation(tape)] == ["X001", "C002"]


def echo_pairs() -> list[tuple[str, str]]:
    """Names of cases of which the second repeats what the first delivered."""
    pairs = json.loads((ROOT / "echo_pairs.json").read_text()) if is_present() else []
    return [(one, other) for one, other in pairs if {one, other} <= EXCHANGES.keys()]


def names(found: Digest) -> set[str | None]:
    """The tools whose calls a request repeats."""
    return {call.name for message in found.history for call in message.calls}


EXCHANGES = {case.id: case.exchange for case in every_case()}


@needs_corpus
@pytest.mark.parametrize("pair", echo_pairs(), ids=lambda pair: pair[1])
def test_real_applications_that_work_are_not_accused(pair: tuple[str, str]) -> None:
    first = digest(EXCHANGES[pair[0]])
    second = replace(digest(EXCHANGES[pair[1]]), exchange=2)
    assert not check_conversation([first, second])
    if names(second).isdisjoint(call.name for call in first.calls):
        assert not read_backs([first, second])  # a short id occurs in a long one by chance
        return
    (read_back,) = read_backs([first, second])
    assert len(read_back.pairs) == len(first.calls) > 0


@needs_corpus
@pytest.mark.parametrize("step", [1, -1])
def test_real_conversations_on_one_tape_are_not_mixed_up(step: int) -> None:
    exchanges = list(EXCHANGES.values())[::step]
    tape = [replace(digest(each), exchange=place) for place, each in enumerate(exchanges, 1)]
    assert not check_conversation(tape)
