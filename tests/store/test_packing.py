"""Tapes are sealed, and unpacked to the same bytes."""

import fcntl
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from random import Random

import pytest
import zstandard

from deltatape.errors import DeltatapeError, TapeFormatError, UsageError
from deltatape.store import packing, sealed
from deltatape.store.packing import seal, unpack
from deltatape.store.reader import Tape, open_tape
from deltatape.store.ring import unmark
from deltatape.store.sealed import SealedTape, verify
from deltatape.tape.encode import header_line, payload_record
from deltatape.tape.payload import ParsedAs, Stop
from deltatape.tape.sealed import Run, plan_frames, write_order
from deltatape.tape.serialize import tape_lines
from helpers.chat import choice
from helpers.exchanges import asks, assistant, conversation, user
from helpers.incidents import BROKEN, FIXED
from helpers.tapes import HEADER, whole_tape, write_tape

ROOT = Path(__file__).parents[2]
RECORDINGS = sorted((ROOT / "recordings").rglob("*.tape"))


def written(folder: Path, *lines: bytes) -> Path:
    return Path(write_tape(folder, header_line(HEADER) + b"".join(lines)))


def both(path: Path) -> tuple[Tape, SealedTape]:
    """A tape and its sealed form, which is made."""
    found = open_tape(seal(path).path)
    assert isinstance(found, SealedTape)
    return open_tape(path), found


def readable(path: Path) -> bool:
    try:
        open_tape(path)
    except DeltatapeError:
        return False
    return True


@pytest.mark.slow
def test_every_recording_is_sealed_and_unpacked_byte_for_byte(tmp_path: Path) -> None:
    done = 0
    for path in RECORDINGS:
        if readable(path):
            packed = seal(path, tmp_path / "x.tape.zst")
            assert unpack(packed.path).path.read_bytes() == path.read_bytes()
            packed.path.unlink()
            (tmp_path / "x.tape").unlink()
            done += 1
    assert done > len(RECORDINGS) - 40


def test_a_sealed_tape_gives_what_its_journal_gives(tmp_path: Path) -> None:
    tape, packed = both(Path(write_tape(tmp_path, whole_tape())))
    assert packed.header == tape.header
    assert [*packed.records()] == [*tape.records()]
    assert (packed.numbers(), len(packed)) == (tape.numbers(), len(tape))
    assert (packed.clients, packed.logs, packed.watch) == (tape.clients, tape.logs, tape.watch)
    assert (packed.size, packed.torn, packed.stopped_ns) == (tape.size, 0, tape.stopped_ns)
    assert not packed.recording
    for number in (1, 2):
        assert packed[number].reads == tape[number].reads
        assert packed[number].request == tape[number].request
        assert packed[number].end == tape[number].end
    with pytest.raises(UsageError, match="#9: no such exchange on the tape; it has 1 to 2"):
        packed[9]
    with pytest.raises(UsageError, match="#0: no such exchange"):
        packed[0]


def test_what_zstd_decompresses_is_a_tape(tmp_path: Path) -> None:
    path = seal(BROKEN, tmp_path / "x.tape.zst").path
    data = path.read_bytes()
    with zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True) as stream:
        lines = stream.read()
    assert sorted(lines.splitlines()) == sorted(BROKEN.read_bytes().splitlines())
    assert [*open_tape(write_tape(tmp_path, lines))]


def test_the_file_has_mode_and_times_of_its_journal_and_its_own_alone(tmp_path: Path) -> None:
    path = Path(write_tape(tmp_path, whole_tape()))
    path.chmod(0o640)
    os.utime(path, ns=(1_000, 2_000))
    packed = seal(path)
    status = packed.path.stat()
    assert packed.path == tmp_path / "x.tape.zst"
    assert (status.st_mode & 0o777, status.st_mtime_ns) == (0o640, 2_000)
    assert (packed.exchanges, packed.journal_bytes) == (2, len(whole_tape()))
    assert sorted(each.name for each in tmp_path.iterdir()) == ["x.tape", "x.tape.zst"]
    packed.remove_journal()
    assert unpack(packed.path).path.read_bytes() == whole_tape()


def test_a_tape_that_is_being_recorded_is_not_sealed(tmp_path: Path) -> None:
    path = write_tape(tmp_path, whole_tape())
    with Path(path).open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(UsageError, match="still being recorded"):
            seal(path)
    seal(path)
    with pytest.raises(UsageError, match="sealed already"):
        seal(f"{path}.zst")
    with pytest.raises(UsageError, match="is not sealed"):
        unpack(path)


