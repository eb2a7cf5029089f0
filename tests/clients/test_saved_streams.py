"""WebSockets and streams as mitmproxy and Chromium save them are imported, with their times."""

import asyncio
import contextlib
import json
import zipfile
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import datetime  # noqa: TID251 - it reads no clock
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

import pytest
from aiohttp import ClientSession, WSMsgType, web

from deltatape.diagnose.rebuild import analyse_all
from deltatape.diagnose.websocket import Socket, read_socket
from deltatape.model.websocket import Side
from deltatape.store.reader import open_tape
from deltatape.wire.websocket import is_control
from helpers.chat import choice, sse
from helpers.clients import browse, opened
from helpers.console import called
from helpers.mitm import VENVS, confdir, installed, variables
from helpers.responses_socket import call, question, result
from helpers.upstream import SSE_HEAD, Peer, chunk, free_port, listening, ok_response, provider, run
from helpers.websocket import split

LIMIT_S = 90.0
PATH = "/v1/responses"


def texts(*sent: tuple[Side, bytes]) -> list[str]:
    """The messages in frames."""
    return [piece.data.decode() for _, data in sent for piece in split([data])]


ASKED = texts(question("Grüße aus Gent?"), result(1))
CITIES = ('{"city":"Gent"}', '{"city":"Brügge"}')
ANSWERS = tuple(texts(*call(number, city)) for number, city in enumerate(CITIES, 1))
CHAT = "/v1/chat/completions"
STREAM = sse(choice({"role": "assistant", "content": "Grüße ☔"}), choice({}, "stop"))
EVENTS = [event + b"\n\n" for event in STREAM.split(b"\n\n")[:-1]]


class Imported(NamedTuple):
    """What `import` printed, and what is on the tape."""

    printed: str
    socket: Socket


@dataclass
class Server:
    """Answers two questions on a WebSocket."""

    port: int = 0
    said: list[tuple[Side, str]] = field(default_factory=list)
    """What went over it, in order."""

    async def stream(self, request: web.Request) -> web.StreamResponse:
        """A streamed answer."""
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        for event in EVENTS:
            await response.write(event)
        return response

    async def serve(self, request: web.Request) -> web.WebSocketResponse:
        """One connection."""
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        for answer in ANSWERS:
            asked = await socket.receive_str()
            self.said.append((Side.CLIENT, asked))
            for text in answer:
                await socket.send_str(text)
                self.said.append((Side.SERVER, text))
        async for _ in socket:
            pass
        return socket


@contextlib.asynccontextmanager
async def serving() -> AsyncIterator[Server]:
    server = Server()
    app = web.Application()
    app.router.add_get(PATH, server.serve)
    app.router.add_post(CHAT, server.stream)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    server.port = runner.addresses[0][1]
    try:
        yield server
    finally:
        await runner.cleanup()


def saved_times(path: Path) -> list[float]:
    """When each message came, in seconds since the first request, as an archive says itself."""
    files = {"": path.read_bytes()}
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            files = {name: archive.read(name) for name in archive.namelist()}
            files[""] = files["har.har"]
    entries = json.loads(files[""])["log"]["entries"]
    begun = min(datetime.fromisoformat(each["startedDateTime"]).timestamp() for each in entries)
    (socket,) = (each for each in entries if each.get("_resourceType") == "websocket")
    if path.suffix == ".zip":
        lines = files[socket["response"]["content"]["_file"]].splitlines()
        socket["_webSocketMessages"] = [*map(json.loads, lines)]
    unit = 1000 if "page" in path.name else 1  # of Playwright, and of all others
    return [each["time"] / unit - begun for each in socket["_webSocketMessages"]]


