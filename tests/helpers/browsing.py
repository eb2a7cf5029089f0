"""A real browser, and the app that its page talks to."""

import asyncio
import os
import shutil

import pytest

from helpers.clients import CLIENTS, PYTHON
from helpers.upstream import Peer

PAGE = """<!doctype html><pre id="out"></pre><script>
const out = document.getElementById("out");
const base = "%s";
(async () => {
  try {
    const response = await fetch(base + "/chat", {method: "POST", body: '{"message":"hi"}',
      headers: {"content-type": "application/json", "traceparent": "%s"}});
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const {value, done} = await reader.read();
      if (done) break;
      out.textContent += value;
    }
  } catch (error) { out.textContent = "failed: " + error.message; }
  document.title = "done";
})();
</script>"""

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

EVENTS = (
    b'data: {"type":"text","text":"Moin "}\n\n',
    'data: {"type":"text","text":"café"}\n\n'.encode(),
    b'data: {"type":"done"}\n\n',
)

_CORS = (
    b"Access-Control-Allow-Origin: *\r\nAccess-Control-Allow-Headers: *\r\n"
    b"Access-Control-Allow-Methods: *\r\n"
)


class App:
    """An application's own endpoint: a page at `/`, a stream at `/chat`."""

    def __init__(self) -> None:
        self.base = ""
        """Where the page shall call `/chat`; "" for its own origin."""

    async def serve(self, peer: Peer) -> None:
        """One connection."""
        while True:
            head, _ = await peer.request()
            if head.startswith(b"OPTIONS"):
                await peer.send(b"HTTP/1.1 204 No Content\r\n" + _CORS + b"\r\n")
            elif head.startswith(b"POST /chat"):
                await self._stream(peer)
            elif head.startswith(b"GET / "):
                page = (PAGE % (self.base, TRACE)).encode()
                kind = b"Content-Type: text/html; charset=utf-8\r\n"
                size = b"Content-Length: %d\r\n\r\n" % len(page)
                await peer.send(b"HTTP/1.1 200 OK\r\n" + kind + size + page)
            else:
                await peer.send(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")

    async def _stream(self, peer: Peer) -> None:
        kind = b"Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n"
        await peer.send(b"HTTP/1.1 200 OK\r\n" + kind + _CORS + b"\r\n")
        for event in EVENTS:
            await peer.send(b"%x\r\n%b\r\n" % (len(event), event))
            await asyncio.sleep(0.02)
        await peer.send(b"0\r\n\r\n")


async def browse(url: str) -> str:
    """What the page at `url` shows once it is done."""
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
    if (program is None or not PYTHON.exists()) and not os.environ.get("CI"):
        pytest.skip("no Chromium or no Playwright; scripts/setup clients browser installs them")
    assert program is not None, "Chromium must be installed in CI"
    process = await asyncio.create_subprocess_exec(
        *(PYTHON, CLIENTS / "browse.py", url, program),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    return out.decode().rstrip("\n")
