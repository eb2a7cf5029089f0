"""The tape model fits another shell: real mitmproxy writes tapes with the same content."""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from deltatape.diagnose.check import check
from deltatape.diagnose.rebuild import rebuild
from deltatape.model.exchange import EndReason, Exchange, Masked, Source
from deltatape.store.reader import open_tape
from helpers.clients import ROOT
from helpers.recording import recording
from helpers.upstream import SSE_HEAD, Peer, chunk, connect, free_port, post, provider, run

MITMDUMP = ROOT / ".venv-mitm" / "bin" / "mitmdump"
ADDON = ROOT / "tests" / "mitm" / "addon.py"
CALL = (
    b'data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,%b"function":{%b}}]},'
    b'"finish_reason":null}]}\n\n'
)
EVENTS = [
    CALL % (b'"id":"c1","type":"function",', b'"name":"get","arguments":""'),
    CALL % (b"", b'"arguments":"{\\"a\\": 1}"'),
    b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}\n\n',
    b"data: [DONE]\n\n",
]


@contextlib.asynccontextmanager
async def mitmproxy(folder: Path, upstream: int) -> AsyncIterator[int]:
    """mitmdump in reverse mode with the addon; its port."""
    if not MITMDUMP.exists() and not os.environ.get("CI"):
        pytest.skip("mitmproxy is not installed; scripts/setup mitm installs it")
    port = free_port()
    process = await asyncio.create_subprocess_exec(
        *(MITMDUMP, "--mode", f"reverse:http://127.0.0.1:{upstream}@127.0.0.1:{port}"),
        *("--set", f"confdir={folder / 'conf'}", "-s", ADDON),
        env={**os.environ, "ADDON_FOLDER": str(folder / "tapes")},
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        for _ in range(400):
            with contextlib.suppress(ConnectionError):
                (await connect(port)).close()
                break
            await asyncio.sleep(0.05)
        yield port
    finally:
        process.send_signal(signal.SIGTERM)
        await process.wait()


async def whole(peer: Peer) -> None:
    await peer.request()
    await peer.send(SSE_HEAD)
    for event in EVENTS:
        await peer.send(chunk(event))
        await asyncio.sleep(0.02)
    await peer.send(b"0\r\n\r\n")


async def cut(peer: Peer) -> None:
    await peer.request()
    await peer.send(SSE_HEAD + chunk(EVENTS[0]) + b"99\r\n")
    await asyncio.sleep(0.1)
    peer.close()


async def ask(port: int) -> None:
    peer = await connect(port)
    await peer.send(post(extra="Authorization: Bearer sk-fake-000\r\n"))
    await peer.rest_or_end()


async def both(folder: Path, script: object) -> tuple[Exchange, Exchange]:
    """The same stream, taped through mitmproxy and through the gateway."""
    async with provider(script) as upstream:  # type: ignore[arg-type]
        async with mitmproxy(folder, upstream) as port:
            await ask(port)
        async with recording(folder / "gateway", upstream) as gateway:
            await ask(gateway.port)
            (ours,) = await gateway.ended()
    tape = open_tape(folder / "tapes" / "mitm.tape")
    assert tape.stopped
    (theirs,) = [exchange for exchange in tape if exchange.request.method == "POST"]
    return theirs, ours


def understood(exchange: Exchange) -> list[tuple[object, ...]]:
    calls = rebuild(exchange).tool_calls
    return [(call.id, call.name, call.arguments, call.status) for call in calls]


def test_a_stream_taped_through_mitmproxy_is_the_same_stream(tmp_path: Path) -> None:
    theirs, ours = run(both(tmp_path, whole), limit_s=60)
    assert theirs.source is Source.MITM
    assert theirs.body == ours.body == b"".join(EVENTS)
    assert [read.data for read in theirs.reads] == EVENTS
    assert theirs.reads[-1].t_ns - theirs.reads[0].t_ns > 30_000_000
    assert understood(theirs) == understood(ours) == [("c1", "get", '{"a": 1}', "complete")]
    assert check(theirs) == check(ours) == ()
    assert any(isinstance(value, Masked) for _, value in theirs.request.headers)


def test_a_cut_taped_through_mitmproxy_is_a_cut(tmp_path: Path) -> None:
    theirs, ours = run(both(tmp_path, cut), limit_s=60)
    assert theirs.end is not None
    assert theirs.end.reason is EndReason.UPSTREAM_CLOSED
    assert {f.code for f in check(theirs)} == {f.code for f in check(ours)}
    assert "W006" in {f.code for f in check(ours)}
