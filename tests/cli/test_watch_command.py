"""`deltatape watch`: exchanges while they are recorded."""

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from deltatape.cli.watch_command import _Watch
from deltatape.clock import SystemClock, rfc3339
from deltatape.model.exchange import EndReason
from deltatape.render.lines import plain
from deltatape.tape.encode import header_line
from deltatape.tape.tap import ExchangeTap, TapeTap
from helpers.chat import FINISH, calls, entry, sse
from helpers.console import called
from helpers.disk import unreadable
from helpers.incidents import BROKEN, STALL
from helpers.program import environment
from helpers.tapes import HEADER, MASKER, Lines, start

LIMIT_S = 30
MS = 1_000_000
LONG = b'{"model": "gpt-4o", "messages": [{"role": "user", "content": "%b"}]}' % (b"x" * 40_000)
"""A request whose record is long."""


class _RecordedTape:
    """A tape that is being recorded, as far as others can see."""

    def __init__(self, path: Path) -> None:
        now = replace(HEADER, recorded_at=rfc3339(SystemClock().wall_ns()))
        self._lines = Lines()
        self._file = path.open("ab", buffering=0)
        fcntl.flock(self._file, fcntl.LOCK_EX)
        self._file.write(header_line(now))
        self.tap = ExchangeTap(1, self._lines.put, MASKER)

    def written(self) -> None:
        """Put what the tap has said onto the tape."""
        self.tap.flush()
        self._file.write(b"".join(self._lines.all))
        self._lines.all.clear()

    def begin(self) -> None:
        start(self.tap, body=LONG)
        opened = calls(entry(0, "c1", name="get", arguments="{}"))
        self.tap.read(300 * MS, sse(opened, done=False), None)
        self.written()

    def end(self) -> None:
        self.tap.read(400 * MS, sse(FINISH), None)
        self.tap.end(500 * MS, EndReason.COMPLETE)
        self.written()

    def stop(self) -> None:
        TapeTap(self._lines.put).stop(600 * MS, "sigint", None)
        self.written()
        self._file.close()


class _Shown:
    """What a program shows, read as it comes."""

    def __init__(self, descriptor: int, process: subprocess.Popen[bytes]) -> None:
        self._descriptor, self.process = descriptor, process
        self.text = ""

    def wait_for(self, pattern: str) -> str:
        """Return all that has been shown when it matches.

        Raises:
            TimeoutError: it did not.
        """
        clock = SystemClock()
        until_ns = clock.now_ns() + LIMIT_S * 1000 * MS
        while not re.search(pattern, self.text):
            ready, _, _ = select.select([self._descriptor], [], [], 1)
            if clock.now_ns() > until_ns or (ready and not self._read()):
                raise TimeoutError(f"{pattern!r} is not in {self.text!r}")
        return self.text

    def _read(self) -> bool:
        try:
            data = os.read(self._descriptor, 65536)
        except OSError:  # EIO: nobody holds the other end any more
            return False
        self.text += data.decode(errors="replace")
        return bool(data)

    def rest(self) -> str:
        while self._read():
            pass
        return self.text


@contextlib.contextmanager
def watching(folder: Path, *arguments: str, terminal: bool) -> Iterator[_Shown]:
    ours, theirs = pty.openpty() if terminal else os.pipe()
    command = [sys.executable, "-m", "deltatape", "watch", *arguments]
    env = {**environment(folder), "TERM": "xterm-256color", "COLUMNS": "120"}
    process = subprocess.Popen(command, cwd=folder, env=env, stdout=theirs, stderr=theirs)
    os.close(theirs)
    try:
        yield _Shown(ours, process)
    finally:
        process.kill()
        process.wait(LIMIT_S)
        os.close(ours)


@pytest.fixture
def tape(tmp_path: Path) -> Iterator[_RecordedTape]:
    (tmp_path / ".deltatape").mkdir()
    found = _RecordedTape(tmp_path / ".deltatape" / "x.tape")
    yield found
    with contextlib.suppress(ValueError):  # closed
        found.stop()


