"""The Responses API, streamed and whole."""

from collections.abc import Iterator
from typing import Any

from framework_tapes import chat
from framework_tapes.saying import Json, Made, Offered, Saying, Writer, words
from framework_tapes.script import Fail, token


def offered(asked: Json) -> Offered:
    """What a request offers."""
    choice = asked.get("tool_choice")
    wanted = (asked.get("text") or {}).get("format") or {}
    functions = [tool for tool in asked.get("tools") or () if tool["type"] == "function"]
    return Offered(
        tools={each["name"]: each.get("parameters") or {} for each in functions},
        forced=choice.get("name") if isinstance(choice, dict) else None,
        as_text=wanted.get("type") in {"json_schema", "json_object"},
        schema=wanted.get("schema") or {},
    )


def events(asked: Json, saying: Saying) -> Iterator[bytes]:
    """The streamed answer, event by event."""
    number = 0
    output: list[Json] = []

    def event(kind: str, fields: Json) -> bytes:
        nonlocal number
        value = {"type": kind, "sequence_number": number, **fields}
        number += 1
        return f"event: {kind}\ndata: {Writer().dumps(value)}\n\n".encode()

    def item(begun: Json, done: Json, inner: Iterator[tuple[str, Json]]) -> Iterator[bytes]:
        at = {"output_index": len(output)}
        yield event("response.output_item.added", {**at, "item": begun})
        for kind, fields in inner:
            yield event(f"response.{kind}", {"item_id": done["id"], **at, **fields})
        output.append(done)
        yield event("response.output_item.done", {**at, "item": done})

    begun = _response(asked, saying, "in_progress", [])
    yield event("response.created", {"response": begun})
    yield event("response.in_progress", {"response": begun})
    if saying.thinking:
        done = _reasoning(asked, saying)
        yield from item({**done, "summary": []}, done, _summary_events(saying.thinking))
    if saying.text:
        done = _message(saying)
        open_item = {**done, "status": "in_progress", "content": []}
        yield from item(open_item, done, _text_events(saying.text))
    for call in saying.calls:
        done = _call(call)
        open_item = {**done, "status": "in_progress", "arguments": ""}
        yield from item(open_item, done, _argument_events(call))
    yield event("response.completed", {"response": _response(asked, saying, "completed", output)})


def whole(asked: Json, saying: Saying) -> str:
    """The answer in one piece."""
    output: list[Json] = []
    if saying.thinking:
        output.append(_reasoning(asked, saying))
    if saying.text:
        output.append(_message(saying))
    output += [_call(call) for call in saying.calls]
    return Writer().dumps(_response(asked, saying, "completed", output))


def error(fail: Fail) -> Json:
    """The body of an error."""
    return chat.error(fail)


def _summary_events(text: str) -> Iterator[tuple[str, Json]]:
    at = {"summary_index": 0}
    empty = {"type": "summary_text", "text": ""}
    yield "reasoning_summary_part.added", {**at, "part": empty}
    for piece in words(text):
        yield "reasoning_summary_text.delta", {**at, "delta": piece}
    yield "reasoning_summary_text.done", {**at, "text": text}
    yield "reasoning_summary_part.done", {**at, "part": {**empty, "text": text}}


def _text_events(text: str) -> Iterator[tuple[str, Json]]:
    at = {"content_index": 0}
    yield "content_part.added", {**at, "part": _part("")}
    for piece in words(text):
        yield "output_text.delta", {**at, "delta": piece}
    yield "output_text.done", {**at, "text": text}
    yield "content_part.done", {**at, "part": _part(text)}


def _argument_events(call: Made) -> Iterator[tuple[str, Json]]:
    for fragment in call.fragments:
        yield "function_call_arguments.delta", {"delta": fragment}
    done = {"name": call.name, "arguments": call.arguments}
    yield "function_call_arguments.done", done


def _part(text: str) -> Json:
    return {"type": "output_text", "text": text, "annotations": []}


def _message(saying: Saying) -> Json:
    return {
        "id": f"msg_{token(saying.seed + 'm', 24)}",
        "type": "message",
        "status": "completed",
        "role": "assistant",
        "content": [_part(saying.text)],
    }


def _reasoning(asked: Json, saying: Saying) -> Json:
    item: dict[str, Any] = {
        "id": f"rs_{token(saying.seed + 'r', 24)}",
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": saying.thinking}],
    }
    if "reasoning.encrypted_content" in (asked.get("include") or ()):
        item["encrypted_content"] = f"gAAAAA{token(saying.seed + 'e', 64)}"
    return item


def _call(call: Made) -> Json:
    return {
        "id": f"fc_{token(call.id, 24)}",
        "type": "function_call",
        "status": "completed",
        "arguments": call.arguments,
        "call_id": f"call_{call.id}",
        "name": call.name,
    }


def _response(asked: Json, saying: Saying, status: str, output: list[Json]) -> Json:
    usage = {
        "input_tokens": 60,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 20,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 80,
    }
    return {
        "id": f"resp_{saying.seed}",
        "object": "response",
        "created_at": chat.CREATED,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "max_output_tokens": None,
        "model": asked["model"],
        "output": output,
        "parallel_tool_calls": True,
        "previous_response_id": asked.get("previous_response_id"),
        "store": asked.get("store", True),
        "temperature": 1.0,
        "text": {"format": {"type": "text"}},
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": usage if status == "completed" else None,
        "metadata": {},
    }
