import pytest

from deltatape.conversation.continuation import ConversationState, call_key, is_result
from deltatape.diagnose.digest import digest
from deltatape.model.digest import Digest, HistoryMessage
from deltatape.model.request_summary import RepeatedCall
from helpers.chat import FINISH
from helpers.exchanges import (
    CALL_MESSAGE,
    FINISH_TEXT,
    TEXT,
    USER,
    asks,
    assistant,
    call,
    conversation,
    digests,
    result,
)


def history(*messages: dict[str, object]) -> tuple[HistoryMessage, ...]:
    return digests((asks(*messages), []))[0].history


def replying(*chunks: object) -> Digest:
    return digest(conversation((asks(USER), [*chunks]))[0])


def grown(reply: Digest, *later: dict[str, object]) -> ConversationState:
    """A state that has taken a request, and then a longer one."""
    state = ConversationState()
    state.add(reply.history, 0)
    state.end_with(reply)
    state.add(history(USER, *later), 1)
    return state


def made(
    name: str | None = "get", arguments: str = "{}", call_id: str | None = "c1"
) -> RepeatedCall:
    return RepeatedCall(id=call_id, name=name, arguments=arguments)


def test_calls_are_the_same_however_their_arguments_are_spelled() -> None:
    one = call_key(made(arguments='{"a":1,"b":2}'))
    assert one == call_key(made(arguments='{ "b": 2, "a": 1 }', call_id=None))
    assert one != call_key(made(name="put", arguments='{"a":1,"b":2}'))
    assert call_key(made(arguments='{"a')) == call_key(made(arguments=' {"a'))


def test_results_are_recognised_by_their_id_or_their_role() -> None:
    plain, tool, function = history(
        USER, result("c1"), {"role": "function", "name": "get", "content": "ok"}
    )
    assert not is_result(plain)
    assert is_result(tool)
    assert is_result(function)


def test_a_call_waits_for_its_result_unless_the_history_ends_with_it() -> None:
    state = ConversationState()
    state.add(history(USER, CALL_MESSAGE), 0)
    assert not list(state.unanswered())
    state.add(history(USER, CALL_MESSAGE, USER), 2)
    assert [call.id for call in state.unanswered()] == ["c1"]
    assert not list(state.unanswered())


def test_of_calls_under_one_name_only_those_that_end_the_history_are_left() -> None:
    state = ConversationState()
    nameless = assistant((None, "get", '{"a":1}'))
    state.add(history(USER, nameless, USER, nameless), 0)
    assert len(list(state.unanswered())) == 1
    state.add(history(USER, nameless, USER, nameless, USER), 4)
    assert len(list(state.unanswered())) == 1


def test_what_the_wire_delivered_is_counted_once() -> None:
    state = grown(replying(*call(), FINISH), CALL_MESSAGE, result("c1"))
    (tally,) = state.tallies.values()
    assert (tally.times, tally.first, state.silent) == (1, 1, 1)


def test_a_reply_that_the_application_changed_or_dropped_is_counted_as_it_came() -> None:
    changed = grown(replying(*call(), FINISH), assistant(("c1", "get", "")), result("c1"))
    assert [tally.times for tally in changed.tallies.values()] == [1, 1]
    assert changed.silent == 1
    dropped = grown(replying(*call(), FINISH), result("c1"))
    assert [tally.times for tally in dropped.tallies.values()] == [1]
    assert dropped.silent == 1


def test_a_reply_with_words_ends_the_silence_even_if_they_are_not_repeated() -> None:
    state = grown(replying(TEXT, *call(), FINISH), CALL_MESSAGE, result("c1"))
    assert state.silent == 0
    failed = grown(replying(), CALL_MESSAGE, result("c1"))
    assert failed.silent == 1


@pytest.mark.parametrize(
    ("messages", "silent", "calls"),
    [
        ([USER, CALL_MESSAGE, result("c1")], 1, 1),
        ([USER, CALL_MESSAGE, result("c1"), CALL_MESSAGE, result("c1")], 2, 1),
        ([USER, CALL_MESSAGE, result("c1"), assistant(text="Hello"), USER], 0, 0),
        ([USER, CALL_MESSAGE, result("c1"), USER, CALL_MESSAGE, result("c1")], 2, 1),
        (
            [
                USER,
                CALL_MESSAGE,
                result("c1"),
                assistant(text="Hi"),
                USER,
                CALL_MESSAGE,
                result("c1"),
            ],
            1,
            1,
        ),
        ([USER, CALL_MESSAGE, assistant(text="Hi"), result("c1")], 0, 1),
        ([USER, {"role": "assistant", "content": ""}, USER], 0, 0),
        ([USER, CALL_MESSAGE, result("c1"), {"role": "note", "content": "Hi"}], 1, 1),
    ],
)
def test_a_history_from_its_beginning(
    messages: list[dict[str, object]], silent: int, calls: int
) -> None:
    state = ConversationState()
    state.add(history(*messages), 0)
    assert (state.silent, len(state.tallies)) == (silent, calls)


def test_a_history_that_names_messages_which_it_does_not_hold() -> None:
    state = ConversationState()
    reference = HistoryMessage(role="item_reference", text="", calls=(), call_id=None)
    owner = HistoryMessage(role="assistant", text="", calls=(), call_id=None, owns=("m1",))
    state.add((reference, owner), 0)
    assert state.by_reference
    assert state.owned == {"m1"}
    assert not state.uses_tools


def test_the_exchange_before_is_that_with_another_history() -> None:
    first, again = replying(TEXT, FINISH_TEXT), replying(TEXT)
    (later,) = digests((asks(USER, assistant(text="Hello"), USER), []))
    state = ConversationState()
    for each in (first, again, later):
        state.add(each.history, 1 if state.last else 0)
        state.end_with(each)
    assert (state.before, state.last) == (again, later)
    state.end_with(later)
    assert state.before == again


def test_a_result_of_a_call_that_has_one_already_comes_twice() -> None:
    state = ConversationState()
    state.add(history(USER, CALL_MESSAGE, result("c1"), result("c1")), 0)
    assert state.twice == ["c1"]
    state.add(
        history(USER, CALL_MESSAGE, result("c1"), result("c1"), CALL_MESSAGE, result("c1")), 4
    )
    assert state.twice == []


def test_after_a_result_that_names_no_call_nobody_knows_which_are_open() -> None:
    state = ConversationState()
    any_call: dict[str, object] = {"role": "tool", "content": "ok"}
    state.add(history(USER, CALL_MESSAGE, result("c1"), any_call, result("c1")), 0)
    assert state.twice == []
