"""A provider on loopback that answers by a script, in five dialects, streamed or whole.

A script is a list of answers, taken in the order of the requests, or a function of the request.
The bytes are what the provider of the dialect sends for such an answer; what a scenario wants
otherwise, it says in the answer: an error, a silence, a cut, a change to the events.
"""

import dataclasses
import hashlib
import json
import socket
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

CREATED = 1_790_000_000
SILENCE_S = 4
Json = dict[str, Any]
Events = list[bytes]


@dataclasses.dataclass(frozen=True, slots=True)
class Call:
    """A call that the model makes; arguments as text are sent as they are."""

    name: str
    arguments: Json | str = dataclasses.field(default_factory=dict)
    id: str | None = None
    signature: str | None = None

    @property
    def text(self) -> str:
        """The arguments as the wire has them."""
        if isinstance(self.arguments, str):
            return self.arguments
        return json.dumps(self.arguments, ensure_ascii=False, separators=(",", ":"))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the provider does with one request."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    reasoning: str = ""
    signature: str = ""
    refusal: str = ""
    finish: str | None = None
    others: tuple[str, ...] = ()  # further choices, as texts
    blocks: tuple[Json, ...] = ()  # further blocks of the dialect, before the text
    status: int = 200
    error: Json | str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    wait: float = 0.0  # before the head
    pace: float = 0.001  # before each event
    cut: int | None = None  # the connection ends after so many events
    hang: int | None = None  # nothing comes after so many events, or bytes of an error, for a while
    pings: bool = False
    piece: int = 14
    model: str | None = None
    usage: Json | None = None
    change: Callable[[Events], Events] | None = None
    whole: Json | None = None  # the answer as JSON, as it is


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request, as scripts see it."""

    number: int
    path: str
    body: Json
    headers: dict[str, str]

    @property
    def text(self) -> str:
        """The whole body as text, to look for words in it."""
        return json.dumps(self.body, ensure_ascii=False)


Script = Sequence[Answer] | Callable[[Asked], Answer]


def say(text: str, **more: Any) -> Answer:
    """An answer in words."""
    return Answer(text=text, **more)


def call(name: str, arguments: Json | str | None = None, **more: Any) -> Call:
    """A call, for `calls`."""
    return Call(name, {} if arguments is None else arguments, **more)


def calls(*made: Call, text: str = "", **more: Any) -> Answer:
    """An answer that calls tools."""
    return Answer(text=text, calls=made, **more)


def fails(status: int, error: Json | str, **more: Any) -> Answer:
    """An error instead of an answer."""
    return Answer(status=status, error=error, **more)


def openai_error(message: str, kind: str = "server_error", code: str | None = None) -> Json:
    """An error body as OpenAI sends it."""
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def anthropic_error(kind: str, message: str) -> Json:
    """An error body as Anthropic sends it."""
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_011"}


def pieces(text: str, size: int) -> list[str]:
    """The text in fragments of about that many characters, as tokens would cut it."""
    return [text[at : at + size] for at in range(0, len(text), size)]


def made_up(prefix: str, *parts: object, length: int = 24) -> str:
    """An id that looks random and is the same in each run."""
    return prefix + hashlib.sha256(repr(parts).encode()).hexdigest()[:length]


def tokens(value: object) -> int:
    """About as many tokens as that has."""
    return max(1, len(value if isinstance(value, str) else json.dumps(value)) // 4)


def spent(answer: Answer) -> tuple[int, int]:
    """Output and reasoning tokens of an answer."""
    reasoning = tokens(answer.reasoning) if answer.reasoning else 0
    said = sum(tokens(one.name + one.text) for one in answer.calls)
    said += tokens(answer.text) if answer.text else 0
    return max(1, said + reasoning), reasoning


def sse(data: Json, event: str | None = None) -> bytes:
    """A server-sent event."""
    head = f"event: {event}\n" if event else ""
    return f"{head}data: {json.dumps(data, ensure_ascii=False, separators=(',', ':'))}\n\n".encode()


def finish_of(answer: Answer) -> str:
    """The finish reason in OpenAI's words."""
    return answer.finish or ("tool_calls" if answer.calls else "stop")


class Writer:
    """Writes answers to one request."""

    def __init__(self, name: str, asked: Asked, answer: Answer) -> None:
        self.seed = (name, asked.number)
        self.body = asked.body
        self.answer = answer
        self.model = answer.model or asked.body.get("model", "model")

    def call_id(self, position: int, prefix: str) -> str:
        """The id of a call: what the script says, else one that looks random."""
        one = self.answer.calls[position]
        return made_up(prefix, *self.seed, position) if one.id is None else one.id