def test_a_journal_that_has_grown_is_not_removed(tmp_path: Path) -> None:
    path = Path(write_tape(tmp_path, whole_tape()))
    packed = seal(path)
    with path.open("ab") as file:
        file.write(b"more\n")
    with pytest.raises(UsageError, match="was changed meanwhile, and stays"):
        packed.remove_journal()
    assert path.exists()
    path.unlink()
    with pytest.raises(UsageError, match="it stays"):
        packed.remove_journal()


def waits_for_its_lock(path: Path) -> bool:
    """Whether somebody waits for the lock of a file: `-> FLOCK` in /proc/locks."""
    inode = f":{path.stat().st_ino} "
    return any(
        "-> " in line and inode in line for line in Path("/proc/locks").read_text().split("\n")
    )


@pytest.mark.skipif(
    not Path("/proc/locks").exists(), reason="only Linux tells who waits for a lock"
)
def test_a_tape_that_is_pinned_just_before_the_end_is_not_sealed_under_its_old_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.ring.tape"
    shutil.copy(BROKEN, path)
    lock = path.open("rb")

    def pin() -> None:
        while not waits_for_its_lock(path):
            threading.Event().wait(0.01)
        unmark(path)
        lock.close()

    pinning = threading.Thread(target=pin, daemon=True)

    def compare(same: SealedTape) -> None:
        verify(same)
        fcntl.flock(lock, fcntl.LOCK_EX)
        pinning.start()

    monkeypatch.setattr(packing, "verify", compare)
    with pytest.raises(UsageError, match=r"No such file"):
        seal(path)
    pinning.join()
    assert [each.name for each in tmp_path.iterdir()] == ["x.tape"]


def test_the_same_tape_is_sealed_once_and_another_one_never_overwritten(tmp_path: Path) -> None:
    path = Path(write_tape(tmp_path, whole_tape()))
    first = seal(path)
    before = first.path.stat()
    assert seal(path) == first
    assert first.path.stat().st_ino == before.st_ino
    path.write_bytes(BROKEN.read_bytes())
    with pytest.raises(UsageError, match="is another tape"):
        seal(path)
    first.path.write_bytes(b"")
    with pytest.raises(UsageError, match="is no tape"):
        seal(path)
    with pytest.raises(UsageError, match="never overwritten"):
        unpack(seal(path, tmp_path / "y.tape.zst").path, path)


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        seal(BROKEN, tmp_path / "none" / "x.tape.zst")
    path = seal(BROKEN, tmp_path / "x.tape.zst").path
    with pytest.raises(UsageError, match="No such file"):
        unpack(path, tmp_path / "none" / "x.tape")


def test_without_links_it_is_renamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    assert readable(seal(BROKEN, tmp_path / "x.tape.zst").path)
    assert [each.name for each in tmp_path.iterdir()] == ["x.tape.zst"]


def test_what_a_killed_process_left_is_removed_and_what_one_writes_is_not(tmp_path: Path) -> None:
    left, busy = tmp_path / ".x.tape.zst.0a.part", tmp_path / ".x.tape.zst.0b.part"
    left.write_bytes(b"half")
    busy.write_bytes(b"half")
    with busy.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        seal(BROKEN, tmp_path / "x.tape.zst")
    assert sorted(each.name for each in tmp_path.iterdir()) == [busy.name, "x.tape.zst"]


def test_an_interrupt_leaves_no_draft_however_early_it_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = os.open

    def interrupted(path: str | Path, flags: int, mode: int = 0o777) -> int:
        os.close(opened(path, flags, mode))
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", interrupted)
        with pytest.raises(KeyboardInterrupt):
            seal(BROKEN, tmp_path / "x.tape.zst")
    assert not [*tmp_path.iterdir()]


KILLED = """
import itertools, os, shutil, signal, sys
from pathlib import Path
from deltatape.store.packing import seal

FILE_EVENTS = ("open", "os.link", "os.remove", "os.rename", "os.utime", "fcntl.")


def pack(path, instant):
    left = iter(range(instant))

    def kill(event, _):
        if event.startswith(FILE_EVENTS) and next(left, None) is None:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(kill)
    seal(path).remove_journal()
    os._exit(0)


tape, folder = map(Path, sys.argv[1:])
seal(tape, folder / "warm")  # so that no instant is one of an import
(folder / "warm").unlink()
for instant in itertools.count():
    place = folder / f"{instant:03}"
    place.mkdir()
    path = Path(shutil.copy(tape, place / "x.tape"))
    child = os.fork() or pack(path, instant)
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != -signal.SIGKILL:
        break
"""
"""Packs copies of a tape, each killed before the next thing that it does with a file."""


