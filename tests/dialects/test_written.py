import pytest

from deltatape.model.reply import CallKind, CallStatus, Channel, Reply
from helpers.chat import choice, reply_to, request

CALL = '<tool_call>{"name": "get", "arguments": {"a": 1}}</tool_call>'


def said(*texts: str, field: str = "content") -> Reply:
    chunks = [choice({field: text}) for text in texts]
    return reply_to(*chunks, choice({}, "stop"), request=request(get={}))


def test_a_call_written_into_text_is_told_beside_the_calls_of_the_reply() -> None:
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
