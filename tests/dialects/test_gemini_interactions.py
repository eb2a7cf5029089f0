import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltatape.diagnose.rebuild import rebuild
from deltatape.dialects.gemini_interactions import read_request
from deltatape.model.exchange import Exchange
from deltatape.model.reply import CallKind, CallStatus
from deltatape.model.request_summary import (
    NOTHING_ASKED,
    Message,
    RepeatedCall,
    RequestSummary,
    ToolSpec,
)
from helpers.chat import codes, told
from helpers.gemini import INTERACTIONS, interaction, spoken
from helpers.json_values import json_values

TEXT = interaction("step.delta", index=0, delta={"type": "text", "text": "Hi"})
KEYS = ("arguments", "content", "id", "index", "name", "status", "summary", "text", "type")
WORDS = ("arguments_delta", "function_call", "thought", "text", "model_output", "x_call")


def completed(status: object, **more: object) -> dict[str, object]:
    return interaction("interaction.completed", interaction={"status": status, **more})


def test_model_usage_and_status_are_read() -> None:
    reply = spoken(
        interaction("interaction.created", interaction={"status": "in_progress", "model": "m"}),
        interaction("interaction.status_update", interaction_id="i", status="in_progress"),
        TEXT,
        completed("completed", usage={"total_tokens": 5}, model="other"),
        "[DONE]",
    )
    assert (reply.model, reply.usage, reply.text) == ("m", {"total_tokens": 5}, "Hi")
    assert (reply.finish_reason_raw, reply.terminated) == ("completed", True)
    assert (reply.terminal_event, codes(reply)) == (3, [])


def test_a_stream_without_completion_is_not_terminated() -> None:
    assert not spoken(interaction("interaction.created", interaction={}), TEXT).terminated


def test_a_status_update_may_be_the_last_word() -> None:
    reply = spoken(TEXT, interaction("interaction.status_update", status="cancelled"))
    assert (reply.finish_reason_raw, reply.terminated) == ("cancelled", True)


def test_errors_and_failures_are_errors() -> None:
    error = interaction("error", error={"message": "overloaded", "code": "503"})
    reply = spoken(TEXT, error, completed("failed"))
    assert (reply.error, reply.finish_reason_raw, codes(reply)) == (
        "overloaded",
        "failed",
        ["S005"],
    )
    assert spoken(TEXT, completed("failed")).error == "the interaction failed"


@pytest.mark.parametrize("key", ["steps", "outputs"])
def test_a_document_holds_the_steps(key: str) -> None:
    body = {
        "object": "interaction",
        "status": "requires_action",
        "agent": "a",
        key: [
            {"type": "user_input", "content": [{"type": "text", "text": "Hi"}]},
            {"type": "thought", "summary": [{"type": "text", "text": "Hm."}]},
            {"type": "model_output", "content": [{"type": "text", "text": "Well."}]},
            {"type": "function_call", "id": "1", "name": "f", "arguments": {"a": 1}},
            {"type": "function_call", "id": "2", "name": "g", "arguments": {}},
        ],
    }
    text = json.dumps(body).encode()
    reply = rebuild(Exchange.from_body(text, content_type="application/json", url=INTERACTIONS))
    assert (reply.model, reply.text, reply.reasoning) == ("a", "Well.", "Hm.")
    assert told(reply) == [("1", "f", '{"a": 1}'), ("2", "g", "{}")]
    assert (reply.finish_reason_raw, codes(reply)) == ("requires_action", [])


def test_the_steps_of_a_completion_count_only_alone() -> None:
    steps = [{"type": "text", "text": "Hi"}]
    assert spoken(completed("completed", steps=steps)).text == "Hi"
    assert spoken(TEXT, completed("completed", steps=steps)).text == "Hi"


