from dataclasses import replace

import pytest

from deltatape.conversation import check_conversation, read_backs, unanswered
from deltatape.diagnose.digest import digest
from deltatape.model.digest import Digest, Unanswered
from deltatape.model.exchange import Tap
from deltatape.model.tape_summary import TapeSummary
from helpers.chat import FINISH, calls, choice, entry
from helpers.corpus import cases, needs_corpus
from helpers.exchanges import (
    CALL_REPLY,
    FINISH_TEXT,
    TEXT_REPLY,
    USER,
    asks,
    assistant,
    call,
    result,
    user,
)
from helpers.watched import CALLS, NS, watched_digests

RIGHT = ("c1", "get", '{"a":1}')
OTHER = user("Another matter.")
FORCED = {"type": "function", "function": {"name": "get"}}
TOOL = {"type": "function", "function": {"name": "get"}}


def silent(tape: list[Digest]) -> list[Unanswered]:
    return list(unanswered(tape, read_backs(tape)))


def numbers(tape: list[Digest]) -> list[int]:
    return [each.reply.exchange for each in silent(tape)]


def test_calls_after_which_nothing_came_are_unanswered() -> None:
    (found,) = silent(watched_digests(CALLS, until_s=42))
    assert (found.reply.exchange, found.until_ns) == (1, 42 * NS)
    assert (found.alive_ns, found.others) == (None, 0)


def test_an_application_that_exited_is_known_to_have_lived_until_then() -> None:
    (found,) = silent(watched_digests(CALLS, until_s=42, stop="child-exit", exit_code=0))
    assert found.alive_ns == 42 * NS


def test_other_traffic_shows_that_the_application_lives() -> None:
    (found,) = silent(watched_digests(CALLS, (asks(OTHER), TEXT_REPLY), until_s=42))
    assert found.alive_ns == 10 * NS


@pytest.mark.parametrize(
    "later",
    [
        asks(USER, assistant(RIGHT), result("c1")),  # answered
        asks(USER, assistant(("c1", "get", "")), result("c1")),  # answered wrongly: C002
        asks(USER),  # asked again
        asks(USER, OTHER),  # gone on without it
        asks(USER, assistant(text="Sure."), OTHER),  # edited
        asks(USER, result("c1")),  # a result without its call
        asks(OTHER, assistant(RIGHT), result("c1")),  # in a trimmed history
        asks(OTHER, assistant(("x9", "get", '{"a":1}')), result("x9")),  # under another id
        asks(OTHER, assistant((None, "get", '{"a":1}')), OTHER),  # without one
        {"model": "m"},  # not to be read
    ],
)
def test_a_request_that_may_belong_to_the_conversation_acquits(later: dict[str, object]) -> None:
    assert not silent(watched_digests(CALLS, (later, TEXT_REPLY), until_s=400))


def test_a_longer_history_that_begins_alike_acquits() -> None:
    long = (asks(USER, OTHER), CALL_REPLY)
    edited = asks(USER, assistant(text="Earlier: all was well."), OTHER, OTHER)
    assert not silent(watched_digests(long, (edited, TEXT_REPLY), until_s=400))


def test_results_that_were_there_before_say_nothing_about_this_reply() -> None:
    old = [assistant(("old", "get", "{}")), result("old")]
    tape = watched_digests(
        (asks(OTHER, *old), TEXT_REPLY), CALLS, (asks(OTHER, *old), TEXT_REPLY), until_s=400
    )
    assert numbers(tape) == [2]


def test_results_of_another_reply_say_nothing_about_this_one() -> None:
    other = [*call(index=4), FINISH]
    answered = asks(OTHER, assistant(("c5", "get", '{"a":1}')), result("c5"))
    tape = watched_digests(CALLS, (asks(OTHER), other), (answered, TEXT_REPLY), until_s=400)
    (found,) = silent(tape)
    assert (found.reply.exchange, found.others) == (1, 0)


def test_an_application_that_answers_no_calls_is_reported_once_for_each_tape() -> None:
    tape = watched_digests(CALLS, (asks(OTHER), [*call(index=4), FINISH]), until_s=400)
    (other,) = watched_digests(CALLS, until_s=400)
    found = silent([*tape, replace(other, tape="y.tape")])
    assert [(each.reply.tape, each.reply.exchange, each.others) for each in found] == [
        ("x.tape", 1, 1),
        ("y.tape", 1, 0),
    ]


def test_a_request_without_messages_may_belong_to_anything() -> None:
    assert not silent(watched_digests((asks(), CALLS[1]), (asks(OTHER), TEXT_REPLY), until_s=400))
    assert numbers(watched_digests((asks(), CALLS[1]), until_s=400)) == [1]


