"""The gateway as a whole: refusals, reuse, stopping, faults of taping."""

import asyncio
from pathlib import Path

import pytest

from deltatape.errors import UsageError
from deltatape.gateway import gateway
from deltatape.http1.listener import Address
from deltatape.model.exchange import EndReason
from deltatape.store.reader import open_tape
from deltatape.tape.payload import ClientRecord, Stop
from deltatape.tape.tap import ExchangeTap
from helpers.recording import Recording, recording
from helpers.upstream import SSE_HEAD, Peer, chunk, eventually, post, provider, run

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


async def answer_all(peer: Peer) -> None:
    while True:
        await peer.request()
        await peer.send(OK)


async def ask(running: Recording, request: bytes) -> bytes:
    client = await running.client()
    await client.send(request)
    return (await client.rest())[0]


def test_what_may_not_pass_is_answered_and_reaches_nobody(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with provider(answer_all) as port, recording(tmp_path, port) as running:
            foreign = b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"
            assert (await ask(running, foreign)).startswith(b"HTTP/1.1 403 Forbidden")
            garbage = b"not http\r\n\r\n"
            assert (await ask(running, garbage)).startswith(b"HTTP/1.1 400 Bad Request")
            smuggle = post(extra="Transfer-Encoding: chunked\r\n")
            assert (await ask(running, smuggle)).startswith(b"HTTP/1.1 400 Bad Request")
            bad_chunk = (
                b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"
            )
            assert b"not a chunk size" in await ask(running, bad_chunk)
            assert [r.code for r in running.seen.refusals] == [
                "foreign_host",
                "bad_request",
                "bad_request",
                "bad_request",
            ]
            (exchange,) = await running.ended()  # the one whose head was whole
            assert exchange.end is not None
            assert exchange.end.reason is EndReason.CLIENT_CLOSED

    run(scenario())


def test_without_an_upstream_the_prefixes_are_told(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with recording(tmp_path) as running:
            got = await ask(running, post(target="/v1/chat/completions"))
            assert got.startswith(b"HTTP/1.1 404 Not Found")
            assert b"/openai" in got

    run(scenario())


def test_an_upstream_that_is_the_gateway_itself_is_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with recording(tmp_path) as other:
            port = other.port
        with pytest.raises(UsageError, match="deltatape's own address"):
            async with recording(tmp_path, port, at=Address("127.0.0.1", port)):
                pass

    run(scenario())


def test_an_upstream_connection_is_used_again_only_while_it_is_fresh(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with provider(answer_all) as port, recording(tmp_path, port) as running:
            client = await running.client()
            for _ in range(2):
                await client.send(post())
                await client.until(b"ok")
            monkeypatch.setattr(gateway, "MAX_IDLE_S", -1.0)
            await client.send(post())
            await client.until(b"ok")
            exchanges = await running.ended(3)
            assert [e.sent.reused for e in exchanges if e.sent] == [False, True, False]

    run(scenario())


def test_a_reused_connection_that_dies_is_seen_to_die(tmp_path: Path) -> None:
    async def once(peer: Peer) -> None:
        await peer.request()
        await peer.send(OK)
        await peer.request()
        peer.close()

    async def scenario() -> None:
        async with provider(once) as port, recording(tmp_path, port) as running:
            client = await running.client()
            await client.send(post())
            await client.until(b"ok")
            await client.send(post())
            assert await client.rest() == (b"", "eof")

    run(scenario())


def test_an_answer_nobody_asked_for_spoils_the_connection(tmp_path: Path) -> None:
    async def chatty(peer: Peer) -> None:
        await peer.request()
        await peer.send(OK)
        await asyncio.sleep(0.05)
        await peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
        await peer.rest()

    async def scenario() -> None:
        async with provider(chatty) as port, recording(tmp_path, port) as running:
            client = await running.client()
            await client.send(post())
            await client.until(b"ok")
            await asyncio.sleep(0.15)
            await client.send(post())
            assert await client.until(b"ok") == OK
            exchanges = await running.ended(2)
            assert [e.sent.reused for e in exchanges if e.sent] == [False, False]

    run(scenario())


def test_stopping_lets_streams_end_in_their_grace(tmp_path: Path) -> None:
    async def slow(peer: Peer) -> None:
        await peer.request()
        await peer.send(SSE_HEAD + chunk(b"data: 1\n\n"))
        await asyncio.sleep(0.3)
        await peer.send(b"0\r\n\r\n")

    async def scenario() -> None:
        async with provider(slow) as port, recording(tmp_path, port) as running:
            running.grace_s = 5.0
            client = await running.client()
            await client.send(post())
            await client.until(b"data: 1\n\n\r\n")
            await running.stop("sigint")
            assert (await client.until(b"0\r\n\r\n")) == b"0\r\n\r\n"
            tape = open_tape(running.writer.path or Path())
            assert [e.end.reason for e in tape if e.end] == [EndReason.COMPLETE]
            assert tape.stopped

    run(scenario())


def test_stopping_cuts_what_goes_on_and_says_so(tmp_path: Path) -> None:
    async def endless(peer: Peer) -> None:
        await peer.request()
        await peer.send(SSE_HEAD + chunk(b"data: 1\n\n"))
        await peer.rest()

    async def scenario() -> None:
        async with provider(endless) as port, recording(tmp_path, port) as running:
            running.grace_s = 0.1
            client = await running.client()
            await client.send(post())
            await client.until(b"data: 1\n\n\r\n")
            await running.stop("sigterm")
            assert await client.rest() == (b"", "eof")
            tape = open_tape(running.writer.path or Path())
            (exchange,) = tape
            assert exchange.end is not None
            assert exchange.end.reason is EndReason.STOPPED
            payloads = [record.payload for _, record in tape.records()]
            assert payloads[-1] == Stop(reason="sigterm", exit_code=None)
            assert [p.state.value for p in payloads if isinstance(p, ClientRecord)] == [
                "opened",
                "closed",
            ]

    run(scenario())


@pytest.mark.parametrize("lingering", [False, True])
def test_stopping_tapes_the_end_of_every_connection_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, lingering: bool
) -> None:
    monkeypatch.setattr(gateway, "CLOSE_TIMEOUT_S", 0.1)

    async def scenario() -> None:
        async with provider(answer_all) as port, recording(tmp_path, port) as running:
            client = await running.client()
            await client.send(post())
            await client.until(b"ok")
            if lingering:  # refused in the middle of an upload that goes on
                await client.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n")
                await client.until(b" }\n}\n")
            await running.stop()
            assert running.writer.lost_records == 0
        tape = open_tape(running.writer.path or Path())
        assert tape.stopped
        states = [
            r.payload.state.value for _, r in tape.records() if isinstance(r.payload, ClientRecord)
        ]
        assert states == ["opened", "closed"]

    run(scenario())


def test_a_client_that_never_takes_its_bytes_does_not_hold_up_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway, "CLOSE_TIMEOUT_S", 0.1)

    async def pour(peer: Peer) -> None:
        await peer.request()
        await peer.send(SSE_HEAD + chunk(b"x" * 16_000_000))
        await peer.rest()

    async def scenario() -> None:
        async with provider(pour) as port, recording(tmp_path, port) as running:
            client = await running.client()
            client.writer.transport.pause_reading()  # type: ignore[attr-defined]
            await client.send(post())
            await eventually(lambda: bool(running.gateway._numbers), "a connection")
            (connection,) = running.gateway._numbers
            assert connection.transport is not None
            waiting = connection.transport.get_write_buffer_size
            await eventually(lambda: waiting() > 0, "bytes that nobody takes")
            await asyncio.wait_for(running.stop(), 5)
            client.reset()
            await eventually(lambda: not running.gateway._numbers, "the end of the connection")
            running.writer.flush()
            assert running.writer.lost_records == 0

    run(scenario())


@pytest.mark.parametrize("method", ["read", "request", "end"])
def test_a_failure_of_taping_never_touches_the_stream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("a fault of ours")

    async def scenario() -> None:
        async with provider(answer_all) as port, recording(tmp_path, port) as running:
            monkeypatch.setattr(ExchangeTap, method, fail)
            client = await running.client()
            await client.send(post())
            assert await client.until(b"ok") == OK
            await eventually(lambda: bool(running.seen.alarms), "an alarm")
            assert running.seen.alarms == [
                "exchange 1 is taped no further: RuntimeError('a fault of ours')"
            ]
            monkeypatch.undo()

    run(scenario())


def test_a_tape_that_cannot_be_written_never_touches_the_stream() -> None:
    async def scenario() -> None:
        async with provider(answer_all) as port, recording(Path("/proc/none"), port) as running:
            client = await running.client()
            await client.send(post())
            assert await client.until(b"ok") == OK
            assert running.writer.path is None
            assert running.writer.lost_records
            assert len(running.seen.alarms) == 1

    run(scenario())
