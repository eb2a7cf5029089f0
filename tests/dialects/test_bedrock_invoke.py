import json

import pytest

from deltatape.diagnose.rebuild import rebuild
from deltatape.dialects.bedrock_invoke import (
    BedrockInvoke,
    NovaReducer,
    is_nova,
    is_own,
)
from deltatape.model.reply import CallStatus, Reply
from deltatape.model.request_summary import NOTHING_ASKED, RepeatedCall, RequestSummary
from deltatape.model.stream import Format
from helpers import eventstream
from helpers.bedrock_bodies import Frame, chunk, reduced, reply_to, streamed, whole
from helpers.chat import codes, told
from helpers.events import event_of
from helpers.messages import END, STOP, piece, start, stop, text, text_block, tool_block

STREAM = Format.EVENTSTREAM
LLAMA: dict[str, object] = {"generation": "Hi", "stop_reason": "stop"}


def test_a_request_is_read_with_its_path() -> None:
    asked = BedrockInvoke().read_request(b"{}", "/model/m/invoke-with-response-stream")
    assert (asked.model, asked.stream) == ("m", True)


def test_its_reducer_says_whose_reply_it_is() -> None:
    reply = BedrockInvoke().reducer(NOTHING_ASKED).finish(cut=True)
    assert (reply.dialect, reply.terminated) == ("bedrock-invoke", False)


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


def block(event: str, index: object = 0, **members: object) -> Frame:
    return {event: {"contentBlockIndex": index, **members}}


def opened(index: object = 1, **use: object) -> Frame:
    found = {"toolUseId": "c1", "name": "get", **use}
    return block("contentBlockStart", index, start={"toolUse": found})


def delta(index: object = 0, **delta: object) -> Frame:
    return block("contentBlockDelta", index, delta=delta)


def arguments_delta(piece: object, index: object = 1) -> Frame:
    return delta(index, toolUse={"input": piece})


NOVA_START: Frame = {"messageStart": {"role": "assistant"}}
NOVA_STOP: Frame = {"messageStop": {"stopReason": "tool_use"}}
USAGE: Frame = {"metadata": {"usage": {"inputTokens": 3}}}
HEALTHY = (
    NOVA_START,
    delta(text="Hi"),
    block("contentBlockStop"),
    opened(),
    arguments_delta('{"a"'),
    arguments_delta(": 1}"),
    block("contentBlockStop", 1),
    NOVA_STOP,
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
    reply = reply_to(NOVA_START, {**delta(text="Hi"), **NOVA_STOP, **USAGE, "new": 1})
    assert (reply.text, reply.finish_reason_raw) == ("Hi", "tool_use")
    assert (reply.usage, reply.observations) == ({"inputTokens": 3}, ())


def test_a_document_is_recognised_by_its_output() -> None:
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
        (NOVA_START, True),
        (NOVA_STOP, True),
        ({"output": {"message": {}}}, True),
        (USAGE, False),
        ({"output": {}}, False),
        ({"type": "message_start"}, False),
    ],
)
def test_its_events_and_documents_have_marks(frame: Frame, expected: bool) -> None:  # noqa: FBT001
    assert is_nova(frame) is expected


def test_an_error_ends_the_reply() -> None:
    reply = reply_to(NOVA_START, delta(text="Hi"), {"error": {"message": "oh"}})
    assert (reply.text, reply.error, reply.terminated) == ("Hi", "oh", False)


@pytest.mark.parametrize("junk", [None, 0, True, "", [], [1], {}, {"a": 1}], ids=repr)
def test_members_of_a_wrong_type_from_nova_are_only_unexpected(junk: object) -> None:
    frames = (
        NOVA_START,
        {"contentBlockStart": junk},
        block("contentBlockStart", junk, start=junk),
        opened(junk, toolUseId=junk, name=junk, type=junk),
        {"contentBlockDelta": junk},
        block("contentBlockDelta", junk, delta=junk),
        delta(junk, text=junk, reasoningContent=junk, toolUse=junk),
        arguments_delta(junk, junk),
        {"contentBlockStop": junk},
        {"messageStop": junk},
        {"metadata": junk},
        {"output": junk},
        {"output": {"message": junk}},
        {"output": {"message": {"content": junk}}},
        {"output": {"message": {"content": [junk, {"toolUse": junk}]}}},
    )
    assert set(codes(reply_to(*frames))) <= {"S004", "S006", "T005", "T006", "T011", "T012"}


def reduced_as_nova(data: str) -> Reply:
    reducer = NovaReducer("some", NOTHING_ASKED)
    reducer.feed(event_of(data, "chunk"))
    return reducer.finish(cut=False)


def test_what_is_not_an_object_says_nothing() -> None:
    assert codes(reduced_as_nova("[]")) == ["S006"]
    assert codes(reduced_as_nova("{")) == ["W004"]


