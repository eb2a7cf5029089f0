import errno
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from deltatape.store import tape_file
from deltatape.store.names import open_new
from deltatape.store.reader import open_tape
from deltatape.store.tape_file import LossCounter, SyncThread, TapeFile, WriterThread
from deltatape.tape.encode import header_line
from helpers.disk import file_size_limit
from helpers.tapes import HEADER

LINE = b'[1,1,"note",{"text":"0123456789"}]\n'


class Tape:
    """An open tape, its path, and the alarms about it."""

    def __init__(self, folder: Path) -> None:
        self.alarms: list[str] = []
        self.ledger = LossCounter(self.alarms.append)
        self.fd, self.path = open_new(folder, "x")
        self.file = TapeFile(self.fd, self.path, header_line(HEADER), self.ledger)

    def append(self, count: int, now_ns: int = 0) -> None:
        self.file.append([(1, LINE)] * count, now_ns)

    def count(self) -> int:
        """How many of its records are `LINE`; raises if any line but the last is damaged."""
        records = [record.payload.to_json() for _, record in open_tape(self.path).records()]
        return records.count({"text": "0123456789"})


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
    tape.file.check_place()
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
    ledger = LossCounter(alarms.append)
    fd = os.open("/dev/full", os.O_WRONLY | os.O_APPEND)
    file = TapeFile(fd, Path("/dev/full"), header_line(HEADER), ledger)
    file.append([(1, LINE)], 0)
    file.append([(1, LINE)], 0)
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


class Disk:
    """A disk that works when told to, and what reached it."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.works = threading.Event()
        self.busy = threading.Event()
        self.syncs = 0

    def write(self) -> None:
        self.busy.set()
        self.works.wait()

    def sync(self) -> None:
        self.busy.set()
        self.works.wait()
        self.syncs += 1


@pytest.fixture
def disk() -> Iterator[Disk]:
    disk = Disk()
    yield disk
    disk.works.set()


def test_a_sync_is_not_waited_for_and_asking_again_is_one_more(disk: Disk) -> None:
    thread = SyncThread(disk.sync)
    thread.request()
    assert disk.busy.wait(10)
    for _ in range(100):
        thread.request()
    assert disk.syncs == 0
    disk.works.set()
    assert thread.close()
    assert 2 <= disk.syncs <= 3


def test_closing_syncs_once_more(disk: Disk) -> None:
    disk.works.set()
    assert SyncThread(disk.sync).close()
    assert disk.syncs == 1


def test_a_sync_that_hangs_does_not_keep_the_recorder(
    disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tape_file, "_PATIENCE_S", 0.01)
    assert not SyncThread(disk.sync).close()


def test_jobs_are_done_in_order_and_nobody_waits(disk: Disk) -> None:
    thread = WriterThread()
    thread.put(disk.write)
    assert disk.busy.wait(10)
    assert thread.busy_ns > 0
    for number in range(100):
        thread.put(partial(disk.lines.append, b"%d" % number))
    assert disk.lines == []
    disk.works.set()
    assert thread.drain()
    assert disk.lines == [b"%d" % number for number in range(100)]
    thread.close()


def test_a_job_that_hangs_is_waited_for_once(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    thread = WriterThread()
    thread.put(disk.write)
    with monkeypatch.context() as patched:
        patched.setattr(tape_file, "_PATIENCE_S", 0.01)
        assert not thread.drain()
    assert not thread.drain()  # at once
    disk.works.set()
    thread.close()


class NoThread(threading.Thread):
    """What a system out of threads gives."""

    def start(self) -> None:
        raise RuntimeError("can't start new thread")


def test_without_threads_the_end_syncs_and_writes_itself(
    disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threading, "Thread", NoThread)
    disk.works.set()
    sync = SyncThread(disk.sync)
    sync.request()
    assert disk.syncs == 0
    assert sync.close()
    assert disk.syncs == 1
    writer = WriterThread()
    writer.put(partial(disk.lines.append, b"first"))
    assert disk.lines == []
    assert writer.drain()
    assert disk.lines == [b"first"]


def test_losses_are_counted_per_exchange_and_in_all() -> None:
    ledger = LossCounter(lambda _: None)
    ledger.lost([(1, b"a"), (2, b"bb"), (1, b"ccc"), (3, b"")], "full")
    ledger.lost([(1, b"d")], "broken")
    assert ledger.of(1) == {"lost_records": 3, "lost_bytes": 5, "error": "broken"}
    assert ledger.of(2) == {"lost_records": 1, "lost_bytes": 2, "error": "full"}
    assert ledger.of(3) == {}
    assert (ledger.records, ledger.bytes) == (4, 7)


def test_an_alarm_sounds_once_per_kind_of_trouble() -> None:
    alarms: list[str] = []
    ledger = LossCounter(alarms.append)
    ledger.trouble("full", "the disk is full")
    ledger.trouble("full", "the disk is still full")
    ledger.trouble("slow", "the disk is slow")
    assert alarms == ["the disk is full", "the disk is slow"]
    ledger.settle()
    ledger.trouble("full", "the disk is full again")
    assert alarms[2:] == ["the disk is full again"]


def test_losses_without_end_take_no_memory_without_end() -> None:
    ledger = LossCounter(lambda _: None)
    for exchange in range(10_000):
        ledger.lost([(exchange, b"x")], "full")
    assert ledger.of(0) == {}
    assert ledger.of(9_999)["lost_records"] == 1
    assert ledger.records == 10_000
