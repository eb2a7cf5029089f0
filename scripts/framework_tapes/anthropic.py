"""Anthropic's Messages, streamed and whole."""

from collections.abc import Iterator
from typing import Any

from framework_tapes.saying import Json, Made, Offered, Saying, Writer, words
from framework_tapes.script import Fail, token


def offered(asked: Json) -> Offered:
    """What a request offers."""
    choice = asked.get("tool_choice") or {}
    wanted = (asked.get("output_config") or {}).get("format") or asked.get("output_format") or {}
    return Offered(
        tools={each["name"]: each.get("input_schema") or {} for each in asked.get("tools") or ()},
        forced=choice.get("name"),
        as_text=bool(wanted),
        schema=wanted.get("schema") or {},
    )


def events(asked: Json, saying: Saying) -> Iterator[bytes]:
    """The streamed answer, event by event."""
    index = 0

    def event(kind: str, fields: Json) -> bytes:
        text = Writer().dumps({"type": kind, **fields})
        return f"event: {kind}\ndata: {text}\n\n".encode()

    def block(begun: Json, deltas: Iterator[Json]) -> Iterator[bytes]:
        nonlocal index
        yield event("content_block_start", {"index": index, "content_block": begun})
        for delta in deltas:
            yield event("content_block_delta", {"index": index, "delta": delta})
        yield event("content_block_stop", {"index": index})
        index += 1

    message = {**_message(asked, saying), "content": [], "stop_reason": None}
    yield event("message_start", {"message": {**message, "usage": _usage(1)}})
    yield event("ping", {})
    if saying.thinking:
        empty = {"type": "thinking", "thinking": "", "signature": ""}
        yield from block(empty, _thinking_deltas(saying))
    if saying.text:
        deltas = ({"type": "text_delta", "text": piece} for piece in words(saying.text))
        yield from block({"type": "text", "text": ""}, deltas)
    for call in saying.calls:
        yield from block(_call(call, {}), _argument_deltas(call))
    delta = {"stop_reason": _stop_reason(saying), "stop_sequence": None}
    yield event("message_delta", {"delta": delta, "usage": {"output_tokens": 20}})
    yield event("message_stop", {})


def whole(asked: Json, saying: Saying) -> str:
    """The answer in one piece."""
    writer = Writer()
    content: list[Json] = []
    if saying.thinking:
        signed = {"thinking": saying.thinking, "signature": signature(saying)}
        content.append({"type": "thinking", **signed})
    if saying.text:
        content.append({"type": "text", "text": saying.text})
    content += [_call(call, writer.raw(call.arguments or "{}")) for call in saying.calls]
    return writer.dumps(
        {
            **_message(asked, saying),
            "content": content,
            "stop_reason": _stop_reason(saying),
            "usage": _usage(20),
        }
    )


def error(fail: Fail) -> Json:
    """The body of an error."""
    limited = fail.status == 429  # noqa: PLR2004 - Too Many Requests
    message = "This request would exceed your rate limit." if limited else "Internal server error"
    kind = "rate_limit_error" if limited else "api_error"
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_011C"}


def signature(saying: Saying) -> str:
    """What signs the thinking."""
    return f"Eo{token(saying.seed + 's', 70)}=="


def _thinking_deltas(saying: Saying) -> Iterator[Json]:
    for piece in words(saying.thinking):
        yield {"type": "thinking_delta", "thinking": piece}
    yield {"type": "signature_delta", "signature": signature(saying)}


def _argument_deltas(call: Made) -> Iterator[Json]:
    for fragment in ("", *call.fragments):
        yield {"type": "input_json_delta", "partial_json": fragment}


def _stop_reason(saying: Saying) -> str:
    return "tool_use" if saying.calls else "end_turn"


def _message(asked: Json, saying: Saying) -> Json:
    return {
        "id": f"msg_{token(saying.seed, 24)}",
        "type": "message",
        "role": "assistant",
        "model": asked["model"],
        "stop_sequence": None,
    }


def _usage(output: int) -> Json:
    return {
        "input_tokens": 60,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": output,
        "service_tier": "standard",
    }


def _call(call: Made, arguments: Any) -> Json:
    return {"type": "tool_use", "id": f"toolu_{call.id}", "name": call.name, "input": arguments}
