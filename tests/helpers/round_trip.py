"""record(replay(tape)): exchanges are played, and a gateway records that, in the same loop.

In one loop each read of the gateway sees what the player sent in one turn, so the reads are those
of the tape, whatever else the machine does.
"""

import asyncio
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

from deltatape.http1.body import body_of
from deltatape.http1.head import find_head, parse_response
from deltatape.model.exchange import (
    End,
    EndReason,
    Exchange,
    Framing,
    Headers,
    Read,
    Source,
)
from helpers.playing import playing
from helpers.recording import Recording, recording
from helpers.taped import MS
from helpers.upstream import Peer, connect, run

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


def told(exchange: Exchange) -> dict[str, object]:
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
    reads = tuple(_reads(kept, framing, chance, whole=reason is EndReason.COMPLETE))
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


def _reads(body: bytes, framing: Framing, chance: Random, *, whole: bool) -> Iterator[Read]:
    """Reads of any length, with any number of chunks in each."""
    longest = max(chance.choice((40, 400, 4000)), len(body) // 50)
    at = 0
    while at < len(body):
        data = body[at : at + chance.randint(1, longest)]
        at += len(data)
        size = len(data)
        ends: tuple[int, ...] = chance.choice(((size,), (size,), (), (1,), (1, size)))
        if whole and at == len(body):
            ends = (size,)
        ends = tuple(sorted({min(end, size) for end in ends}))
        boundaries = ends if framing is Framing.CHUNKED else None
        yield Read(t_ns=at * MS, data=data, boundaries=boundaries, line=None)
