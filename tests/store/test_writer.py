import shutil
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from deltatape.clock import parse_rfc3339
from deltatape.errors import UsageError
from deltatape.model.exchange import EndReason, Source
from deltatape.store import tape_file
from deltatape.store.reader import open_tape
from deltatape.store.ring import begun_ns
from deltatape.store.tape_file import TapeFile, WriterThread
from deltatape.store.writer import ShardOrigin, TapeWriter
from deltatape.tape.payload import LOSS_NOTE
from deltatape.tape.record import Shard
from deltatape.tape.tap import ExchangeTap, TapeTap
from helpers.disk import file_size_limit, read_only, small_disk
from helpers.tapes import MASKER, StillClock, every_record, start


class Recorder:
    """A writer, its clock, and the alarms it gave."""

    def __init__(self, folder: Path, stem: str = "run", clock: StillClock | None = None) -> None:
        self.alarms: list[str] = []
        self.clock = clock or StillClock()
        self.writer = TapeWriter.create(
            folder,
            stem,
            clock=self.clock,
            tool="deltatape 0.1.0",
            source=Source.GATEWAY,
            alarm=self.alarms.append,
        )
        self.path = self.writer.path or Path("missing")

    def put_notes(self, count: int, size: int = 100, exchange: int = 1) -> None:
        tap = ExchangeTap(exchange, self.writer.put, MASKER)
        for number in range(count):
            tap.note(number, "x" * size)
        self.writer.flush()

    def note_count(self) -> int:
        """How many notes the tape has; raises if any line but the last is damaged."""
        return sum(1 for _ in open_tape(self.path).records())


def test_shards_count_from_the_beginning_of_their_recording(tmp_path: Path) -> None:
    clock = StillClock()
    origin = ShardOrigin(
        recording="R", index=2, count=3, zero_ns=clock.ns, wall_ns=clock.wall_ns() - 7
    )
    clock.ns += 5_000
    writer = TapeWriter.create(
        tmp_path, "x", clock=clock, alarm=print, origin=origin, name="weather"
    )
    clock.ns += 1_000
    assert (writer.now_ns(), writer.age_ns) == (6_000, 1_000)
    shard = Shard(recording="R", index=2, count=3, begun_ns=5_000, name="weather")
    assert writer.header.shard == shard
    assert parse_rfc3339(writer.header.recorded_at) == clock.wall_ns() - 7
    assert begun_ns(writer.header) == clock.wall_ns() - 7 + 5_000
    writer.close()
    assert open_tape(tmp_path / "x.tape").header == writer.header


@pytest.mark.parametrize("there", [True, False])
def test_a_tape_is_pending_until_its_thread_has_tried_to_create_it(
    tmp_path: Path, *, there: bool
) -> None:
    folder, busy, thread = tmp_path / "tapes", threading.Event(), WriterThread()
    if not there:
        folder.touch()

    def keep_busy() -> None:
        assert busy.wait(60)

    thread.put(keep_busy)
    writer = TapeWriter.create(
        folder, "run", clock=StillClock(), alarm=lambda _: None, thread=thread
    )
    assert writer.pending
    assert writer.path is None
    busy.set()
    writer.flush()
    assert not writer.pending
    assert (writer.path is not None) is there
    writer.close()
    thread.close()


def test_what_is_put_is_on_the_tape(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path)
    every_record(recorder.writer.put)
    TapeTap(recorder.writer.put).stop(recorder.writer.now_ns(), "interrupted", None)
    recorder.writer.close()
    tape = open_tape(recorder.path)
    assert tape.header == recorder.writer.header
    assert tape.header.recorded_at == "2026-11-21T20:36:01.000000000Z"
    assert (len(tape), tape.stopped, tape.torn) == (2, True, 0)
    assert recorder.alarms == []
    assert (recorder.writer.lost_records, recorder.writer.lost_bytes) == (0, 0)


