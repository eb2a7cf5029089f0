import json

import pytest

from deltatape.dialects.bedrock_invoke.request import InvokePath, read_path, read_request
from deltatape.model.asked import NOTHING_ASKED, Asked, RepeatedCall

PATH = "/model/some.model-v1%3A0/invoke-with-response-stream"


def asked(**body: object) -> Asked:
    return read_request(json.dumps(body).encode(), PATH)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (PATH, InvokePath(model="some.model-v1:0", stream=True)),
        ("/bedrock/model/m/invoke", InvokePath(model="m", stream=False)),
        ("/model/arn%3Aaws%3Aa%2Fb/invoke", InvokePath(model="arn:aws:a/b", stream=False)),
        ("/model/m/converse", None),
        ("/model//invoke", None),
        ("/models/invoke", None),
    ],
)
def test_the_path_names_the_model(path: str, expected: InvokePath | None) -> None:
    assert read_path(path) == expected


def test_what_is_no_object_asks_nothing() -> None:
    assert read_request(b"", PATH) == NOTHING_ASKED


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
    assert read_request(b'{"model":"m"}', "/").model == "m"


def test_novas_requests_are_read() -> None:
    schema = {"type": "object"}
    use = {"toolUseId": "c1", "name": "get", "input": {"a": 1}}
    results = [
        {"toolResult": {"toolUseId": "c1", "content": [{"text": "1"}]}},
        {"toolResult": {"toolUseId": "c2", "content": [{"json": {}}]}},
    ]
    found = asked(
        system=[{"text": "Be kind."}],
        messages=[
            {"role": "user", "content": [{"text": "Hi"}]},
            {"role": "assistant", "content": [{"text": "Look."}, {"toolUse": use}, None]},
            {"role": "user", "content": results},
            {"role": "assistant", "content": [{"toolUse": {"name": "put"}}]},
            {"role": "user", "content": [*results, {"text": "Go on."}]},
            None,
        ],
        toolConfig={
            "tools": [{"toolSpec": {"name": "get", "inputSchema": {"json": schema}}}, {}, None],
            "toolChoice": {"any": {}},
        },
    )
    assert [(tool.name, tool.parameters) for tool in found.tools] == [("get", schema)]
    assert found.tool_choice == "required"
    assert [(one.role, one.text, one.call_id) for one in found.history] == [
        ("system", "Be kind.", None),
        ("user", "Hi", None),
        ("assistant", "Look.", None),
        ("tool", "1", "c1"),
        ("tool", "", "c2"),
        ("assistant", "", None),
        ("tool", "1", "c1"),
        ("tool", "", "c2"),
        ("user", "Go on.", None),
    ]
    assert found.history[2].calls == (RepeatedCall(id="c1", name="get", arguments='{"a": 1}'),)
    assert found.history[5].calls == (RepeatedCall(id=None, name="put", arguments=""),)


@pytest.mark.parametrize(
    ("choice", "expected"),
    [({"auto": {}}, "auto"), ({"tool": {"name": "get"}}, "get"), ({"new": {}}, None), (None, None)],
)
def test_novas_tool_choice_is_said_in_common_words(choice: object, expected: str | None) -> None:
    assert asked(toolConfig={"toolChoice": choice}).tool_choice == expected
