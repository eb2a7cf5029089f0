import errno
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from deltatape.store.ledger import Ledger
from deltatape.store.names import open_new
from deltatape.store.reader import open_tape
from deltatape.store.tape_file import TapeFile
from deltatape.tape.encode import header_line
from helpers.disk import file_size_limit
from helpers.tapes import HEADER

LINE = b'[1,1,"note",{"text":"0123456789"}]\n'


class Tape:
    """An open tape, its path, and the alarms about it."""

    def __init__(self, folder: Path) -> None:
        self.alarms: list[str] = []
        self.ledger = Ledger(self.alarms.append)
        self.fd, self.path = open_new(folder, "x")
        self.file = TapeFile(self.fd, self.path, header_line(HEADER), self.ledger)

    def append(self, count: int, now_ns: int = 0) -> None:
        self.file.append([1] * count, [LINE] * count, now_ns)

    def count(self) -> int:
        return sum(1 for _ in open_tape(self.path).records())


def test_no_record_comes_before_the_header(tmp_path: Path) -> None:
    tape = Tape(tmp_path)
    with file_size_limit(20):
        tape.append(1)
    assert tape.path.read_bytes() == b""
    tape.append(1)
    assert open_tape(tape.path).header == HEADER
    assert (tape.count(), tape.ledger.records) == (1, 1)
    tape.file.close()


@pytest.mark.parametrize("limit", range(140, 250, 7))
def test_every_limit_leaves_whole_lines(tmp_path: Path, limit: int) -> None:
    tape = Tape(tmp_path)
    with file_size_limit(limit):
        tape.append(4)
    data = tape.path.read_bytes()
    assert data == b"" or data.endswith(b"\n")
    tape.append(1)
    assert tape.count() + tape.ledger.records == 5
    tape.file.close()


@pytest.fixture
def append_only(tmp_path: Path) -> Tape:
    """A tape of which nothing can be cut off."""
    tape = Tape(tmp_path)
    tape.append(1)
    chattr = shutil.which("chattr")
    if chattr is None or subprocess.run([chattr, "+a", tape.path], check=False).returncode:
        pytest.skip("this file system has no append-only files")
    return tape


def test_a_line_that_cannot_be_cut_off_is_finished_later(append_only: Tape) -> None:
    tape = append_only
    try:
        with file_size_limit(tape.path.stat().st_size + 10):
            tape.append(2)
            assert open_tape(tape.path).torn == 10
            assert tape.count() == 1
            tape.append(1)
            assert open_tape(tape.path).torn == 10
        tape.append(1)
        assert open_tape(tape.path).torn == 0
        assert tape.path.read_bytes().count(LINE) == tape.count() == 3
        assert tape.ledger.records == 3
        assert [alarm.split(": ")[2].split(";")[0] for alarm in tape.alarms] == [
            "Operation not permitted",
            "File too large",
        ]
    finally:
        subprocess.run(["chattr", "-a", tape.path], check=True)
        tape.file.close()


def test_a_descriptor_that_somebody_closed_is_told(tmp_path: Path) -> None:
    tape = Tape(tmp_path)
    tape.append(1)
    os.close(tape.fd)
    tape.append(2, now_ns=5_000_000_000)
    tape.file.look()
    tape.file.sync()
    tape.file.close()
    assert tape.ledger.of(1) == {
        "lost_records": 2,
        "lost_bytes": 2 * len(LINE),
        "error": os.strerror(errno.EBADF),
    }
    assert len(tape.alarms) == 2
    assert "cannot be synced" in tape.alarms[1]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
def test_a_full_device_takes_nothing_and_raises_nothing() -> None:
    alarms: list[str] = []
    ledger = Ledger(alarms.append)
    fd = os.open("/dev/full", os.O_WRONLY | os.O_APPEND)
    file = TapeFile(fd, Path("/dev/full"), header_line(HEADER), ledger)
    file.append([1], [LINE], 0)
    file.append([1], [LINE], 0)
    file.close()
    assert ledger.records == 2
    assert len(alarms) == 1


def test_a_deleted_tape_is_looked_for_once_a_second(tmp_path: Path) -> None:
    tape = Tape(tmp_path)
    tape.append(1)
    tape.path.unlink()
    tape.append(1, now_ns=500_000_000)
    assert tape.ledger.records == 0
    tape.append(1, now_ns=1_500_000_000)
    assert tape.ledger.records == 3
    tape.file.close()
