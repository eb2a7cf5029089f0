import fcntl
import os
import shutil
import subprocess
import sys
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import pytest

from deltatape.clock import parse_rfc3339, rfc3339
from deltatape.errors import UsageError
from deltatape.model.exchange import Source
from deltatape.store import ring
from deltatape.store.packing import seal
from deltatape.store.reader import open_tape
from deltatape.store.ring import (
    RetentionPolicy,
    SegmentRing,
    TapeSegment,
    held,
    is_finished,
    is_segment,
    list_segments,
    parse_keep,
    unmark,
)
from deltatape.store.writer import TapeWriter
from deltatape.tape.encode import header_line
from deltatape.tape.record import Header
from helpers.disk import immutable
from helpers.tapes import HEADER

S = 1_000_000_000
MIB = 1 << 20
NOW = 1_795_293_361 * S
STOP = b'[1,0,"stop",{"reason":"sigint"}]\n'


class WallClock:
    """A clock whose wall time is set by hand."""

    def __init__(self, wall_ns: int = NOW) -> None:
        self.wall = wall_ns

    def now_ns(self) -> int:
        return self.wall

    def wall_ns(self) -> int:
        return self.wall


class Folder:
    """A folder with a ring, and the alarms about it."""

    def __init__(self, folder: Path, keep: str, writers: int = 1) -> None:
        self.path = folder
        self.clock = WallClock()
        self.alarms: list[str] = []
        self.notes: list[str] = []
        self.ring = SegmentRing(
            *(folder, parse_keep(keep), self.clock, self.alarms.append, self.notes.append, writers)
        )

    def segment(self, name: str, *, begun_s: float, ended_s: float, size: int = 0) -> Path:
        """A finished tape; times count from now, so they are negative."""
        path = self.path / name
        recorded_at = rfc3339(NOW + round(begun_s * S))
        header = Header(id="0" * 26, tool="", recorded_at=recorded_at, source=Source.GATEWAY)
        line = header_line(header)
        path.write_bytes(line + b" " * (size - len(line)))
        ended_ns = NOW + round(ended_s * S)
        os.utime(path, ns=(ended_ns, ended_ns))
        return path

    def writer(self, name: str) -> TapeWriter:
        return TapeWriter.create(
            self.path,
            self.ring.stem(name),
            clock=self.clock,
            tool="",
            source=Source.GATEWAY,
            alarm=self.alarms.append,
        )

    @property
    def names(self) -> list[str]:
        return sorted(path.name for path in self.path.iterdir())


@pytest.mark.parametrize(
    ("text", "keep"),
    [
        ("2h", RetentionPolicy(age_ns=7200 * S)),
        ("1.5m", RetentionPolicy(age_ns=90 * S)),
        ("30s", RetentionPolicy(age_ns=30 * S)),
        ("7d", RetentionPolicy(age_ns=7 * 86400 * S)),
        ("5GB", RetentionPolicy(bytes=5 * 10**9)),
        ("5gb", RetentionPolicy(bytes=5 * 10**9)),
        ("1.5 MiB", RetentionPolicy(bytes=3 << 19)),
        ("2h,5GB", RetentionPolicy(age_ns=7200 * S, bytes=5 * 10**9)),
        ("100KB, 1d", RetentionPolicy(age_ns=86400 * S, bytes=100_000)),
        ("1TB", RetentionPolicy(bytes=10**12)),
    ],
)
def test_a_time_a_size_or_both(text: str, keep: RetentionPolicy) -> None:
    assert parse_keep(text) == replace(keep, text=text)


@pytest.mark.parametrize("text", ["", "2", "2H", "5M", "5G", "0h", "-1h", "1h,2h", "1h,", "1e3s"])
def test_what_is_no_budget_is_refused_with_the_units(text: str) -> None:
    with pytest.raises(UsageError, match=r"s m h d.*KB MB GB TB KiB MiB GiB TiB.*2h,5GB") as error:
        parse_keep(text)
    assert str(error.value).startswith(f"--keep {text!r}: ")


