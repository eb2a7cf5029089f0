"""Streams in the dialects of Anthropic, Google and Amazon.

Source: https://docs.anthropic.com/en/docs/build-with-claude/streaming,
https://ai.google.dev/api/generate-content#method:-models.streamgeneratecontent,
https://ai.google.dev/gemini-api/docs/interactions/streaming,
https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStream.html,
https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_InvokeModelWithResponseStream.html
"""

import base64
import json
from collections.abc import Iterator
from string import ascii_letters

from helpers import eventstream
from helpers.sample_streams import QUESTION, TEXT, TOOLS, Spoken, sse, text_of

Json = dict[str, object]
Event = tuple[str, Json]
ANTHROPIC_TOOLS = [
    {"name": tool.name, "description": tool.description, "input_schema": tool.schema}
    for tool in TOOLS
]
ANTHROPIC: Json = {
    "max_tokens": 400,
    "messages": [{"role": "user", "content": QUESTION}],
    "tools": ANTHROPIC_TOOLS,
}


def anthropic_messages() -> Spoken:
    """Messages: named events, a ping, and spaces before the last brace."""
    return Spoken(
        name="anthropic-messages",
        upstream="https://api.anthropic.com",
        target="/v1/messages",
        request={"model": "claude-fake", "stream": True, **ANTHROPIC},
        pieces=[_padded(at, *event) for at, event in enumerate(_anthropic())],
        content_type="text/event-stream; charset=utf-8",
        headers=(("Cache-Control", "no-cache"), ("request-id", "req_fake0000")),
        credential=("x-api-key", "fake-000000"),
    )


def _padded(number: int, kind: str, event: Json) -> bytes:
    data = text_of({"type": kind, **event})
    spaces = " " * (number * 5 % 14)
    return f"event: {kind}\ndata: {data[:-1]}{spaces}}}\n\n".encode()


def _anthropic() -> Iterator[Event]:
    message: Json = {
        "model": "claude-fake",
        "id": "msg_fake0000",
        "type": "message",
        "role": "assistant",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 412, "output_tokens": 3},
    }
    yield "message_start", {"message": message}
    yield "content_block_start", {"index": 0, "content_block": {"type": "text", "text": ""}}
    yield "ping", {}
    for piece in TEXT:
        delta = {"type": "text_delta", "text": piece}
        yield "content_block_delta", {"index": 0, "delta": delta}
    yield "content_block_stop", {"index": 0}
    for index, tool in enumerate(TOOLS, 1):
        block = {"type": "tool_use", "id": f"toolu_fake{index}", "name": tool.name, "input": {}}
        yield "content_block_start", {"index": index, "content_block": block}
        for piece in ("", *tool.pieces):
            delta = {"type": "input_json_delta", "partial_json": piece}
            yield "content_block_delta", {"index": index, "delta": delta}
        yield "content_block_stop", {"index": index}
    ending = {"stop_reason": "tool_use", "stop_sequence": None}
    yield "message_delta", {"delta": ending, "usage": {"output_tokens": 97}}
    yield "message_stop", {}


GOOGLE = "https://generativelanguage.googleapis.com"
GEMINI = "/v1beta/models/gemini-2.5-flash:streamGenerateContent"
GOOGLE_KEY = ("x-goog-api-key", "fake-000000")
DECLARATIONS = [
    {
        "name": tool.name,
        "description": tool.description,
        "parameters": {
            "type": "OBJECT",
            "properties": {
                name: {"type": kind["type"].upper()} for name, kind in tool.properties.items()
            },
            "required": list(tool.properties),
        },
    }
    for tool in TOOLS
]
ASKED: Json = {
    "contents": [{"parts": [{"text": QUESTION}], "role": "user"}],
    "tools": [{"functionDeclarations": DECLARATIONS}],
    "generationConfig": {},
}


def gemini() -> Spoken:
    """generateContent as server-sent events, whose lines end with CRLF."""
    return Spoken(
        name="gemini",
        upstream=GOOGLE,
        target=f"{GEMINI}?alt=sse",
        request=ASKED,
        pieces=[
            f"data: {json.dumps(value, ensure_ascii=False)}\r\n\r\n".encode() for value in _gemini()
        ],
        headers=(("Server", "scaffolding on HTTPServer2"),),
        credential=GOOGLE_KEY,
    )


def gemini_array() -> Spoken:
    """generateContent without `alt=sse`: one JSON array, written element by element."""
    texts = [json.dumps(value, ensure_ascii=False, indent=2) for value in _gemini()]
    return Spoken(
        name="gemini-array",
        upstream=GOOGLE,
        target=GEMINI,
        request=ASKED,
        pieces=[
            f"[{texts[0]}\n".encode(),
            *(f",\r\n{text}\n".encode() for text in texts[1:]),
            b"]",
        ],
        content_type="application/json; charset=UTF-8",
        headers=(("Server", "scaffolding on HTTPServer2"),),
        credential=GOOGLE_KEY,
    )


def _gemini() -> Iterator[Json]:
    for piece in TEXT:
        yield _generated([{"text": piece}])
    calls: list[Json] = [
        {"functionCall": {"name": tool.name, "args": tool.value}} for tool in TOOLS
    ]
    calls[0]["thoughtSignature"] = base64.b64encode(b"an invented signature").decode()
    yield _generated(calls)
    yield _generated([{"text": ""}], "STOP")


def _generated(parts: list[Json], finish: str | None = None) -> Json:
    candidate: Json = {"content": {"parts": parts, "role": "model"}, "index": 0}
    usage = {"promptTokenCount": 96, "totalTokenCount": 96}
    if finish:
        candidate["finishReason"] = finish
        usage = {"promptTokenCount": 96, "candidatesTokenCount": 51, "totalTokenCount": 147}
    return {
        "candidates": [candidate],
        "usageMetadata": usage,
        "modelVersion": "gemini-2.5-flash",
        "responseId": "fake0000",
    }