def assert_imported(
    folder: Path, saved: str, said: list[tuple[Side, str]], times: list[float]
) -> Imported:
    """Import what was saved, and compare it with what was said, and when."""
    done = called("import", saved, "-o", f"{saved}.tape", folder=folder)
    assert done.returncode == 0, done.stderr
    (exchange,) = (each for each in open_tape(folder / f"{saved}.tape") if each.upgraded)
    assert exchange.request.path == PATH
    assert exchange.request.upstream.startswith("http://127.0.0.1:")
    socket = read_socket(exchange)
    assert socket.violations == ()
    messages = [each for each in socket.messages if not is_control(each.opcode)]
    assert [(each.side, each.data.decode()) for each in messages] == said
    taped = [each.t_ns / 1e9 for each in messages]
    assert taped == sorted(taped)
    assert taped == pytest.approx([*accumulate(times, max)], abs=1e-5)
    (analysis,) = analyse_all([exchange])
    calls = (each for choice in analysis.reply.choices for each in choice.tool_calls)
    assert [(each.name, each.arguments) for each in calls] == [
        ("get_weather", city) for city in CITIES
    ]
    checked = called("check", f"{saved}.tape", folder=folder)
    assert (checked.returncode, b"no findings" in checked.stdout) == (0, True), checked.stdout
    return Imported(done.stderr.decode(), socket)


@pytest.mark.parametrize("version", VENVS)
def test_what_mitmproxy_saves_is_imported(tmp_path: Path, version: str) -> None:
    venv = installed(version)

    async def scenario() -> list[tuple[Side, str]]:
        async with serving() as server:
            port = free_port()
            process = await asyncio.create_subprocess_exec(
                *(venv / "bin" / "mitmdump", "-q", "-w", "flows", "--set", "hardump=saved.har"),
                *(*confdir(tmp_path), "--listen-host", "127.0.0.1"),
                *("--mode", f"reverse:http://127.0.0.1:{server.port}", "--listen-port", str(port)),
                env=variables(tmp_path, venv),
                cwd=tmp_path,
            )
            try:
                await listening(port)
                async with ClientSession(f"http://127.0.0.1:{port}") as session:
                    await (await session.post(CHAT, json={"model": "m", "messages": []})).read()
                    client = await session.ws_connect(PATH, compress=15)
                    for asked, answer in zip(ASKED, ANSWERS, strict=True):
                        await client.send_str(asked)
                        for _ in answer:
                            assert (await client.receive()).type is WSMsgType.TEXT
                    await client.close(code=4001, message=b"enough")
            finally:
                process.terminate()
                await process.wait()
            return server.said

    said = run(scenario(), LIMIT_S)
    times = saved_times(tmp_path / "saved.har")
    printed, socket = assert_imported(tmp_path, "flows", said, times)
    assert "read as flows of mitmproxy: 2 exchanges" in printed
    assert "note: #2: a WebSocket, of which mitmproxy tells whole messages" in printed
    assert socket.ending == "closed by the client, 4001: enough"
    printed, socket = assert_imported(tmp_path, "saved.har", said, times)
    assert "read as a HAR: 2 exchanges" in printed
    assert socket.ending == "not closed"  # as far as the archive tells
    for saved in ("flows.tape", "saved.har.tape"):
        assert open_tape(tmp_path / saved)[1].body == STREAM


PAGE = """<!doctype html><pre id="out"></pre><script>
const asked = %s, answers = %s;
const socket = new WebSocket("ws://127.0.0.1:%d%s");
let left = 0;
const ask = () => {
  if (!asked.length) { socket.close(); document.title = "done"; return; }
  left = answers.shift();
  socket.send(asked.shift());
};
socket.onopen = ask;
socket.onmessage = () => { left -= 1; if (!left) ask(); };
</script>"""