class Chat(Writer):
    """OpenAI's chat completions."""

    def usage(self) -> Json:
        """What it cost."""
        out, reasoning = spent(self.answer)
        asked = tokens(self.body.get("messages", []))
        usage = {"prompt_tokens": asked, "completion_tokens": out, "total_tokens": asked + out}
        if reasoning:
            usage["completion_tokens_details"] = {"reasoning_tokens": reasoning}  # type: ignore[assignment]
        return self.answer.usage or usage

    def chunk(self, delta: Json, finish: str | None = None, index: int = 0) -> bytes:
        """A completion chunk."""
        choice = {"index": index, "delta": delta, "logprobs": None, "finish_reason": finish}
        return sse(
            {
                "id": made_up("chatcmpl-", *self.seed),
                "object": "chat.completion.chunk",
                "created": CREATED,
                "model": self.model,
                "choices": [choice],
            }
        )

    def streamed(self) -> Events:
        """The events of a stream."""
        answer = self.answer
        events = [self.chunk({"role": "assistant", "content": None if answer.calls else ""})]
        for piece in pieces(answer.reasoning, answer.piece):
            events.append(self.chunk({"reasoning_content": piece}))
        for index, text in enumerate((answer.text, *answer.others)):
            if index:
                events.append(self.chunk({"role": "assistant", "content": ""}, index=index))
            events += [
                self.chunk({"content": piece}, index=index) for piece in pieces(text, answer.piece)
            ]
        for piece in pieces(answer.refusal, answer.piece):
            events.append(self.chunk({"refusal": piece}))
        for position, one in enumerate(answer.calls):
            opened = {
                "index": position,
                "id": self.call_id(position, "call_"),
                "type": "function",
                "function": {"name": one.name, "arguments": ""},
            }
            events.append(self.chunk({"tool_calls": [opened]}))
            for piece in pieces(one.text, answer.piece):
                more = {"index": position, "function": {"arguments": piece}}
                events.append(self.chunk({"tool_calls": [more]}))
        for index in range(1 + len(answer.others)):
            events.append(self.chunk({}, finish_of(answer), index))
        if (self.body.get("stream_options") or {}).get("include_usage"):
            events.append(
                sse(
                    {
                        "id": made_up("chatcmpl-", *self.seed),
                        "object": "chat.completion.chunk",
                        "created": CREATED,
                        "model": self.model,
                        "choices": [],
                        "usage": self.usage(),
                    }
                )
            )
        return [*events, b"data: [DONE]\n\n"]

    def whole(self) -> Json:
        """The answer in one piece."""
        answer = self.answer
        message: Json = {"role": "assistant", "content": answer.text or None, "refusal": None}
        if answer.refusal:
            message["refusal"] = answer.refusal
        if answer.reasoning:
            message["reasoning_content"] = answer.reasoning
        if answer.calls:
            message["tool_calls"] = [
                {
                    "id": self.call_id(position, "call_"),
                    "type": "function",
                    "function": {"name": one.name, "arguments": one.text},
                }
                for position, one in enumerate(answer.calls)
            ]
        choices = [
            {"index": 0, "message": message, "logprobs": None, "finish_reason": finish_of(answer)}
        ]
        for index, text in enumerate(answer.others, 1):
            other = {"role": "assistant", "content": text, "refusal": None}
            choices.append(
                {"index": index, "message": other, "logprobs": None, "finish_reason": "stop"}
            )
        return {
            "id": made_up("chatcmpl-", *self.seed),
            "object": "chat.completion",
            "created": CREATED,
            "model": self.model,
            "choices": choices,
            "usage": self.usage(),
        }


