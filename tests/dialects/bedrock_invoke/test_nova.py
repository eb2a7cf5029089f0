import pytest

from deltatape.dialects.bedrock_invoke.nova import NovaReducer, is_nova
from deltatape.model.reply import CallStatus, Reply
from deltatape.model.request_summary import NOTHING_ASKED
from helpers.chat import codes, told
from helpers.events import event_of
from helpers.invoked import Frame, reply_to


def block(event: str, index: object = 0, **members: object) -> Frame:
    return {event: {"contentBlockIndex": index, **members}}


def opened(index: object = 1, **use: object) -> Frame:
    found = {"toolUseId": "c1", "name": "get", **use}
    return block("contentBlockStart", index, start={"toolUse": found})


def said(index: object = 0, **delta: object) -> Frame:
    return block("contentBlockDelta", index, delta=delta)


def given(piece: object, index: object = 1) -> Frame:
    return said(index, toolUse={"input": piece})


START: Frame = {"messageStart": {"role": "assistant"}}
STOP: Frame = {"messageStop": {"stopReason": "tool_use"}}
USAGE: Frame = {"metadata": {"usage": {"inputTokens": 3}}}
HEALTHY = (
    START,
    said(text="Hi"),
    block("contentBlockStop"),
    opened(),
    given('{"a"'),
    given(": 1}"),
    block("contentBlockStop", 1),
    STOP,
    USAGE,
)


def test_a_healthy_stream_is_rebuilt_without_a_word() -> None:
    reply = reply_to(*HEALTHY)
    assert (reply.text, told(reply)) == ("Hi", [("c1", "get", '{"a": 1}')])
    assert (reply.finish_reason_raw, reply.terminated) == ("tool_use", True)
    assert (reply.usage, reply.observations) == ({"inputTokens": 3}, ())


@pytest.mark.parametrize("at", range(1, 7))
def test_a_stream_cut_before_its_end_is_not_whole(at: int) -> None:
    reply = reply_to(*HEALTHY[:at])
    assert (reply.terminated, reply.observations) == (False, ())
    assert {call.status for call in reply.tool_calls} <= {CallStatus.TRUNCATED}


def test_several_members_are_as_many_events() -> None:
    reply = reply_to(START, {**said(text="Hi"), **STOP, **USAGE, "new": 1})
    assert (reply.text, reply.finish_reason_raw) == ("Hi", "tool_use")
    assert (reply.usage, reply.observations) == ({"inputTokens": 3}, ())


def test_a_document_is_told_by_its_output() -> None:
    use = {"toolUse": {"toolUseId": "c1", "name": "get", "input": {"a": 1}}}
    message = {"role": "assistant", "content": [{"text": "Hi"}, use]}
    reply = reply_to(
        {"output": {"message": message}, "stopReason": "tool_use", "usage": {"inputTokens": 3}}
    )
    assert (reply.text, told(reply)) == ("Hi", [("c1", "get", '{"a": 1}')])
    assert (reply.usage, reply.terminated) == ({"inputTokens": 3}, True)
    assert reply.observations == ()


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        (START, True),
        (STOP, True),
        ({"output": {"message": {}}}, True),
        (USAGE, False),
        ({"output": {}}, False),
        ({"type": "message_start"}, False),
    ],
)
def test_its_events_and_documents_have_marks(frame: Frame, expected: bool) -> None:  # noqa: FBT001
    assert is_nova(frame) is expected


def test_an_error_ends_the_reply() -> None:
    reply = reply_to(START, said(text="Hi"), {"error": {"message": "oh"}})
    assert (reply.text, reply.error, reply.terminated) == ("Hi", "oh", False)


@pytest.mark.parametrize("junk", [None, 0, True, "", [], [1], {}, {"a": 1}], ids=repr)
def test_members_of_a_wrong_type_are_never_more_than_odd(junk: object) -> None:
    frames = (
        START,
        {"contentBlockStart": junk},
        block("contentBlockStart", junk, start=junk),
        opened(junk, toolUseId=junk, name=junk, type=junk),
        {"contentBlockDelta": junk},
        block("contentBlockDelta", junk, delta=junk),
        said(junk, text=junk, reasoningContent=junk, toolUse=junk),
        given(junk, junk),
        {"contentBlockStop": junk},
        {"messageStop": junk},
        {"metadata": junk},
        {"output": junk},
        {"output": {"message": junk}},
        {"output": {"message": {"content": junk}}},
        {"output": {"message": {"content": [junk, {"toolUse": junk}]}}},
    )
    assert set(codes(reply_to(*frames))) <= {"S004", "S006", "T005", "T006", "T011", "T012"}


def reduced(data: str) -> Reply:
    reducer = NovaReducer("some", NOTHING_ASKED)
    reducer.feed(event_of(data, "chunk"))
    return reducer.finish(cut=False)


def test_what_is_no_object_says_nothing() -> None:
    assert codes(reduced("[]")) == ["S006"]
    assert codes(reduced("{")) == ["W004"]
