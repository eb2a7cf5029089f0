"""record(replay(tape)) is the tape, but for times and the documented differences; raw sockets."""

import asyncio
import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path
from random import Random

import pytest
import zstandard

from deltatape.http1.body import body_of
from deltatape.http1.head import find_head, parse_response
from deltatape.model.exchange import (
    BROKEN_CHUNKS,
    End,
    EndReason,
    Exchange,
    Framing,
    Headers,
    Note,
    Read,
    ResponseHead,
    Source,
)
from deltatape.store.reader import open_tape
from helpers.corpus import every_case, needs_corpus
from helpers.playing import playing
from helpers.recording import Recording, recording
from helpers.taped import MS, taped
from helpers.upstream import Peer, connect, run

ROOT = Path(__file__).parent.parent.parent
TAPES = sorted(
    path
    for path in (ROOT / "recordings").rglob("*.tape")
    # Of the many tapes of frameworks, those with streams at once.
    if "frameworks" not in path.parts or path.stem.endswith("-several")
    # What a recorder lost of an exchange cannot be played.
    if path.parent.name != "X002" and "recorder-lost" not in path.stem
    # Nor is a client that leaves before any head seen to leave once more.
    if path.stem != "timeout-then-again"
    # Nor is what is damaged on purpose played.
    if path.parent.name != "conformance"
    # WebSockets need a client that waits for answers: see tests/conformance.
    if path.parent.name != "websocket"
)
PARTS = 8
"""Tests among which the tapes are shared."""
CASES = 200
AT_ONCE = 50
GZIP = bytes.fromhex("1f8b080000000000000373cb2f4a0100a1e7a4ce04000000")


# record(replay(tape)): exchanges are played, and a gateway records that, in the same loop.
#
# In one loop each read of the gateway sees what the player sent in one turn, so the reads are those
# of the tape, whatever else the machine does.

LIMIT_S = 60.0


def recorded_again(
    exchanges: Sequence[Exchange], folder: Path, *, at_once: int = 1
) -> list[Exchange]:
    """What a gateway records of a raw client that asks a player for each of them.

    Args:
        exchanges: in the order in which they are asked for.
        folder: for the tape.
        at_once: how many clients ask at the same time.
    """

    async def scenario() -> list[Exchange]:
        async with (
            playing(*exchanges) as stage,
            recording(folder, stage.player.listener.port) as running,
        ):
            again: list[Exchange] = []
            for first in range(0, len(exchanges), at_once):
                these = exchanges[first : first + at_once]
                await asyncio.gather(*(_ask(running, each) for each in these))
                again = await running.ended(first + len(these))
            assert not stage.player.report.missed, stage.player.report.missed[0].message
            return again

    return run(scenario(), LIMIT_S)


async def _ask(running: Recording, exchange: Exchange) -> None:
    client = await connect(running.port)
    await client.send(_wire(exchange))
    method = exchange.request.method
    if exchange.response is None:
        await client.rest()
    elif exchange.end is None or exchange.end.reason is EndReason.CLIENT_CLOSED:
        await _read(client, method, len(exchange.body))
    else:
        await _read(client, method, None)
    client.close()


def _wire(exchange: Exchange) -> bytes:
    """The request as it was sent, with something in place of what was masked."""
    request = exchange.request
    fields = b"".join(
        b"%b: %b\r\n" % (name, b"x" * 8 if not isinstance(value, bytes) else value)
        for name, value in request.headers
        if name.lower() not in (b"host", b"content-length")
    )
    chunked = any(name.lower() == b"transfer-encoding" for name, _ in request.headers)
    body = request.body
    if chunked:
        body = (b"%x\r\n%b\r\n" % (len(body), body) if body else b"") + b"0\r\n\r\n"
    else:
        fields += b"Content-Length: %d\r\n" % len(body)
    line = b"%b %b HTTP/1.1\r\nHost: 127.0.0.1\r\n" % (
        request.method.encode(),
        request.target_bytes,
    )
    return line + fields + b"\r\n" + body


