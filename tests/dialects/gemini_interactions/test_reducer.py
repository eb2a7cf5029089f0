import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltatape.diagnose.rebuild import rebuild
from deltatape.model.exchange import Exchange
from helpers.chat import codes, told
from helpers.gemini import INTERACTIONS, interaction, spoken

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


NESTED = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.text(max_size=3) | st.sampled_from(WORDS),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(st.lists(NESTED, max_size=4))
@settings(max_examples=60)
def test_any_values_make_a_reply(chunks: list[object]) -> None:
    kinds = ("step.start", "step.delta", "step.stop", "interaction.completed", "error")
    fields = ("step", "delta", "interaction", "index", "error")
    frames = [
        interaction(kind, **dict.fromkeys(fields, chunk)) for chunk in chunks for kind in kinds
    ]
    frames += [{"event_type": chunk, "status": chunk, "steps": chunk} for chunk in chunks]
    assert spoken(*frames, *map(json.dumps, chunks)).dialect