def test_a_tape_that_is_over_is_shown_and_left(tmp_path: Path) -> None:
    result = called("watch", BROKEN, folder=tmp_path, env={"COLUMNS": "200"})
    lines = result.stdout.decode().splitlines()
    assert (result.returncode, len(lines)) == (0, 3)
    assert re.search(r"#1 +\[\.+[|#]+.*\]  642 ms +healthy +2 calls +tool_calls", lines[0])
    assert re.search(r"#2 .* error C002 arguments-changed-by-app", lines[1])
    assert re.search(r"#1 +later requests show: .* error C002 arguments-changed", lines[2])
    stalled = called("watch", STALL, folder=tmp_path).stdout.decode()
    assert re.search(r"#1 +\[# +#\]  12\.5 s +warning D001 stall", stalled)


def test_a_folder_that_cannot_be_read_is_told_once(tmp_path: Path) -> None:
    sub = tmp_path / "sub"
    sub.mkdir()
    with unreadable(sub):
        watch = _Watch(tmp_path)
        shown = plain([each for _ in range(9) for each in watch.read()])
    assert shown == f"{sub}: Permission denied\n"


def test_what_is_not_there_cannot_be_watched(tmp_path: Path) -> None:
    assert called("watch", "none.tape", folder=tmp_path).returncode == 2
    (tmp_path / "log.txt").write_text("no tape\n")
    result = called("watch", "log.txt", folder=tmp_path)
    assert (result.returncode, b"log.txt:1: no tape" in result.stderr) == (2, True)


def test_an_exchange_in_progress_stands_on_the_terminal_until_it_ends(
    tmp_path: Path, tape: _RecordedTape
) -> None:
    with watching(tmp_path, terminal=True) as shown:
        shown.wait_for("watching .deltatape; Ctrl-C ends it")
        tape.begin()
        running = shown.wait_for(r"#1.*1 read")
        assert "gpt-4o" in running
        assert "healthy" not in running
        tape.end()
        shown.wait_for(r"#1 .*500 ms.*healthy.*1 call")
        shown.process.send_signal(signal.SIGINT)
        assert "\x1b[?25h" in shown.rest()
        assert shown.process.wait(LIMIT_S) == 0


def test_a_request_to_end_gives_the_cursor_back(tmp_path: Path, tape: _RecordedTape) -> None:
    tape.begin()
    with watching(tmp_path, terminal=True) as shown:
        shown.wait_for(r"#1.*1 read")
        shown.process.send_signal(signal.SIGTERM)
        assert shown.rest().count("\x1b[?25l") == shown.text.count("\x1b[?25h")
        assert shown.process.wait(LIMIT_S) == 0


def test_a_pipe_takes_plain_lines_of_what_has_ended(tmp_path: Path, tape: _RecordedTape) -> None:
    with watching(tmp_path, ".deltatape", terminal=False) as shown:
        shown.wait_for("watching")
        tape.begin()
        tape.end()
        shown.wait_for("healthy")
        later = _RecordedTape(tmp_path / ".deltatape" / "y.tape")
        later.begin()
        later.end()
        later.stop()
        text = shown.wait_for(r"y  #1 ")
        assert "\x1b" not in text
        assert len(re.findall("healthy", text)) == 2


def test_a_tape_is_watched_until_its_recorder_ends(tmp_path: Path, tape: _RecordedTape) -> None:
    tape.begin()
    with watching(tmp_path, ".deltatape/x.tape", terminal=False) as shown:
        shown.wait_for("watching")
        tape.end()
        shown.wait_for("healthy")
        tape.stop()
        assert "x  #1" not in shown.rest()
        assert shown.process.wait(LIMIT_S) == 0


def test_damage_is_told_and_ends_the_watching_of_that_tape(tmp_path: Path) -> None:
    damaged = tmp_path / "x.tape"
    damaged.write_bytes(BROKEN.read_bytes()[:3000].rpartition(b"\n")[0] + b"\nnonsense\n")
    result = called("watch", damaged, folder=tmp_path)
    assert b"x.tape:" in result.stdout
    assert result.returncode == 0


def test_who_reads_no_more_ends_it(tmp_path: Path, tape: _RecordedTape) -> None:
    ours, theirs = os.pipe()
    command = [sys.executable, "-m", "deltatape", "watch", ".deltatape"]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment(tmp_path), stdout=theirs, stderr=subprocess.PIPE
    ) as process:
        os.close(theirs)
        assert process.stderr is not None
        assert b"watching" in process.stderr.readline()
        os.close(ours)
        tape.begin()
        tape.end()
        assert process.wait(LIMIT_S) == 0
