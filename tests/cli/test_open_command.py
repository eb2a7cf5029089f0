"""`deltatape open`, and `record --open`: what they show, and when they end."""

import asyncio
import contextlib
import json
import os
import pty
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from deltatape.cli.open_command import recorder_folder
from deltatape.errors import UsageError
from deltatape.record.control import Control
from helpers.console import called
from helpers.datasets import at, write_rows
from helpers.incidents import BROKEN, CUT, FIXED, recorded
from helpers.program import environment, program

_LINK = re.compile(r"(http://\S+)/\?token=(\S+)")


def asked(line: str, path: str) -> Any:
    """The document at a path of the page whose link is in a line."""
    link = _LINK.search(line)
    assert link is not None
    connection = HTTPConnection(link[1].removeprefix("http://"), timeout=60)
    with contextlib.closing(connection):
        connection.request("GET", path, headers={"Authorization": f"Bearer {link[2]}"})
        answer = connection.getresponse()
        assert answer.status == 200
        return json.load(answer)


def tapes(line: str) -> list[str]:
    return sorted(each["path"] for each in asked(line, "/api/tapes")["tapes"])


def test_the_page_has_the_tapes_of_the_folder_and_ends_with_ctrl_c(tmp_path: Path) -> None:
    recorded(tmp_path, BROKEN, CUT)
    (tmp_path / "recordings").mkdir()
    shutil.copy(FIXED, tmp_path / "recordings")
    with program("open", "--no-browser", folder=tmp_path) as page:
        names = [f".deltatape/{each.name}" for each in (CUT, BROKEN)]
        assert tapes(page.wait_for("page:")) == [*names, f"recordings/{FIXED.name}"]
        code, _ = page.stop()
        assert code == 0
    (index,) = (tmp_path / "state" / "deltatape" / "inspector").glob("*.index")
    assert index.stat().st_mode & 0o777 == 0o600
    assert index.parent.stat().st_mode & 0o777 == 0o700


def test_the_page_has_the_tapes_of_a_dataset(tmp_path: Path) -> None:
    found = {"exchange": 1, "at": at("10:00:00"), "provider": "openai", "model": "gpt-5"}
    write_rows(tmp_path / "dataset", "exchanges", "A", [found])
    write_rows(tmp_path / "dataset", "tapes", "A", [{"source": "/tapes/x.tape", "exchanges": 1}])
    with program("open", "dataset", "--no-browser", folder=tmp_path) as page:
        line = page.wait_for("page:")
        assert tapes(line) == ["x.tape"]
        (trend,) = asked(line, "/api/trends")["trends"]
        assert (trend["day"], trend["exchanges"]) == ("2026-11-21", 1)
        assert page.stop()[0] == 0


def test_two_pages_of_one_folder_do_not_share_an_index(tmp_path: Path) -> None:
    recorded(tmp_path, BROKEN)
    with (
        program("open", ".deltatape", "--no-browser", folder=tmp_path) as one,
        program("open", ".deltatape", "--no-browser", folder=tmp_path) as other,
    ):
        for each in (one, other):
            assert tapes(each.wait_for("page:")) == [BROKEN.name]
            assert each.stop()[0] == 0
    assert len([*(tmp_path / "state" / "deltatape" / "inspector").glob("*.index")]) == 1


def test_what_nobody_looked_at_for_long_is_forgotten(tmp_path: Path) -> None:
    tape, _ = recorded(tmp_path, BROKEN, CUT)
    folder = tmp_path / "state" / "deltatape" / "inspector"
    folder.mkdir(parents=True)
    for name, age_days in (("old", 61), ("new", 59)):
        for suffix in ("index", "index-wal", "lock"):
            place = folder / f"{name}.{suffix}"
            place.write_bytes(b"")
            at = place.stat().st_mtime - age_days * 86_400
            os.utime(place, (at, at))
    with program("open", str(tape), "--no-browser", folder=tmp_path) as page:
        page.wait_for("page:")
        assert not list(folder.glob("old.*"))
        assert len(list(folder.glob("new.*"))) == 3
        assert page.stop()[0] == 0


