"""Cassettes that vcrpy itself writes are imported."""

import asyncio
import gzip
import os
from pathlib import Path

import pytest

from deltatape.store.reader import open_tape
from helpers.chat import choice, sse
from helpers.clients import ROOT
from helpers.console import called
from helpers.upstream import Peer, provider, run

PYTHON = ROOT / ".venv-plugins" / "bin" / "python"
ANSWER = sse(choice({"content": "caf\u00e9"}, "stop"))
RECORD = """
import json, sys, urllib.request, vcr
base, cassette, coding, *form = sys.argv[1:]
asked = json.dumps({"model": "m", "stream": True, "messages": [{"role": "user", "content": "hi"}]})
headers = {"Content-Type": "application/json", "Accept-Encoding": coding}
request = urllib.request.Request(base + "/v1/chat/completions", asked.encode(), headers)
with vcr.use_cassette(cassette, serializer=(form or ["yaml"])[0]):
    urllib.request.urlopen(request).read()
"""


async def serve(peer: Peer) -> None:
    head, _ = await peer.request()
    coded = b"Accept-Encoding: gzip" in head
    body = gzip.compress(ANSWER) if coded else ANSWER
    fields = b"Content-Type: text/event-stream\r\nContent-Length: %d\r\n" % len(body)
    fields += b"Content-Encoding: gzip\r\n" if coded else b""
    await peer.send(b"HTTP/1.1 200 OK\r\n" + fields + b"\r\n" + body)


@pytest.mark.parametrize("arguments", [("identity",), ("gzip",), ("identity", "json")])
def test_a_cassette_of_vcrpy_is_imported(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    if not PYTHON.exists() and not os.environ.get("CI"):
        pytest.skip("no vcrpy; scripts/setup plugins installs it")

    async def scenario() -> None:
        async with provider(serve) as port:
            base = f"http://127.0.0.1:{port}"
            process = await asyncio.create_subprocess_exec(
                *(str(PYTHON), "-c", RECORD, base, "cassette", *arguments), cwd=tmp_path
            )
            assert await process.wait() == 0

    run(scenario())
    result = called("import", "cassette", "-o", "x.tape", folder=tmp_path)
    assert result.stderr.startswith(b"read as a cassette: 1 exchange\n"), result.stderr
    (exchange,) = open_tape(tmp_path / "x.tape")
    assert exchange.request.path == "/v1/chat/completions"
    assert b'"content": "hi"' in exchange.request.body
    decoded = gzip.decompress(exchange.body) if "gzip" in arguments else exchange.body
    assert decoded == ANSWER
    shown = called("show", "x.tape", folder=tmp_path)
    assert b"4 characters, finish stop; no findings" in shown.stdout
