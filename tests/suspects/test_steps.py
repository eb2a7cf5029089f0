import base64
import json

from deltatape.suspects.steps import (
    ClientCallDelta,
    EmptyTextDelta,
    EntryPhase,
    FinishDelta,
    IncompleteDelta,
    Step,
    block_steps,
    chat_steps,
    gemini_steps,
    member,
    number,
    objects,
    ollama_steps,
    responses_steps,
    text_of,
    word,
)
from helpers import chat, gemini
from helpers import messages as m
from helpers import responses as r
from helpers.chat import FINISH, calls, choice, entry, sse
from helpers.eventstream import message
from helpers.suspected import AWS, SSE, deliver


def _chat(*chunks: object, indexed: bool = True, done: bool = True) -> list[Step]:
    events = deliver(sse(*chunks, done=done)).events
    return [*chat_steps(events, 0, indexed=indexed)]


def _chat_entries(*chunks: object, indexed: bool = True) -> list[ClientCallDelta]:
    return [step for step in _chat(*chunks, indexed=indexed) if isinstance(step, ClientCallDelta)]


def test_entries_tell_what_is_absent_from_what_is_empty() -> None:
    value = {"index": "0", "id": "", "function": {"name": None, "arguments": ""}}
    found = _chat_entries(calls(value), calls(entry(0)))
    assert found[0] == ClientCallDelta(0, EntryPhase.DELTA, index=0, id="", text="")
    assert found[1] == ClientCallDelta(1, EntryPhase.DELTA, index=0)


def test_the_string_null_is_not_an_id() -> None:
    assert _chat_entries(calls(entry(0, "null", name="get")))[0].id is None


def test_arguments_that_are_json_are_marked() -> None:
    found = _chat_entries(calls(entry(0, "c1", arguments={"a": 1})))
    assert (found[0].text, found[0].unquoted) == ('{"a":1}', True)


def test_custom_tools_have_input() -> None:
    custom = {"index": 0, "id": "c1", "custom": {"name": "run", "input": "ls"}}
    assert _chat_entries(calls(custom))[0] == ClientCallDelta(
        0, EntryPhase.DELTA, index=0, id="c1", name="run", text="ls", kind="custom"
    )


def test_the_old_function_call_is_an_entry_of_its_own_kind() -> None:
    found = _chat_entries(choice({"function_call": {"name": "get", "arguments": "{}"}}))
    assert (found[0].kind, found[0].name, found[0].text) == ("legacy", "get", "{}")


def test_events_without_choices_or_delta_are_odd() -> None:
    null = {"choices": [{"index": 0, "delta": None, "finish_reason": "stop"}]}
    found = _chat({"choices": []}, null, {"error": {"message": "x"}})
    assert found == [
        IncompleteDelta(0, "choices"),
        IncompleteDelta(1, "delta"),
        FinishDelta(1, "stop"),
        IncompleteDelta(2, "choices"),
    ]


def test_choices_of_others_are_passed_over() -> None:
    assert _chat(choice({"content": "x"}, index=1)) == []


def test_nothing_is_read_behind_the_sentinel_or_of_what_is_not_json() -> None:
    assert _chat("{", FINISH, "[DONE]", FINISH) == [FinishDelta(1, "tool_calls")]


def test_entries_know_that_their_event_ends_the_stream() -> None:
    found = _chat_entries(choice({"tool_calls": [entry(0, "c1")]}, "stop"))
    assert found[0].finished


def test_whole_messages_have_whole_calls() -> None:
    message = {"role": "assistant", "tool_calls": [entry(None, "c1", name="get", arguments="{}")]}
    found = _chat({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})
    assert [step.phase for step in found if isinstance(step, ClientCallDelta)] == [EntryPhase.WHOLE]


def test_calls_without_promised_index_are_counted_by_their_names() -> None:
    found = _chat_entries(
        calls(entry(None, "c1", name="get"), entry(None, None, arguments="{}")),
        calls(entry(None, "c2", name="get")),
        indexed=False,
    )
    assert [one.index for one in found] == [0, 0, 1]


def _responses(*events: object) -> list[Step]:
    return [*responses_steps(deliver(r.sse(*events), url=r.URL).events)]


def _indexes(*events: object) -> list[tuple[str, int | None]]:
    return [
        (step.phase.value, step.index)
        for step in _responses(*events)
        if isinstance(step, ClientCallDelta)
    ]


def test_a_call_is_told_of_up_to_five_times() -> None:
    found = _responses(r.created(), *r.call(), r.ended(r.message(), r.function('{"a":1}')))
    phases = [step.phase for step in found if isinstance(step, ClientCallDelta)]
    delta = EntryPhase.DELTA
    assert phases == [
        EntryPhase.START,
        delta,
        delta,
        EntryPhase.DONE,
        EntryPhase.CLOSE,
        EntryPhase.FINAL,
    ]
    assert {step.index for step in found if isinstance(step, ClientCallDelta)} == {0}
    assert found[-1] == FinishDelta(6, "completed")


def test_items_that_no_client_runs_are_passed_over() -> None:
    assert _responses(r.added(r.message()), r.say("x"), r.done({"type": "mcp_call"})) == []


