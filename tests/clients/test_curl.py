"""What curl itself writes is imported: with --trace, -i and -v."""

import asyncio
import shutil
from asyncio.subprocess import STDOUT
from pathlib import Path

import pytest

from deltatape.model.exchange import header
from deltatape.store.reader import open_tape
from helpers.chat import choice, sse
from helpers.clients import output
from helpers.console import called
from helpers.needed import skip_unless
from helpers.upstream import Peer, provider, run

EVENTS = (sse(choice({"content": "caf\u00e9"}), done=False), sse(choice({}, "stop")))
ASKED = '{"model": "m", "stream": true, "messages": [{"role": "user", "content": "h\u00e9"}]}'
PAUSE_S = 0.05


async def serve(peer: Peer) -> None:
    await peer.request()
    kind = b"Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n"
    await peer.send(b"HTTP/1.1 200 OK\r\n" + kind + b"\r\n")
    for event in EVENTS:
        await asyncio.sleep(PAUSE_S)
        await peer.send(b"%x\r\n%b\r\n" % (len(event), event))
    await peer.send(b"0\r\n\r\n")


@pytest.fixture(autouse=True)
def _installed() -> None:
    skip_unless(shutil.which("curl"), "no curl")


@pytest.mark.parametrize("timed", [True, False])
def test_a_trace_of_curl_is_imported(tmp_path: Path, timed: bool) -> None:  # noqa: FBT001
    async def scenario() -> None:
        async with provider(serve) as port:
            options = ("--trace", "trace", *(["--trace-time"] if timed else []))
            url = f"http://127.0.0.1:{port}/v1/chat/completions"
            await output("curl", "-sN", "-o", "answer", "-d", ASKED, *options, url, cwd=tmp_path)

    run(scenario())
    result = called("import", "trace", "-o", "x.tape", folder=tmp_path)
    assert result.stderr.startswith(b"read as a trace of curl: 1 exchange\n"), result.stderr
    (exchange,) = open_tape(tmp_path / "x.tape")
    assert exchange.request.body == ASKED.encode()
    assert exchange.body == b"".join(EVENTS) == (tmp_path / "answer").read_bytes()
    spans = {each.t_ns for each in exchange.reads}
    assert (max(spans) >= PAUSE_S * 1e9) is timed
    assert called("fsck", "x.tape", folder=tmp_path).returncode == 0


@pytest.mark.parametrize("option", ["-N", "-i", "-v", "-iv"])
def test_what_curl_shows_is_imported_with_its_progress_in_between(
    tmp_path: Path, option: str
) -> None:
    async def scenario() -> None:
        async with provider(serve) as port:
            url = f"http://127.0.0.1:{port}/v1/chat/completions"
            shown = await output("curl", "-N", option, "-d", ASKED, url, stderr=STDOUT)
            (tmp_path / "pasted").write_bytes(shown)

    run(scenario())
    result = called("import", "pasted", "-o", "x.tape", folder=tmp_path)
    assert result.returncode == 0, result.stderr
    (exchange,) = open_tape(tmp_path / "x.tape")
    assert exchange.body == b"".join(EVENTS)
    assert exchange.response is not None
    assert exchange.response.status == 200
    assert header(exchange.response.headers, "content-type") == b"text/event-stream"
    assert b"read as pasted text" in result.stderr
    if "v" in option:
        assert (exchange.request.method, exchange.request.path) == ("POST", "/v1/chat/completions")
    shown = called("show", "x.tape", folder=tmp_path)
    assert b"4 characters, finish stop; no findings" in shown.stdout
