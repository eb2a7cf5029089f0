import pytest

from deltatape.dialects._calls import CallEndCause
from deltatape.dialects._reply import ChoiceDraft, DialectPolicy, ReplyDraft
from deltatape.model.reply import CallKind, CallStatus, Channel, Choice, Reply
from deltatape.model.request_summary import NOTHING_ASKED
from deltatape.model.stream import Event
from helpers.chat import choice, reply_to, request
from helpers.events import event_of

CUT = DialectPolicy(abnormal=frozenset({"length"}), explicit_end=True)


def event(number: int) -> Event:
    return event_of(number=number)


def draft(policy: DialectPolicy = CUT) -> ChoiceDraft:
    return ChoiceDraft(0, NOTHING_ASKED, policy)


def built(made: ChoiceDraft, ending: CallEndCause = CallEndCause.NORMAL) -> Choice:
    return made.build(ending)[0]


def test_text_is_kept_by_channel_with_the_events_that_brought_it() -> None:
    made = draft()
    made.add_text(Channel.TEXT, "", event(0))
    made.add_text(Channel.REASONING, "think", event(1))
    made.add_text(Channel.TEXT, "Hel", event(2))
    made.add_text(Channel.TEXT, "lo", event(3))
    made.add_text(Channel.REFUSAL, "no", event(4))
    choice = built(made)
    assert (choice.text, choice.reasoning, choice.refusal) == ("Hello", "think", "no")
    assert [(piece.event, piece.text) for piece in choice.pieces] == [
        (1, "think"),
        (2, "Hel"),
        (3, "lo"),
        (4, "no"),
    ]


def test_calls_that_the_provider_runs_are_kept_apart() -> None:
    made = draft()
    for kind, name in [(CallKind.FUNCTION, "a"), (CallKind.SERVER, "b"), (CallKind.MCP, "c")]:
        call = made.open(kind, event(0))
        call.identify(name, name)
        call.note("", "T017", "told", "", event(0))
    choice, seen = made.build(CallEndCause.NORMAL)
    assert [call.name for call in choice.tool_calls] == ["a"]
    assert [(call.index, call.name) for call in choice.server_calls] == [(0, "b"), (1, "c")]
    assert [one.call for one in seen] == [0, None, None]


def test_the_last_finish_reason_counts_and_a_different_one_before_is_noted() -> None:
    made = draft()
    made.finish("stop", event(1), "because")
    made.finish("stop", event(2))
    made.finish("tool_calls", event(3))
    choice, seen = made.build(CallEndCause.NORMAL)
    assert (choice.finish_reason_raw, choice.finish_detail) == ("tool_calls", "because")
    assert choice.finishes == ((1, "stop"), (2, "stop"), (3, "tool_calls"))
    assert [one.code for one in seen] == ["S004"]


def status(
    ending: CallEndCause, *, reason: str | None, ended: bool, policy: DialectPolicy = CUT
) -> CallStatus:
    made = draft(policy)
    call = made.open(CallKind.FUNCTION, event(0))
    call.identify("c1", "get")
    call.add('{"a":1}', event(1))
    if ended:
        call.ended = event(2)
    if reason:
        made.finish(reason, event(3))
    return built(made, ending).tool_calls[0].status


def test_a_call_without_its_end_signal_is_whole_only_if_the_answer_came_to_its_end() -> None:
    assert status(CallEndCause.CUT, reason=None, ended=False) is CallStatus.TRUNCATED
    assert status(CallEndCause.CUT, reason=None, ended=True) is CallStatus.COMPLETE
    assert status(CallEndCause.CUT, reason="stop", ended=False) is CallStatus.COMPLETE
    assert status(CallEndCause.NORMAL, reason="length", ended=False) is CallStatus.TRUNCATED
    assert status(CallEndCause.NORMAL, reason="length", ended=True) is CallStatus.COMPLETE
    assert (
        status(CallEndCause.CUT, reason=None, ended=False, policy=DialectPolicy())
        is CallStatus.COMPLETE
    )


def test_an_odd_shape_is_noted_once() -> None:
    made = draft()
    made.note_unexpected("a part is not an object", 5, event(0))
    made.note_unexpected("a part is not an object", 6, event(1))
    assert [(one.code, one.evidence) for one in made.build(CallEndCause.NORMAL)[1]] == [
        ("S006", "5")
    ]


def test_texts_of_parts_that_mix_are_ordered_by_part() -> None:
    made = draft()
    for number, (order, text) in enumerate([(1, "a"), (2, "c"), (1, "b"), (2, "d")]):
        made.add_text(Channel.TEXT, text, event(number), order)
    choice = built(made)
    assert choice.text == "abcd"
    assert [piece.event for piece in choice.pieces] == [0, 2, 1, 3]


def test_an_id_that_two_calls_have_is_reported_once_of_the_second() -> None:
    made = draft()
    for number, identifier in enumerate(["c1", "c1", "c2", None, None]):
        made.open(CallKind.FUNCTION, event(number)).identify(identifier, "get")
    observations = made.build(CallEndCause.NORMAL)[1]
    told = [(seen.code, seen.call) for seen in observations if seen.code == "T010"]
    assert told == [("T010", 1)]


CALL = '<tool_call>{"name": "get", "arguments": {"a": 1}}</tool_call>'


