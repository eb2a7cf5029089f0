"""Credentials planted everywhere, cut into records anywhere: none of them reaches the tape."""

import base64
import hashlib
import json
from dataclasses import dataclass, field
from itertools import pairwise
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltatape.model.exchange import EndReason, Exchange, Framing, Headers
from deltatape.model.tape_summary import LogStream
from deltatape.tape import encode
from deltatape.tape.assemble import assemble
from deltatape.tape.decode import decode_record
from deltatape.tape.mask import Masker
from deltatape.tape.payload import BodyRead, LogLine, RequestBodyPiece
from deltatape.tape.record import Record
from deltatape.tape.seen_credentials import blanked, merged
from deltatape.tape.tap import ExchangeTap, TapeTap
from helpers.spelling import credentials, spelled
from helpers.tapes import HEADER, Lines

INNOCENT = ("data: {}\n\n", "sk-", "sk-fake", '{"a":"b"}', "x", "é", "\\", "*", "\x1b[31m")

REPORTED = 1 << 20


@dataclass
class Body:
    """What is fed to one place, in pieces."""

    pieces: list[bytes]
    fed: int = 0

    @property
    def whole(self) -> bytes:
        return b"".join(self.pieces)


@dataclass
class Plan:
    """What happens: two exchanges and a program's output, one piece of one of them at a time."""

    keys: tuple[str, str]
    carrier: str
    bodies: dict[str, Body]
    turns: list[str]
    text: str
    lines: Lines = field(default_factory=Lines)
    masker: Masker = field(default_factory=lambda: Masker(b"k"))


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    keys = (draw(credentials), draw(credentials))
    planted = st.sampled_from([form for key in keys for form in spelled(key)])
    text = st.lists(planted | st.sampled_from(INNOCENT), max_size=8).map("".join)
    bodies = {}
    for name in ("1 asks", "1 answers", "2 asks", "2 answers", *LogStream):
        data = draw(text).encode()
        cuts = sorted(draw(st.sets(st.integers(1, max(len(data) - 1, 1)), max_size=6)))
        edges = [0, *(cut for cut in cuts if cut < len(data)), len(data)]
        bodies[name] = Body([data[low:high] for low, high in pairwise(edges) if low < high])
    turns = [name for name, body in bodies.items() for _ in body.pieces]
    carrier = draw(st.sampled_from(["bearer", "key", "query", "basic", "userinfo"]))
    return Plan(keys, carrier, bodies, draw(st.permutations(turns)), draw(text))


def head(plan: Plan, tap: ExchangeTap, number: int) -> None:
    """The head of a request; it carries a credential, and repeats it where it does not belong."""
    key = plan.keys[number - 1]
    carrier = plan.carrier if number == 1 else "bearer"
    pair = base64.b64encode(b"user:" + key.encode())
    carried: dict[str, Headers] = {
        "bearer": ((b"Authorization", b"Bearer " + key.encode()),),
        "key": ((b"X-Api-Key", key.encode()),),
        "basic": ((b"Proxy-Authorization", b"Basic " + pair),),
    }
    query = f"?api_key={quote(key, safe='')}" if carrier == "query" else ""
    user = f"user:{quote(key, safe='')}@" if carrier == "userinfo" else ""
    tap.request(
        number,
        id=f"{number}",
        method="POST",
        target=f"/v1/{quote(key)}{query}".encode(),
        upstream=f"https://{user}host",
        http="1.1",
        headers=((b"X-Debug", key.encode()), *carried.get(carrier, ())),
    )


def play(plan: Plan) -> None:
    """Feed the plan to taps as a recorder would; the times are the numbers of the turns."""
    put = plan.lines.put
    tape = TapeTap(put, plan.masker)
    taps = {number: ExchangeTap(number, put, plan.masker) for number in (1, 2)}
    for number, tap in taps.items():
        head(plan, tap, number)
    for t_ns, name in enumerate(plan.turns, start=10):
        body = plan.bodies[name]
        data, body.fed = body.pieces[body.fed], body.fed + 1
        if name in set(LogStream):
            tape.log(t_ns, LogStream(name), data)
        elif name.endswith("asks"):
            taps[int(name[0])].request_body(t_ns, data)
        else:
            taps[int(name[0])].read(t_ns, data, (len(data) - 1,) if t_ns % 2 else None)
    for tap in taps.values():
        reason = plan.text.replace("\n", " ").encode()
        fields = ((b"X-Debug", reason),)
        tap.request_end(REPORTED)
        tap.response(
            REPORTED, status=500, reason=reason, http="1.1", framing=Framing.CHUNKED, headers=fields
        )
        tap.trailers(REPORTED, fields)
        tap.note(REPORTED, plan.text)
        tap.end(REPORTED, EndReason.UPSTREAM_RESET, detail=plan.text)
    tape.log_end(REPORTED)
    tape.note(REPORTED, plan.text)