def test_ids_that_change_are_bridged_by_the_place() -> None:
    found = _indexes(
        r.added(r.function(id="x1")), r.delta("{}", 0, "x2"), r.done(r.function("{}", id="x3"))
    )
    assert {index for _, index in found} == {0}


def test_places_that_collide_are_told_apart_by_the_ids() -> None:
    found = _indexes(
        r.added(r.function()),
        r.added(r.function(number=2)),
        r.delta("{}", 0, "fc_1"),
        r.delta("{}", 0, "fc_2"),
    )
    assert found == [("start", 0), ("start", 1), ("delta", 0), ("delta", 1)]


def test_a_place_whose_call_is_closed_begins_another_one() -> None:
    found = _indexes(
        r.added(r.function(id=None)), r.done(r.function(id=None)), r.delta("{}", 0, None)
    )
    assert found == [("start", 0), ("close", 0), ("delta", 1)]


def test_deltas_without_any_name_are_a_call() -> None:
    assert _indexes(r.delta("{}", None, None)) == [("delta", 0)]


def test_custom_tools_have_their_own_events() -> None:
    item = {"type": "custom_tool_call", "call_id": "c1", "name": "run", "input": "ls"}
    part = {"type": "response.custom_tool_call_input.done", "output_index": 0, "input": "ls"}
    found = _responses(part, r.done(item))
    assert [(step.kind, step.text) for step in found if isinstance(step, ClientCallDelta)] == [
        ("custom", "ls"),
        ("custom", "ls"),
    ]


def test_an_answer_that_is_not_streamed_lists_its_calls() -> None:
    body = json.dumps(r.response("completed", [r.function("{}")])).encode()
    stream = deliver(body, url=r.URL, media="application/json")
    phases = [getattr(step, "phase", None) for step in responses_steps(stream.events)]
    assert phases == [EntryPhase.FINAL, None]


def test_what_is_not_json_or_of_no_known_type_says_nothing() -> None:
    assert _responses("{", {"type": "response.in_progress"}, {"type": "error"}) == []


CONVERSE = "http://127.0.0.1/model/x/converse-stream"
INVOKE = "http://127.0.0.1/model/x/invoke-with-response-stream"
COHERE = "http://127.0.0.1/v2/chat"


def _blocks(body: bytes, url: str = m.URL, media: str = SSE) -> list[Step]:
    return [*block_steps(deliver(body, url=url, media=media).events)]


def _told(steps: list[Step]) -> list[tuple[str, int | None, str | None]]:
    return [
        (one.phase.value, one.index, one.text) for one in steps if isinstance(one, ClientCallDelta)
    ]


def test_a_block_begins_is_filled_and_ends() -> None:
    found = _blocks(m.sse(m.start(), m.tool_block(1), m.piece("{}", 1), m.stop(1), *m.END))
    assert _told(found) == [("start", 1, "{}"), ("delta", 1, "{}"), ("close", 1, None)]
    assert found[-1] == FinishDelta(4, "tool_use")


def test_text_and_tools_of_the_provider_are_passed_over() -> None:
    frames = [m.text_block(), m.text("x"), m.stop(), m.tool_block(1, kind="server_tool_use")]
    assert _blocks(m.sse(*frames, m.piece("{}", 1), m.stop(1), m.reason(None))) == []


def test_a_message_that_is_whole_has_whole_calls() -> None:
    call = {"type": "tool_use", "id": "c1", "name": "get", "input": {"a": 1}}
    text = {"type": "text", "text": "x"}
    body = {"type": "message", "content": [text, call], "stop_reason": "tool_use"}
    found = _blocks(json.dumps(body).encode(), media="application/json")
    assert found[0] == ClientCallDelta(
        0, EntryPhase.WHOLE, at=1, id="c1", name="get", text='{"a":1}'
    )
    assert found[1] == FinishDelta(0, "tool_use")


def _aws(*events: tuple[str, object]) -> bytes:
    return b"".join(
        message({":message-type": "event", ":event-type": kind}, json.dumps(value).encode())
        for kind, value in events
    )


_CALL: tuple[tuple[str, object], ...] = (
    ("messageStart", {"role": "assistant"}),
    ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "x"}}),
    ("contentBlockStart", {"contentBlockIndex": 1, "start": {"toolUse": {"toolUseId": "t"}}}),
    ("contentBlockDelta", {"contentBlockIndex": 1, "delta": {"toolUse": {"input": "{}"}}}),
    ("contentBlockStop", {"contentBlockIndex": 1}),
    ("messageStop", {"stopReason": "tool_use"}),
)


def test_converse_names_the_type_outside() -> None:
    found = _blocks(_aws(*_CALL), CONVERSE, AWS)
    assert _told(found) == [("start", 1, None), ("delta", 1, "{}"), ("close", 1, None)]
    assert found[-1] == FinishDelta(5, "tool_use")


def test_tools_that_converse_runs_itself_are_passed_over() -> None:
    use = {"toolUseId": "t", "type": "server_tool_use"}
    start = ("contentBlockStart", {"contentBlockIndex": 1, "start": {"toolUse": use}})
    assert _blocks(_aws(start), CONVERSE, AWS) == []