class Responses(Writer):
    """OpenAI's Responses."""

    def response(self, status: str, output: list[Json]) -> Json:
        """The response object."""
        out, reasoning = spent(self.answer)
        asked = tokens(self.body.get("input", ""))
        usage = {
            "input_tokens": asked,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": out,
            "output_tokens_details": {"reasoning_tokens": reasoning},
            "total_tokens": asked + out,
        }
        incomplete = {"reason": "max_output_tokens"} if status == "incomplete" else None
        return {
            "id": made_up("resp_", *self.seed),
            "object": "response",
            "created_at": CREATED,
            "status": status,
            "error": None,
            "incomplete_details": incomplete,
            "instructions": self.body.get("instructions"),
            "model": self.model,
            "output": output,
            "parallel_tool_calls": self.body.get("parallel_tool_calls", True),
            "previous_response_id": self.body.get("previous_response_id"),
            "store": self.body.get("store", True),
            "text": self.body.get("text", {"format": {"type": "text"}}),
            "tool_choice": self.body.get("tool_choice", "auto"),
            "tools": self.body.get("tools", []),
            "usage": None if status == "in_progress" else self.answer.usage or usage,
        }

    def items(self) -> list[Json]:
        """The output items, whole."""
        answer = self.answer
        items: list[Json] = list(answer.blocks)
        if answer.reasoning:
            summary = [{"type": "summary_text", "text": answer.reasoning}]
            item: Json = {"id": made_up("rs_", *self.seed), "type": "reasoning", "summary": summary}
            if "reasoning.encrypted_content" in (self.body.get("include") or []):
                item["encrypted_content"] = made_up("gAAAAAB", *self.seed, "encrypted", length=60)
            items.append(item)
        if answer.text or answer.refusal:
            part: Json = {"type": "output_text", "text": answer.text, "annotations": []}
            if answer.refusal:
                part = {"type": "refusal", "refusal": answer.refusal}
            items.append(
                {
                    "id": made_up("msg_", *self.seed),
                    "type": "message",
                    "status": "completed",
                    "role": "assistant",
                    "content": [part],
                }
            )
        for position, one in enumerate(answer.calls):
            items.append(
                {
                    "id": made_up("fc_", *self.seed, position),
                    "type": "function_call",
                    "status": "completed",
                    "arguments": one.text,
                    "call_id": self.call_id(position, "call_"),
                    "name": one.name,
                }
            )
        return items

    def streamed(self) -> Events:
        """The events of a stream."""
        events: Events = []

        def tell(kind: str, **more: Any) -> None:
            events.append(sse({"type": kind, "sequence_number": len(events), **more}, kind))

        tell("response.created", response=self.response("in_progress", []))
        tell("response.in_progress", response=self.response("in_progress", []))
        items = self.items()
        for index, item in enumerate(items):
            at = {"item_id": item["id"], "output_index": index}
            opened = {**item}
            if "status" in item:
                opened["status"] = "in_progress"
            if item["type"] == "message":
                opened["content"] = []
            elif item["type"] == "function_call":
                opened["arguments"] = ""
            elif item["type"] == "reasoning":
                opened["summary"] = []
            tell("response.output_item.added", output_index=index, item=opened)
            if item["type"] == "reasoning":
                text = item["summary"][0]["text"]
                here = {**at, "summary_index": 0}
                part: Json = {"type": "summary_text", "text": ""}
                tell("response.reasoning_summary_part.added", **here, part=part)
                for piece in pieces(text, self.answer.piece):
                    tell("response.reasoning_summary_text.delta", **here, delta=piece)
                tell("response.reasoning_summary_text.done", **here, text=text)
                part = {"type": "summary_text", "text": text}
                tell("response.reasoning_summary_part.done", **here, part=part)
            elif item["type"] == "message":
                here = {**at, "content_index": 0}
                kind, word = ("output_text", "text")
                if item["content"][0]["type"] == "refusal":
                    kind, word = ("refusal", "refusal")
                text = item["content"][0][word]
                part = {**item["content"][0], word: ""}
                tell("response.content_part.added", **here, part=part)
                for piece in pieces(text, self.answer.piece):
                    tell(f"response.{kind}.delta", **here, delta=piece)
                tell(f"response.{kind}.done", **here, **{word: text})
                tell("response.content_part.done", **here, part=item["content"][0])
            elif item["type"] == "function_call":
                for piece in pieces(item["arguments"], self.answer.piece):
                    tell("response.function_call_arguments.delta", **at, delta=piece)
                tell("response.function_call_arguments.done", **at, arguments=item["arguments"])
            tell("response.output_item.done", output_index=index, item=item)
        status = "incomplete" if self.answer.finish == "length" else "completed"
        tell(f"response.{status}", response=self.response(status, items))
        return events

    def whole(self) -> Json:
        """The answer in one piece."""
        status = "incomplete" if self.answer.finish == "length" else "completed"
        return self.response(status, self.items())


