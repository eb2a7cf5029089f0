"""A page in a real browser talks to the app through `record --app`: both sides on one tape."""

import asyncio
import re
import signal
from pathlib import Path

from deltatape.demo.demo import Background, background
from deltatape.model.exchange import Tap, header
from deltatape.store.reader import open_tape
from helpers.applied import Provider
from helpers.browsing import EVENTS, TRACE, App, browse
from helpers.program import environment
from helpers.upstream import connect, post, provider, run

LONG_S = 90.0
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