def test_one_tape_is_shown_alone(tmp_path: Path) -> None:
    tape, _ = recorded(tmp_path, BROKEN, CUT)
    with program("open", str(tape), "--no-browser", folder=tmp_path) as page:
        assert tapes(page.wait_for("page:")) == [tape.name]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("missing.tape",), "missing.tape: there is no such tape or folder"),
        (("x.har",), "x.har: is not a tape; deltatape import makes one from it"),
        (("--listen", "0.0.0.0:0"), "only loopback is accepted"),
        (("--listen", "192.168.0.7:80"), "only loopback is accepted"),
        (("--listen", "unix:x"), "only loopback is accepted"),
        (("--listen", "x"), "invalid address"),
        (("https://127.0.0.1:1",), "name the --control address"),
        (("http://example.com",), "name the --control address"),
        (("http://[",), "name the --control address"),
        (("http://127.0.0.1:1",), "no recorder answers there"),
        (("http://127.0.0.1:x",), "no recorder answers there"),
    ],
)
def test_what_cannot_be_shown_is_said(
    tmp_path: Path, arguments: tuple[str, ...], problem: str
) -> None:
    (tmp_path / "x.har").write_text("{}")
    result = called("open", "--no-browser", *arguments, folder=tmp_path)
    assert result.returncode == 2
    assert problem in result.stderr.decode()


def test_a_port_in_use_is_said(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        result = called("open", "--no-browser", "--listen", listen, folder=tmp_path)
    assert result.returncode == 2
    assert f"--listen {listen}: Address already in use" in result.stderr.decode()


@contextlib.contextmanager
def control(status: dict[str, object]) -> Iterator[str]:
    """A control listener in a thread: its URL."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    server = Control(lambda: status, lambda _: ("text/plain", b""))
    try:
        started = asyncio.run_coroutine_threadsafe(server.start("127.0.0.1", 0), loop)
        yield started.result(60)
    finally:
        asyncio.run_coroutine_threadsafe(server.stop(), loop).result(60)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(60)
        loop.close()


def test_a_recorder_tells_its_folder(tmp_path: Path) -> None:
    with control({"folder": str(tmp_path)}) as url:
        assert recorder_folder(url) == tmp_path
        assert recorder_folder(f"{url}/") == tmp_path
    with control({}) as url, pytest.raises(UsageError, match="no recorder of this version"):
        recorder_folder(url)


def test_a_recorder_opens_a_page_that_ends_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DELTATAPE_OPEN_NO_BROWSER", "1")
    with program("record", "--open", "--listen", "127.0.0.1:0", folder=tmp_path) as recorder:
        line = recorder.wait_for("page  ")
        # A tape is listed before the index has looked at it.
        seen = (asked(line, "/api/tapes")["tapes"] for _ in range(5000))
        assert any([tape["recording"] for tape in tapes] == [True] for tapes in seen)
        code, _ = recorder.stop()
        assert code == 0
        link = _LINK.search(line)
        assert link is not None
        host, _, port = link[1].removeprefix("http://").partition(":")
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((host, int(port)))


def test_on_a_terminal_the_page_stays_after_the_command(tmp_path: Path) -> None:
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "deltatape", "record", "--open", "--", "true"]
    recorder = subprocess.Popen(
        command,
        cwd=tmp_path,
        env={**environment(tmp_path), "DELTATAPE_OPEN_NO_BROWSER": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=slave,
    )
    os.close(slave)
    shown = b""
    try:
        while b"Ctrl-C" not in shown:
            shown += os.read(master, 65536)
        assert tapes(shown.decode().replace("\r\n", " ")) != []
        recorder.send_signal(signal.SIGINT)
        assert recorder.wait(60) == 0
    finally:
        recorder.kill()
        recorder.wait()
        os.close(master)