def test_killed_at_any_instant_the_journal_is_there_or_what_gives_it_back(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", KILLED, str(BROKEN), str(tmp_path)], check=True)
    places = sorted(tmp_path.iterdir())
    both_there = 0
    for place in places:
        journal, target = place / "x.tape", place / "x.tape.zst"
        assert not journal.exists() or journal.read_bytes() == BROKEN.read_bytes()
        both_there += journal.exists() and target.exists()
        if target.exists():
            found = open_tape(target)
            assert isinstance(found, SealedTape)
            verify(found)
            with found.open() as lines:
                assert lines.read() == BROKEN.read_bytes()
        if journal.exists():
            seal(journal).remove_journal()
        assert [each.name for each in place.iterdir()] == ["x.tape.zst"]
    assert len(places) > 10
    assert both_there > 0


def test_a_sealed_tape_that_does_not_give_back_its_journal_gets_no_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def shifted(runs: list[Run]) -> bytes:
        return sealed_order([runs[0]._replace(offset=runs[0].offset + 1), *runs[1:]])

    sealed_order = write_order
    monkeypatch.setattr(packing, "write_order", shifted)
    with pytest.raises(TapeFormatError):
        seal(BROKEN, tmp_path / "x.tape.zst")
    assert not [*tmp_path.iterdir()]


# Damaged journals.


@pytest.mark.parametrize("end", [b'[9,1,"en', b"\0\0\0", b"\xff"])
def test_a_torn_last_line_is_kept_and_stands_last(tmp_path: Path, end: bytes) -> None:
    path = Path(write_tape(tmp_path, whole_tape() + end))
    tape, packed = both(path)
    assert packed.torn == tape.torn == len(end)
    assert packed.clients == tape.clients
    assert [each.number for each in packed] == [1, 2]
    with packed.open() as journal:
        assert journal.read() == path.read_bytes()


def test_a_last_record_without_line_feed_counts_for_its_exchange(tmp_path: Path) -> None:
    path = Path(write_tape(tmp_path, whole_tape()[: whole_tape().index(b"\n[140,")]))
    tape, packed = both(path)
    assert tape[1].end is not None
    assert packed[1].end == tape[1].end
    assert packed.sealed.table.damaged


def test_damage_is_told_with_the_line_of_the_journal(tmp_path: Path) -> None:
    lines = whole_tape().splitlines(keepends=True)
    lines[4] = b"no record\n"
    tape, packed = both(Path(write_tape(tmp_path, b"".join(lines))))
    assert packed.sealed.rows(packed.sealed.table.rules or "x") is None
    for read in (list, lambda each: each[1], lambda each: each.logs, lambda each: each.clients):
        with pytest.raises(TapeFormatError) as expected:
            read(tape)
        with pytest.raises(TapeFormatError) as found:
            read(packed)
        assert (found.value.line, found.value.problem) == (5, expected.value.problem)


def test_numbers_beyond_all_bounds_are_damage(tmp_path: Path) -> None:
    path = written(tmp_path, b'[1,9999999999999999999,"note",{"text":"x"}]\n')
    assert unpack(seal(path).path, tmp_path / "y.tape").path.read_bytes() == path.read_bytes()


def test_a_line_that_is_too_long_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packing, "MAX_LINE", 200)
    path = written(tmp_path, b'[1,0,"note",{"text":"%b"}]\n' % (b"x" * 200))
    with pytest.raises(TapeFormatError, match="longer than 200 bytes"):
        seal(path)


def test_records_of_unknown_codes_make_no_exchange(tmp_path: Path) -> None:
    parsed = ParsedAs(tool="x", dialect="x", events=0, calls=0, finish="", form=1, sha256="00")
    path = written(
        tmp_path, b'[1,4,"other",{}]\n', payload_record(2, 5, parsed), b' [3,6,"new",1]\n'
    )
    tape, packed = both(path)
    assert packed.numbers() == tape.numbers() == set()
    assert len(packed) == 0
    assert [*packed.records()] == [*tape.records()]


# What is read of a sealed tape, and what it costs.


