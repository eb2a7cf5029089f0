"""The same streams taped through mitmproxy and through the gateway: same bytes, same findings."""

import asyncio
import contextlib
import gzip
import signal
from pathlib import Path
from typing import TypeAlias

import pytest

from deltatape.diagnose.check import check
from deltatape.diagnose.rebuild import rebuild
from deltatape.model.exchange import EndReason, Exchange, Framing, MaskedCredential, Source
from helpers.mitm import VENVS, Running, call_events, mitmproxy
from helpers.recording import Recording, recording
from helpers.upstream import SSE_HEAD, Peer, chunk, connect, free_port, post, provider, run

EVENTS = call_events()
SECRET = "sk-fake-000000"  # noqa: S105 - a fake
GZIP_HEAD = SSE_HEAD.replace(b"\r\n\r\n", b"\r\nContent-Encoding: gzip\r\n\r\n")
LIMIT_S = 90

Pair: TypeAlias = tuple[Exchange, Exchange]


async def whole(peer: Peer) -> None:
    await peer.send(SSE_HEAD)
    for event in EVENTS:
        await peer.send(chunk(event))
        await asyncio.sleep(0.02)
    await peer.send(b"0\r\n\r\n")


async def cut(peer: Peer) -> None:
    await peer.send(SSE_HEAD + b"".join(map(chunk, EVENTS[:4])) + b"99\r\n")
    await asyncio.sleep(0.1)
    peer.close()


async def reset(peer: Peer) -> None:
    await peer.send(SSE_HEAD + b"".join(map(chunk, EVENTS[:4])))
    await asyncio.sleep(0.1)
    peer.reset()


async def silent(peer: Peer) -> None:
    await peer.send(SSE_HEAD + b"".join(map(chunk, EVENTS[:3])))
    with contextlib.suppress(ConnectionError):
        await peer.reader.read()


async def compressed(peer: Peer) -> None:
    body = gzip.compress(b"".join(EVENTS), mtime=0)
    await peer.send(GZIP_HEAD + chunk(body[:40]))
    await asyncio.sleep(0.05)
    await peer.send(chunk(body[40:]) + b"0\r\n\r\n")


async def refusing(peer: Peer) -> None:
    body = b'{"error": {"message": "no such key: %b"}}' % SECRET.encode()
    head = b"HTTP/1.1 401 Unauthorized\r\nContent-Type: application/json\r\n"
    await peer.send(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)


SCRIPTS = {script.__name__: script for script in (whole, cut, reset, silent, compressed, refusing)}


async def serve(peer: Peer) -> None:
    """Plays the script that the request names."""
    while True:
        head, _ = await peer.request()
        await SCRIPTS[head.split(b"?case=")[1].split(b" ")[0].decode()](peer)


async def ask(port: int, case: str) -> None:
    peer = await connect(port)
    await peer.send(
        post(
            b'{"model": "m", "stream": true}',
            target=f"/v1/chat/completions?case={case}",
            extra=f"Authorization: Bearer {SECRET}\r\n",
        )
    )
    if case == "silent":
        await peer.until(EVENTS[2] + b"\r\n")
        peer.close()
    elif case == "refusing":
        await peer.until(b'"}}')
    else:
        await peer.rest_or_end()


async def all_cases(tape: Running | Recording) -> dict[str, Exchange]:
    """Every script once; the exchanges by its name."""
    for number, case in enumerate(SCRIPTS, 1):
        await ask(tape.port, case)
        await tape.ended(number)
    return dict(zip(SCRIPTS, await tape.ended(len(SCRIPTS)), strict=True))


@pytest.fixture(scope="module", params=VENVS)
def pairs(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Pair]:
    """Each script's exchange as taped by mitmproxy and by the gateway."""
    folder = tmp_path_factory.mktemp("pairs")

    async def scenario() -> dict[str, Pair]:
        async with provider(serve) as upstream:
            async with mitmproxy(folder, request.param, upstream) as running:
                theirs = await all_cases(running)
            async with recording(folder / "gateway", upstream) as gateway:
                ours = await all_cases(gateway)
        return {case: (theirs[case], ours[case]) for case in SCRIPTS}

    return run(scenario(), limit_s=LIMIT_S)


def calls(exchange: Exchange) -> list[tuple[object, ...]]:
    return [(c.id, c.name, c.arguments, c.status) for c in rebuild(exchange).tool_calls]


