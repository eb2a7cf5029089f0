from deltatape.dialects._calls import CallEndCause
from deltatape.dialects._choice import DialectPolicy
from deltatape.dialects._reply import ReplyDraft
from deltatape.model.reply import Channel
from deltatape.model.request_summary import NOTHING_ASKED
from deltatape.model.stream import Event
from helpers.events import event_of


def event(data: str, kind: str = "message", *, exception: bool = False) -> Event:
    return event_of(data, kind, 4, exception=exception)


def draft() -> ReplyDraft:
    return ReplyDraft("some", "the end", NOTHING_ASKED, DialectPolicy())


def codes(made: ReplyDraft) -> list[str]:
    reply = made.build(CallEndCause.NORMAL, terminated=False)
    return [seen.code for seen in reply.observations]


def test_only_json_objects_are_read_and_the_rest_is_noted() -> None:
    made = draft()
    for data in ('{"a":1}', ' {"a":1}\n', '{"a":0,"a":1}'):
        assert made.read(event(data)) == {"a": 1}
    assert made.read(event("{}")) == {}
    assert made.read(event("[]")) is None
    assert made.read(event("{")) is None
    assert codes(made) == ["S006", "W004"]


def test_an_error_event_that_is_no_json_is_the_error() -> None:
    made = draft()
    made.read(event("overloaded", "error"))
    assert made.error == "overloaded"
    made = draft()
    made.read(event("", "throttlingException", exception=True))
    assert made.error == "an error event without data"


def test_the_first_error_counts() -> None:
    made = draft()
    frame = {"error": {"message": "first"}}
    assert made.take_error(frame, event(""))
    assert not made.take_error({"a": 1}, event(""))
    made.take_error({"error": "second"}, event(""))
    assert (made.error, codes(made)) == ("first", ["S005", "S005"])


def test_what_the_framing_calls_an_exception_is_an_error_whatever_it_carries() -> None:
    made = draft()
    assert made.take_error({"message": "slow down"}, event("", "throttling", exception=True))
    assert made.error == "slow down"
    made = draft()
    assert made.take_error({}, event("", "throttling", exception=True))
    assert made.error == "throttling"


def test_a_choice_may_begin_anew() -> None:
    made = draft()
    made.choice(0).add_text(Channel.TEXT, "lost", event(""))
    made.restart(0).add_text(Channel.TEXT, "kept", event(""))
    assert made.build(CallEndCause.NORMAL, terminated=True).text == "kept"


def test_choices_come_out_in_the_order_of_their_index() -> None:
    made = draft()
    made.choice(1).add_text(Channel.TEXT, "b", event(""))
    made.choice(0).add_text(Channel.TEXT, "a", event(""))
    made.terminal = event("")
    reply = made.build(CallEndCause.NORMAL, terminated=True)
    assert [(choice.index, choice.text) for choice in reply.choices] == [(0, "a"), (1, "b")]
    assert (reply.dialect, reply.terminated, reply.terminator) == ("some", True, "the end")
    assert reply.terminal_event == 4


def test_a_reply_without_events_has_one_empty_choice() -> None:
    reply = draft().build(CallEndCause.CUT, terminated=False)
    assert (len(reply.choices), reply.text, reply.terminal_event) == (1, "", None)
