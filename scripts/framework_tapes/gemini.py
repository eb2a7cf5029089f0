"""Gemini's generateContent, streamed as SSE and whole.

Calls have no ids, as of most models; arguments come whole, also in a stream.
"""

import base64
from collections.abc import Iterator
from typing import Any

from framework_tapes.saying import Json, Offered, Saying, Writer, words
from framework_tapes.script import Fail, token


def offered(asked: Json) -> Offered:
    """What a request offers. Fields are in camelCase, or in snake_case as older clients write."""
    tools = {
        each["name"]: each.get("parameters") or each.get("parametersJsonSchema") or {}
        for tool in asked.get("tools") or ()
        for each in _either(tool, "functionDeclarations") or ()
    }
    config = _either(asked, "generationConfig") or {}
    calling = _either(_either(asked, "toolConfig") or {}, "functionCallingConfig") or {}
    allowed: list[str] = _either(calling, "allowedFunctionNames") or []
    return Offered(
        tools=tools,
        forced=allowed[0] if len(allowed) == 1 else None,
        as_text=_either(config, "responseMimeType") == "application/json",
        schema=_either(config, "responseSchema") or _either(config, "responseJsonSchema") or {},
    )


def events(asked: Json, saying: Saying) -> Iterator[bytes]:
    """The streamed answer, event by event."""
    writer = Writer()
    parts: list[Json] = [
        *({"text": piece, "thought": True} for piece in words(saying.thinking)),
        *({"text": piece} for piece in words(saying.text)),
        *_calls(saying, writer),
    ]
    for at, part in enumerate(parts):
        last = at == len(parts) - 1
        value = _response(asked, saying, [part], "STOP" if last else None)
        yield f"data: {writer.dumps(value)}\r\n\r\n".encode()


def whole(asked: Json, saying: Saying) -> str:
    """The answer in one piece."""
    writer = Writer()
    parts: list[Json] = []
    if saying.thinking:
        parts.append({"text": saying.thinking, "thought": True})
    if saying.text:
        parts.append({"text": saying.text})
    parts += _calls(saying, writer)
    return writer.dumps(_response(asked, saying, parts, "STOP"))


def error(fail: Fail) -> Json:
    """The body of an error."""
    limited = fail.status == 429  # noqa: PLR2004 - Too Many Requests
    return {
        "error": {
            "code": fail.status,
            "message": "Resource has been exhausted." if limited else "An internal error occurred.",
            "status": "RESOURCE_EXHAUSTED" if limited else "INTERNAL",
        }
    }


def _calls(saying: Saying, writer: Writer) -> list[Json]:
    """The calls; where the model thinks, the first of them carries the signature of its thought."""
    parts: list[Json] = []
    for at, call in enumerate(saying.calls):
        called: dict[str, Any] = {"name": call.name}
        # The model leaves the field out where it has nothing to say.
        if call.arguments:
            called["args"] = writer.raw(call.arguments)
        part: dict[str, Any] = {"functionCall": called}
        if saying.thinking and at == 0:
            signed = token(saying.seed + "s", 60).encode()
            part["thoughtSignature"] = base64.b64encode(signed).decode()
        parts.append(part)
    return parts


def _response(asked: Json, saying: Saying, parts: list[Json], finish: str | None) -> Json:
    candidate: dict[str, Any] = {"content": {"parts": parts, "role": "model"}, "index": 0}
    if finish:
        candidate["finishReason"] = finish
    return {
        "candidates": [candidate],
        "usageMetadata": {
            "promptTokenCount": 60,
            "candidatesTokenCount": 20,
            "totalTokenCount": 80,
        },
        "modelVersion": asked["model"],
        "responseId": token(saying.seed, 22),
    }


def _either(value: Json, name: str) -> Any:
    snake = "".join(f"_{each.lower()}" if each.isupper() else each for each in name)
    return value.get(name, value.get(snake))
