import json
from collections.abc import Sequence

import pytest

from deltatape.dialects._converse import (
    STREAMED,
    BedrockPath,
    converse_table,
    is_document,
    read_conversation,
    read_path,
)
from deltatape.dialects._table import TableReducer
from deltatape.dialects.bedrock_invoke import NovaReducer
from deltatape.model.reply import CallStatus, Reply
from deltatape.model.request_summary import NOTHING_ASKED, RepeatedCall, RequestSummary
from helpers.events import codes, details, events, spoilt

Json = dict[str, object]
Frame = tuple[str, Json]


def bare(*frames: Frame) -> Reply:
    """The reply to events whose types the framing names."""
    reducer = TableReducer(converse_table("some"), NOTHING_ASKED)
    types = [kind for kind, _ in frames]
    for event in events(*(frame for _, frame in frames), types=types):
        reducer.feed(event)
    return reducer.finish(cut=False)


def wrapped(*frames: Frame) -> Reply:
    """The reply to events that are objects with one member."""
    reducer = NovaReducer("some", NOTHING_ASKED)
    for event in events(*({kind: frame} for kind, frame in frames)):
        reducer.feed(event)
    return reducer.finish(cut=False)


def both(*frames: Frame) -> Reply:
    """The reply, which is the same in both frames."""
    reply = bare(*frames)
    other = wrapped(*frames)
    assert facts(reply) == facts(other)
    return reply


def facts(reply: Reply) -> Sequence[object]:
    calls = [*reply.tool_calls, *reply.server_calls]
    return (
        [(c.wire_index, c.ids, c.name, c.kind, c.arguments, c.status, c.repairs) for c in calls],
        (reply.text, reply.reasoning, reply.finish_reason_raw, reply.usage, reply.terminated),
        [(one.code, one.detail, one.event) for one in reply.observations],
    )


def start(index: int, **use: object) -> Frame:
    return "contentBlockStart", {"contentBlockIndex": index, "start": {"toolUse": use}}


def delta(index: int, **what: object) -> Frame:
    return "contentBlockDelta", {"contentBlockIndex": index, "delta": what}


def piece(index: int, value: object) -> Frame:
    return delta(index, toolUse={"input": value})


def stop(index: int) -> Frame:
    return "contentBlockStop", {"contentBlockIndex": index}


CALL = start(1, toolUseId="c1", name="get")
END: Frame = ("messageStop", {"stopReason": "tool_use"})
USAGE: Frame = ("metadata", {"usage": {"inputTokens": 3}})


def test_texts_thoughts_and_calls_are_rebuilt_without_a_word() -> None:
    reply = both(
        ("messageStart", {"role": "assistant"}),
        delta(0, reasoningContent={"text": "Hm"}),
        delta(0, reasoningContent={"reasoningText": {"text": "."}}),
        delta(0, text="Hi"),
        stop(0),
        CALL,
        piece(1, '{"a"'),
        piece(1, ": 1}"),
        stop(1),
        start(2, toolUseId="s1", name="run", type="server_tool_use"),
        piece(2, "{}"),
        stop(2),
        END,
        USAGE,
    )
    assert (reply.text, reply.reasoning, reply.usage) == ("Hi", "Hm.", {"inputTokens": 3})
    assert [(one.id, one.arguments) for one in reply.tool_calls] == [("c1", '{"a": 1}')]
    assert [(one.id, one.arguments) for one in reply.server_calls] == [("s1", "{}")]
    assert (reply.finish_reason_raw, reply.terminated, reply.observations) == ("tool_use", True, ())


def test_input_that_is_not_a_string_is_its_exact_source_and_told() -> None:
    reply = both(CALL, piece(1, {"a": [1]}), piece(1, None), stop(1), END)
    assert reply.tool_calls[0].arguments == '{"a": [1]}'
    assert reply.tool_calls[0].status is CallStatus.COMPLETE
    assert codes(reply) == ["T006"]


def test_a_second_start_is_the_same_call_unless_its_id_differs() -> None:
    again = both(CALL, piece(1, "{}"), CALL, stop(1), END)
    assert ([call.ids for call in again.tool_calls], codes(again)) == ([("c1",)], ["S006"])
    other = start(1, toolUseId="c2", name="get")
    reply = both(CALL, piece(1, "{}"), stop(1), other, piece(1, "[]"), stop(1), END)
    assert [(one.id, one.arguments) for one in reply.tool_calls] == [("c1", "{}"), ("c2", "[]")]
    assert "T012" in codes(reply)


@pytest.mark.parametrize(
    ("frames", "phrase"),
    [
        ((piece(1, "{}"), stop(1), END), "arguments of a call that never started"),
        ((CALL, piece(1, "{}"), END), "nothing says that the call of 'get' is whole"),
        (
            (CALL, stop(1), piece(1, "{}"), END),
            "arguments after the end of the call",
        ),
        ((END, delta(0, text="Hi")), "content after the terminal event"),
        ((("contentBlockDelta", {}), END), "delta is not an object"),
        ((("messageStop", {"stopReason": 1}),), "the finish reason is not a string"),
    ],
)
def test_what_breaks_the_protocol_is_reported(frames: tuple[Frame, ...], phrase: str) -> None:
    assert details(both(*frames), "S006") == [phrase]


