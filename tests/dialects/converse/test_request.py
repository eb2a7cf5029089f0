import json

import pytest

from deltatape.dialects._converse.request import BedrockPath, read_conversation, read_path
from deltatape.model.request_summary import RepeatedCall, RequestSummary
from helpers.fed import spoilt


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
