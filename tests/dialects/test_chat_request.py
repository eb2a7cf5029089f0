import json

import pytest

from deltatape.dialects._chat_request import read_request
from deltatape.model.request_summary import NOTHING_ASKED, RepeatedCall, RequestSummary, ToolSpec


def asked(**request: object) -> RequestSummary:
    return read_request(json.dumps(request).encode())


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"\xff", b'{"a":NaN}', b"null"])
def test_a_body_that_is_not_a_json_object_asks_nothing(body: bytes) -> None:
    assert read_request(body) == NOTHING_ASKED


def test_model_and_stream_are_read() -> None:
    request = asked(model="m", stream=True)
    assert (request.known, request.model, request.stream) == (True, "m", True)
    assert (request.tools, request.tool_choice, request.history) == ((), None, ())
    assert asked(model=5, stream=1, messages={}).stream is False


def test_tools_of_every_form_are_read() -> None:
    schema = {"type": "object"}
    request = asked(
        tools=[
            {"type": "function", "function": {"name": "get", "parameters": schema}},
            {"type": "custom", "custom": {"name": "run"}},
            {"type": "function", "name": "flat", "parameters": schema},
            {"type": "web_search"},
            "x",
        ],
        functions=[{"name": "old", "parameters": schema}, None],
    )
    assert request.tools == (
        ToolSpec(name="get", parameters=schema),
        ToolSpec(name="run", parameters=None),
        ToolSpec(name="flat", parameters=schema),
        ToolSpec(name="old", parameters=schema),
    )


@pytest.mark.parametrize(
    ("key", "value", "choice"),
    [
        ("tool_choice", "required", "required"),
        ("tool_choice", {"type": "function", "function": {"name": "get"}}, "get"),
        ("tool_choice", {"type": "custom", "custom": {"name": "run"}}, "run"),
        ("tool_choice", {"allowed_tools": {"mode": "auto", "tools": []}}, "auto"),
        ("function_call", {"name": "old"}, "old"),
        ("function_call", "none", "none"),
        ("tool_choice", 5, None),
    ],
)
def test_the_tool_choice_is_a_mode_or_a_name(key: str, value: object, choice: str | None) -> None:
    assert asked(**{key: value}).tool_choice == choice


def test_the_history_repeats_calls_with_their_exact_arguments() -> None:
    body = b"""{"messages": [
        {"role": "user", "content": [{"type": "text", "text": "Hi"}, {"type": "image"}, 5]},
        {"role": "assistant", "content": null, "tool_calls": [
            {"id": "c1", "function": {"name": "get", "arguments": "{\\"a\\": 1}"}},
            {"id": "c2", "function": {"name": "put", "arguments": { "b" : 2.0 }}},
            {"id": "c3", "custom": {"name": "run", "input": "ls"}},
            {"id": "c4"}, "x"]},
        {"role": "assistant", "function_call": {"name": "old", "arguments": "{}"}},
        {"role": "tool", "tool_call_id": "c1", "content": "done"}, "x", {}]}"""
    user, reply, legacy, result, empty = read_request(body).history
    assert (user.role, user.text, user.calls, user.call_id) == ("user", "Hi", (), None)
    assert reply.calls == (
        RepeatedCall(id="c1", name="get", arguments='{"a": 1}'),
        RepeatedCall(id="c2", name="put", arguments='{ "b" : 2.0 }'),
        RepeatedCall(id="c3", name="run", arguments="ls"),
        RepeatedCall(id="c4", name=None, arguments=""),
    )
    assert legacy.calls == (RepeatedCall(id=None, name="old", arguments="{}"),)
    assert (result.text, result.call_id, empty.role) == ("done", "c1", "")


def test_a_digest_does_not_depend_on_how_a_message_is_written() -> None:
    one, other, third = read_request(
        b'{"messages":[{"role":"user","content":"x"},{"content" : "x","role":"user"},{"role":"x"}]}'
    ).history
    assert one.digest == other.digest != third.digest
