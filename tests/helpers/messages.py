"""Anthropic's streams built in a line, for tests that write the wire out."""

import json

from deltatape.diagnose.rebuild import rebuild
from deltatape.model.exchange import Exchange
from deltatape.model.reply import Reply

URL = "http://127.0.0.1/v1/messages"
Frame = dict[str, object]


def start(identifier: object = "msg_1", **message: object) -> Frame:
    """The event that begins a message."""
    base = {"id": identifier, "type": "message", "role": "assistant", "content": [], "model": "m"}
    return {"type": "message_start", "message": {**base, "stop_reason": None, **message}}


def text_block(index: object = 0, text: object = "") -> Frame:
    """The start of a block of text."""
    block = {"type": "text", "text": text}
    return {"type": "content_block_start", "index": index, "content_block": block}


def tool_block(
    index: object = 0, call_id: object = "c1", kind: str = "tool_use", **more: object
) -> Frame:
    """The start of a call of `get`; `more` are members of the block that differ."""
    block = {"type": kind, "id": call_id, "name": "get", "input": {}, **more}
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: object = 0, **members: object) -> Frame:
    """A delta; its type goes by its only member, unless it is given."""
    kinds = {"text": "text_delta", "partial_json": "input_json_delta", "thinking": "thinking_delta"}
    kind = kinds.get(next(iter(members)), "")
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **members}}


def text(piece: object, index: object = 0) -> Frame:
    """A delta of text."""
    return delta(index, text=piece)


def piece(partial: object, index: object = 0) -> Frame:
    """A delta of a call's input."""
    return delta(index, partial_json=partial)


def thinking(text: str, signature: str, index: int = 0) -> list[Frame]:
    """The events of a block of signed thinking."""
    block = {"type": "thinking", "thinking": "", "signature": ""}
    signed = {"type": "signature_delta", "signature": signature}
    return [
        {"type": "content_block_start", "index": index, "content_block": block},
        delta(index, thinking=text),
        {"type": "content_block_delta", "index": index, "delta": signed},
        stop(index),
    ]


def stop(index: object = 0) -> Frame:
    """The end of a block."""
    return {"type": "content_block_stop", "index": index}


def reason(word: object, **usage: object) -> Frame:
    """The event with the stop reason."""
    ending = {"stop_reason": word, "stop_sequence": None}
    return {"type": "message_delta", "delta": ending, "usage": {"output_tokens": 5, **usage}}


STOP: Frame = {"type": "message_stop"}
PING: Frame = {"type": "ping"}
END = (reason("tool_use"), STOP)
"""The last events of a message with calls."""


def sse(*frames: Frame | str, named: bool = True) -> bytes:
    """An event stream of `frames` (objects, or texts that are sent as they are)."""
    return "".join(
        frame
        if isinstance(frame, str)
        else (f"event: {frame.get('type')}\n" if named else "") + f"data: {json.dumps(frame)}\n\n"
        for frame in frames
    ).encode()


def reply_to(*frames: Frame | str, named: bool = True, request: Frame | None = None) -> Reply:
    """The reply of a stream of `frames`."""
    body = sse(*frames, named=named)
    return rebuild(
        Exchange.from_body(body, content_type="text/event-stream", url=URL, request=request)
    )


def document(value: object, status: int = 200) -> Reply:
    """The reply of an answer that is not streamed."""
    body = value if isinstance(value, str) else json.dumps(value)
    return rebuild(
        Exchange.from_body(body.encode(), content_type="application/json", url=URL, status=status)
    )


def request(**tools: object) -> Frame:
    """A request that offers tools, each with the JSON Schema of its input."""
    offered = [{"name": name, "input_schema": schema} for name, schema in tools.items()]
    return {"model": "m", "stream": True, "messages": [], "tools": offered}