def test_an_event_of_a_call_without_an_index_belongs_to_the_last_one() -> None:
    nowhere: Frame = ("contentBlockDelta", {"delta": {"toolUse": {"input": "{}"}}})
    reply = both(CALL, nowhere, stop(1), END)
    assert (reply.tool_calls[0].arguments, codes(reply)) == ("{}", ["T011"])


def test_a_document_says_the_same_as_a_stream() -> None:
    content: list[object] = [
        {"reasoningContent": {"reasoningText": {"text": "Hm."}}},
        {"text": "Hi"},
        {"toolUse": {"toolUseId": "c1", "name": "get", "input": {"a": 1}}},
        {"toolUse": {"toolUseId": "c2", "name": "get"}},
        None,
    ]
    document: Json = {
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": "tool_use",
        "usage": {"inputTokens": 3},
    }
    assert is_document(document)
    reducer = NovaReducer("some", NOTHING_ASKED)
    for event in events(document):
        reducer.feed(event)
    reply = bare(("message", document))
    assert facts(reply) == facts(reducer.finish(cut=False))
    assert (reply.text, reply.reasoning, reply.usage) == ("Hi", "Hm.", {"inputTokens": 3})
    assert [(one.wire_index, one.id, one.arguments) for one in reply.tool_calls] == [
        (2, "c1", '{"a": 1}'),
        (3, "c2", ""),
    ]
    assert (reply.terminated, details(reply, "S006")) == (
        True,
        ["a content block is not an object"],
    )


def test_a_document_without_its_reason_is_not_whole() -> None:
    assert not bare(("message", {"output": {"message": {"content": []}}})).terminated


@pytest.mark.parametrize("junk", [None, 1, "x", [], {}, {"message": []}], ids=repr)
def test_only_a_message_makes_a_document(junk: object) -> None:
    assert not is_document({"output": junk})


def test_every_streamed_type_but_the_first_has_its_steps() -> None:
    for members in (False, True):
        known = set(converse_table("some", members=members).events)
        assert {"messageStart"} == STREAMED - known


def test_a_failure_of_the_model_is_an_error() -> None:
    for reason in ("malformed_model_output", "malformed_tool_use"):
        reply = both(start(0, toolUseId="t", name="f"), ("messageStop", {"stopReason": reason}))
        assert (reply.error, codes(reply)) == (f"stopReason is '{reason}'", ["S005"])
        assert reply.tool_calls[0].status is CallStatus.TRUNCATED


def test_text_that_cites_stands_between_the_others() -> None:
    cited = {"citationsContent": {"content": [{"text": "b"}, {}, {"text": "c"}], "citations": []}}
    message = {"content": [{"text": "a"}, cited, {"text": "d"}]}
    reply = bare(("message", {"output": {"message": message}, "stopReason": "end_turn"}))
    assert (reply.text, codes(reply)) == ("abcd", [])


def test_an_image_is_something_to_show() -> None:
    shown = delta(0, image={"source": {"bytes": ""}})
    assert both(shown).choices[0].media
    assert not both(delta(0, text="a")).choices[0].media
    message = {"content": [{"text": "a"}, {"video": {"format": "mp4"}}]}
    assert bare(("message", {"output": {"message": message}})).choices[0].media


def test_the_signatures_of_thoughts_are_kept_streamed_and_whole() -> None:
    reply = both(
        delta(0, reasoningContent={"text": "Hm"}),
        delta(0, reasoningContent={"signature": "abc"}),
        delta(1, reasoningContent={"redactedContent": "def"}),
    )
    assert [each.signature for each in reply.choices[0].thoughts] == ["abc", "def"]
    assert reply.choices[0].signed_text == "Hm"
    text = {"reasoningText": {"text": "Hm", "signature": "abc"}}
    blocks = [{"reasoningContent": text}, {"reasoningContent": {"redactedContent": "def"}}]
    document: Json = {"message": {"content": [*blocks, {"text": "Hi"}]}}
    whole = bare(("message", {"output": document, "stopReason": "end_turn"}))
    assert whole.choices[0].thoughts == reply.choices[0].thoughts


def read(request: object) -> RequestSummary:
    return read_conversation(json.dumps(request).encode(), model="m", stream=True)


def test_model_and_stream_are_those_of_the_path() -> None:
    asked = read({"modelId": "x"})
    assert (asked.known, asked.model, asked.stream) == (True, "m", True)