def forms(plan: Plan) -> set[bytes]:
    return {form.encode() for key in plan.keys for form in spelled(key)}


def expected(plan: Plan, data: bytes) -> bytes:
    """`data` masked the slow way."""
    known = set(plan.masker.seen._hashes)
    spans = [
        (start, start + len(form), "")
        for form in known
        for start in range(len(data))
        if data.startswith(form, start)
    ]
    begun = [n for form in known for n in range(1, len(form)) if data.endswith(form[:n])]
    cut = max(begun, default=0)
    return blanked(data, merged([*spans, *([(len(data) - cut, len(data), "")] if cut > 7 else [])]))


def records(plan: Plan) -> list[Record]:
    found = [decode_record(line) for line in plan.lines.all]
    for line, record in zip(plan.lines.all, found, strict=True):
        assert encode.payload_record(record.t_ns, record.exchange, record.payload) == line
    return found


def strings(value: object) -> list[str]:
    """Every string of a JSON value."""
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for one in inner for text in strings(one)]


@pytest.mark.slow
@given(plans())
def test_no_credential_that_was_seen_reaches_the_tape(plan: Plan) -> None:
    play(plan)
    told = [text.encode() for line in plan.lines.all for text in strings(json.loads(line))]
    bodies: dict[tuple[int, str], bytes] = {}
    for record in records(plan):
        payload = record.payload
        if isinstance(payload, BodyRead | RequestBodyPiece):
            place = (record.exchange, payload.code)
            bodies[place] = bodies.get(place, b"") + payload.data
        elif isinstance(payload, LogLine):
            told.append(payload.line)
    whole = b"\n".join([*told, *bodies.values(), *plan.lines.all])
    assert [form for form in forms(plan) if form in whole] == []


def pieces(exchange: Exchange, name: str, plan: Plan) -> None:
    """The reads of an exchange are those that were fed."""
    body = plan.bodies[name]
    times = [t_ns for t_ns, turn in enumerate(plan.turns, start=10) if turn == name]
    assert [len(read.data) for read in exchange.reads] == [len(piece) for piece in body.pieces]
    assert [read.t_ns for read in exchange.reads] == times
    assert [read.boundaries for read in exchange.reads] == [
        (len(piece) - 1,) if t_ns % 2 else None
        for t_ns, piece in zip(times, body.pieces, strict=True)
    ]
    for read in exchange.reads:
        assert all(set(read.data[start:end]) == {ord("*")} for start, end, _ in read.masked)


@pytest.mark.slow
@given(plans())
def test_all_but_credentials_is_on_the_tape_as_it_came(plan: Plan) -> None:
    play(plan)
    found = records(plan)
    for exchange in assemble(enumerate(found), tape="", header=HEADER):
        asks, answers = f"{exchange.number} asks", f"{exchange.number} answers"
        assert exchange.request.body == expected(plan, plan.bodies[asks].whole)
        assert exchange.body == expected(plan, plan.bodies[answers].whole)
        pieces(exchange, answers, plan)
        assert exchange.end is not None
        digest = hashlib.sha256(exchange.body).hexdigest()
        assert (exchange.end.bytes, exchange.end.sha256) == (len(exchange.body), digest)
        assert exchange.masked is (
            exchange.body + exchange.request.body
            != plan.bodies[answers].whole + plan.bodies[asks].whole
        )
    for stream in LogStream:
        lines = plan.bodies[stream].whole.split(b"\n")
        logs = [one.payload for one in found if isinstance(one.payload, LogLine)]
        assert [log.line for log in logs if log.stream is stream] == [
            expected(plan, line) for line in (lines if lines[-1] else lines[:-1])
        ]
    for number in (0, 1, 2):
        times = [record.t_ns for record in found if record.exchange == number]
        assert times == sorted(times)
