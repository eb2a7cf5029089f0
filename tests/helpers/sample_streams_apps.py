"""Streams of Cohere and Ollama, of an application's own endpoint, and of Vercel's AI SDK.

Source: https://docs.cohere.com/v2/docs/streaming,
https://github.com/ollama/ollama/blob/main/docs/api.md,
https://ai-sdk.dev/docs/ai-sdk-ui/stream-protocol
"""

from collections.abc import Iterator

from helpers.sample_streams import DONE, QUESTION, TEXT, TOOLS, Spoken, sse, text_of
from helpers.sample_streams_openai import NESTED

Json = dict[str, object]
Event = tuple[str, Json]
APP = "http://127.0.0.1:3000"


def cohere() -> Spoken:
    """Chat, version 2: with tools the text is a plan; `tool_calls` is an object, not a list."""
    return Spoken(
        name="cohere",
        upstream="https://api.cohere.com",
        target="/v2/chat",
        request={
            "model": "command-a-03-2025",
            "messages": [{"role": "user", "content": QUESTION}],
            "tools": NESTED,
            "stream": True,
        },
        pieces=[sse({"type": kind, **event}, kind) for kind, event in _cohere()],
    )


def _cohere() -> Iterator[Event]:
    message: Json = {
        "role": "assistant",
        "content": [],
        "tool_plan": "",
        "tool_calls": [],
        "citations": [],
    }
    yield (
        "message-start",
        {"id": "00000000-0000-4000-8000-000000000000", "delta": {"message": message}},
    )
    for piece in TEXT:
        yield "tool-plan-delta", {"delta": {"message": {"tool_plan": piece}}}
    for index, tool in enumerate(TOOLS):
        call: Json = {
            "id": f"{tool.name}_fake00000000",
            "type": "function",
            "function": {"name": tool.name, "arguments": ""},
        }
        yield "tool-call-start", {"index": index, "delta": {"message": {"tool_calls": call}}}
        for piece in tool.pieces:
            call = {"function": {"arguments": piece}}
            yield "tool-call-delta", {"index": index, "delta": {"message": {"tool_calls": call}}}
        yield "tool-call-end", {"index": index}
    usage = {
        "billed_units": {"input_tokens": 61, "output_tokens": 51},
        "tokens": {"input_tokens": 1496, "output_tokens": 94},
    }
    yield "message-end", {"delta": {"finish_reason": "TOOL_CALL", "usage": usage}}


def ollama() -> Spoken:
    """Ollama's own API: JSON lines, whole calls, arguments as objects."""
    return Spoken(
        name="ollama",
        upstream="http://127.0.0.1:11434",
        target="/api/chat",
        request={
            "model": "qwen3:4b",
            "messages": [{"role": "user", "content": QUESTION}],
            "tools": NESTED,
            "stream": True,
        },
        pieces=tuple(_ollama()),
        content_type="application/x-ndjson",
    )


def _ollama() -> Iterator[bytes]:
    for number, piece in enumerate(TEXT):
        yield _line(number, {"role": "assistant", "content": piece})
    for index, tool in enumerate(TOOLS):
        function = {"index": index, "name": tool.name, "arguments": tool.value}
        calls = [{"id": f"call_fake000{index}", "function": function}]
        message: Json = {"role": "assistant", "content": "", "tool_calls": calls}
        yield _line(len(TEXT) + index, message)
    ending: Json = {
        "done": True,
        "done_reason": "stop",
        "total_duration": 812345678,
        "load_duration": 41234567,
        "prompt_eval_count": 96,
        "prompt_eval_duration": 123456789,
        "eval_count": 51,
        "eval_duration": 512345678,
    }
    yield _line(9, {"role": "assistant", "content": ""}, ending)


def _line(number: int, message: Json, ending: Json | None = None) -> bytes:
    value = {
        "model": "qwen3:4b",
        "created_at": f"2026-11-22T04:30:00.{310 + number * 41}123456Z",
        "message": message,
        **(ending or {"done": False}),
    }
    return f"{text_of(value)}\n".encode()


def app_events() -> Spoken:
    """An application's own endpoint: `text|tool_call|tool_result|done|error`."""
    return Spoken(
        name="app-events",
        upstream=APP,
        target="/agent/stream",
        request={"message": QUESTION},
        pieces=[sse(event) for event in _app()],
        headers=(("Cache-Control", "no-cache"),),
        credential=("Cookie", "session=fake-000000"),
    )


ANSWER = (" It is ", "13 °C in Gent.")


def _app() -> Iterator[Json]:
    for piece in TEXT:
        yield {"type": "text", "content": piece}
    for tool in TOOLS:
        yield {"type": "tool_call", "name": tool.name, "arguments": tool.value}
    for tool, celsius in zip(TOOLS, (13, 29), strict=True):
        yield {"type": "tool_result", "name": tool.name, "result": {"celsius": celsius}}
    for piece in ANSWER:
        yield {"type": "text", "content": piece}
    yield {"type": "done", "content": "".join(TEXT + ANSWER)}


def ai_sdk_ui() -> Spoken:
    """The UI message stream of Vercel's AI SDK, with tools that the page runs."""
    text = {"type": "text", "text": QUESTION}
    return Spoken(
        name="ai-sdk-ui",
        upstream=APP,
        target="/api/chat",
        request={
            "id": "chat-fake",
            "messages": [{"id": "message-fake", "role": "user", "parts": [text]}],
            "trigger": "submit-message",
        },
        pieces=[*(sse(event) for event in _ui()), DONE],
        headers=(
            ("Cache-Control", "no-cache"),
            ("x-vercel-ai-ui-message-stream", "v1"),
            ("x-accel-buffering", "no"),
        ),
        credential=("Cookie", "session=fake-000000"),
    )


def _ui() -> Iterator[Json]:
    yield {"type": "start", "messageId": "msg-fake"}
    yield {"type": "start-step"}
    yield {"type": "text-start", "id": "txt-0"}
    for piece in TEXT:
        yield {"type": "text-delta", "id": "txt-0", "delta": piece}
    yield {"type": "text-end", "id": "txt-0"}
    for index, tool in enumerate(TOOLS):
        call: Json = {"toolCallId": f"call_fake000{index}"}
        yield {"type": "tool-input-start", **call, "toolName": tool.name}
        for piece in tool.pieces:
            yield {"type": "tool-input-delta", **call, "inputTextDelta": piece}
        available: Json = {"toolName": tool.name, "input": tool.value}
        yield {"type": "tool-input-available", **call, **available}
    yield {"type": "finish-step"}
    yield {"type": "finish", "finishReason": "tool-calls"}
