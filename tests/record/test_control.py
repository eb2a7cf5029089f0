import asyncio
import json
import socket
import subprocess
import sys
from collections.abc import Mapping

import pytest

from deltatape.errors import UsageError
from deltatape.record.control import Control
from helpers.upstream import run


class Run:
    """A run whose status is set by hand."""

    def __init__(self) -> None:
        self.trouble = False
        self.since: str | None = None

    def metrics(self, accept: str) -> tuple[str, bytes]:
        if accept == "nothing/installed":
            raise UsageError("/metrics needs more")
        return f"text/plain; for={accept}", b"up 1\n"

    def status(self) -> Mapping[str, object]:
        return {
            "url": "http://127.0.0.1:8377",
            "exchanges": 3,
            "trouble": self.trouble,
            "since": self.since,
        }


def control_of(running: Run) -> Control:
    return Control(running.status, running.metrics)


async def ask(url: str, request: str) -> tuple[int, dict[str, str], str]:
    """Status, fields (names in lower case) and body of the answer to a raw request."""
    host, port = url.removeprefix("http://").rsplit(":", 1)
    reader, writer = await asyncio.open_connection(host.strip("[]"), int(port))
    writer.write(request.replace("\n", "\r\n").encode())
    answer = (await asyncio.wait_for(reader.read(), 10)).decode()
    writer.close()
    head, _, body = answer.partition("\r\n\r\n")
    first, *lines = head.split("\r\n")
    fields = {name.lower(): value.strip() for name, _, value in (x.partition(":") for x in lines)}
    return int(first.split()[1]), fields, body


def get(path: str, host: str = "127.0.0.1", method: str = "GET") -> str:
    return f"{method} {path} HTTP/1.1\nHost: {host}\nConnection: close\n\n"


def test_health_is_ok_until_taping_is_in_trouble() -> None:
    async def scenario() -> None:
        running = Run()
        control = Control(running.status, running.metrics)
        url = await control.start("127.0.0.1", 0)
        status, fields, body = await ask(url, get("/health"))
        assert (status, json.loads(body)) == (200, {"version": 1, "status": "ok"})
        assert fields["cache-control"] == "no-store"
        assert fields["content-type"] == "application/json"
        assert "access-control-allow-origin" not in fields
        running.trouble = True
        running.since = "2026-11-26T06:00:00.000000000Z"
        status, _, body = await ask(url, get("/health"))
        assert (status, json.loads(body)) == (
            503,
            {"version": 1, "status": "taping-in-trouble", "since": running.since},
        )
        await control.stop()
        await control.stop()
        with pytest.raises(ConnectionRefusedError):
            await ask(url, get("/health"))

    run(scenario())


def test_status_tells_the_run() -> None:
    async def scenario() -> None:
        control = control_of(Run())
        url = await control.start("localhost", 0)
        status, _, body = await ask(url, get("/status?x=1", host="localhost:99"))
        assert status == 200
        assert json.loads(body) == {
            "version": 1,
            "status": "ok",
            "url": "http://127.0.0.1:8377",
            "exchanges": 3,
            "trouble": False,
            "since": None,
        }
        await control.stop()

    run(scenario())


def test_metrics_are_answered_as_the_scraper_accepts_them() -> None:
    async def scenario() -> None:
        control = control_of(Run())
        url = await control.start("127.0.0.1", 0)
        asked = get("/metrics").replace("\n\n", "\nAccept: a/b\n\n")
        status, fields, body = await ask(url, asked)
        assert (status, fields["content-type"], body) == (200, "text/plain; for=a/b", "up 1\n")
        assert fields["cache-control"] == "no-store"
        status, fields, body = await ask(url, asked.replace("a/b", "nothing/installed"))
        assert (status, fields["content-type"]) == (501, "application/json")
        assert json.loads(body) == {"version": 1, "error": "/metrics needs more"}
        await control.stop()

    run(scenario())


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (get("/health", method="HEAD"), 200),
        (get("/status", method="HEAD"), 200),
        (get("/"), 404),
        (get("/health/"), 404),
        (get("/metrics/x"), 404),
        (get("/metrics", method="HEAD"), 200),
        (get("/metrics", method="POST"), 405),
        (get("/metrics", host="example.com"), 403),
        (get("/health", method="POST"), 405),
        (get("/health", method="OPTIONS"), 405),
        (get("/health", method="DELETE"), 405),
        (get("/status").replace("\n\n", "\nOrigin: http://localhost:5173\n\n"), 200),
        (get("/health", host="[::1]:80"), 200),
        ("GET /health HTTP/1.0\n\n", 200),
        ("nonsense\n\n", 400),
    ],
)
def test_only_this_machine_may_ask_and_only_ask(request_: str, status: int) -> None:
    async def scenario() -> None:
        control = control_of(Run())
        url = await control.start("127.0.0.1", 0)
        got, _, body = await ask(url, request_)
        assert got == status
        if request_.startswith("HEAD"):
            assert body == ""
        await control.stop()

    run(scenario())


def test_it_listens_on_ipv6() -> None:
    async def scenario() -> None:
        control = control_of(Run())
        try:
            url = await control.start("::1", 0)
        except UsageError as error:
            pytest.skip(f"no IPv6 here: {error}")
        assert url.startswith("http://[::1]:")
        assert (await ask(url, get("/health", host="[::1]")))[0] == 200
        await control.stop()

    run(scenario())


@pytest.mark.parametrize("host", ["0.0.0.0", "example.com", "", "192.0.2.1"])  # noqa: S104
def test_an_address_that_others_can_reach_is_refused(host: str) -> None:
    with pytest.raises(UsageError, match=r"--control .*only loopback is accepted"):
        run(control_of(Run()).start(host, 0))


def test_a_port_that_is_taken_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(
            UsageError, match=f"--control 127.0.0.1:{port}: Address already in use; choose"
        ):
            run(control_of(Run()).start("127.0.0.1", port))


def test_without_it_aiohttp_is_not_loaded() -> None:
    code = "import sys, deltatape.record.control; sys.exit('aiohttp' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
