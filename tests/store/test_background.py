import threading
from collections.abc import Iterator, Sequence

import pytest

from deltatape.clock import SystemClock
from deltatape.store import background
from deltatape.store.background import SyncThread, WriterThread
from deltatape.store.ledger import Ledger


class Disk:
    """A disk that works when told to, and what reached it."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.works = threading.Event()
        self.busy = threading.Event()
        self.syncs = 0

    def write(self, _exchanges: Sequence[int], lines: Sequence[bytes]) -> None:
        self.busy.set()
        self.works.wait()
        self.lines.extend(lines)

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
    thread = SyncThread(disk.sync, SystemClock())
    thread.want()
    assert disk.busy.wait(10)
    for _ in range(100):
        thread.want()
    assert disk.syncs == 0
    disk.works.set()
    assert thread.close()
    assert 2 <= disk.syncs <= 3


def test_closing_syncs_once_more(disk: Disk) -> None:
    disk.works.set()
    assert SyncThread(disk.sync, SystemClock()).close()
    assert disk.syncs == 1


def test_a_sync_that_hangs_does_not_keep_the_recorder(
    disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "_PATIENCE_S", 0.01)
    assert not SyncThread(disk.sync, SystemClock()).close()


def test_lines_wait_in_order_while_the_disk_is_slow(disk: Disk) -> None:
    thread = WriterThread(disk.write, Ledger(lambda _: None))
    for number in range(100):
        thread.put([1], [b"%d" % number])
    assert disk.lines == []
    disk.works.set()
    assert thread.close()
    assert disk.lines == [b"%d" % number for number in range(100)]


def test_what_does_not_fit_the_queue_is_lost_and_counted(
    disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "_WAITING_BYTES", 10)
    alarms: list[str] = []
    ledger = Ledger(alarms.append)
    thread = WriterThread(disk.write, ledger)
    thread.put([1], [b"first"])
    assert disk.busy.wait(10)
    for _ in range(5):
        thread.put([1], [b"later"])
    disk.works.set()
    assert thread.close()
    assert disk.lines == [b"first", b"later", b"later"]
    assert ledger.of(1) == {"lost_records": 3, "lost_bytes": 15, "error": background.TOO_SLOW}
    assert alarms == ["taping fails: the disk is too slow; the tape loses records"]


def test_what_a_hanging_disk_did_not_take_is_lost_and_counted(
    disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "_PATIENCE_S", 0.01)
    ledger = Ledger(lambda _: None)
    thread = WriterThread(disk.write, ledger)
    thread.put([1], [b"first"])
    assert disk.busy.wait(10)
    thread.put([2], [b"later"])
    assert not thread.close()
    assert ledger.of(2)["lost_records"] == 1


class NoThread(threading.Thread):
    """What a system out of threads gives."""

    def start(self) -> None:
        raise RuntimeError("can't start new thread")


def test_without_threads_the_end_syncs_and_writes_itself(
    disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threading, "Thread", NoThread)
    disk.works.set()
    sync = SyncThread(disk.sync, SystemClock())
    sync.want()
    assert disk.syncs == 0
    assert sync.close()
    assert disk.syncs == 1
    writer = WriterThread(disk.write, Ledger(lambda _: None))
    writer.put([1, 1], [b"first", b"later"])
    assert disk.lines == []
    assert writer.close()
    assert disk.lines == [b"first", b"later"]
