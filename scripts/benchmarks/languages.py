"""Dialects as providers speak them: a `Speech` as the body of a response, with its framing."""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import TypeAlias

from benchmarks.sample_reply import SampleReply
from deltatape.wire.aws_eventstream import encode_headers, encode_message

Event: TypeAlias = tuple[str, dict[str, object]]
"""Its type, and its data before it becomes JSON."""

_SSE = "text/event-stream; charset=utf-8"
_TOOL = "edit_file"
_CALL = "call_0123456789abcdef"
_NOISE = "aB3xYz9"
"""The noise that OpenAI and Amazon send against those who count bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """A dialect and how its bodies are framed.

    Attributes:
        name: of the row.
        url: where its requests go.
        content_type: of its responses.
        events: what a provider sends to say something.
        frame: makes a body of it.
    """

    name: str
    url: str
    content_type: str
    events: Callable[[SampleReply], Iterator[Event]]
    frame: Callable[[Iterable[Event]], bytes]

    def body(self, reply: SampleReply) -> bytes:
        """The whole body in which `speech` is said."""
        return self.frame(self.events(reply))


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def _plain_sse(events: Iterable[Event]) -> bytes:
    return b"".join(b"data: %b\n\n" % _json(data) for _, data in events)


def _openai_sse(events: Iterable[Event]) -> bytes:
    return _plain_sse(events) + b"data: [DONE]\n\n"


def _typed_sse(events: Iterable[Event]) -> bytes:
    return b"".join(
        b"event: %b\ndata: %b\n\n" % (kind.encode(), _json({"type": kind, **data}))
        for kind, data in events
    )


def _lines(events: Iterable[Event]) -> bytes:
    return b"".join(b"%b\n" % _json(data) for _, data in events)


def _array(events: Iterable[Event]) -> bytes:
    return b"[%b]\n" % b"\n,\r\n".join(_json(data) for _, data in events)


def _document(events: Iterable[Event]) -> bytes:
    return b"".join(_json(data) for _, data in events)


def _amazon(events: Iterable[Event]) -> bytes:
    return b"".join(_message(kind, _json(data)) for kind, data in events)


def _message(kind: str, payload: bytes) -> bytes:
    names = {":event-type": kind, ":content-type": "application/json", ":message-type": "event"}
    return encode_message(encode_headers(names), payload)


def _chat(reply: SampleReply) -> Iterator[Event]:
    def chunk(delta: dict[str, object], finish: str | None = None) -> Event:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return "", {**_CHAT, "choices": [choice], "obfuscation": _NOISE}

    def entry(**entry: object) -> Event:
        return chunk({"tool_calls": [{"index": 0, **entry}]})

    yield chunk({"role": "assistant", "content": "", "refusal": None})
    for text in reply.text:
        yield chunk({"content": text})
    yield entry(id=_CALL, type="function", function={"name": _TOOL, "arguments": ""})
    for piece in reply.arguments:
        yield entry(function={"arguments": piece})
    yield chunk({}, "tool_calls")


_CHAT = {
    "id": "chatcmpl-AbCdEfGhIjKlMnOpQrStUvWxYz012",
    "object": "chat.completion.chunk",
    "created": 1732200000,
    "model": "gpt-4o-2024-08-06",
    "service_tier": "default",
    "system_fingerprint": "fp_0123456789",
}


def _chat_whole(reply: SampleReply) -> Iterator[Event]:
    function = {"name": _TOOL, "arguments": "".join(reply.arguments)}
    call = {"id": _CALL, "type": "function", "function": function}
    message = {"role": "assistant", "content": "".join(reply.text), "tool_calls": [call]}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    yield "", {**_CHAT, "object": "chat.completion", "choices": [choice]}


def _responses(reply: SampleReply) -> Iterator[Event]:
    numbers = count()

    def event(kind: str, **data: object) -> Event:
        return f"response.{kind}", {"sequence_number": next(numbers), **data}

    at = {"item_id": "msg_0123456789abcdef", "output_index": 0, "content_index": 0}
    part = {"type": "output_text", "annotations": [], "logprobs": [], "text": ""}
    message = {"id": at["item_id"], "type": "message", "role": "assistant"}
    yield event("created", response=_RESPONSE)
    yield event("in_progress", response=_RESPONSE)
    item: dict[str, object] = {**message, "status": "in_progress", "content": []}
    yield event("output_item.added", output_index=0, item=item)
    yield event("content_part.added", **at, part=part)
    for text in reply.text:
        yield event("output_text.delta", **at, delta=text, logprobs=[], obfuscation=_NOISE)
    text = "".join(reply.text)
    part = {**part, "text": text}
    yield event("output_text.done", **at, text=text, logprobs=[])
    yield event("content_part.done", **at, part=part)
    item = {**message, "status": "completed", "content": [part]}
    yield event("output_item.done", output_index=0, item=item)
    at = {"item_id": "fc_0123456789abcdef", "output_index": 1}
    call = {"id": at["item_id"], "type": "function_call", "call_id": _CALL, "name": _TOOL}
    opened = {**call, "status": "in_progress", "arguments": ""}
    yield event("output_item.added", output_index=1, item=opened)
    for piece in reply.arguments:
        yield event("function_call_arguments.delta", **at, delta=piece, obfuscation=_NOISE)
    arguments = "".join(reply.arguments)
    yield event("function_call_arguments.done", **at, arguments=arguments)
    call = {**call, "status": "completed", "arguments": arguments}
    yield event("output_item.done", output_index=1, item=call)
    yield event("completed", response={**_RESPONSE, "status": "completed", "output": [item, call]})


_RESPONSE: dict[str, object] = {
    "id": "resp_0123456789abcdef",
    "object": "response",
    "created_at": 1732200000,
    "status": "in_progress",
    "error": None,
    "incomplete_details": None,
    "instructions": None,
    "model": "gpt-4o-2024-08-06",
    "output": [],
    "parallel_tool_calls": True,
    "temperature": 1.0,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_p": 1.0,
    "usage": None,
    "metadata": {},
}


def _anthropic(reply: SampleReply) -> Iterator[Event]:
    def delta(index: int, **delta: object) -> Event:
        return "content_block_delta", {"index": index, "delta": delta}

    message: dict[str, object] = {
        "id": "msg_0123456789abcdef",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5-20250929",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 412, "output_tokens": 1},
    }
    yield "message_start", {"message": message}
    block: dict[str, object] = {"type": "text", "text": ""}
    yield "content_block_start", {"index": 0, "content_block": block}
    yield "ping", {}
    for text in reply.text:
        yield delta(0, type="text_delta", text=text)
    yield "content_block_stop", {"index": 0}
    block = {"type": "tool_use", "id": "toolu_0123456789abcdef", "name": _TOOL, "input": {}}
    yield "content_block_start", {"index": 1, "content_block": block}
    for piece in ("", *reply.arguments):
        yield delta(1, type="input_json_delta", partial_json=piece)
    yield "content_block_stop", {"index": 1}
    ending = {"stop_reason": "tool_use", "stop_sequence": None}
    yield "message_delta", {"delta": ending, "usage": {"output_tokens": 1024}}
    yield "message_stop", {}


def _gemini(reply: SampleReply) -> Iterator[Event]:
    """The arguments are one long string, sent piece by piece under its JSONPath."""

    def chunk(part: dict[str, object], **candidate: object) -> Event:
        content = {"parts": [part], "role": "model"}
        candidate = {"content": content, "index": 0, **candidate}
        return "", {"candidates": [candidate], **_GEMINI}

    for text in reply.text:
        yield chunk({"text": text})
    yield chunk({"functionCall": {"name": _TOOL, "willContinue": True}})
    for piece in reply.arguments:
        partial = {"jsonPath": "$.edits", "stringValue": piece, "willContinue": True}
        yield chunk({"functionCall": {"partialArgs": [partial], "willContinue": True}})
    partial = {"jsonPath": "$.edits", "stringValue": ""}
    yield chunk({"functionCall": {"partialArgs": [partial], "willContinue": True}})
    yield chunk({"functionCall": {}}, finishReason="STOP")


_GEMINI = {
    "usageMetadata": {"promptTokenCount": 412, "totalTokenCount": 640},
    "modelVersion": "gemini-2.5-pro",
    "responseId": "AbCdEfGh0123456789",
}


def _ollama(reply: SampleReply) -> Iterator[Event]:
    """Ollama sends each call complete, so what others send as arguments is sent as thinking."""

    def line(*, done: bool = False, **message: object) -> Event:
        data = {"model": "qwen3:8b", "created_at": "2026-11-22T04:05:06.789012345Z"}
        message_body = {"role": "assistant", "content": "", **message}
        return "", {**data, "message": message_body, "done": done}

    for piece in reply.arguments:
        yield line(thinking=piece)
    for text in reply.text:
        yield line(content=text)
    function = {"name": _TOOL, "arguments": {"path": "src/cities.py", "edits": []}}
    yield line(tool_calls=[{"function": function}])
    yield line(done=True)


def _converse(reply: SampleReply) -> Iterator[Event]:
    def delta(index: int, **delta: object) -> Event:
        data = {"contentBlockIndex": index, "delta": delta, "p": _NOISE}
        return "contentBlockDelta", data

    yield "messageStart", {"role": "assistant", "p": _NOISE}
    for text in reply.text:
        yield delta(0, text=text)
    yield "contentBlockStop", {"contentBlockIndex": 0}
    use = {"toolUseId": "tooluse_0123456789abcdef", "name": _TOOL}
    yield "contentBlockStart", {"contentBlockIndex": 1, "start": {"toolUse": use}}
    for piece in reply.arguments:
        yield delta(1, toolUse={"input": piece})
    yield "contentBlockStop", {"contentBlockIndex": 1}
    yield "messageStop", {"stopReason": "tool_use"}


def _language(
    name: str,
    url: str,
    events: Callable[[SampleReply], Iterator[Event]],
    frame: Callable[[Iterable[Event]], bytes],
    content_type: str = _SSE,
) -> Language:
    return Language(name=name, url=url, content_type=content_type, events=events, frame=frame)


_AMAZON = "application/vnd.amazon.eventstream"
_COMPLETIONS = "/v1/chat/completions"
_GENERATE = "/v1beta/models/gemini-2.5-pro:streamGenerateContent"

CHAT = _language("openai-chat", _COMPLETIONS, _chat, _openai_sse)
RESPONSES = _language("openai-responses", "/v1/responses", _responses, _typed_sse)
ANTHROPIC = _language("anthropic-messages", "/v1/messages", _anthropic, _typed_sse)
LANGUAGES = (
    CHAT,
    RESPONSES,
    ANTHROPIC,
    _language("gemini", f"{_GENERATE}?alt=sse", _gemini, _plain_sse),
    _language("gemini-array", _GENERATE, _gemini, _array, "application/json"),
    _language("ollama", "/api/chat", _ollama, _lines, "application/x-ndjson"),
    _language("bedrock-converse", "/model/m/converse-stream", _converse, _amazon, _AMAZON),
    _language("openai-chat-whole", _COMPLETIONS, _chat_whole, _document, "application/json"),
)
"""In the order of the tables."""