async def _read(client: Peer, method: str, enough: int | None) -> None:
    """Read a response until it is whole or cut, or until so many bytes of its body are there."""
    buffer = b""
    while True:
        while not (end := find_head(buffer)):
            data = await _some(client)
            if not data:
                return
            buffer += data
        head = parse_response(buffer[:end], method=method)
        buffer = buffer[end:]
        if not head.informational:
            break
    body = body_of(head.framing, head.length)
    had = len(body.feed(buffer).data)
    while not body.done and not body.problem and (enough is None or had < enough):
        data = await _some(client)
        if not data:
            return
        had += len(body.feed(data).data)
    if body.problem:
        await client.rest()


async def _some(client: Peer) -> bytes:
    try:
        return await client.reader.read(65536)
    except ConnectionResetError:
        return b""


def test_a_compressed_request_is_matched_and_taped_as_it_was_sent(tmp_path: Path) -> None:
    said = b'{"model": "m", "messages": []}'
    coded = taped(body=zstandard.compress(said))
    fields = ((b"Content-Encoding", b"zstd"), (b"Content-Type", b"application/json"))
    coded = replace(coded, request=replace(coded.request, headers=fields))
    (again,) = recorded_again([coded], tmp_path)
    assert comparable(again) == comparable(coded)
    assert (again.request.body, again.request.content) == (coded.request.body, said)
    assert [note.text for note in again.notes] == [
        "credentials in the request body are not masked: it is zstd-coded"
    ]


def comparable(exchange: Exchange) -> dict[str, object]:
    """What of an exchange has to be the same when it is recorded again; docs/replay.md says why."""
    request, response, end = exchange.request, exchange.response, exchange.end
    head = (response.status, response.reason, response.http) if response is not None else None
    return {
        "request": (request.method, request.target_bytes, request.body),
        "request fields": _sent(request.headers),
        "informational": [
            (one.status, one.reason, one.http, _unmasked(one.headers))
            for one in exchange.informational
        ],
        "status": head,
        "framing": response.framing if response is not None else None,
        "fields": _unmasked(response.headers) if response is not None else None,
        "reads": [(read.data, read.boundaries) for read in exchange.reads],
        "trailers": _unmasked(exchange.trailers),
        "end": (end.reason, end.bytes, end.sha256) if end is not None else None,
    }


def _sent(headers: Headers) -> list[tuple[bytes, bytes]]:
    return [
        (name, value)
        for name, value in headers
        if isinstance(value, bytes) and name.lower() not in (b"host", b"content-length")
    ]


def _unmasked(headers: Headers) -> list[tuple[bytes, bytes]]:
    return [(name, value) for name, value in headers if isinstance(value, bytes)]


def as_taped(exchange: Exchange, chance: Random) -> Exchange:
    """`exchange`, which has a body and no reads, as if it had come over a wire in some way."""
    assert exchange.response is not None
    framing = chance.choice((Framing.CHUNKED,) * 4 + (Framing.LENGTH, Framing.CLOSE))
    reason = chance.choice((EndReason.COMPLETE,) * 6 + _CUTS[framing])
    body = exchange.body
    kept = body if reason is EndReason.COMPLETE else body[: chance.randrange(len(body) + 1)]
    reads = tuple(_reads(kept, framing, chance, complete=reason is EndReason.COMPLETE))
    return replace(
        exchange,
        source=Source.GATEWAY,
        response=replace(
            exchange.response,
            framing=framing,
            headers=(*exchange.response.headers, *_framing_fields(framing, len(body))),
        ),
        reads=reads,
        end=End(
            t_ns=len(reads) * MS,
            reason=reason,
            bytes=len(kept),
            sha256=hashlib.sha256(kept).hexdigest(),
            detail="",
            recorder={},
            line=None,
        ),
    )


_CUTS = {
    Framing.CHUNKED: (EndReason.UPSTREAM_CLOSED, EndReason.UPSTREAM_RESET),
    Framing.LENGTH: (EndReason.UPSTREAM_CLOSED, EndReason.UPSTREAM_RESET),
    Framing.CLOSE: (EndReason.UPSTREAM_RESET,),
}
"""A FIN is no cut of a body that the connection's end completes."""


def _framing_fields(framing: Framing, length: int) -> Headers:
    if framing is Framing.CHUNKED:
        return ((b"Transfer-Encoding", b"chunked"),)
    return ((b"Content-Length", b"%d" % length),) if framing is Framing.LENGTH else ()