def test_messages_on_bedrock_carry_events() -> None:
    inner = [m.start(), m.tool_block(0), m.stop(0), {"contentBlockStop": {"contentBlockIndex": 7}}]
    carried = [
        ("chunk", {"bytes": base64.b64encode(json.dumps(one).encode()).decode()}) for one in inner
    ]
    found = _blocks(_aws(*carried, ("chunk", {"bytes": "???"})), INVOKE, AWS)
    assert _told(found) == [("start", 0, "{}"), ("close", 0, None)]


def test_cohere_has_one_call_per_event() -> None:
    def event(kind: str, **call: object) -> dict[str, object]:
        return {"type": kind, "index": 0, "delta": {"message": {"tool_calls": call}}}

    frames: list[dict[str, object]] = [
        event("tool-call-start", id="c1", function={"name": "get", "arguments": ""}),
        event("tool-call-delta", function={"arguments": "{}"}),
        {"type": "tool-call-end", "index": 0},
        {"type": "message-end", "delta": {"finish_reason": "TOOL_CALL"}},
    ]
    found = _blocks(m.sse(*frames), COHERE)
    assert _told(found) == [("start", 0, ""), ("delta", 0, "{}"), ("close", 0, None)]
    assert found[-1] == FinishDelta(3, "TOOL_CALL")


OLLAMA = "http://127.0.0.1/api/chat"
NDJSON = "application/x-ndjson"


def _gemini(*chunks: object) -> list[Step]:
    stream = deliver(chat.sse(*chunks, done=False), url=gemini.STREAM)
    return [*gemini_steps(stream.events, stream.reply.tool_calls)]


def _ollama(*lines: object) -> list[Step]:
    body = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    return [*ollama_steps(deliver(body, url=OLLAMA, media=NDJSON).events)]


def _line(*, done: object = False, **message: object) -> dict[str, object]:
    return {"model": "m", "message": {"role": "assistant", **message}, "done": done}


def test_a_part_is_a_whole_call() -> None:
    found = _gemini(
        gemini.candidate({"text": "x"}, gemini.call("get", args={"a": 1}, id="i")),
        gemini.candidate(gemini.call("put"), finish="STOP"),
    )
    assert found == [
        ClientCallDelta(0, EntryPhase.WHOLE, at=1, index=0, id="i", name="get", text='{"a":1}'),
        ClientCallDelta(1, EntryPhase.WHOLE, index=1, name="put", text="{}"),
        FinishDelta(1, "STOP"),
    ]


def test_wrapped_answers_are_unwrapped() -> None:
    wrapped = {"response": gemini.candidate(gemini.call("get"))}
    assert [step.event for step in _gemini("{", wrapped)] == [1]


def test_streamed_arguments_come_in_parts_without_a_name() -> None:
    value = {"jsonPath": "$.a", "stringValue": "x"}
    found = _gemini(
        gemini.candidate(gemini.call("get", willContinue=True)),
        gemini.candidate(gemini.pieces(value)),
        gemini.candidate(gemini.call(), finish="STOP"),
    )
    entries = [step for step in found if isinstance(step, ClientCallDelta)]
    assert [one.phase for one in entries] == [EntryPhase.START, EntryPhase.DELTA, EntryPhase.DELTA]
    assert [json.loads(one.text or "null") for one in entries] == [{}, {"a": "x"}, None]


def test_a_line_has_whole_calls_and_no_text() -> None:
    function = {"name": "get", "arguments": {"a": 1}}
    found = _ollama(
        _line(content="x"),
        _line(content="", tool_calls=[{"id": "i", "function": function}]),
        _line(tool_calls=[{"function": {"name": "put", "arguments": "{}"}}], done=True),
    )
    assert found == [
        ClientCallDelta(1, EntryPhase.WHOLE, id="i", name="get", text='{"a":1}'),
        EmptyTextDelta(1),
        ClientCallDelta(2, EntryPhase.WHOLE, name="put", text="{}"),
        EmptyTextDelta(2),
        FinishDelta(2, "stop"),
    ]


def test_lines_without_a_message_say_nothing_of_calls() -> None:
    assert _ollama(_line(content="x"), {"error": "x"}) == []


def test_what_has_another_type_is_as_good_as_absent() -> None:
    odd: dict[str, object] = {"a": 1, "b": "x", "c": [1, {}], "d": {"e": 2}}
    assert (member(odd, "a"), member(odd, "d")) == ({}, {"e": 2})
    assert ([*objects(odd, "a")], [*objects(odd, "c")]) == ([], [(1, {})])
    assert (word(odd, "a"), word(odd, "b")) == (None, "x")


def test_indexes_may_stand_in_strings() -> None:
    held = {"a": 1, "b": "2", "c": True, "d": "x", "e": "1" * 12, "f": "\u0662"}
    assert [number(held, key) for key in "abcdefg"] == [1, 2, None, None, None, None, None]


def test_values_are_written_as_the_wire_does() -> None:
    assert text_of({"a": [1, "é"]}) == '{"a":[1,"é"]}'