@pytest.mark.parametrize(
    ("keep", "size", "age_s", "due"),
    [
        ("2h", 10**12, 899, False),
        ("2h", 0, 900, True),
        ("2s", 0, 0.9, False),
        ("2s", 0, 1, True),
        ("80MiB", 10 * MIB - 1, 10**9, False),
        ("80MiB", 10 * MIB, 0, True),
        ("2MiB", MIB - 1, 0, False),
        ("2MiB", MIB, 0, True),
        ("100KB", 99_999, 0, False),
        ("100KB", 100_000, 0, True),
        ("2h,80MiB", 10 * MIB, 0, True),
        ("2h,80MiB", 0, 900, True),
    ],
)
def test_a_segment_is_an_eighth_of_the_budget(
    tmp_path: Path, keep: str, size: int, age_s: float, *, due: bool
) -> None:
    assert Folder(tmp_path, keep).ring.segment_due(size, round(age_s * S)) is due


def test_what_several_processes_write_fits_in_the_budget(tmp_path: Path) -> None:
    folder = Folder(tmp_path, "80MiB", writers=4)
    assert folder.ring.segment_due(5 * MIB // 2, 0)
    assert not folder.ring.segment_due(5 * MIB // 2 - 1, 0)
    assert Folder(tmp_path, "2MiB", writers=4).ring.segment_due(MIB // 2, 0)
    old, newer = (
        folder.segment(f"{age}.ring.tape", begun_s=-age - 1, ended_s=-age, size=size * MIB)
        for age, size in ((5, 3), (4, 56))
    )
    large, small = (
        folder.segment(f"{age}.ring.tape", begun_s=-9, ended_s=-age, size=size * MIB)
        for age, size in ((1, 14), (0, 1))
    )
    # 14 of one process, 2.5 for each of the other three.
    assert folder.ring.sweep([large, small]) == (old,)
    assert newer.exists()


def test_a_segment_is_deleted_when_its_last_record_is_too_old(tmp_path: Path) -> None:
    folder = Folder(tmp_path, "1h")
    old = folder.segment("a.ring.tape", begun_s=-9000, ended_s=-3601)
    folder.segment("b.ring.tape", begun_s=-9000, ended_s=-3599)
    assert folder.ring.sweep() == (old,)
    assert folder.names == ["b.ring.tape"]
    assert folder.alarms == []


def test_the_oldest_are_deleted_until_the_rest_and_a_new_one_fit(tmp_path: Path) -> None:
    folder = Folder(tmp_path, "8MiB")
    paths = [
        folder.segment(f"{age}.ring.tape", begun_s=-age - 1, ended_s=-age, size=2 * MIB)
        for age in (5, 4, 3, 2, 1)
    ]
    assert set(folder.ring.sweep()) == set(paths[:2])
    assert folder.names == ["1.ring.tape", "2.ring.tape", "3.ring.tape"]


def test_the_tape_that_ended_last_outlives_its_size_until_a_newer_one_ends(tmp_path: Path) -> None:
    folder = Folder(tmp_path, "8MiB")
    old = folder.segment("old.ring.tape", begun_s=-30, ended_s=-20, size=MIB)
    large = folder.segment("large.ring.tape", begun_s=-15, ended_s=-10, size=20 * MIB)
    assert folder.ring.sweep() == (old,)
    assert folder.ring.sweep() == ()
    (note,) = folder.notes
    assert "21.0 MB are kept, more than the 8.4 MB asked for" in note
    folder.segment("new.ring.tape", begun_s=-5, ended_s=-1, size=MIB)
    assert folder.ring.sweep() == (large,)
    assert folder.alarms == []


def test_what_is_being_written_counts_as_well(tmp_path: Path) -> None:
    folder = Folder(tmp_path, "8MiB")
    old, newer, running = (
        folder.segment(f"{age}.ring.tape", begun_s=-30, ended_s=-age, size=3 * MIB)
        for age in (20, 10, 0)
    )
    assert folder.ring.sweep([running]) == (old,)
    assert folder.names == ["0.ring.tape", "10.ring.tape"]
    assert newer.exists()


def test_with_a_time_and_a_size_the_first_to_be_reached_decides(tmp_path: Path) -> None:
    folder = Folder(tmp_path, "1h,8MiB")
    folder.segment("old.ring.tape", begun_s=-9000, ended_s=-3601)
    folder.segment("large.ring.tape", begun_s=-20, ended_s=-10, size=5 * MIB)
    folder.segment("new.ring.tape", begun_s=-10, ended_s=-1, size=5 * MIB)
    folder.ring.sweep()
    assert folder.names == ["new.ring.tape"]


def test_only_segments_are_ever_deleted(tmp_path: Path) -> None:
    folder = Folder(tmp_path, "1s")
    for name in ("a.tape", "ring.tape", "a.ring.tape.gz", "a.ring", "keep.ring.tape.bak"):
        folder.segment(name, begun_s=-99, ended_s=-90)
    (tmp_path / "folder.ring.tape").mkdir()
    (tmp_path / "link.ring.tape").symlink_to(tmp_path / "a.tape")
    os.mkfifo(tmp_path / "pipe.ring.tape")
    before = folder.names
    assert (folder.ring.sweep(), folder.names) == ((), before)
    folder.segment("a.ring-2.tape", begun_s=-99, ended_s=-90)
    assert len(folder.ring.sweep()) == 1


def test_a_tape_that_is_written_is_never_deleted(tmp_path: Path) -> None:
    folder = Folder(tmp_path, "1s")
    writer = folder.writer("mine")
    assert writer.path == tmp_path / "mine.ring.tape"
    folder.clock.wall += 10**9 * S
    assert folder.ring.sweep() == ()
    writer.close()
    os.utime(writer.path, (1.0, 1.0))
    assert folder.ring.sweep() == (tmp_path / "mine.ring.tape",)
    other = folder.segment("other.ring.tape", begun_s=-5, ended_s=-5, size=5000)
    assert folder.ring.sweep(running=[other]) == ()
    assert folder.ring.sweep() == (other,)


OTHER_RECORDER = """
import sys
from pathlib import Path
from deltatape.clock import SystemClock
from deltatape.model.exchange import Source
from deltatape.store.ring import SegmentRing, parse_keep
from deltatape.store.writer import TapeWriter

folder = Path(sys.argv[1])
clock = SystemClock()
ring = SegmentRing(folder, parse_keep("1KB"), clock, print, lambda _: None)
for number in range(40):
    stem = ring.stem("x")
    writer = TapeWriter.create(
        folder, stem, clock=clock, tool="", source=Source.GATEWAY, alarm=print
    )
    running = [writer.path]
    for turn in range(5):
        writer.put(0, b'[%d,0,"note",{"text":"%d"}]\\n' % (turn, number))
        ring.sweep(running)
    writer.close()
    assert not writer.lost_records, writer.lost_records
ring.sweep()
"""


def test_recorders_that_share_a_folder_never_delete_what_another_writes(tmp_path: Path) -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", OTHER_RECORDER, tmp_path],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for _ in range(3)
    ]
    said = [process.communicate(timeout=300)[0] for process in processes]
    assert said == [""] * 3
    assert [process.returncode for process in processes] == [0] * 3


def test_pinning_takes_the_mark_from_the_name_and_overwrites_nothing(tmp_path: Path) -> None:
    folder = Folder(tmp_path, "1s")
    folder.segment("a.ring.tape", begun_s=-99, ended_s=-90)
    folder.segment("a.ring-2.tape", begun_s=-99, ended_s=-90)
    (tmp_path / "a.tape").write_text("mine")
    pinned = folder.ring.finding(NOW - 95 * S)
    assert sorted(path.name for path in pinned) == ["a-2-2.tape", "a-2.tape"]
    assert (tmp_path / "a.tape").read_text() == "mine"
    assert open_tape(tmp_path / "a-2.tape").header.id == "0" * 26
    assert folder.ring.sweep() == ()


def test_what_may_not_be_renamed_is_told_once(tmp_path: Path) -> None:
    folder = Folder(tmp_path, "1s")
    paths = [folder.segment(f"{n}.ring.tape", begun_s=-99, ended_s=-90) for n in "ab"]
    with immutable(tmp_path):
        assert folder.ring.finding(NOW - 95 * S) == ()
        assert folder.ring.sweep() == ()
    assert len(folder.alarms) == 1
    assert folder.alarms[0].startswith(tuple(f"{path}: cannot be pinned: " for path in paths))


def test_around_a_finding_everything_is_pinned(tmp_path: Path) -> None:
    folder = Folder(tmp_path, "2h")
    folder.segment("before.ring.tape", begun_s=-2000, ended_s=-1301)
    folder.segment("meets.ring.tape", begun_s=-2000, ended_s=-1299)
    folder.segment("during.ring.tape", begun_s=-1050, ended_s=-950)
    folder.segment("follows.ring.tape", begun_s=-701, ended_s=-600)
    folder.segment("after.ring.tape", begun_s=-699, ended_s=-600)
    damaged = tmp_path / "damaged.ring.tape"
    damaged.write_text("no tape")
    os.utime(damaged, ns=(NOW - 1000 * S, NOW - 1000 * S))
    pinned = folder.ring.finding(NOW - 1000 * S)
    assert {path.name for path in pinned} == {
        "damaged.tape",
        "during.tape",
        "follows.tape",
        "meets.tape",
    }
    assert set(folder.names) >= {"before.ring.tape", "after.ring.tape", "during.tape"}


def test_a_short_budget_pins_less(tmp_path: Path) -> None:
    folder = Folder(tmp_path, "80s")
    folder.segment("near.ring.tape", begun_s=-30, ended_s=-10)
    folder.segment("far.ring.tape", begun_s=-30, ended_s=-11)
    assert [path.name for path in folder.ring.finding(NOW)] == ["near.tape"]


def test_a_tape_is_pinned_while_it_is_written(tmp_path: Path) -> None:
    folder = Folder(tmp_path, "2h")
    writer = folder.writer("x")
    writer.put(0, b'[0,0,"note",{"text":"before"}]\n')
    assert folder.ring.finding(NOW, [writer]) == (tmp_path / "x.tape",)
    assert writer.path == tmp_path / "x.tape"
    writer.put(0, b'[1,0,"note",{"text":"after"}]\n')
    assert folder.ring.finding(NOW, [writer]) == ()
    writer.close()
    assert folder.names == ["x.tape"]
    assert len(list(open_tape(tmp_path / "x.tape").records())) == 2
    assert folder.alarms == []


def test_a_tape_that_was_begun_long_after_the_finding_is_not_pinned(tmp_path: Path) -> None:
    folder = Folder(tmp_path, "2h")
    writer = folder.writer("x")
    assert folder.ring.finding(NOW - 301 * S, [writer]) == ()
    writer.close()
    assert folder.names == ["x.ring.tape"]


def test_a_running_tape_that_cannot_be_renamed_goes_on(tmp_path: Path) -> None:
    folder = Folder(tmp_path, "2h")
    writer = folder.writer("x")
    (tmp_path / "x.ring.tape").unlink()
    assert folder.ring.finding(NOW, [writer]) == ()
    assert folder.names == []
    assert writer.path == tmp_path / "x.ring.tape"
    assert len(folder.alarms) == 1
    writer.close()


def test_what_begins_soon_after_a_finding_is_pinned_from_the_start(tmp_path: Path) -> None:
    folder = Folder(tmp_path, "2h")
    folder.ring.finding(NOW)
    folder.clock.wall += 200 * S
    assert folder.ring.stem("x") == "x"
    folder.ring.finding(folder.clock.wall)  # in the same crowd
    folder.clock.wall += 299 * S
    assert folder.ring.stem("x") == "x"
    folder.clock.wall += 2 * S
    assert folder.ring.stem("x") == "x.ring"


def test_what_another_recorder_was_writing_is_pinned_when_it_is_done(tmp_path: Path) -> None:
    folder = Folder(tmp_path, "1h")
    path = folder.segment("other.ring.tape", begun_s=-10, ended_s=-1)
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert folder.ring.finding(NOW) == ()
    folder.clock.wall += 7200 * S
    assert folder.ring.sweep() == ()
    assert folder.names == ["other.tape"]


def test_a_missing_folder_has_no_segments(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "missing", "1h")
    assert folder.ring.sweep() == ()
    assert folder.ring.finding(NOW) == ()
    assert folder.alarms == []


def test_a_folder_that_cannot_be_listed_is_told_once(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    folder = Folder(tmp_path / "file", "1h")
    assert folder.ring.sweep() == ()
    assert folder.ring.sweep() == ()
    assert folder.alarms == [f"{tmp_path / 'file'}: cannot be listed: Not a directory"]


def test_what_cannot_be_deleted_is_told(tmp_path: Path) -> None:
    folder = Folder(tmp_path, "1s")
    path = folder.segment("a.ring.tape", begun_s=-99, ended_s=-90)
    with immutable(tmp_path):
        assert folder.ring.sweep() == ()
    (alarm,) = folder.alarms
    assert alarm.startswith(f"{path}: cannot be deleted, so more is kept than asked for: ")
    assert folder.ring.sweep() == (path,)


@pytest.mark.parametrize("end", [b"", STOP], ids=["begun", "finished"])
def test_a_finished_segment_that_another_process_uses_just_now_is_pinned_soon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: bytes
) -> None:
    folder = Folder(tmp_path, "1h")
    path = folder.segment("a.ring.tape", begun_s=-61, ended_s=-60)
    path.write_bytes(path.read_bytes() + end)
    os.utime(path, ns=(NOW - 60 * S, NOW - 60 * S))
    file = path.open("rb")
    fcntl.flock(file, fcntl.LOCK_SH)
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        file.close()

    monkeypatch.setattr(ring, "sleep", wait)
    pinned = folder.ring.finding(NOW)
    file.close()
    if end:
        assert (pinned, len(waits)) == ((tmp_path / "a.tape",), 1)
    else:  # a recorder writes it: pinned when it is finished
        assert (pinned, waits) == ((), [])
        folder.ring.sweep()
    assert folder.names == ["a.tape"]


def test_a_segment_that_is_sealed_just_now_is_pinned_in_its_sealed_form(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Folder(tmp_path, "1h")
    folder.segment("a.ring.tape", begun_s=-61, ended_s=-60)

    def sealed_first(path: Path) -> AbstractContextManager[bool]:
        monkeypatch.setattr(ring, "held", held)
        seal(path).remove_journal()
        return held(path)

    monkeypatch.setattr(ring, "held", sealed_first)
    assert folder.ring.finding(NOW) == (tmp_path / "a.tape.zst",)
    assert folder.names == ["a.tape.zst"]


LINE = (
    b'{"deltatape":1,"id":"01JD3ZQ8T0000000000000TAPE","tool":"",'
    b'"recorded_at":"2026-11-21T20:36:01.000000000Z","source":"gateway"}\n'
)


def test_segments_are_told_by_their_names() -> None:
    names = ["a.ring.tape", "a.ring-2.tape", "a.tape", ".ring.tape", "a.ring-x.tape"]
    assert [is_segment(Path(name)) for name in names] == [True, True, False, False, False]


def test_only_regular_files_are_listed(tmp_path: Path) -> None:
    path = tmp_path / "a.ring.tape"
    path.write_bytes(LINE)
    os.utime(path, ns=(5, 7))
    (tmp_path / "b.ring.tape").mkdir()
    (tmp_path / "c.ring.tape").symlink_to(path)
    os.mkfifo(tmp_path / "d.ring.tape")
    assert list_segments(tmp_path) == (TapeSegment(path=path, size=len(LINE), modified_ns=7),)


def test_a_segment_was_begun_when_its_header_says(tmp_path: Path) -> None:
    path = tmp_path / "a.ring.tape"
    path.write_bytes(LINE)
    segment = TapeSegment(path=path, size=0, modified_ns=7)
    assert segment.begun_ns == parse_rfc3339(HEADER.recorded_at) == 1_795_293_361_000_000_000
    path.write_bytes(b"damaged")
    assert segment.begun_ns == 7


@pytest.mark.parametrize("text", ["", "yesterday", "2026-13-01T00:00:00.000000000Z"])
def test_what_is_no_time_is_long_ago(text: str) -> None:
    assert parse_rfc3339(text) == 0


def test_a_locked_an_empty_and_a_missing_file_are_not_finished(tmp_path: Path) -> None:
    path = tmp_path / "a.ring.tape"
    assert not is_finished(path)
    path.touch()
    assert not is_finished(path)
    path.write_bytes(LINE)
    assert is_finished(path)
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert not is_finished(path)


def test_who_holds_a_file_is_alone_with_it(tmp_path: Path) -> None:
    path = tmp_path / "a.ring.tape"
    path.write_bytes(LINE)
    with held(path) as mine, held(path) as yours:
        assert (mine, yours) == (True, False)
    assert is_finished(path)


def test_without_locks_only_what_was_ended_in_good_order_is_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.ring.tape"

    def refuse(*_: object) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    for data, finished in ((LINE, False), (LINE + STOP, True), (b"no tape", False)):
        path.write_bytes(data)
        assert is_finished(path) is finished


def test_a_name_that_another_file_has_taken_meanwhile_is_not_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, other = tmp_path / "a.ring.tape", tmp_path / "other"
    path.write_bytes(LINE)
    other.write_bytes(LINE)
    lock = fcntl.flock

    def replaced_meanwhile(fd: int, how: int) -> None:
        lock(fd, how)
        shutil.move(other, path)

    monkeypatch.setattr(fcntl, "flock", replaced_meanwhile)
    assert not is_finished(path)

    def deleted_meanwhile(fd: int, how: int) -> None:
        lock(fd, how)
        path.unlink()

    monkeypatch.setattr(fcntl, "flock", deleted_meanwhile)
    assert not is_finished(path)


def test_unmarking_overwrites_nothing(tmp_path: Path) -> None:
    for name in ("a.ring.tape", "a.ring-2.tape", "a.tape"):
        (tmp_path / name).write_text(name)
    assert unmark(tmp_path / "a.ring.tape") == tmp_path / "a-2.tape"
    assert unmark(tmp_path / "a.ring-2.tape") == tmp_path / "a-2-2.tape"
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "a-2-2.tape",
        "a-2.tape",
        "a.tape",
    ]
    assert (tmp_path / "a.tape").read_text() == "a.tape"


def test_a_segment_that_cannot_be_renamed_leaves_no_other_name(tmp_path: Path) -> None:
    path = tmp_path / "a.ring.tape"
    path.write_bytes(LINE)
    with immutable(path), pytest.raises(PermissionError):
        unmark(path)
    assert [each.name for each in tmp_path.iterdir()] == ["a.ring.tape"]


# Sealed segments.


def sealed_segment(folder: Folder, name: str, *, ended_s: float, size: int = 0) -> Path:
    """A finished segment that was sealed, and then grew to some size for the budget's sake."""
    journal = folder.segment(name, begun_s=ended_s - 1, ended_s=ended_s)
    packed = seal(journal)
    packed.remove_journal()
    status = packed.path.stat()
    with packed.path.open("r+b") as file:
        file.truncate(max(size, status.st_size))
    os.utime(packed.path, ns=(status.st_atime_ns, status.st_mtime_ns))
    return packed.path


def test_sealed_segments_are_segments_and_count_once(tmp_path: Path) -> None:
    folder = Folder(tmp_path, "1h")
    path = sealed_segment(folder, "a.ring.tape", ended_s=-60)
    assert is_segment(path)
    both = folder.segment("b.ring.tape", begun_s=-61, ended_s=-60)
    seal(both)
    found = {each.path.name: each for each in list_segments(tmp_path)}
    assert set(found) == {"a.ring.tape.zst", "b.ring.tape"}
    assert found["a.ring.tape.zst"].begun_ns == NOW - 61 * S


def test_old_sealed_segments_are_deleted(tmp_path: Path) -> None:
    folder = Folder(tmp_path, "4MiB")
    oldest = sealed_segment(folder, "a.ring.tape", ended_s=-90, size=2 * MIB)
    newer = sealed_segment(folder, "b.ring.tape", ended_s=-60, size=2 * MIB)
    newest = sealed_segment(folder, "c.ring.tape", ended_s=-30, size=MIB)
    assert folder.ring.sweep() == (oldest,)
    assert (newer.exists(), newest.exists(), oldest.exists()) == (True, True, False)


def test_sealed_segments_around_a_finding_are_pinned_under_a_name_of_their_own(
    tmp_path: Path,
) -> None:
    folder = Folder(tmp_path, "1h")
    path = sealed_segment(folder, "a.ring.tape", ended_s=-60)
    (tmp_path / "a.tape").write_bytes(b"another one")
    (pinned,) = folder.ring.finding(NOW - 60 * S)
    assert pinned.name == "a-2.tape.zst"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a-2.tape.zst", "a.tape"]
    assert not path.exists()
    assert open_tape(pinned).header.source is Source.GATEWAY