def _reads(body: bytes, framing: Framing, chance: Random, *, complete: bool) -> Iterator[Read]:
    """Reads of any length, with any number of chunks in each."""
    longest = max(chance.choice((40, 400, 4000)), len(body) // 50)
    at = 0
    while at < len(body):
        data = body[at : at + chance.randint(1, longest)]
        at += len(data)
        size = len(data)
        ends: tuple[int, ...] = chance.choice(((size,), (size,), (), (1,), (1, size)))
        if complete and at == len(body):
            ends = (size,)
        ends = tuple(sorted({min(end, size) for end in ends}))
        boundaries = ends if framing is Framing.CHUNKED else None
        yield Read(t_ns=at * MS, data=data, boundaries=boundaries, line=None)


def assert_same(exchanges: list[Exchange], again: list[Exchange]) -> None:
    assert len(again) == len(exchanges)
    for one, other in zip(exchanges, again, strict=True):
        assert comparable(other) == comparable(one), f"{one.tape}#{one.number}"


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_every_recording_is_recorded_again_as_it_is(
    part: int, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    for number, tape in enumerate(TAPES[part::PARTS]):
        with subtests.test(str(tape.relative_to(ROOT))):
            exchanges = sorted(open_tape(tape), key=lambda exchange: exchange.number)
            assert_same(exchanges, recorded_again(exchanges, tmp_path / str(number)))


@pytest.mark.slow
@needs_corpus
@pytest.mark.parametrize("seed", range(CASES // AT_ONCE))
def test_captured_streams_are_recorded_again_as_they_are(seed: int, tmp_path: Path) -> None:
    chance = Random(seed)
    cases = [case for case in every_case() if case.body][seed :: CASES // AT_ONCE][:AT_ONCE]
    exchanges = [
        replace(as_taped(case.exchange, chance), tape=case.id, number=number)
        for number, case in enumerate(cases, 1)
    ]
    assert_same(exchanges, recorded_again(exchanges, tmp_path))


def early(status: int, *headers: tuple[bytes, bytes]) -> ResponseHead:
    """A 1xx head."""
    return ResponseHead(
        status=status,
        reason=HTTPStatus(status).phrase.encode(),
        http="1.1",
        framing=Framing.NONE,
        headers=headers,
        t_ns=MS,
        line=None,
    )


def asking(exchange: Exchange, *headers: tuple[bytes, bytes]) -> Exchange:
    """`exchange` with these fields in its request."""
    return replace(exchange, request=replace(exchange.request, headers=headers))


def http_1_0(exchange: Exchange, *headers: tuple[bytes, bytes]) -> Exchange:
    """`exchange` answered by a provider that speaks HTTP/1.0."""
    assert exchange.response
    return replace(exchange, response=replace(exchange.response, http="1.0", headers=headers))


def in_pieces(
    reason: EndReason = EndReason.COMPLETE,
    *boundaries: tuple[int, ...],
    framing: Framing = Framing.CHUNKED,
    headers: Headers = (),
) -> Exchange:
    """Three reads of a body of twelve bytes."""
    reads = ((10, b"abcd"), (20, b"efgh"), (30, b"ijkl"))
    return taped(
        reads, framing=framing, boundaries=boundaries, reason=reason, end_ms=40, headers=headers
    )


CLOSED, RESET = EndReason.UPSTREAM_CLOSED, EndReason.UPSTREAM_RESET
SIZED = ((b"Content-Length", b"12"),)
LONGER = ((b"Content-Length", b"99"),)
NOT_WHOLE = ((4,), (4,), ())
STRANGE = {
    "whole": in_pieces(),
    "chunks over reads": in_pieces(EndReason.COMPLETE, (1, 3), (), (2, 4)),
    "cut in the middle of a chunk": in_pieces(CLOSED, *NOT_WHOLE),
    "cut between two chunks, without terminator": in_pieces(CLOSED),
    "reset in the middle of a chunk": in_pieces(RESET, *NOT_WHOLE),
    "reset between two chunks": in_pieces(RESET),
    "known length": in_pieces(framing=Framing.LENGTH, headers=SIZED),
    "shorter than its length": in_pieces(CLOSED, framing=Framing.LENGTH, headers=LONGER),
    "reset before its length": in_pieces(RESET, framing=Framing.LENGTH, headers=LONGER),
    "ended by the connection": in_pieces(framing=Framing.CLOSE),
    "ended by a reset": in_pieces(RESET, framing=Framing.CLOSE),
    "provider of HTTP/1.0": http_1_0(in_pieces(framing=Framing.CLOSE), (b"x-a", b"1")),
    "length in HTTP/1.0": http_1_0(in_pieces(framing=Framing.LENGTH), *SIZED),
    "connection kept in HTTP/1.0": http_1_0(
        in_pieces(framing=Framing.LENGTH), *SIZED, (b"Connection", b"keep-alive")
    ),
    "provider that closes": in_pieces(headers=((b"Connection", b"Close"),)),
    "fields for one hop": in_pieces(headers=((b"Keep-Alive", b"timeout=5"), (b"X-a", b"b"))),
    "cut after the head": taped((), reason=CLOSED),
    "cut after the head, length": taped((), reason=CLOSED, framing=Framing.LENGTH, headers=SIZED),
    "reset after the head": taped((), reason=RESET),
    "no answer at all": taped((), framing=None, reason=CLOSED),
    "a reset for an answer": taped((), framing=None, reason=RESET),
    "empty body": taped((), framing=Framing.LENGTH, headers=((b"Content-Length", b"0"),)),
    "empty body in chunks": taped(()),
    "trailers": taped(
        trailers=((b"X-Sum", b"1"), (b"x-t", b"")), headers=((b"Trailer", b"X-Sum, x-t"),)
    ),
    "HEAD": asking(
        taped((), method="HEAD", body=b"", framing=Framing.NONE, headers=SIZED), (b"X-A", b"1")
    ),
    "gzip": taped(((10, GZIP[:9]), (20, GZIP[9:])), headers=((b"Content-Encoding", b"gzip"),)),
    "1xx heads": taped(informational=(early(103, (b"Link", b"</a>")), early(102))),
    "100, asked for": asking(
        taped(informational=(early(100),)), (b"Expect", b"100-continue"), (b"X-A", b"1")
    ),
    "100, asked for in vain": asking(taped(), (b"Expect", b"100-continue")),
    "100, not asked for": taped(informational=(early(100),)),
    "chunked request": asking(taped(body=b"{}"), (b"Transfer-Encoding", b"chunked")),
    "left by its client": in_pieces(EndReason.CLIENT_CLOSED, *NOT_WHOLE),
    "not HTTP/1": taped(((10, b"hello, who are you?\r\n\r\n"),), framing=None, reason=CLOSED),
}


@pytest.mark.parametrize("name", STRANGE)
def test_every_way_to_answer_is_recorded_again_as_it_is(name: str, tmp_path: Path) -> None:
    assert_same([STRANGE[name]], recorded_again([STRANGE[name]], tmp_path))


def test_answers_at_the_same_time_do_not_mix(tmp_path: Path) -> None:
    exchanges = [
        replace(in_pieces(), request=replace(in_pieces().request, body=b'{"n":%d}' % number))
        for number in range(40)
    ]
    again = recorded_again(exchanges, tmp_path, at_once=20)
    assert sorted(str(comparable(each)) for each in again) == sorted(
        map(str, map(comparable, exchanges))
    )


def test_broken_chunks_come_as_they_came(tmp_path: Path) -> None:
    exchange = replace(
        taped(((10, b"ab"), (30, b"zz\r\nrest")), reason=CLOSED),
        notes=(Note(t_ns=20 * MS, text=f"{BROKEN_CHUNKS}, bytes go on as they came"),),
    )
    (again,) = recorded_again([exchange], tmp_path)
    assert comparable(again) == comparable(exchange)
    assert re.match(BROKEN_CHUNKS, again.notes[0].text)


def test_what_the_recorder_did_not_see_to_its_end_is_held(tmp_path: Path) -> None:
    exchange = in_pieces()
    crashed = replace(exchange, end=None)
    (again,) = recorded_again([crashed], tmp_path)
    assert again.end
    assert again.end.reason is EndReason.CLIENT_CLOSED
    assert comparable(replace(again, end=None)) == comparable(crashed)
