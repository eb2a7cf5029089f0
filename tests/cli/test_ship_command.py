"""`deltatape ship`, as a program."""

import contextlib
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from deltatape.objects.urls import open_store
from helpers.console import called
from helpers.disk import unreadable
from helpers.object_store import URL, S3Server, got, put_tape, relay, use
from helpers.program import deltatape, program


@pytest.fixture
def tapes(tmp_path: Path) -> Path:
    folder = tmp_path / "tapes"
    folder.mkdir()
    return folder


def test_once_ships_what_there_is_to_files_for_its_owner(tapes: Path, tmp_path: Path) -> None:
    number, content = put_tape(tapes, "one")
    url = (tmp_path / "store").as_uri()
    run = deltatape("ship", tapes, url, "--once", "--gateway", "a", "--no-seal", folder=tmp_path)
    assert run.returncode == 0
    assert run.stdout == b""
    path = tmp_path / "store" / "dt=2026-11-21" / "gateway=a" / f"{number}.tape"
    assert path.read_bytes() == content
    assert [each.stat().st_mode & 0o077 for each in (path, path.parent)] == [0, 0]
    assert run.stderr.decode().splitlines()[-1] == "1 tape shipped"
    again = deltatape("ship", tapes, url, "--once", "--gateway", "a", "--quiet", folder=tmp_path)
    assert (again.returncode, again.stderr) == (0, b"")


def test_a_tape_that_is_left_makes_the_exit_code_1(tapes: Path, tmp_path: Path) -> None:
    (tapes / "bad.tape").write_bytes(b"nothing\n")
    run = deltatape("ship", tapes, tmp_path.as_uri() + "/s", "--once", "--quiet", folder=tmp_path)
    assert run.returncode == 1
    assert run.stderr.startswith(b"left: ")


def test_a_folder_that_cannot_be_read_makes_the_exit_code_1(tapes: Path, tmp_path: Path) -> None:
    put_tape(tapes, "one")
    (tapes / "sub").mkdir()
    arguments = ("ship", "tapes", (tmp_path / "store").as_uri(), "--once", "--no-seal")
    with unreadable(tapes / "sub"):
        run = called(*arguments, folder=tmp_path)
    assert run.returncode == 1
    assert b"left: tapes/sub: Permission denied\n" in run.stderr
    assert run.stderr.endswith(b"1 tape shipped\n")


@pytest.mark.usefixtures("s3")
def test_it_follows_answers_metrics_and_ends_at_sigterm(tapes: Path, tmp_path: Path) -> None:
    put_tape(tapes, "one")
    with program("ship", str(tapes), URL, "--metrics", "127.0.0.1:0", folder=tmp_path) as running:
        where = running.wait_for("^metrics: ").split()[1]
        running.wait_for("^shipped: ")
        assert b"\ndeltatape_ship_shipped_tapes_total 1.0\n" in got(where)
        code, said = running.stop(signal.SIGTERM)
    assert code == 0
    assert said.endswith("1 tape shipped\nstopped: 0 tapes left to ship\n")
    assert len([*open_store(URL).list()]) == 1


MOST = """
from pathlib import Path
from deltatape.cli import main
assert main() == 0
print(Path("/proc/self/status").read_text())
"""
"""Runs a command, and prints how much memory it has held; not ru_maxrss, which counts more."""


@pytest.mark.slow
@pytest.mark.usefixtures("s3")
def test_memory_holds_parts_of_a_tape_and_not_the_tape(tapes: Path, tmp_path: Path) -> None:
    def most(size: int) -> int:
        put_tape(tapes, "one", size)
        options = ("--once", "--no-seal", "--delete-shipped", "--memory", "10MiB")
        ran = subprocess.run(
            [sys.executable, "-c", MOST, "ship", str(tapes), URL, *options],
            cwd=tmp_path,
            check=True,
            capture_output=True,
            text=True,
        )
        assert not [*tapes.iterdir()]
        (line,) = [line for line in ran.stdout.splitlines() if line.startswith("VmHWM:")]
        return int(line.split()[1]) << 10

    assert most(96 << 20) - most(1 << 20) < 48 << 20


def test_a_second_signal_ends_it_though_the_store_does_not_answer(
    s3: S3Server, tapes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_tape(tapes, "one")
    with relay(s3.port) as between:
        use(between.port, monkeypatch)
        between.hang()
        with program("ship", str(tapes), URL, folder=tmp_path) as running:
            between.came.wait()
            while running.process.poll() is None:
                running.process.send_signal(signal.SIGTERM)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    running.process.wait(0.1)
            assert running.process.returncode == -signal.SIGTERM


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("tapes", "s4://x"), "'s4://x': not the URL of an object store; use file:///folder"),
        (("none", "file:///x", "--once"), "none: there is no such folder"),
        (("tapes", "file://{}/tapes/store"), "lies in tapes, which it would ship"),
        (("tapes", "file://{}/store", "--gateway", "a/b"), "--gateway 'a/b': 1 to 128 letters"),
        (
            ("tapes", "file://{}/store", "--memory", "1MB"),
            "--memory 1MB: too little; use 10MiB or more, which holds",
        ),
        (("file", "file://{}/store"), "file: is a file; name a folder"),
        (("tapes", "file://{}/file"), "/file: is a file; name a folder"),
        (("tapes", "file://{}/store", "--metrics", "x"), "--metrics 'x': invalid address"),
        (("tapes", "file://{}/store", "--metrics", "unix:x"), "not a Unix socket; use HOST:PORT"),
    ],
)
@pytest.mark.usefixtures("tapes")
def test_what_cannot_be_done_is_said_in_one_line(
    arguments: tuple[str, ...], problem: str, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    run = called("ship", *(each.format(tmp_path) for each in arguments), folder=tmp_path)
    assert run.returncode == 2
    (line,) = run.stderr.decode().splitlines()
    assert problem in line


@pytest.mark.parametrize(
    ("module", "options"), [("obstore", ()), ("prometheus_client", ("--metrics", "127.0.0.1:0"))]
)
def test_what_is_not_installed_is_named_with_its_extra(
    module: str,
    options: tuple[str, ...],
    tapes: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in [name for name in sys.modules if name.startswith("deltatape.objects.store")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    url = (tmp_path / "store").as_uri()
    run = called("ship", tapes, url, "--once", *options, folder=tmp_path)
    assert run.returncode == 2
    assert b'pip install "deltatape[fleet]"' in run.stderr