class Messages(Writer):
    """Anthropic's messages."""

    STOPS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}  # noqa: RUF012

    def stop(self) -> str:
        """The stop reason."""
        return self.STOPS.get(finish_of(self.answer), finish_of(self.answer))

    def blocks(self) -> list[Json]:
        """The content blocks, whole."""
        answer = self.answer
        blocks: list[Json] = []
        if answer.reasoning:
            signature = answer.signature or made_up("EqQB", *self.seed, "signature", length=48)
            thinking = {"thinking": answer.reasoning, "signature": signature}
            blocks.append({"type": "thinking", **thinking})
        blocks += answer.blocks
        if answer.text:
            blocks.append({"type": "text", "text": answer.text})
        for position, one in enumerate(answer.calls):
            blocks.append(
                {
                    "type": "tool_use",
                    "id": self.call_id(position, "toolu_01"),
                    "name": one.name,
                    "input": json.loads(one.text or "{}") if self.valid(one) else {},
                }
            )
        return blocks

    @staticmethod
    def valid(one: Call) -> bool:
        """Return whether the arguments are JSON."""
        try:
            json.loads(one.text or "{}")
        except ValueError:
            return False
        return True

    def message(self, content: list[Json], stop: str | None, out: int) -> Json:
        """The message object."""
        asked = tokens(self.body.get("messages", []))
        usage = {
            "input_tokens": asked,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": out,
        }
        return {
            "id": made_up("msg_01", *self.seed),
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": content,
            "stop_reason": stop,
            "stop_sequence": None,
            "usage": self.answer.usage or usage,
        }

    def streamed(self) -> Events:
        """The events of a stream."""
        answer = self.answer
        started = {"type": "message_start", "message": self.message([], None, 1)}
        events = [sse(started, "message_start")]
        texts = iter([one.text for one in answer.calls])
        for index, block in enumerate(self.blocks()):
            opened = {**block}
            deltas: list[Json] = []
            if block["type"] == "thinking":
                opened.update(thinking="", signature="")
                deltas = [
                    {"type": "thinking_delta", "thinking": piece}
                    for piece in pieces(block["thinking"], answer.piece)
                ]
                deltas.append({"type": "signature_delta", "signature": block["signature"]})
            elif block["type"] == "text":
                opened["text"] = ""
                deltas = [
                    {"type": "text_delta", "text": piece}
                    for piece in pieces(block["text"], answer.piece)
                ]
            elif block["type"] in ("tool_use", "server_tool_use"):
                opened["input"] = {}
                text = next(texts) if block["type"] == "tool_use" else json.dumps(block["input"])
                deltas = [{"type": "input_json_delta", "partial_json": ""}]
                deltas += [
                    {"type": "input_json_delta", "partial_json": piece}
                    for piece in pieces("" if text == "{}" else text, answer.piece)
                ]
            start = {"type": "content_block_start", "index": index, "content_block": opened}
            events.append(sse(start, "content_block_start"))
            if index == 0:
                events.append(sse({"type": "ping"}, "ping"))
            events += [
                sse(
                    {"type": "content_block_delta", "index": index, "delta": delta},
                    "content_block_delta",
                )
                for delta in deltas
            ]
            events.append(sse({"type": "content_block_stop", "index": index}, "content_block_stop"))
        delta = {"stop_reason": self.stop(), "stop_sequence": None}
        usage = {"output_tokens": spent(answer)[0]}
        ended = {"type": "message_delta", "delta": delta, "usage": usage}
        events.append(sse(ended, "message_delta"))
        return [*events, sse({"type": "message_stop"}, "message_stop")]

    def whole(self) -> Json:
        """The answer in one piece."""
        return self.message(self.blocks(), self.stop(), spent(self.answer)[0])


