"""Chat completions built in a line, for tests that write the wire out."""

import json

from deltatape.diagnose.rebuild import rebuild
from deltatape.model.exchange import Exchange
from deltatape.model.reply import Reply

URL = "http://127.0.0.1/v1/chat/completions"


def sse(*chunks: object, done: bool = True) -> bytes:
    """An event stream of `chunks` (objects, or texts that are sent as they are)."""
    frames = [chunk if isinstance(chunk, str) else json.dumps(chunk) for chunk in chunks]
    frames += ["[DONE]"] if done else []
    return "".join(f"data: {frame}\n\n" for frame in frames).encode()


def choice(delta: object, finish: object = None, index: int = 0) -> dict[str, object]:
    """A chunk with one choice."""
    return {"choices": [{"index": index, "delta": delta, "finish_reason": finish}]}


def entry(index: object = None, call_id: object = None, **function: object) -> dict[str, object]:
    """An entry of `tool_calls`; what is None is left out."""
    pairs = {"index": index, "id": call_id, "function": function or None}
    return {key: value for key, value in pairs.items() if value is not None}


def calls(*entries: object) -> dict[str, object]:
    """A chunk with one delta of `tool_calls`."""
    return choice({"tool_calls": list(entries)})


FINISH = choice({}, "tool_calls")
"""The chunk that ends a choice with calls."""


def reply_to(*chunks: object, done: bool = True, request: dict[str, object] | None = None) -> Reply:
    """The reply of a stream of `chunks`."""
    body = sse(*chunks, done=done)
    return rebuild(
        Exchange.from_body(body, content_type="text/event-stream", url=URL, request=request)
    )


def request(**tools: object) -> dict[str, object]:
    """A request that offers functions, each with the JSON Schema of its parameters."""
    offered = [
        {"type": "function", "function": {"name": name, "parameters": schema}}
        for name, schema in tools.items()
    ]
    return {"model": "m", "stream": True, "messages": [], "tools": offered}


def told(reply: Reply) -> list[tuple[str | None, str | None, str]]:
    """Id, name and arguments of each call."""
    return [(call.id, call.name, call.arguments) for call in reply.tool_calls]


def codes(reply: Reply) -> list[str]:
    """The codes of the observations, in order."""
    return [seen.code for seen in reply.observations]