def growing(turns: int, text: int) -> bytes:
    """A tape of one conversation, each of whose requests has all that was said before."""
    random = Random(20)
    words = ["".join(random.choices("etaoinshrdlucm", k=random.randint(2, 9))) for _ in range(5000)]

    def said() -> str:
        return " ".join(random.choices(words, k=text // 6))

    history, exchanges = [], []
    for _ in range(turns):
        history.append(user(said()))
        answer = said()
        exchanges.append((asks(*history), [choice({"content": answer}), choice({}, "stop")]))
        history.append(assistant(text=answer))
    return b"".join(tape_lines(HEADER, conversation(*exchanges), Stop(reason="x", exit_code=None)))


@pytest.mark.slow
def test_a_conversation_of_200_turns_takes_less_than_twice_what_was_said(tmp_path: Path) -> None:
    path = Path(write_tape(tmp_path, growing(200, 2600)))
    last = open_tape(path)[200]
    unique = len(last.request.body) + len(last.body)
    assert path.stat().st_size > 90 * unique > 90_000_000
    # Not ru_maxrss, which counts the memory of the process that started this one, too.
    program = (
        "import sys; from pathlib import Path; from deltatape.store.packing import seal;"
        "seal(sys.argv[1]); print(Path('/proc/self/status').read_text())"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program, str(path)], check=True, capture_output=True, text=True
    )
    (most,) = [line.split()[1] for line in ran.stdout.splitlines() if line.startswith("VmHWM:")]
    assert int(most) << 10 < 600 << 20
    sealed_path = tmp_path / "x.tape.zst"
    assert sealed_path.stat().st_size < 2 * unique
    packed = open_tape(sealed_path)
    assert packed[200].body == last.body
    assert packed[1].request.body == open_tape(path)[1].request.body


class _Counted(sealed.FileRanges):
    """A file of which is noted what is read."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.ranges: list[tuple[int, int]] = []

    def read(self, offset: int, length: int) -> bytes:
        self.ranges.append((offset, length))
        return super().read(offset, length)


def test_an_exchange_is_read_by_range(tmp_path: Path) -> None:
    random = Random(1)
    asked = [asks(user(random.randbytes(40_000).hex())) for _ in range(30)]
    said = [choice({"content": "Yes."}), choice({}, "stop")]
    every = conversation(*[(each, said) for each in asked])
    lines = tape_lines(HEADER, every, Stop(reason="x", exit_code=None))
    path = Path(write_tape(tmp_path, b"".join(lines)))
    seal(path)
    ranges = _Counted(tmp_path / "x.tape.zst")
    tape = sealed.open_sealed("far.tape.zst", ranges)
    assert tape[7].request.body == open_tape(path)[7].request.body
    assert tape[7].tape == "far.tape.zst"
    assert sum(length for _, length in ranges.ranges) < ranges.size() / 2
    assert len(tape.sealed.table.frames) > 3


def test_frames_are_cut_where_they_would_be_too_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_frames
    monkeypatch.setattr(
        packing, "plan_frames", lambda *each, shared: plan(*each, shared=shared, most=300)
    )
    monkeypatch.setattr(packing, "_RUN_BYTES", 100)
    monkeypatch.setattr(packing, "_SHARED_BYTES", 100)
    monkeypatch.setattr(packing, "_SECTION_BYTES", 400)
    monkeypatch.setattr(packing, "_ENTRIES", 1)
    monkeypatch.setattr(sealed, "_HELD_BYTES", 600)
    path = Path(write_tape(tmp_path, BROKEN.read_bytes()))
    tape, packed = both(path)
    table = packed.sealed.table
    assert len(table.frames) > 4
    assert len(table.order) > 2
    assert len(table.entries) == 2
    assert max(len(each.parts) for each in packed.sealed.entries()) > 1
    verify(packed)
    assert [each.body for each in packed] == [each.body for each in tape]
    assert packed[2].request.body == tape[2].request.body
    with packed.open() as journal:
        for at in (0, 1, 500, 77, tape.size - 1, tape.size, tape.size + 5):
            journal.seek(at)
            assert journal.read(40) == path.read_bytes()[at : at + 40]
        journal.seek(0)
        journal.seek(10, os.SEEK_CUR)
        assert journal.tell() == 10
        assert journal.seek(-5, os.SEEK_END) == tape.size - 5


def test_a_large_tape_is_summarised_by_its_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exact = both(Path(write_tape(tmp_path, BROKEN.read_bytes())))[1].sealed.table.summary
    monkeypatch.setattr(packing, "_SUMMARISED_BYTES", 0)
    found = open_tape(seal(BROKEN, tmp_path / "y.tape.zst").path)
    assert isinstance(found, SealedTape)
    assert exact is not None
    assert exact.worst is not None
    summary = found.sealed.table.summary
    assert summary is not None
    assert summary.worst is not None
    assert (summary.apps, summary.models) == (exact.apps, exact.models)
    assert (summary.findings, summary.worst["code"]) == (exact.findings, exact.worst["code"])
    healthy = tmp_path / "healthy.tape"
    healthy.write_bytes(FIXED.read_bytes())
    clean = both(healthy)[1].sealed.table.summary
    assert clean is not None
    assert (clean.findings, clean.worst) == (0, None)


def test_a_file_that_was_deleted_is_read_on(tmp_path: Path) -> None:
    path = seal(BROKEN, tmp_path / "x.tape.zst").path
    tape = open_tape(path)
    path.unlink()
    assert [each.number for each in tape] == [1, 2]
