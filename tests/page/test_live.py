"""A page on what goes on, in Chromium: a recording with its streams, and the reading of tapes."""

import json
import re
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from helpers.browser import PATIENCE_MS, opened
from helpers.chat import FINISH, calls, entry
from helpers.incidents import BROKEN, CUT
from helpers.inspected import TOKEN, inspected
from helpers.program import program
from helpers.upstream import LIMIT_S, SSE_HEAD, chunk, post

expect.set_options(timeout=PATIENCE_MS)
PIECES = ('{"city":', '"Gent', '"}')


class Stream:
    """A streamed call: the provider's side of it and the app's, both on real sockets."""

    def __init__(self, provider: socket.socket, recorder: int, model: str) -> None:
        self._app = socket.create_connection(("127.0.0.1", recorder), LIMIT_S)
        asked = {"model": model, "stream": True, "messages": [{"role": "user", "content": model}]}
        self._app.sendall(post(json.dumps(asked).encode()))
        self._peer, _ = provider.accept()
        self._peer.settimeout(LIMIT_S)
        request, length = self._peer.makefile("rb"), 0
        while line := request.readline().strip():
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        request.read(length)
        self._peer.sendall(SSE_HEAD)
        self._got = self._app.makefile("rb")

    def event(self, event: object) -> None:
        """Send an event, and wait until the app has it."""
        data = json.dumps(event).encode()
        self._peer.sendall(chunk(b"data: %b\n\n" % data))
        while data not in self._got.readline():
            pass

    def end(self) -> None:
        self.event(FINISH)
        self._peer.sendall(chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n")
        while self._got.readline() != b"0\r\n":
            pass

    def close(self) -> None:
        for each in (self._got, self._app, self._peer):
            each.close()


@contextmanager
def streams(recorder: int, provider: socket.socket, *models: str) -> Iterator[list[Stream]]:
    made: list[Stream] = []
    try:
        for model in models:
            made.append(Stream(provider, recorder, model))
            made[-1].event(calls(entry(0, "c1", name="get_weather", arguments=PIECES[0])))
        yield made
    finally:
        for each in made:
            each.close()


def test_a_recording_is_watched_while_its_streams_run(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DELTATAPE_OPEN_NO_BROWSER", "1")
    with socket.create_server(("127.0.0.1", 0)) as provider:
        provider.settimeout(LIMIT_S)
        upstream = f"http://127.0.0.1:{provider.getsockname()[1]}"
        listening = ("record", "--open", "--listen", "127.0.0.1:0", "--upstream", upstream)
        with program(*listening, folder=tmp_path) as recorder:
            link = re.search(r"http://\S+token=\S+", recorder.wait_for("page  "))
            assert link is not None
            with (
                opened(browser, link[0]) as seen,
                streams(recorder.port, provider, "slow", "quick") as (slow, quick),
            ):
                rows = seen.page.locator("[data-index]")
                expect(rows).to_have_count(2)
                expect(seen.page.locator(".overview-head .recording")).to_have_text(" 2 running")
                quick.event(calls(entry(0, arguments=PIECES[1] + PIECES[2])))
                quick.end()
                expect(rows.filter(has_text="quick")).to_contain_text("tool_calls")
                expect(rows.filter(has_text="slow")).to_contain_text("running")
                expect(seen.page.locator(".overview-head .recording")).to_have_text(" 1 running")
                # On the page of the one that runs, its call grows.
                rows.filter(has_text="slow").get_by_role("link").click()
                seen.page.get_by_role("tab", name="Calls").click()
                arguments = seen.page.get_by_role("textbox", name="Arguments of call 0")
                expect(arguments).to_contain_text(PIECES[0])
                slow.event(calls(entry(0, arguments=PIECES[1])))
                expect(arguments).to_contain_text(PIECES[0] + PIECES[1])
                slow.event(calls(entry(0, arguments=PIECES[2])))
                slow.end()
                expect(arguments).to_contain_text("".join(PIECES))
                expect(seen.page.locator(".exchange-head")).not_to_contain_text("still going on")
                assert seen.problems == []
            assert recorder.stop()[0] == 0


def test_how_much_of_the_tapes_has_been_read_is_shown(browser: Browser, tmp_path: Path) -> None:
    tapes = tmp_path / "tapes"
    tapes.mkdir()
    shutil.copy(BROKEN, tapes)
    with inspected(tapes, tmp_path / "index") as page:
        news = page.wait(lambda told: told["indexed"]["done"] == 1)
        # As the index tells while it reads a second one; it tells again when it knows more.
        reading = {"done": 1, "of": 2, "bytes": {"done": 300, "of": 400}}
        page.loop.call_soon_threadsafe(page.inspector._told, {**news, "indexed": reading})
        with opened(browser, f"{page.url}/?token={TOKEN}") as seen:
            progress = seen.page.locator(".progress")
            expect(progress).to_contain_text("Reading tapes: 1 of 2")
            expect(progress.get_by_role("progressbar")).to_have_js_property("value", 0.75)
            expect(seen.page.locator("[data-index]")).to_have_count(2)
            shutil.copy(CUT, tapes)
            expect(seen.page.locator("[data-index]")).to_have_count(3)
            expect(progress).to_have_count(0)
            assert seen.problems == []
