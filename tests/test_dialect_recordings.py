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
from deltatape.model.websocket import FramePiece, Side
from deltatape.rules.finish import FinishMeaning, finish_of
from deltatape.store.reader import open_tape
from helpers.hints import claimants
from helpers.sample_streams import CALLS, TEXT
from helpers.splits import cut, cuttings, each_alone, random_cuts
from helpers.websocket import joined, split
from helpers.websocket import rebuilt as sent

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


def body_of(exchange: Exchange) -> bytes:
    """What came: the body, or all that the server sent on a WebSocket."""
    if not exchange.upgraded:
        return exchange.body
    return sent(piece for piece in exchange.frames if piece.side is Side.SERVER)


def in_reads(exchange: Exchange, pieces: list[bytes]) -> Exchange:
    """`exchange` had its body come in `pieces`, all at one time."""
    if exchange.upgraded:
        asked = [piece._replace(t_ns=0) for piece in exchange.frames if piece.side is Side.CLIENT]
        came = (
            FramePiece(0, Side.SERVER, opcode, head, at, data, more=more, raw=raw)
            for opcode, head, at, data, more, raw in split(pieces)
        )
        return replace(exchange, frames=(*asked, *came))
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
def test_the_finish_reason_of_a_recording_is_known_to_the_rules(path: Path) -> None:
    for choice in rebuild(recorded(path)).choices:
        known = choice.finish_reason_raw is None or finish_of(choice) is not FinishMeaning.OTHER
        assert known, f"{choice.finish_reason_raw} is not in _MEANINGS of rules/finish.py"


@each_recording
def test_a_recording_is_rebuilt_alike_at_every_single_cut_and_byte_by_byte(path: Path) -> None:
    exchange = recorded(path)
    whole = rebuilt(exchange, [body_of(exchange)])
    assert rebuilt(exchange, each_alone(body_of(exchange))) == whole
    stream = decode(in_reads(exchange, [body_of(exchange)]))
    frames = joined(split([body_of(exchange)])) if exchange.upgraded else []
    for number, pieces in enumerate(cuttings(body_of(exchange))):
        if exchange.upgraded and number % 13:
            assert joined(split(pieces)) == frames  # a thirteenth of the time
        else:
            assert decode(in_reads(exchange, pieces)) == stream  # of which the reply is made


@each_recording
@settings(max_examples=40)
@given(st.data())
def test_a_recording_is_rebuilt_alike_at_random_cuts(path: Path, data: st.DataObject) -> None:
    exchange = recorded(path)
    cuts = data.draw(random_cuts(len(body_of(exchange))))
    whole = rebuilt(exchange, [body_of(exchange)])
    assert rebuilt(exchange, cut(body_of(exchange), cuts)) == whole


IDS = {
    "anthropic-messages": "msg_fake0000",
    "bedrock-invoke": "msg_fake0000",
    "gemini": "fake0000",
    "gemini-interactions": "v1_fake0000",
    "mistral": "0123456789abcdef0123456789abcdef",
    "openai-chat": "chatcmpl-Fake000000000000000000000",
    "openai-realtime": "resp_fake000000000000",
    "openai-responses": "resp_fake000000000000",
}


@each_recording
def test_what_the_provider_calls_an_answer_is_known_where_it_says_so(path: Path) -> None:
    assert rebuild(recorded(path)).id == IDS.get(dialect_of(path))