PATH = "/model/some.model-v1%3A0/invoke-with-response-stream"


def asked(**body: object) -> RequestSummary:
    return BedrockInvoke().read_request(json.dumps(body).encode(), PATH)


@pytest.mark.parametrize("action", ["invoke", "invoke-with-response-stream"])
@pytest.mark.parametrize("body", [b'{"prompt": "Hi"}', b'{"inferenceConfig": {}}'])
def test_the_path_names_the_model_and_says_whether_it_streams(body: bytes, action: str) -> None:
    found = BedrockInvoke().read_request(body, f"/bedrock/model/a%3A0/{action}")
    assert (found.model, found.stream) == ("a:0", action != "invoke")


def test_what_is_not_an_object_asks_nothing() -> None:
    assert BedrockInvoke().read_request(b"", PATH) == NOTHING_ASKED


def test_messages_are_read_as_anthropics() -> None:
    tools = [{"name": "get", "input_schema": {"type": "object"}}]
    found = asked(
        anthropic_version="bedrock-2023-05-31",
        tools=tools,
        messages=[{"role": "user", "content": "Hi"}],
    )
    assert (found.model, found.stream) == ("some.model-v1:0", True)
    assert [tool.name for tool in found.tools] == ["get"]
    assert [one.text for one in found.history] == ["Hi"]


def test_chats_are_read_as_openais() -> None:
    tools = [{"type": "function", "function": {"name": "get", "parameters": {}}}]
    found = asked(messages=[{"role": "user", "content": "Hi"}], tools=tools, tool_choice="auto")
    assert [tool.name for tool in found.tools] == ["get"]
    assert (found.tool_choice, found.history[0].text) == ("auto", "Hi")


@pytest.mark.parametrize("key", ["prompt", "inputText", "message"])
def test_a_prompt_is_the_only_message(key: str) -> None:
    found = asked(**{key: "Hi"})
    assert [(one.role, one.text) for one in found.history] == [("user", "Hi")]


def test_a_body_without_words_has_no_history() -> None:
    assert asked(seed=1).history == ()


def test_outside_of_its_path_the_body_tells_what_it_can() -> None:
    assert BedrockInvoke().read_request(b'{"model":"m"}', "/").model == "m"


def test_novas_requests_are_read_as_converses() -> None:
    use = {"toolUseId": "c1", "name": "get", "input": {"a": 1}}
    result = {"toolResult": {"toolUseId": "c1", "content": [{"text": "1"}]}}
    found = asked(
        system=[{"text": "Be kind."}],
        messages=[
            {"role": "user", "content": [{"text": "Hi"}]},
            {"role": "assistant", "content": [{"text": "Look."}, {"toolUse": use}]},
            {"role": "user", "content": [result, {"text": "Go on."}]},
        ],
        toolConfig={"tools": [{"toolSpec": {"name": "get"}}], "toolChoice": {"any": {}}},
    )
    assert ([tool.name for tool in found.tools], found.tool_choice) == (["get"], "required")
    assert [(one.role, one.text, one.call_id) for one in found.history] == [
        ("system", "Be kind.", None),
        ("user", "Hi", None),
        ("assistant", "Look.", None),
        ("tool", "1", "c1"),
        ("user", "Go on.", None),
    ]
    assert found.history[2].calls == (RepeatedCall(id="c1", name="get", arguments='{"a": 1}'),)


METRICS = {"inputTokenCount": 3, "outputTokenCount": 5, "invocationLatency": 100}
MESSAGE = (
    start(),
    text_block(),
    text("Hi"),
    stop(),
    tool_block(1),
    piece('{"a"', 1),
    piece(": 1}", 1),
    stop(1),
    *END[:-1],
    {**STOP, "amazon-bedrock-invocationMetrics": METRICS},
)
CHOICE = {"index": 0, "finish_reason": None}


def test_the_events_of_a_message_are_rebuilt_as_elsewhere() -> None:
    reply = reply_to(*MESSAGE)
    assert (reply.dialect, reply.text, told(reply)) == (
        "bedrock-invoke",
        "Hi",
        [("c1", "get", '{"a": 1}')],
    )
    assert (reply.terminated, reply.finish_reason_raw) == (True, "tool_use")
    assert (reply.usage, reply.observations) == ({"output_tokens": 5}, ())


def test_fragments_stand_where_the_message_stands_that_carried_them() -> None:
    (call,) = reply_to(*MESSAGE).tool_calls
    assert [fragment.event for fragment in call.fragments] == [5, 6]
    begin, end = call.fragments[0].place.span
    assert streamed(*MESSAGE).body[begin:end] == chunk(MESSAGE[5])


@pytest.mark.parametrize("at", range(6, len(MESSAGE) - 2))
def test_a_stream_cut_inside_of_a_call_is_not_whole(at: int) -> None:
    reply = reply_to(*MESSAGE[:at])
    whole = CallStatus.COMPLETE if at == 8 else CallStatus.TRUNCATED
    assert (reply.terminated, reply.tool_calls[0].status) == (False, whole)


