import pytest

from deltatape.model.reply import CallKind, CallStatus
from helpers.chat import codes, told
from helpers.gemini import interaction, spoken

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
