"""Every recording of a dialect: claimed by that dialect alone, and rebuilt alike however it is cut.

`recordings/dialects/DIALECT.tape`; what a recording shows beside comes after the dialect's name, as
in `gemini-array.tape`.
"""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltatape.diagnose.decode import decode
from deltatape.diagnose.rebuild import rebuild
from deltatape.dialects import DIALECTS
from deltatape.model.exchange import Exchange, Read
from deltatape.model.reply import Reply
from deltatape.store.reader import open_tape
from helpers.hints import claimants
from helpers.sample_streams import CALLS, TEXT
from helpers.splits import cut, cuttings, each_alone, random_cuts

ROOT = Path(__file__).resolve().parent.parent
TAPES = sorted((ROOT / "recordings" / "dialects").glob("**/*.tape"))
NAMES = sorted((dialect.name for dialect in DIALECTS), key=len, reverse=True)
"""Longer names before those that they begin with."""

each_recording = pytest.mark.parametrize("path", TAPES, ids=lambda path: path.stem)


def dialect_of(path: Path) -> str:
    """The dialect that a recording is named after."""
    return next(name for name in NAMES if path.stem.startswith(name))


def recorded(path: Path) -> Exchange:
    """The one exchange on a tape."""
    (exchange,) = open_tape(path)
    return exchange


def in_reads(exchange: Exchange, pieces: list[bytes]) -> Exchange:
    """`exchange` had its body come in `pieces`, all at one time."""
    reads = tuple(Read(t_ns=0, data=data, boundaries=None, line=None) for data in pieces)
    return replace(exchange, reads=reads)


def rebuilt(exchange: Exchange, pieces: list[bytes]) -> Reply:
    """The reply of `exchange` had its body come in `pieces`."""
    return rebuild(in_reads(exchange, pieces))


def test_every_dialect_has_a_recording() -> None:
    assert {dialect_of(path) for path in TAPES} == set(NAMES)


def test_the_recordings_are_what_their_program_makes() -> None:
    program = [sys.executable, str(ROOT / "scripts" / "tape-dialects"), "--check"]
    done = subprocess.run(program, check=False, capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("", 0)


@each_recording
def test_a_recording_is_claimed_by_its_dialect_alone(path: Path) -> None:
    exchange = recorded(path)
    stream = decode(exchange)
    for events in (stream.events[:4], stream.events):
        assert claimants(exchange, stream.format, events) == [dialect_of(path)]


@each_recording
def test_a_recording_is_rebuilt_to_its_text_and_both_calls(path: Path) -> None:
    reply = rebuild(recorded(path))
    assert reply.dialect == dialect_of(path)
    assert TEXT in reply.text + reply.reasoning
    written = tuple(found.call for found in reply.text_calls)
    calls = (*reply.tool_calls, *reply.server_calls, *written)
    names_and_arguments = [(call.name, json.loads(call.arguments)) for call in calls]
    assert names_and_arguments == list(CALLS)


@each_recording
def test_a_recording_is_rebuilt_alike_at_every_single_cut_and_byte_by_byte(path: Path) -> None:
    exchange = recorded(path)
    whole = rebuilt(exchange, [exchange.body])
    assert rebuilt(exchange, each_alone(exchange.body)) == whole
    stream = decode(in_reads(exchange, [exchange.body]))
    for pieces in cuttings(exchange.body):
        assert decode(in_reads(exchange, pieces)) == stream  # of which the reply is made


@each_recording
@settings(max_examples=40)
@given(st.data())
def test_a_recording_is_rebuilt_alike_at_random_cuts(path: Path, data: st.DataObject) -> None:
    exchange = recorded(path)
    cuts = data.draw(random_cuts(len(exchange.body)))
    whole = rebuilt(exchange, [exchange.body])
    assert rebuilt(exchange, cut(exchange.body, cuts)) == whole


IDS = {
    "anthropic-messages": "msg_fake0000",
    "bedrock-invoke": "msg_fake0000",
    "gemini": "fake0000",
    "gemini-interactions": "v1_fake0000",
    "mistral": "0123456789abcdef0123456789abcdef",
    "openai-chat": "chatcmpl-Fake000000000000000000000",
    "openai-responses": "resp_fake000000000000",
}


@each_recording
def test_what_the_provider_calls_an_answer_is_known_where_it_says_so(path: Path) -> None:
    assert rebuild(recorded(path)).id == IDS.get(dialect_of(path))
