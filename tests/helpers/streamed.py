"""Bodies of streams taken apart into the JSON of their events, and put together with other JSON."""

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from deltatape.diagnose.decode import decode
from deltatape.model.exchange import Exchange
from deltatape.model.stream import Format
from helpers.eventstream import frame

Path: TypeAlias = tuple[str | int, ...]
Document: TypeAlias = dict[str, object] | list[object]

INDEXES = ("index", "output_index", "content_index", "contentBlockIndex", "toolCallId", "type")
"""Members that tell the texts of one path apart."""
NO_TEXT = ("type", "role", "model", "object", "event_type", "toolCallId")


def documents(exchange: Exchange) -> list[tuple[int, Document]]:
    """The numbers of the events that are objects, and what they are; Bedrock's taken out."""
    found = []
    for event in decode(exchange).events:
        if event.data.startswith("{"):
            value = json.loads(event.data)
            if set(value) <= {"bytes", "p"} and "bytes" in value:
                value = json.loads(base64.b64decode(value["bytes"]))
            found.append((event.number, value))
    return found


def with_documents(exchange: Exchange, changed: Mapping[int, Document]) -> bytes:
    """The body with other JSON in events, by their number."""
    stream = decode(exchange)
    parts: list[bytes] = []
    at = 0
    for event in stream.events:
        start, end = event.place.span
        raw = stream.body[start:end]
        if event.number in changed:
            text = json.dumps(changed[event.number]).encode()
            if stream.format is Format.EVENTSTREAM:
                raw = _message(raw, text)
            else:
                raw = raw.replace(event.data.encode(), text)
        parts += (stream.body[at:start], raw)
        at = end
    return b"".join([*parts, stream.body[at:]])


def _message(raw: bytes, text: bytes) -> bytes:
    """A message with another payload, in the form of the one it had."""
    start = 12 + int.from_bytes(raw[4:8])
    payload = json.loads(raw[start:-4])
    if "bytes" in payload:
        payload["bytes"] = base64.b64encode(text).decode()
        text = json.dumps(payload, separators=(",", ":")).encode()
    return frame(raw[12:start], text)


def texts(value: object, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """The strings in a value, with their paths."""
    if isinstance(value, str) and path and path[-1] not in NO_TEXT:
        yield path, value
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from texts(each, (*path, key))
    elif isinstance(value, list):
        for place, each in enumerate(value):
            yield from texts(each, (*path, place))


def channels(found: Sequence[tuple[int, Document]]) -> dict[object, list[tuple[int, Path]]]:
    """The strings at one path of all events that are of one kind and index, with their events."""
    same: dict[object, list[tuple[int, Path]]] = {}
    for number, document in found:
        for path, _ in texts(document):
            same.setdefault((path, _marks(document, path)), []).append((number, path))
    return same


def _marks(document: object, path: Path) -> tuple[object, ...]:
    """What stands beside the way to a string and tells it from others."""
    marks: list[object] = []
    for step in path:
        if isinstance(document, dict):
            marks += [(key, document[key]) for key in INDEXES if key in document]
            document = document[step]
        elif isinstance(document, list):
            document = document[int(step)]
    return tuple(marks)


def text_at(document: object, path: Path) -> str:
    """The string at `path`."""
    for step in path:
        document = document[step]  # type: ignore[index]
    assert isinstance(document, str)
    return document


def put(document: object, path: Path, text: str) -> None:
    """Puts another string at `path`."""
    *way, last = path
    for step in way:
        document = document[step]  # type: ignore[index]
    document[last] = text  # type: ignore[index]