def said(*texts: str, field: str = "content") -> Reply:
    chunks = [choice({field: text}) for text in texts]
    return reply_to(*chunks, choice({}, "stop"), request=request(get={}))


def test_a_call_written_into_text_is_reported_beside_the_calls_of_the_reply() -> None:
    reply = said("Let me look. ", CALL[:20], CALL[20:], " Done.")
    (found,) = reply.text_calls
    assert reply.tool_calls == ()
    assert (found.family, found.channel, found.closed) == ("hermes", Channel.TEXT, True)
    assert reply.text[found.start : found.end] == CALL == found.call.arguments_raw
    call = found.call
    assert (call.name, call.arguments, call.kind) == ("get", '{"a": 1}', CallKind.TEXT)
    assert (call.status, call.start_event) == (CallStatus.COMPLETE, 1)
    assert [(one.event, one.text) for one in call.fragments] == [(1, CALL[:20]), (2, CALL[20:])]


def test_a_call_in_the_reasoning_says_so() -> None:
    (found,) = said(CALL, field="reasoning_content").text_calls
    assert found.channel is Channel.REASONING


@pytest.mark.parametrize(
    "end", [len('<tool_call>{"name": "get"'), len(CALL) - len("}</tool_call>")]
)
def test_a_call_that_the_end_cuts_is_truncated(end: int) -> None:
    (found,) = said(CALL[:end]).text_calls
    assert (found.closed, found.call.status) == (False, CallStatus.TRUNCATED)


def test_several_calls_are_counted_and_know_their_events() -> None:
    reply = said(CALL + CALL, CALL)
    assert [one.call.index for one in reply.text_calls] == [0, 1, 2]
    assert [one.call.start_event for one in reply.text_calls] == [0, 0, 1]


def test_a_pair_cut_between_pieces_moves_places_by_no_more_than_itself() -> None:
    half = '{"choices":[{"index":0,"delta":{"content":"%s"}}]}'
    reply = reply_to(half % "\\ud83d", half % "\\ude00", choice({"content": CALL}, "stop"))
    (found,) = reply.text_calls
    assert reply.text[found.start : found.end] == CALL
    assert found.call.arguments_raw == CALL


def test_a_call_that_the_end_cuts_before_its_name_is_truncated() -> None:
    (found,) = said('<tool_call>{"na').text_calls
    assert (found.call.name, found.call.status) == (None, CallStatus.TRUNCATED)


def data_event(data: str, kind: str = "message", *, exception: bool = False) -> Event:
    return event_of(data, kind, 4, exception=exception)


def reply_draft() -> ReplyDraft:
    return ReplyDraft("some", "the end", NOTHING_ASKED, DialectPolicy())


def codes(made: ReplyDraft) -> list[str]:
    reply = made.build(CallEndCause.NORMAL, terminated=False)
    return [seen.code for seen in reply.observations]


def test_only_json_objects_are_read_and_the_rest_is_noted() -> None:
    made = reply_draft()
    for data in ('{"a":1}', ' {"a":1}\n', '{"a":0,"a":1}'):
        assert made.read(data_event(data)) == {"a": 1}
    assert made.read(data_event("{}")) == {}
    assert made.read(data_event("[]")) is None
    assert made.read(data_event("{")) is None
    assert codes(made) == ["S006", "W004"]


def test_an_error_event_that_is_not_json_is_the_error() -> None:
    made = reply_draft()
    made.read(data_event("overloaded", "error"))
    assert made.error == "overloaded"
    made = reply_draft()
    made.read(data_event("", "throttlingException", exception=True))
    assert made.error == "an error event without data"


def test_the_first_error_counts() -> None:
    made = reply_draft()
    frame = {"error": {"message": "first"}}
    assert made.take_error(frame, data_event(""))
    assert not made.take_error({"a": 1}, data_event(""))
    made.take_error({"error": "second"}, data_event(""))
    assert (made.error, codes(made)) == ("first", ["S005", "S005"])


def test_what_the_framing_calls_an_exception_is_an_error_whatever_it_carries() -> None:
    made = reply_draft()
    assert made.take_error({"message": "slow down"}, data_event("", "throttling", exception=True))
    assert made.error == "slow down"
    made = reply_draft()
    assert made.take_error({}, data_event("", "throttling", exception=True))
    assert made.error == "throttling"


def test_a_choice_may_begin_anew() -> None:
    made = reply_draft()
    made.choice(0).add_text(Channel.TEXT, "lost", data_event(""))
    made.restart(0).add_text(Channel.TEXT, "kept", data_event(""))
    assert made.build(CallEndCause.NORMAL, terminated=True).text == "kept"


def test_choices_come_out_in_the_order_of_their_index() -> None:
    made = reply_draft()
    made.choice(1).add_text(Channel.TEXT, "b", data_event(""))
    made.choice(0).add_text(Channel.TEXT, "a", data_event(""))
    made.terminal = data_event("")
    reply = made.build(CallEndCause.NORMAL, terminated=True)
    assert [(choice.index, choice.text) for choice in reply.choices] == [(0, "a"), (1, "b")]
    assert (reply.dialect, reply.terminated, reply.terminator) == ("some", True, "the end")
    assert reply.terminal_event == 4


def test_a_reply_without_events_has_one_empty_choice() -> None:
    reply = reply_draft().build(CallEndCause.CUT, terminated=False)
    assert (len(reply.choices), reply.text, reply.terminal_event) == (1, "", None)