class Gemini(Writer):
    """Google's generateContent."""

    FINISH = {"stop": "STOP", "length": "MAX_TOKENS", "tool_calls": "STOP"}  # noqa: RUF012

    def chunk(self, parts: list[Json], finish: str | None = None) -> Json:
        """A response with these parts."""
        candidate: Json = {"content": {"parts": parts, "role": "model"}, "index": 0}
        if finish:
            candidate["finishReason"] = finish
        out, thoughts = spent(self.answer)
        asked = tokens(self.body.get("contents", []))
        usage = {
            "promptTokenCount": asked,
            "candidatesTokenCount": out - thoughts,
            "totalTokenCount": asked + out,
        }
        if thoughts:
            usage["thoughtsTokenCount"] = thoughts
        return {
            "candidates": [candidate],
            "usageMetadata": self.answer.usage or usage,
            "modelVersion": self.model,
            "responseId": made_up("", *self.seed, length=22),
        }

    def parts(self) -> list[Json]:
        """The parts of the calls."""
        parts = []
        for one in self.answer.calls:
            made: Json = {"name": one.name, "args": json.loads(one.text)}
            if one.id is not None:
                made["id"] = one.id
            part: Json = {"functionCall": made}
            if one.signature is not None:
                part["thoughtSignature"] = one.signature
            parts.append(part)
        return parts

    def streamed(self) -> Events:
        """The events of a stream."""
        answer = self.answer
        chunks = [[{"text": piece, "thought": True}] for piece in pieces(answer.reasoning, 40)]
        chunks += [[{"text": piece}] for piece in pieces(answer.text, 2 * answer.piece)]
        if parts := self.parts():
            chunks.append(parts)
        finish = self.FINISH.get(finish_of(answer), finish_of(answer))
        last = len(chunks) - 1
        return [
            sse(self.chunk(parts, finish if at == last else None)).replace(b"\n", b"\r\n")
            for at, parts in enumerate(chunks)
        ]

    def whole(self) -> Json:
        """The answer in one piece."""
        answer = self.answer
        parts: list[Json] = [{"text": answer.text}] if answer.text else []
        return self.chunk(
            parts + self.parts(), self.FINISH.get(finish_of(answer), finish_of(answer))
        )


class Ollama(Writer):
    """Ollama's chat."""

    def line(self, message: Json) -> Json:
        """A line of the stream."""
        return {
            "model": self.model,
            "created_at": "2026-11-23T12:00:00.000000Z",
            "message": {"role": "assistant", "content": "", **message},
            "done": False,
        }

    def calls(self) -> list[Json]:
        """The calls."""
        return [
            {"function": {"name": one.name, "arguments": json.loads(one.text)}}
            for one in self.answer.calls
        ]

    def ended(self, message: Json) -> Json:
        """The last line."""
        return {
            **self.line(message),
            "done": True,
            "done_reason": "length" if self.answer.finish == "length" else "stop",
            "total_duration": 812_000_000,
            "load_duration": 11_000_000,
            "prompt_eval_count": tokens(self.body.get("messages", [])),
            "prompt_eval_duration": 110_000_000,
            "eval_count": spent(self.answer)[0],
            "eval_duration": 640_000_000,
        }

    def streamed(self) -> Events:
        """The lines of a stream."""
        answer = self.answer
        lines = [self.line({"thinking": piece}) for piece in pieces(answer.reasoning, answer.piece)]
        lines += [self.line({"content": piece}) for piece in pieces(answer.text, answer.piece)]
        if answer.calls:
            lines.append(self.line({"tool_calls": self.calls()}))
        lines.append(self.ended({}))
        return [(json.dumps(line, ensure_ascii=False) + "\n").encode() for line in lines]

    def whole(self) -> Json:
        """The answer in one piece."""
        message: Json = {"content": self.answer.text}
        if self.answer.calls:
            message["tool_calls"] = self.calls()
        return self.ended(message)


WRITERS: tuple[tuple[str, type[Writer]], ...] = (
    ("/chat/completions", Chat),
    ("/responses", Responses),
    ("/messages", Messages),
    ("enerateContent", Gemini),
    ("/api/chat", Ollama),
)


def writer_of(path: str) -> type[Writer] | None:
    """The dialect that is spoken at a path."""
    bare = path.partition("?")[0]
    return next((writer for end, writer in WRITERS if bare.endswith(end)), None)


def beside(path: str, body: Json) -> Json | None:
    """What is answered to requests beside those to a model."""
    bare = path.partition("?")[0]
    if bare.endswith("/models"):
        model = {"id": "gpt-4.1-mini", "object": "model", "created": CREATED, "owned_by": "system"}
        return {"object": "list", "data": [model]}
    if bare.endswith("/embeddings"):
        texts = body["input"] if isinstance(body["input"], list) else [body["input"]]
        return {
            "object": "list",
            "model": body["model"],
            "data": [
                {"object": "embedding", "index": at, "embedding": [0.01 * at, -0.02, 0.5]}
                for at, _ in enumerate(texts)
            ],
            "usage": {"prompt_tokens": tokens(texts), "total_tokens": tokens(texts)},
        }
    if bare.endswith("/moderations"):
        result = {"flagged": False, "categories": {"hate": False}, "category_scores": {"hate": 0.0}}
        return {"id": "modr-1", "model": "omni-moderation-latest", "results": [result]}
    if bare.endswith("/count_tokens"):
        return {"input_tokens": tokens(body)}
    if bare.endswith(":countTokens"):
        return {"totalTokens": tokens(body)}
    if bare.endswith("/api/tags"):
        return {"models": [{"name": "qwen3:8b", "model": "qwen3:8b", "size": 5_200_000_000}]}
    return None