def codes(exchange: Exchange) -> list[str]:
    return sorted(finding.code for finding in check(exchange))


@pytest.mark.parametrize("case", SCRIPTS)
def test_bytes_replies_and_findings_are_those_of_the_gateway(
    pairs: dict[str, Pair], case: str
) -> None:
    theirs, ours = pairs[case]
    assert theirs.source is Source.MITM
    assert theirs.body == ours.body
    assert theirs.request.body == ours.request.body
    assert theirs.request.target == ours.request.target
    assert theirs.request.upstream == ours.request.upstream
    assert calls(theirs) == calls(ours)
    if case != "reset":  # told from a close by the gateway alone
        assert codes(theirs) == codes(ours)
    assert theirs.response is not None
    assert ours.response is not None
    assert theirs.response.framing is ours.response.framing
    assert theirs.response.headers == ours.response.headers


def test_each_piece_is_taped_when_it_came(pairs: dict[str, Pair]) -> None:
    theirs, _ = pairs["whole"]
    assert [read.data for read in theirs.reads] == EVENTS
    assert all(read.boundaries == (len(read.data),) for read in theirs.reads)
    assert theirs.reads[-1].t_ns - theirs.reads[0].t_ns > 15_000_000 * len(EVENTS)
    assert codes(theirs) == []


def test_endings_are_told_as_far_as_mitmproxy_tells_them(pairs: dict[str, Pair]) -> None:
    reasons = {case: theirs.end.reason for case, (theirs, _) in pairs.items() if theirs.end}
    assert reasons == {
        "whole": EndReason.COMPLETE,
        "cut": EndReason.UPSTREAM_CLOSED,
        "reset": EndReason.UPSTREAM_CLOSED,
        "silent": EndReason.CLIENT_CLOSED,
        "compressed": EndReason.COMPLETE,
        "refusing": EndReason.COMPLETE,
    }
    cut_end = pairs["cut"][0].end
    assert cut_end is not None
    assert "without sending complete message body" in cut_end.detail


def test_compressed_bytes_are_taped_as_they_were(pairs: dict[str, Pair]) -> None:
    theirs, _ = pairs["compressed"]
    assert gzip.decompress(theirs.body) == b"".join(EVENTS)


def test_the_request_s_way_to_upstream_is_timed(pairs: dict[str, Pair]) -> None:
    theirs, _ = pairs["whole"]
    assert theirs.sent is not None
    assert theirs.sent.connect_ns > 0
    assert not theirs.sent.reused
    assert theirs.request.t_end_ns is not None


def test_credentials_are_masked_where_they_stand_and_where_they_are_repeated(
    pairs: dict[str, Pair],
) -> None:
    theirs, ours = pairs["refusing"]
    assert any(isinstance(value, MaskedCredential) for _, value in theirs.request.headers)
    assert SECRET.encode() not in theirs.body
    assert theirs.body == ours.body
    assert theirs.response is not None
    assert theirs.response.framing is Framing.LENGTH


@pytest.mark.parametrize("version", VENVS)
def test_a_killed_mitmproxy_leaves_a_tape_of_what_was_delivered(
    tmp_path: Path, version: str
) -> None:
    async def scenario() -> None:
        async with provider(serve) as upstream, mitmproxy(tmp_path, version, upstream) as running:
            peer = await connect(running.port)
            await peer.send(post(target="/v1/chat/completions?case=silent"))
            await peer.until(EVENTS[2] + b"\r\n")
            await asyncio.sleep(0.1)
            await running.mitmdump.kill()
            ended = await running.mitmdump.ended(0.0)
            assert not ended.in_order
            assert ended.code == -signal.SIGKILL
            (exchange,) = running.tape()
            assert exchange.body == b"".join(EVENTS[:3])
            assert exchange.end is None
            assert not running.tape().stopped

    run(scenario(), limit_s=LIMIT_S)


