import json

import pytest

from deltatape.dialects.bedrock_invoke.request import read_request, serves
from deltatape.model.request_summary import NOTHING_ASKED, RepeatedCall, RequestSummary

PATH = "/model/some.model-v1%3A0/invoke-with-response-stream"


def asked(**body: object) -> RequestSummary:
    return read_request(json.dumps(body).encode(), PATH)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (PATH, True),
        ("/bedrock/model/m/invoke", True),
        ("/model/arn%3Aaws%3Aa%2Fb/invoke", True),
        ("/model/m/converse", False),
        ("/model//invoke", False),
        ("/models/invoke", False),
    ],
)
def test_its_paths_have_a_model_and_its_action(path: str, expected: bool) -> None:  # noqa: FBT001
    assert serves(path) is expected


@pytest.mark.parametrize("action", ["invoke", "invoke-with-response-stream"])
@pytest.mark.parametrize("body", [b'{"prompt": "Hi"}', b'{"inferenceConfig": {}}'])
def test_the_path_names_the_model_and_says_whether_it_streams(body: bytes, action: str) -> None:
    found = read_request(body, f"/bedrock/model/a%3A0/{action}")
    assert (found.model, found.stream) == ("a:0", action != "invoke")


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
