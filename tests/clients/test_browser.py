"""A page in a real browser talks to the app through `record --app`: both sides on one tape."""

import asyncio
import re
import signal
from pathlib import Path

from aiohttp import WSMsgType, web

from deltatape.demo.demo import Background, background
from deltatape.diagnose.websocket import read_socket
from deltatape.model.exchange import EndReason, Tap, header
from deltatape.model.websocket import Side
from deltatape.store.reader import open_tape
from helpers.clients import browse
from helpers.console import called
from helpers.program import environment
from helpers.recorded_apps import Provider
from helpers.upstream import Peer, connect, ok_response, post, provider, run

LONG_S = 90.0


# A real browser, and the app that its page talks to.

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
                await peer.send(ok_response(page, b"Content-Type: text/html; charset=utf-8"))
            else:
                await peer.send(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")

    async def _stream(self, peer: Peer) -> None:
        kind = b"Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n"
        await peer.send(b"HTTP/1.1 200 OK\r\n" + kind + _CORS + b"\r\n")
        for event in EVENTS:
            await peer.send(b"%x\r\n%b\r\n" % (len(event), event))
            await asyncio.sleep(0.02)
        await peer.send(b"0\r\n\r\n")


SHOWN = b"".join(EVENTS).decode().rstrip("\n")


def tap_of(running: Background) -> str:
    """Where the app's endpoint is listened for."""
    found = re.search(r"app +(http://\S+) ->", running.wait_for(r"^  app "))
    assert found is not None
    return found[1]


def test_a_page_sees_the_same_through_the_tap(tmp_path: Path) -> None:
    async def scenario() -> None:
        app, llm = App(), Provider()
        async with provider(app.serve) as port, provider(llm.serve) as llm_port:
            arguments = (
                *("record", "--to", "tapes", "--listen", "127.0.0.1:0"),
                *("--upstream", f"openai=http://127.0.0.1:{llm_port}"),
                *("--app", f"http://127.0.0.1:{port}", "--app-listen", "127.0.0.1:0"),
            )
            with background(*arguments, cwd=tmp_path, env=environment(tmp_path)) as running:
                tap = await asyncio.to_thread(tap_of, running)
                assert await browse(tap) == SHOWN  # the page comes through the tap, too
                app.base = tap
                assert await browse(f"http://localhost:{port}") == SHOWN  # only its calls do
                client = await connect(running.port)
                await client.send(post(target="/openai/v1/chat/completions"))
                await client.rest_or_end()
                code, told = await asyncio.to_thread(running.stop, signal.SIGINT)
                assert code == 0, told

    run(scenario(), LONG_S)
    (path,) = (tmp_path / "tapes").glob("*.tape")
    exchanges = list(open_tape(path))
    chats = [e for e in exchanges if e.request.path == "/chat" and e.request.method == "POST"]
    assert [e.tap for e in chats] == [Tap.APP, Tap.APP]
    assert {header(e.request.headers, "traceparent") for e in chats} == {TRACE.encode()}
    assert {e.body for e in chats} == {b"".join(EVENTS)}
    (asked,) = (e for e in exchanges if e.tap is Tap.PROVIDER)
    assert asked.request.path == "/v1/chat/completions"


SOCKET_PAGE = """<!doctype html><pre id="out"></pre><script>
const out = document.getElementById("out");
const say = (text) => { out.textContent += text + "\\n"; };
const socket = new WebSocket("%s", ["realtime", "fake-protocol"]);
socket.binaryType = "arraybuffer";
const sent = ["Grüße", "x".repeat(70000), new Uint8Array([0, 255])];
socket.onopen = () => { say(socket.protocol + " " + socket.extensions); socket.send(sent[0]); };
socket.onmessage = ({data}) => {
  say(typeof data === "string" ? data.length + " " + data.slice(0, 9) : [...new Uint8Array(data)]);
  sent.shift();
  socket.send(sent.length ? sent[0] : "bye");
};
socket.onclose = ({code, reason, wasClean}) => {
  say(code + " " + reason + " " + wasClean);
  document.title = "done";
};
</script>"""
SOCKET_SHOWN = """realtime permessage-deflate
5 Grüße
70000 xxxxxxxxx
0,255
4001 enough true"""


def test_a_page_opens_a_websocket_through_the_gateway_and_to_its_replay(tmp_path: Path) -> None:
    """Chromium checks the handshake, and compresses."""

    async def echo(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(protocols=("realtime",))
        await socket.prepare(request)
        async for message in socket:
            if message.data == "bye":
                await socket.close(code=4001, message=b"enough")
            elif message.type is WSMsgType.TEXT:
                await socket.send_str(message.data)
            else:
                await socket.send_bytes(message.data)
        return socket

    async def shown(base: str) -> str:
        async def serve(peer: Peer) -> None:
            page = (SOCKET_PAGE % base).encode()
            while True:
                await peer.request()
                await peer.send(ok_response(page, b"Content-Type: text/html; charset=utf-8"))

        async with provider(serve) as port:
            return await browse(f"http://localhost:{port}")

    async def scenario() -> None:
        app = web.Application()
        app.router.add_get("/v1/realtime", echo)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        upstream = f"openai=http://127.0.0.1:{runner.addresses[0][1]}"
        here = ("--listen", "127.0.0.1:0")
        arguments = ("record", "--to", "tapes", *here, "--upstream", upstream)
        with background(*arguments, cwd=tmp_path, env=environment(tmp_path)) as running:
            url = f"ws://127.0.0.1:{running.port}/openai/v1/realtime"
            assert await shown(url) == SOCKET_SHOWN
            code, told = await asyncio.to_thread(running.stop, signal.SIGINT)
            assert code == 0, told
        await runner.cleanup()
        (tape,) = (tmp_path / "tapes").glob("*.tape")
        replaying = ("replay", *here, str(tape))
        with background(*replaying, cwd=tmp_path, env=environment(tmp_path)) as running:
            url = f"ws://127.0.0.1:{running.port}/openai/v1/realtime"
            assert await shown(url) == SOCKET_SHOWN
            code, told = await asyncio.to_thread(running.stop, signal.SIGINT)
            assert code == 0, told

    run(scenario(), LONG_S)
    (tape,) = (tmp_path / "tapes").glob("*.tape")
    (exchange,) = open_tape(tape)
    socket = read_socket(exchange)
    assert socket.violations == ()
    assert socket.ending == "closed by the server, 4001: enough"
    assert [len(message.data) for message in socket.sent(Side.CLIENT)] == [7, 70_000, 2, 3]
    assert exchange.end is not None
    assert exchange.end.reason is EndReason.COMPLETE


def test_the_archive_that_playwright_records_is_imported(tmp_path: Path) -> None:
    async def scenario() -> None:
        app = App()
        async with provider(app.serve) as port:
            url = f"http://localhost:{port}"
            assert await browse(url, tmp_path / "page.har") == SHOWN

    run(scenario(), LONG_S)
    result = called("import", "page.har", "-o", "page.tape", folder=tmp_path)
    assert result.returncode == 0, result.stderr
    (chat,) = open_tape(tmp_path / "page.tape")  # without the page and its icon
    assert (chat.request.method, chat.request.path) == ("POST", "/chat")
    assert chat.request.body == b'{"message":"hi"}'
    assert chat.body == b"".join(EVENTS)
    assert b"left out what is no traffic of an LLM: 1 text/html" in result.stderr


def test_a_page_of_another_origin_is_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        app = App()
        async with provider(app.serve) as port:
            arguments = (
                *("record", "--to", "tapes", "--listen", "127.0.0.1:0"),
                *("--app", f"http://127.0.0.1:{port}", "--app-listen", "127.0.0.1:0"),
            )
            with background(*arguments, cwd=tmp_path, env=environment(tmp_path)) as running:
                tap = await asyncio.to_thread(tap_of, running)
                client = await connect(int(tap.rpartition(":")[2]))
                await client.send(post(target="/chat", extra="Origin: https://evil.example\r\n"))
                got, _ = await client.rest()
                assert got.startswith(b"HTTP/1.1 403 Forbidden")
                assert b"foreign_origin" in got

    run(scenario(), LONG_S)