def test_a_document_is_a_message() -> None:
    content = [{"type": "text", "text": "Hi"}]
    message = {"type": "message", "model": "m", "content": content, "stop_reason": "end_turn"}
    reply = reduced(whole(message))
    assert (reply.text, reply.terminated, reply.model) == ("Hi", True, "m")


@pytest.mark.parametrize(
    "kind",
    ["throttlingException", "modelStreamErrorException", "modelTimeoutException"],
)
def test_an_exception_is_the_error_wherever_it_comes(kind: str) -> None:
    error = eventstream.exception(kind, "no more")
    reply = reply_to(*MESSAGE[:3], error)
    assert (reply.text, reply.error, reply.terminated) == ("Hi", "no more", False)
    assert codes(reply) == ["S005"]
    alone = reduced(streamed(error))
    assert (alone.error, codes(alone)) == ("no more", ["S005"])
    first = reply_to(error, *MESSAGE)
    assert (first.text, first.error) == ("Hi", "no more")


def test_an_error_without_a_model_of_the_service_is_one_too() -> None:
    assert reply_to(*MESSAGE[:2], eventstream.error("InternalFailure", "oh")).error == "oh"


def test_an_error_answer_says_only_its_message() -> None:
    assert reduced(whole({"message": "no such model"})).error == "no such model"


def test_chat_completions_are_read_as_such() -> None:
    entry = {"index": 0, "id": "c1", "function": {"name": "get", "arguments": '{"a": 1}'}}
    reply = reply_to(
        {"choices": [{**CHOICE, "delta": {"content": "Hi"}}]},
        {"choices": [{**CHOICE, "delta": {"tool_calls": [entry]}}]},
        {
            "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}],
            "amazon-bedrock-invocationMetrics": METRICS,
        },
    )
    assert (reply.dialect, reply.text) == ("bedrock-invoke", "Hi")
    assert told(reply) == [("c1", "get", '{"a": 1}')]
    assert (reply.terminated, reply.usage, reply.observations) == (True, METRICS, ())


def test_what_a_guardrail_did_is_a_detail_of_the_finish_reason() -> None:
    frame = {
        "outputText": "Sorry.",
        "completionReason": "FINISH",
        "amazon-bedrock-guardrailAction": "INTERVENED",
    }
    choice = reply_to(frame).choices[0]
    assert (choice.finish_reason_raw, choice.finish_detail) == ("FINISH", "guardrail_intervened")
    frame["amazon-bedrock-guardrailAction"] = "NONE"
    assert reply_to(frame).choices[0].finish_detail is None


def test_text_that_merely_names_amazons_members_changes_nothing() -> None:
    reply = reply_to({"outputText": "amazon-bedrock-guardrailAction", "completionReason": "FINISH"})
    assert (reply.usage, reply.choices[0].finish_detail) == (None, None)
    assert codes(reply_to('"amazon-bedrock-guardrailAction"')) == ["S006"]


@pytest.mark.parametrize("carried", ["?", "bm8=", 1, None, [], {}])
def test_an_event_without_a_payload_is_only_noted(carried: object) -> None:
    reply = reply_to(*MESSAGE, eventstream.event("chunk", {"bytes": carried}))
    assert told(reply) == [("c1", "get", '{"a": 1}')]
    assert set(codes(reply)) <= {"W004", "S006"}
    unread = reply_to(eventstream.event("chunk", {"bytes": carried}))
    assert (unread.text, unread.terminated) == ("", False)
    assert reply_to(eventstream.event("chunk", [])).text == ""


def test_objects_of_an_unknown_model_say_nothing() -> None:
    reply = reply_to({"novelty": "Hi"}, {"amazon-bedrock-invocationMetrics": METRICS})
    assert (reply.text, reply.usage, reply.observations) == ("", METRICS, ())


def test_a_language_may_show_itself_late() -> None:
    reply = reply_to({"novelty": 1}, *MESSAGE)
    assert reply.text == "Hi"


def test_command_r_says_its_plan_once_and_its_calls_in_a_list() -> None:
    calls = [{"name": "get", "parameters": {"a": 1}}]
    reply = reply_to(
        {"event_type": "stream-start", "generation_id": "g", "is_finished": False},
        {"event_type": "tool-calls-chunk", "text": "I look.", "is_finished": False},
        {"event_type": "tool-calls-generation", "text": "I look.", "tool_calls": calls},
        {"event_type": "stream-end", "finish_reason": "COMPLETE", "response": {"text": "I look."}},
    )
    assert (reply.dialect, reply.text, reply.terminated) == ("bedrock-invoke", "I look.", True)
    assert (told(reply), codes(reply)) == ([(None, "get", '{"a": 1}')], [])