def test_tape_and_folder_are_for_their_owner_only(tmp_path: Path) -> None:
    folder = tmp_path / "a" / ".deltatape"
    recorder = Recorder(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(recorder.path.stat().st_mode) == 0o600
    assert (folder / ".gitignore").read_text() == "*\n"
    recorder.writer.close()


def test_times_count_from_the_start_of_the_tape(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path)
    assert recorder.writer.now_ns() == 0
    recorder.clock.ns += 17
    assert recorder.writer.now_ns() == 17
    recorder.writer.close()


def test_a_turn_of_many_thousand_lines_is_written_whole(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path)
    recorder.put_notes(5000)
    recorder.writer.close()
    assert recorder.note_count() == 5000


def test_a_taken_name_gets_a_number(tmp_path: Path) -> None:
    names = []
    for _ in range(3):
        recorder = Recorder(tmp_path, "run-2")
        names.append(recorder.path.name)
        recorder.writer.close()
    assert names == ["run-2.tape", "run-2-2.tape", "run-2-3.tape"]


def test_a_name_that_leaves_the_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        Recorder(tmp_path, "../x")


def test_a_full_disk_costs_records_and_nothing_else(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    with small_disk(disk, 64 << 10):
        recorder = Recorder(disk)
        recorder.put_notes(1000)
        kept = recorder.note_count()
        assert 0 < kept < 1000
        assert open_tape(recorder.path).torn == 0
        assert recorder.writer.lost_records == 1000 - kept
        assert recorder.writer.lost_bytes > 0
        assert len(recorder.alarms) == 1
        assert "No space left on device" in recorder.alarms[0]
        recorder.writer.close()


def test_taping_goes_on_when_the_disk_has_space_again(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    with small_disk(disk, 64 << 10):
        ballast = disk / "ballast"
        ballast.write_bytes(b"x" * (40 << 10))
        recorder = Recorder(disk)
        recorder.put_notes(500)
        kept = recorder.note_count()
        ballast.unlink()
        recorder.put_notes(50)
        assert recorder.note_count() == kept + 51  # one says that lines are missing before it
        recorder.writer.close()


def test_a_full_disk_in_the_middle_of_a_batch_keeps_its_whole_lines(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    with small_disk(disk, 64 << 10):
        recorder = Recorder(disk)
        recorder.put_notes(400, exchange=1)
        recorder.put_notes(400, exchange=2)
        kept = recorder.note_count()
        assert kept + recorder.writer.lost_records == 800
        recorder.writer.close()


def test_a_limit_on_file_sizes_costs_records_and_nothing_else(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path)
    with file_size_limit(2000):
        recorder.put_notes(30)
        recorder.put_notes(30, size=5000)
    kept = recorder.note_count()
    recorder.put_notes(2)
    assert recorder.note_count() == kept + 3
    assert recorder.path.read_bytes().endswith(b"\n")
    assert recorder.alarms == [
        f"taping fails: {recorder.path}: File too large; the stream goes on, the tape loses records"
    ]
    recorder.writer.close()


def test_a_loss_is_told_at_its_place_and_in_the_end_of_its_exchange(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path)
    tap, other = (ExchangeTap(number, recorder.writer.put, MASKER) for number in (1, 2))
    start(tap)
    start(other)
    recorder.writer.flush()
    with file_size_limit(recorder.path.stat().st_size + 30):
        tap.read(1, b"x" * 50, None)
        recorder.writer.flush()
    tap.read(2, b"y", None)
    tap.read(3, b"z", None)
    for each in (tap, other):
        each.end(4, EndReason.COMPLETE)
    recorder.writer.close()
    lossy, whole = open_tape(recorder.path)
    assert [(note.t_ns, note.text) for note in lossy.notes] == [
        (2, f"{LOSS_NOTE}File too large; 1 so far")
    ]
    assert lossy.end is not None
    assert whole.end is not None
    assert lossy.end.recorder == {"lost_records": 1, "lost_bytes": 66, "error": "File too large"}
    assert (whole.end.recorder, whole.notes) == ({}, ())


def test_an_end_that_the_disk_refused_is_written_when_it_takes_bytes_again(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path)
    tap = ExchangeTap(1, recorder.writer.put, MASKER)
    start(tap)
    recorder.writer.flush()
    with file_size_limit(recorder.path.stat().st_size):
        tap.end(4, EndReason.COMPLETE)
        recorder.writer.flush()
        assert [each.end for each in open_tape(recorder.path)] == [None]
    recorder.writer.close()
    (exchange,) = open_tape(recorder.path)
    assert exchange.end is not None
    assert exchange.end.recorder == {}
    assert recorder.writer.lost_records == 0


def test_an_end_that_never_reached_the_disk_is_lost(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path)
    with file_size_limit(recorder.path.stat().st_size):
        ExchangeTap(1, recorder.writer.put, MASKER).end(4, EndReason.COMPLETE)
        recorder.writer.close()
    assert recorder.writer.lost_records == 1


def test_a_folder_that_cannot_be_written_loses_everything_loudly(tmp_path: Path) -> None:
    folder = tmp_path / "locked"
    folder.mkdir()
    with read_only(folder):
        recorder = Recorder(folder)
        assert recorder.writer.path is None
        assert recorder.writer.broken
        assert not recorder.writer.rename(folder / "other.tape")
        assert len(recorder.alarms) == 1
        assert "nothing will be taped" in recorder.alarms[0]
        recorder.put_notes(3)
        assert (recorder.writer.lost_records, recorder.writer.lost_bytes) == (3, 375)
        recorder.writer.durable()
        recorder.writer.close()


def test_a_folder_that_is_a_file_loses_everything_loudly(tmp_path: Path) -> None:
    folder = tmp_path / "file"
    folder.write_text("")
    recorder = Recorder(folder)
    assert recorder.writer.path is None
    assert recorder.alarms == [
        f"nothing will be taped: {folder}: File exists; the streams go on unrecorded"
    ]


def test_a_folder_removed_meanwhile_is_noticed(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    recorder = Recorder(folder)
    recorder.put_notes(3)
    written = recorder.path.stat().st_size
    shutil.rmtree(folder)
    recorder.put_notes(1)
    recorder.clock.ns += 2_000_000_000
    recorder.put_notes(2)
    recorder.put_notes(2)
    (alarm,) = recorder.alarms
    assert alarm == (
        f"taping fails: {recorder.path}: the tape was deleted while it was written; "
        "the stream goes on"
    )
    assert recorder.writer.broken
    assert recorder.writer.lost_records == 8
    assert recorder.writer.lost_bytes > written
    recorder.writer.close()


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="only Linux tells where a file is")
def test_a_tape_whose_folder_was_renamed_goes_on_and_knows_its_place(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "old")
    (tmp_path / "old").rename(tmp_path / "new")
    recorder.clock.ns += 2_000_000_000
    recorder.put_notes(1)
    assert recorder.writer.path == tmp_path / "new" / "run.tape"
    assert not recorder.writer.broken
    assert recorder.alarms == []
    recorder.writer.close()


def test_a_tape_removed_after_the_last_record_is_noticed_at_the_close(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path)
    recorder.put_notes(3)
    recorder.path.unlink()
    recorder.writer.close()
    assert recorder.writer.lost_records == 3
    assert len(recorder.alarms) == 1


def test_syncing_is_done_by_a_thread(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path)
    recorder.writer.durable()
    recorder.writer.durable()
    recorder.writer.flush()
    assert "tape-sync" in [thread.name for thread in threading.enumerate()]
    recorder.writer.close()
    assert "tape-sync" not in [thread.name for thread in threading.enumerate()]
    assert recorder.alarms == []


def test_closing_does_not_wait_for_ever_for_a_disk_that_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = threading.Event()
    monkeypatch.setattr(TapeFile, "sync", lambda _: answer.wait())
    recorder = Recorder(tmp_path)
    recorder.put_notes(1)
    monkeypatch.setattr(tape_file, "_PATIENCE_S", 0.01)
    recorder.writer.close()
    answer.set()
    assert recorder.note_count() == 1


def test_a_closed_tape_takes_nothing_more(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path)
    recorder.writer.close()
    recorder.put_notes(1)
    recorder.writer.close()
    assert (recorder.note_count(), recorder.writer.lost_records) == (0, 1)


def test_an_error_in_the_thread_costs_lines_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise MemoryError

    recorder = Recorder(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(TapeFile, "append", fail)
        recorder.put_notes(2)
    assert recorder.writer.lost_records == 2
    assert recorder.alarms == [f"taping fails: {recorder.path}: MemoryError()"]
    recorder.put_notes(1)
    assert recorder.note_count() == 1
    recorder.writer.close()


RECORDER = """
import sys
from pathlib import Path
from deltatape.clock import SystemClock
from deltatape.model.exchange import Source
from deltatape.store.writer import TapeWriter
from deltatape.tape.tap import TapeTap

writer = TapeWriter.create(
    Path(sys.argv[1]), "run", clock=SystemClock(), tool="", source=Source.GATEWAY, alarm=print
)
tap = TapeTap(writer.put)
for number in range(1_000_000):
    tap.note(writer.now_ns(), f"{number} " + "x" * 300)
    writer.flush()
    print(number, flush=True)
"""


def test_what_was_flushed_is_on_the_tape_of_a_killed_recorder(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", RECORDER, tmp_path], stdout=subprocess.PIPE, text=True
    ) as recorder:
        assert recorder.stdout is not None
        told = [recorder.stdout.readline() for _ in range(500)]
        recorder.send_signal(signal.SIGKILL)
        told += recorder.stdout.readlines()
    last = int([line for line in told if line.endswith("\n")][-1])
    tape = open_tape(tmp_path / "run.tape")
    assert not tape.stopped
    assert sum(1 for _ in tape.records()) >= last + 1
