"""Secrets planted in the streams of all dialects disappear, and everything else stays as it was."""

import base64
import copy
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, TypeAlias

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deltatape.diagnose.check import check
from deltatape.diagnose.decode import decode
from deltatape.diagnose.rebuild import rebuild
from deltatape.model.exchange import Exchange, Read
from deltatape.model.stream import Format
from deltatape.redact.content import mask
from deltatape.redact.fillers import Fillers
from deltatape.redact.search import secrets
from deltatape.secret_text.escaped_text import overwrite
from deltatape.store.reader import open_tape
from helpers.eventstream import frame
from helpers.secret_tapes import without_secrets
from helpers.splits import cut, random_cuts

# Bodies of streams taken apart into the JSON of their events, and put together with other JSON.

JsonPath: TypeAlias = tuple[str | int, ...]
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


def texts(value: object, path: JsonPath = ()) -> Iterator[tuple[JsonPath, str]]:
    """The strings in a value, with their paths."""
    if isinstance(value, str) and path and path[-1] not in NO_TEXT:
        yield path, value
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from texts(each, (*path, key))
    elif isinstance(value, list):
        for place, each in enumerate(value):
            yield from texts(each, (*path, place))


def channels(found: Sequence[tuple[int, Document]]) -> dict[object, list[tuple[int, JsonPath]]]:
    """The strings at one path of all events that are of one kind and index, with their events."""
    same: dict[object, list[tuple[int, JsonPath]]] = {}
    for number, document in found:
        for path, _ in texts(document):
            same.setdefault((path, _marks(document, path)), []).append((number, path))
    return same


def _marks(document: object, path: JsonPath) -> tuple[object, ...]:
    """What stands beside the way to a string and tells it from others."""
    marks: list[object] = []
    for step in path:
        if isinstance(document, dict):
            marks += [(key, document[key]) for key in INDEXES if key in document]
            document = document[step]
        elif isinstance(document, list):
            document = document[int(step)]
    return tuple(marks)


def text_at(document: object, path: JsonPath) -> str:
    """The string at `path`."""
    for step in path:
        document = document[step]  # type: ignore[index]
    assert isinstance(document, str)
    return document


def put(document: object, path: JsonPath, text: str) -> None:
    """Puts another string at `path`."""
    *way, last = path
    for step in way:
        document = document[step]  # type: ignore[index]
    document[last] = text  # type: ignore[index]


ROOT = Path(__file__).resolve().parent.parent.parent
TAPES = sorted((ROOT / "recordings" / "dialects").glob("*.tape"))
KEYS = [
    "sk-" + "nope" * 4,
    "AKIA" + "NOPE" * 4,
    "ghp_" + "nope" * 4,
    "hf_" + "Nope" * 4,
    "AIza" + "nope" * 8,
]

each_recording = pytest.mark.parametrize("path", TAPES, ids=lambda path: path.stem)
some = settings(max_examples=15, suppress_health_check=list(HealthCheck))


class Planted(NamedTuple):
    """A stream with a secret in it."""

    exchange: Exchange
    key: str
    pieces: list[str]


def recorded(path: Path) -> Exchange:
    (exchange,) = open_tape(path)
    return exchange


def read_as(exchange: Exchange, pieces: list[bytes]) -> Exchange:
    reads = tuple(Read(t_ns=0, data=data, boundaries=None, line=None) for data in pieces)
    return replace(exchange, reads=reads)


@st.composite
def plantings(draw: st.DrawFn, exchange: Exchange) -> Planted:
    """A secret in one string of an event, or spread over some that a client puts together."""
    found = documents(exchange)
    places = draw(st.sampled_from(list(channels(found).values())))
    first = draw(st.integers(0, len(places) - 1))
    run = places[first : first + draw(st.integers(1, 3))]
    key = draw(st.sampled_from(KEYS))
    at = st.lists(st.integers(1, len(key) - 1), min_size=len(run) - 1, max_size=len(run) - 1)
    pieces = [key[start:end] for start, end in pairwise([0, *sorted(draw(at)), len(key)])]
    changed = {number: copy.deepcopy(document) for number, document in found}
    for place, ((number, where), piece) in enumerate(zip(run, pieces, strict=True)):
        text = text_at(changed[number], where)
        before = f"{text} " if place == 0 else ""
        after = f" {text}" if place == len(run) - 1 else ""
        put(changed[number], where, before + piece + after)
    body = with_documents(exchange, changed)
    cuts = draw(random_cuts(len(body)))
    return Planted(read_as(exchange, cut(body, cuts)), key, pieces)


def redacted(exchange: Exchange) -> Exchange:
    """The same reads with other bytes."""
    body = without_secrets(exchange.body)
    at = [sum(len(read.data) for read in exchange.reads[:n]) for n in range(len(exchange.reads))]
    return read_as(exchange, cut(body, at[1:]))


def wire(exchange: Exchange) -> list[str]:
    return sorted(finding.code for finding in check(exchange) if finding.code.startswith("W"))


def said(exchange: Exchange) -> str:
    """All that the dialect makes of a stream."""
    return repr(rebuild(exchange)) + repr([document for _, document in documents(exchange)])


@pytest.mark.slow
@each_recording
@some
@given(data=st.data())
def test_a_planted_secret_disappears_and_the_stream_stays(path: Path, data: st.DataObject) -> None:
    planted = data.draw(plantings(recorded(path)))
    before, after = planted.exchange, redacted(planted.exchange)
    assert [secret.value for secret in secrets(before.body)]
    assert [len(read.data) for read in after.reads] == [len(read.data) for read in before.reads]
    then, now = decode(before), decode(after)
    assert now.format is then.format
    assert [event.place.span for event in now.events] == [event.place.span for event in then.events]
    assert [event.type for event in now.events] == [event.type for event in then.events]
    assert wire(after) == wire(before)
    assert not [piece for piece in planted.pieces if len(piece) > 5 and piece in said(after)]
    assert without_secrets(after.body) == after.body


@each_recording
def test_a_recording_holds_no_secret(path: Path) -> None:
    assert secrets(recorded(path).body) == ()


@each_recording
def test_masked_content_is_still_a_stream_of_the_dialect(path: Path) -> None:
    before = recorded(path)
    body = overwrite(before.body, mask(before.body, Fillers()))
    after = read_as(before, [body])
    assert len(body) == len(before.body)
    assert overwrite(body, mask(body, Fillers())) == body
    then, now = rebuild(before), rebuild(after)
    assert now.dialect == then.dialect, "see _STRUCTURE in redact/content.py, here and below"
    assert [(call.name, call.status) for call in now.tool_calls] == [
        (call.name, call.status) for call in then.tool_calls
    ]
    assert now.finish_reason_raw == then.finish_reason_raw
    assert len(now.text) == len(then.text)
    assert "look up" not in said(after)
    assert wire(after) == wire(before)