def gemini_interactions() -> Spoken:
    """Interactions: steps, and an event of its own around the sentinel."""
    functions = [
        {
            "type": "function",
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.schema,
        }
        for tool in TOOLS
    ]
    return Spoken(
        name="gemini-interactions",
        upstream=GOOGLE,
        target="/v1beta/interactions",
        request={
            "model": "gemini-2.5-flash",
            "input": QUESTION,
            "stream": True,
            "tools": functions,
        },
        pieces=[
            *(sse({**event, "event_type": kind}, kind) for kind, event in _interaction()),
            b"event: done\ndata: [DONE]\n\n",
        ],
        credential=GOOGLE_KEY,
    )


def _interaction() -> Iterator[Event]:
    base: Json = {"id": "v1_fake0000", "object": "interaction", "model": "gemini-2.5-flash"}
    yield "interaction.created", {"interaction": {**base, "status": "in_progress"}}
    update: Json = {"interaction_id": "v1_fake0000", "status": "in_progress"}
    yield "interaction.status_update", update
    signature = base64.b64encode(b"an invented signature").decode()
    yield from _step(
        0, {"type": "thought"}, [{"signature": signature, "type": "thought_signature"}]
    )
    yield from _step(1, {"type": "model_output"}, [{"text": p, "type": "text"} for p in TEXT])
    for index, tool in enumerate(TOOLS, 2):
        step: Json = {
            "id": f"fake{index}",
            "type": "function_call",
            "name": tool.name,
            "arguments": {},
        }
        deltas: list[Json] = [{"arguments": p, "type": "arguments_delta"} for p in tool.pieces]
        yield from _step(index, step, deltas)
    usage = {"total_tokens": 147, "total_input_tokens": 96, "total_output_tokens": 51}
    ended: Json = {**base, "status": "requires_action", "usage": usage}
    yield "interaction.completed", {"interaction": ended}


def _step(index: int, step: Json, deltas: list[Json]) -> Iterator[Event]:
    yield "step.start", {"index": index, "step": step}
    for delta in deltas:
        yield "step.delta", {"index": index, "delta": delta}
    yield "step.stop", {"index": index}


AMAZON = "https://bedrock-runtime.eu-west-1.amazonaws.com"
AWS = "application/vnd.amazon.eventstream"
MODEL = "anthropic.claude-3-5-sonnet-20241022-v2%3A0"


def _message(number: int, kind: str, payload: Json) -> bytes:
    """An event of Bedrock, padded to hide the length of what it says."""
    headers = {
        ":event-type": kind,
        ":content-type": "application/json",
        ":message-type": "event",
    }
    padded = {**payload, "p": ascii_letters[: 4 + number * 11 % 37]}
    return eventstream.message(headers, text_of(padded).encode())


def bedrock_converse() -> Spoken:
    """ConverseStream; a block of text has no start."""
    specs = [
        {
            "toolSpec": {
                "name": tool.name,
                "description": tool.description,
                "inputSchema": {"json": tool.schema},
            }
        }
        for tool in TOOLS
    ]
    return Spoken(
        name="bedrock-converse",
        upstream=AMAZON,
        target=f"/model/{MODEL}/converse-stream",
        request={
            "messages": [{"role": "user", "content": [{"text": QUESTION}]}],
            "toolConfig": {"tools": specs},
        },
        pieces=[_message(at, *event) for at, event in enumerate(_converse())],
        content_type=AWS,
        headers=(("x-amzn-RequestId", "fake-0000"),),
    )


def _converse() -> Iterator[Event]:
    yield "messageStart", {"role": "assistant"}
    for piece in TEXT:
        yield "contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": piece}}
    yield "contentBlockStop", {"contentBlockIndex": 0}
    for index, tool in enumerate(TOOLS, 1):
        use = {"toolUseId": f"tooluse_fake{index}", "name": tool.name}
        yield "contentBlockStart", {"contentBlockIndex": index, "start": {"toolUse": use}}
        for piece in tool.pieces:
            delta = {"toolUse": {"input": piece}}
            yield "contentBlockDelta", {"contentBlockIndex": index, "delta": delta}
        yield "contentBlockStop", {"contentBlockIndex": index}
    yield "messageStop", {"stopReason": "tool_use"}
    usage = {"inputTokens": 96, "outputTokens": 51, "totalTokens": 147}
    yield "metadata", {"metrics": {"latencyMs": 1391}, "usage": usage}


def bedrock_invoke() -> Spoken:
    """InvokeModelWithResponseStream: Anthropic's events, each as base64 in a `chunk`."""
    events = [{"type": kind, **event} for kind, event in _anthropic() if kind != "ping"]
    events[-1]["amazon-bedrock-invocationMetrics"] = {
        "inputTokenCount": 412,
        "outputTokenCount": 97,
        "invocationLatency": 1391,
        "firstByteLatency": 640,
    }
    encoded = [base64.b64encode(text_of(event).encode()).decode() for event in events]
    return Spoken(
        name="bedrock-invoke",
        upstream=AMAZON,
        target=f"/model/{MODEL}/invoke-with-response-stream",
        request={"anthropic_version": "bedrock-2023-05-31", **ANTHROPIC},
        pieces=[_message(at, "chunk", {"bytes": text}) for at, text in enumerate(encoded)],
        content_type=AWS,
        headers=(
            ("x-amzn-RequestId", "fake-0000"),
            ("X-Amzn-Bedrock-Content-Type", "application/json"),
        ),
    )