def test_streams_that_go_on_at_the_end_are_stopped(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with provider(serve) as upstream, mitmproxy(tmp_path, "11", upstream) as running:
            peer = await connect(running.port)
            await peer.send(post(target="/v1/chat/completions?case=silent"))
            await peer.until(EVENTS[2] + b"\r\n")
            ended = await running.stop("sigint", 3)
            assert ended.in_order
            assert running.observed.active == [1]
            (exchange,) = running.tape()
            assert exchange.end is not None
            assert exchange.end.reason is EndReason.STOPPED
            assert running.tape().stopped

    run(scenario(), limit_s=LIMIT_S)


def test_streams_may_end_within_the_grace(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with provider(serve) as upstream, mitmproxy(tmp_path, "11", upstream) as running:
            peer = await connect(running.port)
            await peer.send(post(target="/v1/chat/completions?case=whole"))
            await peer.until(EVENTS[0] + b"\r\n")
            running.mitmdump.stop("sigint", None, 10.0)
            assert b"[DONE]" in await peer.rest_or_end()
            ended = await running.mitmdump.ended(10.0)
            assert ended.exchanges == 1
            (exchange,) = running.tape()
            assert exchange.end is not None
            assert exchange.end.reason is EndReason.COMPLETE

    run(scenario(), limit_s=LIMIT_S)


@pytest.mark.parametrize("version", VENVS)
def test_an_upstream_that_cannot_be_reached_has_refused(tmp_path: Path, version: str) -> None:
    async def scenario() -> Exchange:
        async with mitmproxy(tmp_path, version, free_port()) as running:
            peer = await connect(running.port)
            await peer.send(post())
            await peer.until(b"502")
            (exchange,) = await running.ended()
            return exchange

    exchange = run(scenario(), limit_s=LIMIT_S)
    assert exchange.end is not None
    assert exchange.end.reason is EndReason.REFUSED
    assert exchange.response is None


def test_silence_is_taped_as_watched(tmp_path: Path) -> None:
    async def scenario() -> Exchange:
        async with provider(serve) as upstream, mitmproxy(tmp_path, "11", upstream) as running:
            peer = await connect(running.port)
            await peer.send(post(target="/v1/chat/completions?case=silent"))
            await peer.until(EVENTS[2] + b"\r\n")
            await asyncio.sleep(10.5)
            peer.close()
            (exchange,) = await running.ended()
            return exchange

    exchange = run(scenario(), limit_s=LIMIT_S)
    assert exchange.idle_ns
    assert exchange.idle_ns[0] - exchange.reads[-1].t_ns >= 5_000_000_000


def test_connections_of_clients_are_on_the_tape(tmp_path: Path) -> None:
    async def scenario() -> str:
        async with provider(serve) as upstream, mitmproxy(tmp_path, "11", upstream) as running:
            await ask(running.port, "whole")
            await running.ended()
            await running.stop("child-exit", 7)
            return running.text()

    tape = run(scenario(), limit_s=LIMIT_S)
    assert '"client",{"connection":1,"state":"opened"}' in tape
    assert '"taped by mitmproxy 11.' in tape
    assert tape.endswith('"stop",{"reason":"child-exit","code":7}]\n')


def test_a_connection_that_mitmproxy_gave_up_was_not_closed_by_the_client(tmp_path: Path) -> None:
    async def scenario() -> Exchange:
        impatient = ("--set", "tcp_timeout=1")
        async with (
            provider(serve) as upstream,
            mitmproxy(tmp_path, "12", upstream, more=impatient) as running,
        ):
            peer = await connect(running.port)
            await peer.send(post(target="/v1/chat/completions?case=silent"))
            await peer.rest()
            (exchange,) = await running.ended()
            return exchange

    exchange = run(scenario(), limit_s=LIMIT_S)
    assert exchange.end is not None
    assert exchange.end.reason is EndReason.TIMEOUT
    assert exchange.end.detail.startswith("mitmproxy gave up after ")


@pytest.mark.parametrize(("version", "patience"), [("11", "None"), ("12", "86400")])
def test_silence_is_borne_for_as_long_as_mitmproxy_can(
    tmp_path: Path, version: str, patience: str
) -> None:
    probe = tmp_path / "probe.py"
    probe.write_text(
        "from mitmproxy import ctx\nimport logging\n"
        "def client_connected(_):\n"
        "    logging.error('patience %s', getattr(ctx.options, 'tcp_timeout', None))\n"
    )

    async def scenario() -> None:
        async with mitmproxy(tmp_path, version, more=("-s", str(probe))) as running:
            (await connect(running.port)).close()
            await running.until(
                lambda observed: any(f"patience {patience}" in line for line in observed.lines)
            )

    run(scenario(), limit_s=LIMIT_S)
