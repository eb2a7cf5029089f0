"""Secrets planted in the streams of all dialects disappear, and everything else stays as it was."""

import copy
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deltatape.diagnose.check import check
from deltatape.diagnose.decode import decode
from deltatape.diagnose.rebuild import rebuild
from deltatape.model.exchange import Exchange, Read
from deltatape.redact.content import mask
from deltatape.redact.escaped_text import overwrite
from deltatape.redact.fillers import Fillers
from deltatape.redact.search import secrets
from deltatape.store.reader import open_tape
from helpers.planted import without_secrets
from helpers.splits import cut, random_cuts
from helpers.streamed import channels, documents, put, text_at, with_documents

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
some = settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))


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
    assert now.dialect == then.dialect
    assert [(call.name, call.status) for call in now.tool_calls] == [
        (call.name, call.status) for call in then.tool_calls
    ]
    assert now.finish_reason_raw == then.finish_reason_raw
    assert len(now.text) == len(then.text)
    assert "look up" not in said(after)
    assert wire(after) == wire(before)
