"""Chat Completions, streamed and whole."""

from collections.abc import Iterator
from typing import Any

from framework_tapes.saying import Json, Made, Offered, Saying, Writer, words
from framework_tapes.script import Fail

CREATED = 1795000000


def offered(asked: Json) -> Offered:
    """What a request offers."""
    choice = asked.get("tool_choice")
    wanted = asked.get("response_format") or {}
    functions = [tool["function"] for tool in asked.get("tools") or ()]
    return Offered(
        tools={each["name"]: each.get("parameters") or {} for each in functions},
        forced=choice["function"]["name"] if isinstance(choice, dict) else None,
        as_text=wanted.get("type") in {"json_schema", "json_object"},
        schema=(wanted.get("json_schema") or {}).get("schema") or {},
    )


def is_streamed(asked: Json) -> bool:
    """Whether the answer is a stream."""
    return bool(asked.get("stream"))


def events(asked: Json, saying: Saying) -> Iterator[bytes]:
    """The streamed answer, event by event."""
    base = _base(asked, saying, "chat.completion.chunk")
    metered = bool((asked.get("stream_options") or {}).get("include_usage"))

    def chunk(delta: Json, finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        usage = {"usage": None} if metered else {}
        return _event({**base, "choices": [choice], **usage})

    yield chunk({"role": "assistant", "content": "" if saying.text else None})
    for piece in words(saying.thinking):
        yield chunk({"reasoning_content": piece})
    for piece in words(saying.text):
        yield chunk({"content": piece})
    for index, call in enumerate(saying.calls):
        yield chunk({"tool_calls": [{"index": index, **_call(call, "")}]})
        for fragment in call.fragments:
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": fragment}}]})
    yield chunk({}, "tool_calls" if saying.calls else "stop")
    if metered:
        yield _event({**base, "choices": [], "usage": _USAGE})
    yield b"data: [DONE]\n\n"


def whole(asked: Json, saying: Saying) -> str:
    """The answer in one piece."""
    message: dict[str, Any] = {
        "role": "assistant",
        "content": saying.text or None,
        "refusal": None,
        "annotations": [],
    }
    if saying.thinking:
        message["reasoning_content"] = saying.thinking
    if saying.calls:
        message["tool_calls"] = [_call(call, call.arguments) for call in saying.calls]
    choice = {
        "index": 0,
        "message": message,
        "logprobs": None,
        "finish_reason": "tool_calls" if saying.calls else "stop",
    }
    base = _base(asked, saying, "chat.completion")
    return Writer().dumps({**base, "choices": [choice], "usage": _USAGE})


def error(fail: Fail) -> Json:
    """The body of an error."""
    limited = fail.status == 429  # noqa: PLR2004 - Too Many Requests
    return {
        "error": {
            "message": "Rate limit reached, try again." if limited else "The server had an error.",
            "type": "rate_limit_error" if limited else "server_error",
            "param": None,
            "code": "rate_limit_exceeded" if limited else None,
        }
    }


_USAGE = {
    "prompt_tokens": 60,
    "completion_tokens": 20,
    "total_tokens": 80,
    "prompt_tokens_details": {"cached_tokens": 0},
    "completion_tokens_details": {"reasoning_tokens": 0},
}


def _base(asked: Json, saying: Saying, kind: str) -> Json:
    return {
        "id": f"chatcmpl-{saying.seed}",
        "object": kind,
        "created": CREATED,
        "model": asked["model"],
    }


def _call(call: Made, arguments: str) -> Json:
    function = {"name": call.name, "arguments": arguments}
    return {"id": f"call_{call.id}", "type": "function", "function": function}


def _event(value: Json) -> bytes:
    return f"data: {Writer().dumps(value)}\n\n".encode()
