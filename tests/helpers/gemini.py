"""Answers of Gemini built in a line, for tests that write the wire out."""

import json
from collections.abc import Mapping

from deltatape.diagnose.rebuild import rebuild
from deltatape.model.exchange import Exchange
from deltatape.model.reply import Reply
from deltatape.model.stream import Event
from helpers.events import event_of

MODEL = "https://127.0.0.1/v1beta/models/gemini-x"
STREAM = f"{MODEL}:streamGenerateContent?alt=sse"
INTERACTIONS = "https://127.0.0.1/v1beta/interactions"


def events(*chunks: object) -> list[Event]:
    """The events that carry `chunks`: objects, or texts that are sent as they are."""
    texts = [chunk if isinstance(chunk, str) else json.dumps(chunk) for chunk in chunks]
    return [event_of(text, number=number) for number, text in enumerate(texts)]


def candidate(
    *parts: object, finish: object = None, index: int | None = None, **more: object
) -> dict[str, object]:
    """A response with one candidate; what is None is left out."""
    pairs = {"finishReason": finish, "index": index, **more}
    body: dict[str, object] = {key: value for key, value in pairs.items() if value is not None}
    body["content"] = {"role": "model", "parts": list(parts)}
    return {"candidates": [body]}


def call(name: object = None, *, signature: str = "", **fields: object) -> dict[str, object]:
    """A part with a function call; a name of None is left out."""
    named = {} if name is None else {"name": name}
    signed = {"thoughtSignature": signature} if signature else {}
    return {"functionCall": {**named, **fields}, **signed}


def piece(*, goes_on: bool = False, **fields: object) -> dict[str, object]:
    """A value of streamed arguments."""
    return {**fields, "willContinue": True} if goes_on else dict(fields)


def pieces(*each: Mapping[str, object], goes_on: bool = True) -> dict[str, object]:
    """A part with values of streamed arguments; the call continues after it or not."""
    if goes_on:
        return call(partialArgs=list(each), willContinue=True)
    return call(partialArgs=list(each))


STOP = candidate({"text": ""}, finish="STOP")
"""The response that ends a candidate normally."""


def sse(*chunks: object) -> bytes:
    """An event stream of `chunks` (objects, or texts that are sent as they are)."""
    frames = [chunk if isinstance(chunk, str) else json.dumps(chunk) for chunk in chunks]
    return "".join(f"data: {frame}\r\n\r\n" for frame in frames).encode()


def reply_to(*chunks: object, url: str = STREAM) -> Reply:
    """The reply of a stream of `chunks`."""
    return rebuild(Exchange.from_body(sse(*chunks), content_type="text/event-stream", url=url))


def interaction(kind: str, **fields: object) -> dict[str, object]:
    """An event of an interaction."""
    return {"event_type": kind, **fields}


def spoken(*chunks: object) -> Reply:
    """The reply of a stream of events of an interaction."""
    return reply_to(*chunks, url=INTERACTIONS)
