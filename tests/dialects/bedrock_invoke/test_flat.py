import pytest

from deltatape.diagnose.rebuild import rebuild
from deltatape.dialects.bedrock_invoke.flat import is_own
from deltatape.model.reply import CallStatus
from helpers.chat import codes, told
from helpers.invoked import Frame, reply_to, whole

STREAMS: dict[str, tuple[Frame, ...]] = {
    "titan": (
        {"outputText": "He", "index": 0, "completionReason": None},
        {"outputText": "llo", "index": 0, "completionReason": "stop"},
    ),
    "llama": (
        {"generation": "He", "stop_reason": None},
        {"generation": "llo", "stop_reason": "stop"},
    ),
    "mistral": (
        {"outputs": [{"text": "He", "stop_reason": None}]},
        {"outputs": [{"text": "llo", "stop_reason": "stop"}]},
    ),
    "mistral chat": (
        {"choices": [{"index": 0, "message": {"content": "He"}, "stop_reason": None}]},
        {"choices": [{"index": 0, "message": {"content": "llo"}, "stop_reason": "stop"}]},
    ),
    "deepseek": (
        {"choices": [{"text": "He", "stop_reason": None}]},
        {"choices": [{"text": "llo", "stop_reason": "stop"}]},
    ),
    "claude 2": (
        {"completion": "He", "stop_reason": None, "stop": None},
        {"completion": "llo", "stop_reason": "stop", "stop": "\n\nHuman:"},
    ),
    "command": (
        {"is_finished": False, "index": 0, "text": "He"},
        {"is_finished": False, "index": 0, "text": "llo"},
        {"is_finished": True, "index": 0, "finish_reason": "stop"},
    ),
}
DOCUMENTS: dict[str, Frame] = {
    "titan": {
        "inputTextTokenCount": 5,
        "results": [{"tokenCount": 2, "outputText": "Hello", "completionReason": "stop"}],
    },
    "llama": {"generation": "Hello", "prompt_token_count": 5, "stop_reason": "stop"},
    "mistral": {"outputs": [{"text": "Hello", "stop_reason": "stop"}]},
    "jurassic": {
        "id": 1,
        "completions": [{"data": {"text": "Hello"}, "finishReason": {"reason": "stop"}}],
    },
}


@pytest.mark.parametrize("frames", STREAMS.values(), ids=STREAMS)
def test_text_and_reason_of_a_stream_come_out(frames: tuple[Frame, ...]) -> None:
    reply = reply_to(*frames)
    assert (reply.text, reply.finish_reason_raw) == ("Hello", "stop")
    assert (reply.terminated, reply.observations) == (True, ())
    cut = reply_to(*frames[:-1])
    assert (cut.finish_reason_raw, cut.terminated) == (None, False)


@pytest.mark.parametrize("frame", DOCUMENTS.values(), ids=DOCUMENTS)
def test_text_and_reason_of_a_document_come_out(frame: Frame) -> None:
    reply = rebuild(whole(frame))
    assert (reply.dialect, reply.text) == ("bedrock-invoke", "Hello")
    assert (reply.finish_reason_raw, reply.terminated) == ("stop", True)
    assert is_own(frame)


def test_shapes_that_others_have_too_are_not_amazons_own() -> None:
    assert not is_own({"completion": "Hi", "stop_reason": "stop"})
    assert not is_own({"generation": 3})
    assert not is_own({"outputs": [{"text": "Hi"}]})
    assert not is_own({"results": []})


def test_a_batch_of_results_is_as_many_choices() -> None:
    results = [{"text": "a", "finish_reason": "COMPLETE"}, {"text": "b", "finish_reason": "ERROR"}]
    reply = reply_to({"generations": results})
    assert [choice.text for choice in reply.choices] == ["a", "b"]


def test_a_batch_that_is_streamed_is_told_apart_by_index() -> None:
    frames = [{"is_finished": False, "index": each % 2, "text": str(each)} for each in range(4)]
    ends = [{"is_finished": True, "index": i, "finish_reason": "COMPLETE"} for i in range(2)]
    reply = reply_to(*frames, ends[0])
    assert ([one.text for one in reply.choices], reply.terminated) == (["02", "13"], False)
    assert reply_to(*frames, *ends).terminated


def test_calls_come_whole_with_ids_or_without() -> None:
    entry = {"id": "c1", "function": {"name": "get", "arguments": '{"a": 1}'}}
    message = {"role": "assistant", "content": "", "tool_calls": [entry]}
    reply = reply_to({"choices": [{"message": message, "stop_reason": "tool_calls"}]})
    assert told(reply) == [("c1", "get", '{"a": 1}')]
    assert reply.tool_calls[0].status is CallStatus.COMPLETE
    calls = [{"name": "get", "parameters": {"a": 1}}, {"name": "put", "parameters": {}}]
    reply = reply_to({"is_finished": True, "finish_reason": "COMPLETE", "tool_calls": calls})
    assert told(reply) == [(None, "get", '{"a": 1}'), (None, "put", "{}")]
    assert reply.observations == ()


def test_imported_models_speak_the_older_completions() -> None:
    frames = [{"choices": [{"text": text, "finish_reason": None}]} for text in "ab"]
    reply = reply_to(*frames, {"choices": [{"text": "", "finish_reason": "stop"}]})
    assert (reply.text, reply.finish_reason_raw, reply.terminated) == ("ab", "stop", True)


def test_a_call_is_not_whole_if_a_limit_cut_it() -> None:
    entry = {"id": "c1", "function": {"name": "get", "arguments": ""}}
    message = {"content": None, "tool_calls": [entry]}
    reply = reply_to({"choices": [{"message": message, "stop_reason": "length"}]})
    assert reply.tool_calls[0].status is CallStatus.TRUNCATED


def test_an_error_in_the_middle_ends_the_reply() -> None:
    reply = reply_to({"generation": "He"}, {"error": {"message": "oh"}})
    assert (reply.text, reply.error, reply.terminated) == ("He", "oh", False)


@pytest.mark.parametrize("junk", [None, 0, True, "", [], [1], {}, {"a": 1}], ids=repr)
def test_members_of_a_wrong_type_are_never_more_than_odd(junk: object) -> None:
    for frame in (
        {"outputText": junk, "completionReason": junk, "tool_calls": junk},
        {"outputs": junk},
        {"outputs": [junk, {"text": junk, "stop_reason": junk, "index": junk}]},
        {"completions": [{"data": junk, "finishReason": junk}]},
        {"choices": [junk, {"message": junk, "stop_reason": junk}]},
        {"is_finished": junk, "tool_calls": [junk, {"function": junk, "name": junk, "id": junk}]},
        {"results": junk, "inputTextTokenCount": junk},
    ):
        assert set(codes(reply_to(frame))) <= {"S006"}
