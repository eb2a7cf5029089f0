"""What a client and its provider get through deltatape is what they get without it; raw sockets.

The table of all cases, with nginx beside, is docs/conformance.md.
"""

import asyncio
from pathlib import Path

import pytest

from deltatape.model.exchange import EndReason, Exchange
from deltatape.model.websocket import PING, PONG, FramePiece
from deltatape.model.websocket import Side as WebSocketSide
from deltatape.record.control import Control
from helpers.conformance import REFUSED, Case, direct, is_refusal, recorded, recorded_twice
from helpers.conformance_cases import GROUPS, HOSTS, ORIGINS
from helpers.upstream import connect, run
from helpers.websocket_cases import SOCKETS

CASES = [case for cases in GROUPS.values() for case in cases]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_all_arrives_as_without_deltatape_or_otherwise_as_documented(
    case: Case, tmp_path: Path
) -> None:
    expected = asyncio.run(direct(case))
    got, replay = asyncio.run(recorded(case, tmp_path))
    if case.deltatape == REFUSED:
        assert got.upstream.got == b""
        assert is_refusal(got.client)
        assert replay is not None
        assert is_refusal(replay)
        return
    if case.deltatape:
        assert got.seen(case) != expected.seen(case)
    else:
        assert got.seen(case) == expected.seen(case)
    if case.replay:
        assert replay != got.client
    elif replay is not None:
        assert replay == got.client


def _frames(exchange: Exchange) -> list[tuple[object, ...]]:
    """The frames of both sides in the order in which they began, however reads cut them."""
    frames: list[list[FramePiece]] = []
    last: dict[WebSocketSide, list[FramePiece]] = {}
    for piece in exchange.frames:
        before = last.get(piece.side)
        goes_on = before is not None and piece.head is None and before[-1].raw == piece.raw
        if before is not None and goes_on:
            before.append(piece)
        else:
            last[piece.side] = [piece]
            frames.append(last[piece.side])
    return [
        (
            *(pieces[0].side, pieces[0].opcode, pieces[0].head, pieces[0].raw, pieces[-1].more),
            b"".join(each.data for each in pieces),
            b"".join(each.data if each.wire is None else each.wire for each in pieces),
        )
        for pieces in frames
    ]


def _is_ping(frame: tuple[object, ...]) -> bool:
    return frame[0] is WebSocketSide.CLIENT and frame[1] in (PING, PONG)


@pytest.mark.parametrize(
    "case", [case for case in SOCKETS if not case.replay], ids=lambda case: case.name
)
def test_what_is_recorded_of_the_replay_of_a_websocket_equals_its_tape(
    case: Case, tmp_path: Path
) -> None:
    folders = [tmp_path / "first", tmp_path / "second"]
    first, second = asyncio.run(recorded_twice(case, folders))
    one, other = _frames(first), _frames(second)
    for side in WebSocketSide:
        assert [each for each in one if each[0] is side] == [
            each for each in other if each[0] is side
        ]
    # A player does not wait for a client's pings and pongs.
    assert [each for each in one if not _is_ping(each)] == [
        each for each in other if not _is_ping(each)
    ]
    assert (first.end and first.end.frames) is not None or not first.upgraded
    assert first.body == second.body
    if first.end is not None and first.end.reason is not EndReason.CLIENT_CLOSED:
        assert second.end is not None
        assert second.end.reason is first.end.reason


@pytest.mark.parametrize("path", [b"/health", b"/status", b"/metrics"])
@pytest.mark.parametrize(
    "fields",
    [
        *((b"Host: " + host,) for host in HOSTS),
        *((b"Host: HOST", *(b"Origin: " + origin for origin in origins)) for origins in ORIGINS),
    ],
)
def test_the_control_port_refuses_foreign_hosts_and_pages(
    path: bytes, fields: tuple[bytes, ...]
) -> None:
    request = b"\r\n".join((b"GET %b HTTP/1.1" % path, *fields, b"Connection: close", b"", b""))

    async def scenario() -> None:
        control = Control(dict, lambda _: ("text/plain", b""))
        url = await control.start("127.0.0.1", 0)
        client = await connect(int(url.rpartition(":")[2]))
        await client.send(request.replace(b"HOST", b"127.0.0.1"))
        assert (await client.rest())[0].startswith(b"HTTP/1.1 403 ")
        await control.stop()

    run(scenario())
