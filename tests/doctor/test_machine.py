"""What doctor says of the machine: the port, the folder, the disk, git."""

import os
import socket
import subprocess
import threading
from pathlib import Path

import pytest

from deltatape.doctor.machine import listens_deltatape, machine_remarks, port_remark
from deltatape.render.doctor import Level, Remark
from helpers.program import program
from helpers.projects import put
from helpers.upstream import free_port


def remark(folder: Path, words: str) -> Remark:
    (found,) = (each for each in machine_remarks(folder) if words in each.text)
    return found


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, timeout=30)


def test_versions_and_extras_are_told(tmp_path: Path) -> None:
    texts = [each.text for each in machine_remarks(tmp_path)]
    assert texts[0].startswith("deltatape 0.")
    assert any(text.startswith("brotli ") for text in texts)
    assert any(text.startswith("mitmproxy ") for text in texts)


def test_a_free_port_is_fine() -> None:
    port = free_port()
    assert port_remark(port) == Remark(level=Level.OK, text=f"port {port} is free")


@pytest.mark.parametrize("options", [(), ("--upstream", "http://127.0.0.1:9")])
def test_a_deltatape_that_listens_is_recognised_and_forwards_nothing(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    with program("record", "--listen", "127.0.0.1:0", *options, folder=tmp_path) as running:
        found = port_remark(running.port)
        assert running.stop()[1].count("0 exchanges taped") == 1
    assert found.level is Level.NOTE
    assert found.text == f"a deltatape listens on port {running.port} already"


def test_something_else_that_listens_is_told_apart() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]

        def serve() -> None:
            connection, _ = server.accept()
            connection.recv(4096)
            connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            connection.close()

        thread = threading.Thread(target=serve)
        thread.start()
        found = port_remark(port)
        thread.join(10)
    assert found.level is Level.NOTE
    assert "Address already in use" in found.text
    assert "no deltatape" in found.text


def test_who_accepts_and_says_nothing_is_not_waited_for_long() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert not listens_deltatape(server.getsockname()[1])
    assert not listens_deltatape(free_port())


def test_the_folder_is_made_when_needed_and_nothing_is_made_now(tmp_path: Path) -> None:
    found = remark(tmp_path, "tapes go to")
    assert found.level is Level.OK
    assert "made when needed" in found.text
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_none_is_a_problem(tmp_path: Path) -> None:
    put(tmp_path, ".deltatape", "")
    assert remark(tmp_path, "is not a folder").level is Level.PROBLEM


def test_a_folder_for_everyone_is_noted(tmp_path: Path) -> None:
    tapes = tmp_path / ".deltatape"
    tapes.mkdir(mode=0o700)
    assert remark(tmp_path, "tapes go to").level is Level.OK
    tapes.chmod(0o755)
    found = remark(tmp_path, "open to other users")
    assert (found.level, found.fix) == (Level.NOTE, f"chmod 700 {tapes}")


def test_a_place_that_cannot_be_written_to_is_a_problem(tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    # For root there is no such folder, but in a container a read-only mount.
    places = (tmp_path, Path("/proc/sys"), Path("/sys"))
    place = next((each for each in places if not os.access(each, os.W_OK)), None)
    if place is None:
        pytest.skip("root can write everywhere here")
    assert remark(place, "not writable").level is Level.PROBLEM


def test_a_full_disk_is_a_problem() -> None:
    # The kernel's own file systems have no room at all.
    found = remark(Path("/sys") if Path("/sys").is_dir() else Path("/dev"), "free for tapes")
    assert (found.level, found.text) == (Level.PROBLEM, "0 B free for tapes")


def test_git_is_asked_whether_it_would_take_tapes(tmp_path: Path) -> None:
    tapes = tmp_path / ".deltatape"
    tapes.mkdir(mode=0o700)
    assert not any(each.text.startswith("git ") for each in machine_remarks(tmp_path))
    git(tmp_path, "init", "-q")
    assert remark(tmp_path, "git does not ignore").level is Level.PROBLEM
    put(tapes, ".gitignore", "*\n")
    assert remark(tmp_path, "git ignores").level is Level.OK
    put(tapes, "x.tape", "")
    git(tmp_path, "add", "-f", ".deltatape/x.tape")
    found = remark(tmp_path, "git tracks")
    assert found.level is Level.PROBLEM
    assert found.fix.startswith("git rm --cached -r .deltatape")


def test_without_git_nothing_is_said_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".deltatape").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not any(each.text.startswith("git ") for each in machine_remarks(tmp_path))