@pytest.mark.parametrize("saved", ["page.har", "page.har.zip"])
def test_what_playwright_saves_of_a_websocket_is_imported(tmp_path: Path, saved: str) -> None:
    """As a text, and with the messages as a file of their own."""

    async def scenario() -> list[tuple[Side, str]]:
        async with serving() as server:
            counts = json.dumps([len(each) for each in ANSWERS])
            page = (PAGE % (json.dumps(ASKED), counts, server.port, PATH)).encode()

            async def serve(peer: Peer) -> None:
                while True:
                    await peer.request()
                    await peer.send(ok_response(page, b"Content-Type: text/html; charset=utf-8"))

            async with provider(serve) as port:
                await browse(f"http://localhost:{port}", tmp_path / saved)
            return server.said

    said = run(scenario(), LIMIT_S)
    printed, _ = assert_imported(tmp_path, saved, said, saved_times(tmp_path / saved))
    assert "read as a HAR: 1 exchange" in printed
    assert "left out what is no traffic of an LLM: 1 text/html" in printed
    assert "note: a WebSocket, of which the archive tells whole messages" in printed


STREAMS = """<!doctype html><script>
const asked = %s, answers = %s, path = "/v1/chat/completions";
const ended = (start) => new Promise(start);
const body = JSON.stringify({model: "m", stream: true, messages: [{role: "user", content: "hi"}]});
(async () => {
  const headers = {"content-type": "application/json", "authorization": "Bearer sk-fake-000000"};
  await (await fetch(path, {method: "POST", body, headers})).text();
  const source = new EventSource(path);
  await ended((done) => { source.onmessage = ({data}) => { if (data === "[DONE]") done(); }; });
  source.close();
  const socket = new WebSocket("ws://127.0.0.1:%d%s");
  await ended((done) => {
    let left = 0;
    const ask = () => {
      if (!asked.length) { socket.close(); done(); return; }
      left = answers.shift();
      socket.send(asked.shift());
    };
    socket.onopen = ask;
    socket.onmessage = () => { left -= 1; if (!left) ask(); };
  });
  document.title = "done";
})();
</script>"""


def test_what_chromes_developer_tools_export_is_imported(tmp_path: Path) -> None:
    """A stream that was fetched, one of an EventSource, and a WebSocket."""

    async def scenario() -> list[tuple[Side, str]]:
        async with serving() as server:
            counts = json.dumps([len(each) for each in ANSWERS])
            page = (STREAMS % (json.dumps(ASKED), counts, server.port, PATH)).encode()

            async def serve(peer: Peer) -> None:
                while True:
                    head, _ = await peer.request()
                    if b" /v1/chat/completions " in head:
                        await peer.send(SSE_HEAD)
                        for event in EVENTS:
                            await peer.send(chunk(event))
                        if head.startswith(b"GET"):  # until the page has closed it
                            await peer.rest()
                            return
                        await peer.send(b"0\r\n\r\n")
                        continue
                    await peer.send(ok_response(page, b"Content-Type: text/html; charset=utf-8"))

            async with provider(serve) as port:
                await opened("devtools.py", f"http://localhost:{port}", tmp_path)
            return server.said

    said = run(scenario(), LIMIT_S)
    times = saved_times(tmp_path / "whole.har")
    printed, _ = assert_imported(tmp_path, "whole.har", said, times)
    assert "read as a HAR: 3 exchanges" in printed
    fetched, listened, _ = open_tape(tmp_path / "whole.har.tape")
    assert fetched.body == listened.body == STREAM
    assert json.loads(fetched.request.body)["model"] == "m"
    assert b"sk-fake-000000" not in (tmp_path / "whole.har.tape").read_bytes()
    entries = json.loads((tmp_path / "whole.har").read_bytes())["log"]["entries"]
    begun = min(datetime.fromisoformat(each["startedDateTime"]).timestamp() for each in entries)
    (rows,) = (each["_eventSourceMessages"] for each in entries if "_eventSourceMessages" in each)
    taped = [read.t_ns / 1e9 for read in listened.reads]
    assert taped == pytest.approx([row["time"] - begun for row in rows], abs=1e-5)

    # What Chrome exports unless it is told otherwise: the events of an EventSource have no data.
    printed, _ = assert_imported(tmp_path, "sanitized.har", said, times)
    assert "note: #2: HAR: the data of the events is not in the archive" in printed
    fetched, listened, _ = open_tape(tmp_path / "sanitized.har.tape")
    assert (fetched.body, listened.response) == (STREAM, None)
