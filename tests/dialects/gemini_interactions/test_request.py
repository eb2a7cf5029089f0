import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltatape.dialects.gemini_interactions.request import read_request
from deltatape.model.request_summary import (
    NOTHING_ASKED,
    Message,
    RepeatedCall,
    RequestSummary,
    ToolSpec,
)

WORDS = (
    "arguments",
    "content",
    "function_call",
    "function_result",
    "generation_config",
    "input",
    "model",
    "name",
    "parameters",
    "result",
    "role",
    "text",
    "tool_choice",
    "tools",
    "type",
)


def asked(**request: object) -> RequestSummary:
    return read_request(json.dumps(request).encode())


def said(history: tuple[Message, ...]) -> list[tuple[str, str, str | None]]:
    return [(one.role, one.text, one.call_id) for one in history]


def test_a_body_that_is_no_json_object_asks_nothing() -> None:
    assert read_request(b"[]") == NOTHING_ASKED


def test_model_agent_stream_and_tools_are_read() -> None:
    schema = {"type": "object"}
    found = asked(
        model="m",
        stream=True,
        tools=[{"type": "function", "name": "f", "parameters": schema}, {"type": "x"}, 5],
    )
    assert (found.model, found.stream, found.history) == ("m", True, ())
    assert found.tools == (ToolSpec(name="f", parameters=schema),)
    assert asked(agent="a").model == "a"


@pytest.mark.parametrize(
    ("choice", "told"),
    [
        ("auto", "auto"),
        ("any", "required"),
        ("validated", "auto"),
        ({"allowed_tools": {"mode": "any", "tools": ["f"]}}, "f"),
        ({"allowed_tools": {"mode": "any", "tools": ["f", "g"]}}, "required"),
        ({"allowed_tools": {}}, None),
        (5, None),
    ],
)
def test_the_tool_choice_is_a_mode_or_a_name(choice: object, told: str | None) -> None:
    assert asked(generation_config={"tool_choice": choice}).tool_choice == told
    assert asked().tool_choice is None


@pytest.mark.parametrize(
    ("value", "history"),
    [
        ("Hi", [("user", "Hi", None)]),
        ({"type": "text", "text": "Hi"}, [("user", "Hi", None)]),
        ([{"type": "text", "text": "Hi"}, 5], [("user", "Hi", None)]),
        (
            [
                {"role": "user", "content": "Hi"},
                {"role": "model", "content": [{"type": "text", "text": "Yo"}]},
            ],
            [("user", "Hi", None), ("model", "Yo", None)],
        ),
        (
            [
                {"type": "user_input", "content": [{"type": "text", "text": "Hi"}]},
                {"type": "thought", "summary": [], "content": "x"},
                {"type": "model_output", "content": [{"type": "text", "text": "Yo"}]},
                {"type": "google_search_call"},
            ],
            [("user", "Hi", None), ("model", "", None), ("model", "Yo", None), ("model", "", None)],
        ),
        (
            {"type": "function_result", "call_id": "1", "name": "f", "result": "ok"},
            [("tool", "ok", "1")],
        ),
        (
            {"type": "function_result", "name": "f", "result": [{"type": "text", "text": "ok"}]},
            [("tool", "ok", "f")],
        ),
        ({"type": "function_result"}, [("tool", "", "")]),
        (5, []),
    ],
)
def test_the_input_has_many_forms(
    value: object, history: list[tuple[str, str, str | None]]
) -> None:
    assert said(asked(input=value).history) == history


def test_calls_keep_their_source_and_turns_are_taken_apart() -> None:
    body = (
        '{"system_instruction": "Be brief.", "input": ['
        '{"type": "function_call", "id": "1", "name": "f", "arguments": {"a" : 1}},'
        '{"role": "model", "content": [{"type": "text", "text": "Well"},'
        '{"type": "function_call", "id": "2", "name": "g", "arguments": {}}, 5]},'
        '{"type": "function_result", "call_id": "1", "result": {"x":  2}}]}'
    )
    history = read_request(body.encode()).history
    assert said(history) == [
        ("system", "Be brief.", None),
        ("model", "", None),
        ("model", "Well", None),
        ("model", "", None),
        ("tool", '{"x":  2}', "1"),
    ]
    assert history[1].calls == (RepeatedCall(id="1", name="f", arguments='{"a" : 1}'),)
    assert history[3].calls == (RepeatedCall(id="2", name="g", arguments="{}"),)
    assert len({one.digest for one in history}) == len(history)


NESTED = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(WORDS),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(WORDS), NESTED, max_size=6))
@settings(max_examples=60)
def test_any_request_is_read(request: dict[str, object]) -> None:
    assert asked(**request).known