@pytest.mark.parametrize(
    "broken",
    [
        interaction("step.start", index=0),
        interaction("step.delta", index=0, delta=5),
        completed(5),
        completed("completed", steps=[5]),
        "5",
    ],
)
def test_a_wrong_type_is_odd_and_nothing_else(broken: object) -> None:
    reply = spoken(broken, TEXT, interaction("interaction.status_update", status="completed"))
    assert codes(reply) == ["S006"]
    assert reply.text == "Hi"


@pytest.mark.parametrize(
    "known",
    [
        interaction("interaction.created"),
        interaction("novelty.happened", interaction=5),
        interaction("step.start", index="x", step={"type": 5}),
        interaction("step.delta", delta={"text": 5, "type": "text"}),
        interaction("step.stop"),
    ],
)
def test_new_and_empty_events_are_ignored(known: object) -> None:
    assert codes(spoken(known, TEXT, completed("completed"))) == []


NESTED = json_values(
    st.integers(0, 3) | st.text(max_size=3) | st.sampled_from(WORDS), st.sampled_from(KEYS), 12
)


@pytest.mark.slow
@given(st.lists(NESTED, max_size=4))
def test_any_values_make_a_reply(chunks: list[object]) -> None:
    kinds = ("step.start", "step.delta", "step.stop", "interaction.completed", "error")
    fields = ("step", "delta", "interaction", "index", "error")
    frames = [
        interaction(kind, **dict.fromkeys(fields, chunk)) for chunk in chunks for kind in kinds
    ]
    frames += [{"event_type": chunk, "status": chunk, "steps": chunk} for chunk in chunks]
    assert spoken(*frames, *map(json.dumps, chunks)).dialect


DONE = interaction("interaction.completed", interaction={"status": "requires_action"})


def start(index: object, kind: str, **step: object) -> dict[str, object]:
    return interaction("step.start", index=index, step={"type": kind, **step})


def delta(index: object, kind: str, **fields: object) -> dict[str, object]:
    return interaction("step.delta", index=index, delta={"type": kind, **fields})


def stop(index: object) -> dict[str, object]:
    return interaction("step.stop", index=index)


CALL = start(1, "function_call", id="c1", name="f", arguments={})


def test_texts_and_thoughts_are_kept_apart() -> None:
    reply = spoken(
        start(0, "thought"),
        delta(0, "thought_summary", content={"type": "text", "text": "Hm."}),
        delta(0, "thought_summary", content={"type": "image"}),
        delta(0, "thought_signature", signature="s"),
        stop(0),
        start(1, "model_output", content=[{"type": "text", "text": "It "}]),
        delta(1, "text", text="rains."),
        delta(1, "text_annotation_delta", annotations=[]),
        stop(1),
        DONE,
    )
    assert (reply.reasoning, reply.text, codes(reply)) == ("Hm.", "It rains.", [])


def test_arguments_come_in_pieces_by_index() -> None:
    reply = spoken(
        CALL,
        start(2, "function_call", id="c2", name="g", arguments={}),
        delta(1, "arguments_delta", arguments='{"a"'),
        delta(2, "arguments_delta", arguments='{"b":'),
        delta(1, "arguments_delta", arguments=":1}"),
        delta(2, "arguments_delta", arguments="2}"),
        stop(1),
        stop(2),
        DONE,
    )
    assert told(reply) == [("c1", "f", '{"a":1}'), ("c2", "g", '{"b":2}')]
    assert [one.wire_index for one in reply.tool_calls] == [1, 2]
    assert codes(reply) == []


@pytest.mark.parametrize(
    ("shown", "arguments"), [({}, "{}"), ({"a": 1}, '{"a": 1}'), ('{"a":1}', '{"a":1}'), (None, "")]
)
def test_what_the_start_shows_counts_if_nothing_follows(shown: object, arguments: str) -> None:
    begun = start(1, "function_call", id="c1", name="f", arguments=shown)
    assert told(spoken(begun, stop(1), DONE)) == [("c1", "f", arguments)]
    more = delta(1, "arguments_delta", arguments='{"x":1}')
    assert told(spoken(begun, more, stop(1), DONE)) == [("c1", "f", '{"x":1}')]


