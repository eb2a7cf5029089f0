"""What goes over the wire: a chat completion that streams one tool call, as providers send it.

Every delta carries the monotonic time at which the provider wrote it, so that a client can tell
how long it was on its way. The arguments of the whole call are a JSON object that fits the tool's
schema: the ordinary case, without findings.
"""

import enum
import functools
import json
from collections.abc import Sequence
from dataclasses import dataclass

PATH = "/v1/chat/completions"
PLAN = b"x-bench-plan"
"""The request field that tells the provider what to do; proxies pass it on."""

MARK = b"@T"
STAMP_DIGITS = 19
STAMP_BYTES = len(MARK) + STAMP_DIGITS

_ARGUMENTS = "arguments"


class Cut(enum.StrEnum):
    """How the provider breaks off a stream after its last delta."""

    NONE = "none"
    CLOSED = "closed"
    """The connection is closed, without the end of the stream."""
    RESET = "reset"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What the provider does with a request.

    Attributes:
        deltas: in the stream; 0 asks for a small JSON answer instead.
        rate: in deltas per second; 0 is as fast as they are taken.
        hold: whether the stream stays open after its last delta until `RELEASE` comes.
        cut: how it ends, where it does not end in order.
        upload: bytes of text in the request, which the provider only reads.
    """

    deltas: int
    rate: float = 0.0
    hold: bool = False
    cut: Cut = Cut.NONE
    upload: int = 0

    def encode(self) -> bytes:
        """The field's value."""
        return f"{self.deltas} {self.rate} {int(self.hold)} {self.cut}".encode()


RELEASE = b"release"
"""The plan that ends all streams that are held."""


def decode_plan(value: bytes) -> Plan:
    """`Plan.encode` read back; without a value a small JSON answer."""
    if not value:
        return Plan(deltas=0)
    deltas, rate, hold, cut = value.decode().split()
    return Plan(deltas=int(deltas), rate=float(rate), hold=hold == "1", cut=Cut(cut))


def _event(delta: dict[str, object], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    event = {
        "id": "chatcmpl-AbCdEfGhIjKlMnOpQrStUvWxYz012",
        "object": "chat.completion.chunk",
        "created": 1732200000,
        "model": "gpt-4o-2024-08-06",
        "service_tier": "default",
        "system_fingerprint": "fp_0123456789",
        "choices": [choice],
    }
    return b"data: %b\n\n" % json.dumps(event, separators=(",", ":")).encode()


def _fragment(text: str) -> bytes:
    return _event({"tool_calls": [{"index": 0, "function": {_ARGUMENTS: text}}]})


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


_CALL = {
    "index": 0,
    "id": f"call_{'0' * STAMP_DIGITS}",
    "type": "function",
    "function": {"name": "write_text", _ARGUMENTS: ""},
}
_FIRST = (
    _event({"role": "assistant", "content": None, "tool_calls": [_CALL]}),
    _fragment('{"text":"'),
)
_DELTA = _fragment(f"{MARK.decode()}{'0' * STAMP_DIGITS} of words")
_LAST = (_fragment('"}'), _event({}, "tool_calls"), b"data: [DONE]\n\n")

HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
    b"cache-control: no-cache\r\nx-request-id: req_0123456789\r\n"
    b"transfer-encoding: chunked\r\n\r\n"
)
LAST = b"".join(map(_chunk, _LAST)) + b"0\r\n\r\n"
DELTA_BYTES = len(_chunk(_DELTA))
"""On the wire, with its framing."""
_BEFORE, _AFTER = _chunk(_DELTA).split(MARK + b"0" * STAMP_DIGITS)
_BEFORE_ID, _AFTER_ID = b"".join(map(_chunk, _FIRST)).split(b"0" * STAMP_DIGITS)


def first(now_ns: int) -> bytes:
    """What begins a stream on the wire: the call, with an id of its own."""
    return b"%b%019d%b" % (_BEFORE_ID, now_ns, _AFTER_ID)


def delta(now_ns: int) -> bytes:
    """One delta on the wire, stamped."""
    return b"%b@T%019d%b" % (_BEFORE, now_ns, _AFTER)


_MESSAGE = {"role": "assistant", "content": "x" * 800}
_ANSWER = json.dumps(
    {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1732200000,
        "model": "gpt-4o-2024-08-06",
        "choices": [{"index": 0, "finish_reason": "stop", "message": _MESSAGE}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 200, "total_tokens": 209},
    }
).encode()
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (
    len(_ANSWER),
    _ANSWER,
)


@functools.lru_cache
def body(plan: Plan) -> bytes:
    """The body of the answer to `plan`, without framing, with zeros for its stamps."""
    if not plan.deltas:
        return _ANSWER
    last = () if plan.cut is not Cut.NONE else _LAST
    return b"".join((*_FIRST, _DELTA * plan.deltas, *last))


def body_bytes(plan: Plan) -> int:
    """How long that is."""
    return len(body(plan))


MESSAGES: Sequence[dict[str, object]] = (
    {"role": "system", "content": "You are a helpful assistant."},
    {"role": "user", "content": "Write down what you know about Oslo."},
)
"""How a conversation begins."""


def messages(upload: int) -> Sequence[dict[str, object]]:
    """A conversation that begins with so many bytes of text more."""
    text = "The quick brown fox jumps over the lazy dog. "
    document = (text * (upload // len(text) + 1))[:upload]
    return ({"role": "user", "content": document}, *MESSAGES) if upload else MESSAGES


def _request_body(messages: Sequence[dict[str, object]], *, stream: bool) -> bytes:
    parameters = {"type": "object", "properties": {"text": {"type": "string"}}}
    function = {"name": "write_text", "parameters": parameters}
    return json.dumps(
        {
            "model": "gpt-4o",
            "stream": stream,
            "messages": messages,
            "tools": [{"type": "function", "function": function}],
        }
    ).encode()


def request(
    port: int,
    plan: bytes,
    *,
    stream: bool,
    path: str = PATH,
    messages: Sequence[dict[str, object]] = MESSAGES,
) -> bytes:
    """A request on the wire."""
    content = _request_body(messages, stream=stream)
    head = (
        f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\naccept: */*\r\n"
        f"authorization: Bearer sk-fake-000000\r\ncontent-type: application/json\r\n"
        f"user-agent: bench\r\ncontent-length: {len(content)}\r\n"
    )
    return b"%b%b: %b\r\n\r\n%b" % (head.encode(), PLAN, plan, content)