class Provider:
    """A provider for one run of one app; use as a context."""

    def __init__(self, name: str, script: Script) -> None:
        self.name = name
        self.script = script
        self.asked = 0
        self.lock = threading.Lock()
        self.problems: list[str] = []
        provider = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                provider.handle(self)

            do_POST = do_GET  # noqa: N815
            do_DELETE = do_GET  # noqa: N815

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                """Be quiet."""

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 64

            def handle_error(self, request: Any, client_address: Any) -> None:
                """A client that left is nothing to tell."""

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()

    def handle(self, http: BaseHTTPRequestHandler) -> None:
        """Answer one request."""
        length = int(http.headers.get("content-length") or 0)
        raw = http.rfile.read(length)
        body = json.loads(raw) if raw else {}
        other = beside(http.path, body)
        if other is not None and not (callable(self.script) and "/models" in http.path):
            send(http, Answer(whole=other))
            return
        with self.lock:
            number = self.asked
            self.asked += 1
        asked = Asked(
            number=number,
            path=http.path,
            body=body,
            headers={name.lower(): value for name, value in http.headers.items()},
        )
        try:
            answer = self.script(asked) if callable(self.script) else self.script[number]
        except Exception as error:  # noqa: BLE001 - told by the program that runs the app
            self.problems.append(f"request {number} to {http.path}: {error!r}")
            send(http, Answer(status=500, error=openai_error("the script has no answer")))
            return
        if "gemini" in http.path:
            body["model"] = http.path.rpartition("/models/")[2].partition(":")[0]
        writer = writer_of(http.path)
        if answer.error is not None or answer.whole is not None or writer is None:
            send(http, answer if writer else Answer(status=404, error=openai_error("Not Found")))
            return
        written = writer(self.name, asked, answer)
        streams = body.get("stream", writer is Ollama) or "streamGenerate" in http.path
        if streams:
            stream(http, answer, written.streamed(), lines=writer is Ollama)  # type: ignore[attr-defined]
        else:
            send(http, dataclasses.replace(answer, whole=written.whole()))  # type: ignore[attr-defined]


def send(http: BaseHTTPRequestHandler, answer: Answer) -> None:
    """Send an answer that is no stream."""
    time.sleep(answer.wait)
    told = answer.whole if answer.error is None else answer.error
    html = isinstance(told, str)
    content = told.encode() if isinstance(told, str) else json.dumps(told).encode()
    http.send_response(answer.status)
    http.send_header("Content-Type", "text/html" if html else "application/json")
    http.send_header("Content-Length", str(len(content)))
    for name, value in answer.headers:
        http.send_header(name, value)
    http.end_headers()
    if answer.hang is not None:
        http.wfile.write(content[: answer.hang])
        http.wfile.flush()
        time.sleep(SILENCE_S)
    http.wfile.write(content[answer.hang or 0 :])


def stream(
    http: BaseHTTPRequestHandler, answer: Answer, events: Iterable[bytes], *, lines: bool
) -> None:
    """Send a stream event by event."""
    time.sleep(answer.wait)
    http.send_response(answer.status)
    http.send_header("Content-Type", "application/x-ndjson" if lines else "text/event-stream")
    http.send_header("Transfer-Encoding", "chunked")
    for name, value in answer.headers:
        http.send_header(name, value)
    http.end_headers()
    http.wfile.flush()
    sent = list(events)
    if answer.change:
        sent = answer.change(sent)
    for number, event in enumerate(sent):
        if answer.cut == number:
            http.close_connection = True
            http.connection.shutdown(socket.SHUT_RDWR)
            return
        if answer.hang == number:
            time.sleep(SILENCE_S)
        time.sleep(answer.pace)
        if answer.pings:
            chunk(http, b": keep-alive\n\n")
        chunk(http, event)
    if answer.hang == len(sent):
        time.sleep(SILENCE_S)
    http.wfile.write(b"0\r\n\r\n")


def chunk(http: BaseHTTPRequestHandler, data: bytes) -> None:
    """Send one HTTP chunk."""
    http.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
    http.wfile.flush()