@pytest.mark.parametrize(
    ("count", "status"), [(1, "truncated"), (2, "truncated"), (3, "truncated"), (4, "complete")]
)
def test_a_call_is_whole_when_its_step_stops(count: int, status: str) -> None:
    chunks = [
        CALL,
        delta(1, "arguments_delta", arguments='{"a":'),
        delta(1, "arguments_delta", arguments="1}"),
        stop(1),
    ]
    (call,) = spoken(*chunks[:count]).tool_calls
    assert call.status == status


def test_an_older_form_sends_calls_whole() -> None:
    reply = spoken(
        interaction("content.start", index=0, content={"type": "text"}),
        interaction("content.delta", index=0, delta={"type": "text", "text": "Hi"}),
        interaction("content.stop", index=0),
        interaction(
            "content.delta",
            index=1,
            delta={"type": "function_call", "id": "c", "name": "f", "arguments": {"a": 1}},
        ),
        interaction("content.stop", index=1),
        interaction("interaction.complete", interaction={"status": "requires_action"}),
    )
    assert (reply.text, told(reply)) == ("Hi", [("c", "f", '{"a": 1}')])
    assert (reply.terminated, codes(reply)) == (True, [])


def test_what_the_provider_runs_itself_needs_no_answer() -> None:
    reply = spoken(
        start(0, "code_execution_call", id="x"),
        delta(0, "code_execution_call", arguments={"code": "1"}),
        stop(0),
        start(1, "code_execution_result", call_id="x"),
        delta(1, "code_execution_result", result="1"),
        start(2, "mcp_server_tool_call", id="m", name="look", server_name="s", arguments={}),
        stop(2),
        interaction("interaction.completed", interaction={"status": "completed"}),
    )
    found = [(one.kind, one.id, one.name, one.arguments) for one in reply.server_calls]
    assert found == [
        (CallKind.SERVER, "x", "code_execution_call", '{"code": "1"}'),
        (CallKind.MCP, "m", "look", "{}"),
    ]
    assert (reply.tool_calls, codes(reply)) == ((), [])


def test_pieces_of_no_call_are_an_orphan() -> None:
    piece = delta(4, "arguments_delta", arguments='{"a":1}')
    reply = spoken(piece, piece, stop(3), DONE)
    assert [one.status for one in reply.tool_calls] == [CallStatus.ORPHAN]
    assert codes(reply) == ["S006"]


def test_pieces_after_the_end_are_odd() -> None:
    piece = delta(1, "arguments_delta", arguments="{}")
    assert codes(
        spoken(CALL, piece, stop(1), delta(1, "arguments_delta", arguments=" "), DONE)
    ) == ["S006"]


def test_an_index_used_again_is_another_step() -> None:
    reply = spoken(CALL, stop(1), start(1, "function_call", id="c2", name="g"), stop(1), DONE)
    assert [one.id for one in reply.tool_calls] == ["c1", "c2"]


def test_images_are_something_to_show_and_no_text() -> None:
    for step in (
        delta(0, "image", data=""),
        start(0, "model_output", content=[None, {"type": {}}, {"type": "audio"}]),
    ):
        assert spoken(step, DONE).choices[0].media
    silent = start(0, "model_output", content=[{"type": "text", "text": "a"}])
    assert not spoken(silent, DONE).choices[0].media


REQUEST_WORDS = (
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


def test_a_body_that_is_not_a_json_object_asks_nothing() -> None:
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


REQUEST_VALUES = json_values(
    st.integers() | st.sampled_from(REQUEST_WORDS), st.sampled_from(REQUEST_WORDS), 12
)


@pytest.mark.slow
@given(st.dictionaries(st.sampled_from(REQUEST_WORDS), REQUEST_VALUES, max_size=6))
def test_any_request_is_read(request: dict[str, object]) -> None:
    assert asked(**request).known