def test_tools_and_their_choice() -> None:
    schema = {"type": "object", "required": ["city"]}
    spec = {"toolSpec": {"name": "get", "inputSchema": {"json": schema}}}
    tools = [spec, {"cachePoint": {}}, {"toolSpec": {}}, 1, {"toolSpec": {"name": "now"}}]
    asked = read({"toolConfig": {"tools": tools, "toolChoice": {"any": {}}}})
    assert [(tool.name, tool.parameters) for tool in asked.tools] == [
        ("get", schema),
        ("now", None),
    ]
    assert asked.tool_choice == "required"


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ({"auto": {}}, "auto"),
        ({"any": {}}, "required"),
        ({"tool": {"name": "get"}}, "get"),
        ({"tool": {}}, None),
        ({"new": {}}, None),
        ({}, None),
        (None, None),
    ],
)
def test_the_choice_is_said_in_common_words(choice: object, expected: str | None) -> None:
    assert read({"toolConfig": {"toolChoice": choice}}).tool_choice == expected


HISTORY = [
    {"role": "user", "content": [{"text": "hi"}]},
    {
        "role": "assistant",
        "content": [
            {"text": "Let me see"},
            {"toolUse": {"toolUseId": "a", "name": "f", "input": {"x": 1}}},
            {"toolUse": {"toolUseId": "s", "type": "server_tool_use", "input": {}}},
            {"toolResult": {"toolUseId": "s"}},
            7,
        ],
    },
    {
        "role": "user",
        "content": [
            {"toolResult": {"toolUseId": "a", "content": [{"text": "13"}, {"json": {}}]}},
            {"toolResult": {"toolUseId": "b"}},
            {"text": "and?"},
        ],
    },
    {"role": "user", "content": [{"toolResult": {"toolUseId": "c"}}]},
    "no message",
]


def test_each_result_is_a_message_of_its_own() -> None:
    asked = read({"system": [{"text": "Be brief."}], "messages": HISTORY})
    assert [(one.role, one.text, one.call_id) for one in asked.history] == [
        ("system", "Be brief.", None),
        ("user", "hi", None),
        ("assistant", "Let me see", None),
        ("tool", "13", "a"),
        ("tool", "", "b"),
        ("user", "and?", None),
        ("tool", "", "c"),
    ]
    assert asked.history[2].calls == (RepeatedCall(id="a", name="f", arguments='{"x": 1}'),)
    assert len({one.digest for one in asked.history}) == len(asked.history)


def test_a_message_without_content_is_part_of_the_history() -> None:
    asked = read({"messages": [{"role": "assistant", "content": []}, {"role": "user"}]})
    assert [(one.role, one.text) for one in asked.history] == [("assistant", ""), ("user", "")]


@pytest.mark.parametrize(
    ("written", "arguments"), [("{}", '"{}"'), ([1.0], "[1.0]"), (None, ""), ({}, "{}")], ids=repr
)
def test_the_input_of_a_call_is_its_exact_source(written: object, arguments: str) -> None:
    use = {"toolUseId": "a", "name": "f", "input": written}
    asked = read({"messages": [{"role": "assistant", "content": [{"toolUse": use}]}]})
    assert asked.history[0].calls == (RepeatedCall(id="a", name="f", arguments=arguments),)


@pytest.mark.slow
def test_no_value_of_any_type_anywhere_raises() -> None:
    spec = {"name": "f", "inputSchema": {"json": {}}}
    config = {"tools": [{"toolSpec": spec}], "toolChoice": {"tool": {"name": "f"}}}
    system = [{"text": "Be brief."}]
    for one in spoilt([{"system": system, "toolConfig": config, "messages": HISTORY}]):
        body = json.dumps(one[0]).encode()
        found = read_conversation(body, model=None, stream=False)
        assert found.known is isinstance(one[0], dict)


def test_thoughts_of_the_history_and_whether_thinking_is_on() -> None:
    signed = {"reasoningText": {"text": "Hm", "signature": "abc"}}
    content = [{"reasoningContent": signed}, {"reasoningContent": {"redactedContent": "def"}}]
    asked = read(
        {
            "messages": [{"role": "assistant", "content": content}],
            "additionalModelRequestFields": {"thinking": {"type": "enabled"}},
        }
    )
    assert asked.thinking is True
    (message,) = asked.history
    assert [(each.text, each.signature) for each in message.thoughts] == [
        ("Hm", "abc"),
        ("", "def"),
    ]


@pytest.mark.parametrize(
    ("path", "model", "action"),
    [
        ("/model/some.model-v1%3A0/converse-stream", "some.model-v1:0", "converse-stream"),
        ("/bedrock/model/m/invoke/", "m", "invoke"),
        ("/model/arn%3Aaws%3Abedrock%2Fx/converse", "arn:aws:bedrock/x", "converse"),
        ("/model/arn:aws:bedrock/x/converse", "arn:aws:bedrock/x", "converse"),
        ("/model//invoke", None, "invoke"),
        ("/models/invoke", None, "invoke"),
        ("/converse", None, "converse"),
        ("", None, ""),
    ],
)
def test_the_path_names_model_and_action(path: str, model: str | None, action: str) -> None:
    assert read_path(path) == BedrockPath(model=model, action=action)