def test_a_request_that_goes_on_from_the_stored_reply_or_its_conversation_acquits() -> None:
    first, second = watched_digests(CALLS, (asks(OTHER), TEXT_REPLY), until_s=400)
    assert numbers([first, second]) == [1]
    later = replace(second, previous="r1")
    assert not silent([replace(first, reply_id="r1"), later])
    assert not silent([replace(first, reply_id="r2", previous="r1"), later])
    assert numbers([replace(first, reply_id="r2", previous="r0"), later]) == [1]


def test_what_cannot_be_read_and_went_elsewhere_is_not_an_answer() -> None:
    tape = watched_digests(CALLS, ({"model": "m"}, TEXT_REPLY), until_s=400)
    assert not tape[1].known
    assert numbers([tape[0], replace(tape[1], path="/v1/embeddings")]) == [1]


@pytest.mark.parametrize(
    ("request_", "chunks"),
    [
        (asks(USER), TEXT_REPLY),
        (asks(USER), [*call(), choice({}, "length")]),
        (asks(USER), [*call(), {"error": {"message": "overloaded"}}]),
        (asks(USER), [calls(entry(0, "c1", name="get", arguments='{"a":')), FINISH]),
        (asks(USER, tool_choice=FORCED), [*call(), FINISH_TEXT]),
        (asks(USER, tools=[TOOL], tool_choice="required"), CALL_REPLY),
    ],
)
def test_only_whole_calls_that_were_to_be_run_wait_for_an_answer(
    request_: dict[str, object], chunks: list[object]
) -> None:
    assert not silent(watched_digests((request_, chunks), until_s=400))


def test_of_several_tools_one_has_to_be_run() -> None:
    tools = [TOOL, {"type": "function", "function": {"name": "put"}}]
    request = asks(USER, tools=tools, tool_choice="required")
    assert numbers(watched_digests((request, CALL_REPLY), until_s=400)) == [1]


def test_without_knowing_how_long_was_watched_nothing_is_unanswered() -> None:
    (reply,) = watched_digests(CALLS, until_s=400)
    assert not silent([replace(reply, watch=None)])
    assert not silent([replace(reply, end_ns=None)])
    assert not silent([replace(reply, tap=Tap.APP)])


def test_a_tape_that_was_followed_by_another_tells_what_it_saw() -> None:
    (reply,) = watched_digests(CALLS, until_s=400)
    rotated = TapeSummary(until_ns=400 * NS, stop="rotated")
    assert silent([replace(reply, watch=rotated)])


def test_a_recorder_that_was_replaced_does_not_see_what_came_to_the_next_one() -> None:
    assert not silent(watched_digests(CALLS, until_s=400, stop="replaced"))


def test_other_tapes_prove_nothing_about_this_one() -> None:
    first, second = watched_digests(CALLS, (asks(OTHER), TEXT_REPLY), until_s=400)
    (found,) = silent([first, replace(second, tape="y.tape")])
    assert found.alive_ns is None


@needs_corpus
def test_of_real_applications_no_reply_that_they_go_on_from_is_unanswered() -> None:
    """All on one tape that was watched for an hour: only ends of conversations are left."""
    watch = TapeSummary(until_ns=3_600 * NS, stop="interrupted")
    tape = [
        replace(digest(case.exchange), exchange=place, t_ns=place * NS, end_ns=place * NS)
        for place, case in enumerate(cases("openai-chat"), 1)
    ]
    tape = [replace(each, watch=watch) for each in tape]
    going_on = {
        each.exchange
        for place, each in enumerate(tape)
        if any(
            each.prefixes[-1] in later.prefixes and len(later.history) > len(each.history)
            for later in tape[place + 1 :]
        )
    }
    assert going_on
    assert not going_on & set(numbers(tape))


@pytest.mark.slow
@needs_corpus
def test_a_tape_of_real_calls_that_was_stopped_at_once_says_nothing_about_silence() -> None:
    watch = TapeSummary(until_ns=2 * NS, stop="interrupted")
    for case in cases("openai-chat"):
        made = replace(digest(case.exchange), t_ns=0, end_ns=NS // 2, watch=watch)
        assert not check_conversation([made])


def test_a_reply_of_which_the_recorder_lost_some_is_never_unanswered() -> None:
    (reply,) = watched_digests(CALLS, until_s=42)
    assert numbers([reply]) == [1]
    assert numbers([replace(reply, lossy=True)]) == []


def test_a_request_that_the_tape_lacks_may_have_been_the_answer() -> None:
    tape = watched_digests(CALLS, (asks(OTHER), TEXT_REPLY), until_s=42)
    assert numbers(tape) == [1]
    lost = replace(tape[1], exchange=3)
    assert numbers([tape[0], lost]) == []
    damaged = replace(tape[1], exchange=2**62)  # a set of all missing numbers would not fit
    assert numbers([tape[0], damaged]) == []
    headless = replace(tape[1], path="")
    assert numbers([tape[0], headless]) == []
