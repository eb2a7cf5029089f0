"""Chat Completions as a provider streams them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from incident_providers.wire import FIRST_TOKEN_S, Asked, Send, event, words

Message = Asked


@dataclass(frozen=True)
class Call:
    """A tool call: which it is, and its arguments as they are cut up."""

    id: str | None
    name: str | None
    arguments: Sequence[str]


def chunk(delta: dict[str, object], finish: str | None = None, after_s: float = 0.02) -> Send:
    """One chunk."""
    value = {
        "id": "chatcmpl-incident",
        "object": "chat.completion.chunk",
        "created": 1795000000,
        "model": "incident-model",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    }
    return Send(event(value), after_s)


def begun() -> Send:
    """The first chunk: the model has something to say."""
    return chunk({"role": "assistant", "content": ""}, after_s=FIRST_TOKEN_S)


def ended(finish: str) -> Iterator[Send]:
    """The last chunk and the end of the stream."""
    yield chunk({}, finish)
    yield Send(b"data: [DONE]\n\n")


def text(pieces: Iterable[str]) -> Iterator[Send]:
    """Pieces of text."""
    return (chunk({"content": piece}) for piece in pieces)


def says(sentence: str) -> Iterator[Send]:
    """A whole answer of text."""
    yield begun()
    yield from text(words(sentence))
    yield from ended("stop")


def opened(index: int, call: Call, arguments: str = "") -> Send:
    """The chunk that opens a call."""
    named = {"name": call.name} if call.name else {}
    identified = {"id": call.id} if call.id else {}
    function = {**named, "arguments": arguments}
    return chunk(
        {"tool_calls": [{"index": index, **identified, "type": "function", "function": function}]}
    )


def fragments(index: int, call: Call) -> Iterator[Send]:
    """The chunks with a call's arguments."""
    for piece in call.arguments:
        yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})


def calls(*wanted: Call) -> Iterator[Send]:
    """An answer of calls: all are opened, then their arguments come one after the other."""
    yield begun()
    for index, call in enumerate(wanted):
        yield opened(index, call)
    for index, call in enumerate(wanted):
        yield from fragments(index, call)
    yield from ended("tool_calls")


def last(asked: Asked, role: str) -> str:
    """The text of the history's last message of `role`, "" if there is none."""
    found = (each.get("content") for each in reversed(asked["messages"]) if each["role"] == role)
    return next(found, "") or ""


def last_role(asked: Asked) -> str:
    """Who spoke last."""
    return str(asked["messages"][-1]["role"])
