import json

import pytest

from deltatape.dialects.bedrock_converse import BedrockConverse
from deltatape.model.asked import NOTHING_ASKED, Asked, RepeatedCall

PATH = "/model/anthropic.claude%3A0/converse-stream"


def read(request: object, path: str = PATH) -> Asked:
    return BedrockConverse().read_request(json.dumps(request).encode(), path)


def test_what_is_no_object_asks_for_nothing() -> None:
    assert BedrockConverse().read_request(b"1", PATH) is NOTHING_ASKED


@pytest.mark.parametrize(
    ("path", "model", "stream"),
    [
        (PATH, "anthropic.claude:0", True),
        ("/bedrock/model/m/converse", "m", False),
        ("/model/arn%3Aaws%3Abedrock%2Fx/converse", "arn:aws:bedrock/x", False),
        ("/model/arn:aws:bedrock/x/converse-stream/", "arn:aws:bedrock/x", True),
        ("/converse", None, False),
        ("", None, False),
    ],
)
def test_the_path_names_model_and_method(path: str, model: str | None, stream: bool) -> None:  # noqa: FBT001
    asked = read({}, path)
    assert (asked.model, asked.stream) == (model, stream)


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
    assert read({"toolConfig": {"toolChoice": {"auto": {}}}}).tool_choice == "auto"
    assert read({"toolConfig": {"toolChoice": {"tool": {"name": "f"}}}}).tool_choice == "f"
    assert read({"toolConfig": {}}).tool_choice is None


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
