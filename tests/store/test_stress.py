"""The writer when its disk, its folder or its process is in trouble."""

import array
import fcntl
import os
import subprocess
import sys
import termios
import threading
from pathlib import Path

import pytest

from deltatape.clock import SystemClock
from deltatape.model.exchange import EndReason
from deltatape.store import writer
from deltatape.store.reader import open_tape
from deltatape.store.tape_file import LossCounter, TapeFile
from deltatape.store.writer import TapeWriter
from deltatape.tape.encode import header_line, payload_record
from deltatape.tape.payload import LOSS_NOTE, EndRecord
from helpers.tapes import HEADER

PIPE_BYTES = 65536
LIMIT_S = 20.0
pause = threading.Event().wait


def line(number: int, size: int = 0) -> bytes:
    return b'[%d,1,"note",{"text":"%b"}]\n' % (number, b"x" * size)


def number_of(text: bytes) -> int:
    return int(text[1:].split(b",")[0])


class Stalled:
    """A disk that takes nothing unless it is told to: a pipe in the place of the file."""

    def __init__(self) -> None:
        self.alarms: list[str] = []
        self.taken = b""
        self._out, into = os.pipe()
        ledger = LossCounter(self.alarms.append)
        self.file = TapeFile(into, Path("pipe"), header_line(HEADER), ledger)
        clock = SystemClock()
        self.file.append((), 0)
        self.writer = TapeWriter(self.file, HEADER, clock, clock.now_ns(), ledger)
        self._reader: threading.Thread | None = None

    def take_later(self, count: int) -> None:
        """Once it is full, stall for a moment, then take that many bytes, then stall again."""

        def read() -> None:
            waiting = array.array("i", [0])
            while waiting[0] < PIPE_BYTES // 2:
                pause(0.001)
                fcntl.ioctl(self._out, termios.FIONREAD, waiting)
            pause(0.4)
            self._read(count)

        self._reader = threading.Thread(target=read, daemon=True)
        self._reader.start()

    def work_again(self) -> None:
        """Take everything from now on."""
        assert self._reader is not None
        self._reader.join(LIMIT_S)  # two that read at once would mix what they take
        assert not self._reader.is_alive()
        self._reader = threading.Thread(target=self._read, args=(1 << 40,))
        self._reader.start()

    def _read(self, count: int) -> None:
        end = len(self.taken) + count
        while data := os.read(self._out, min(1 << 20, end - len(self.taken))):
            self.taken += data

    def close(self) -> list[bytes]:
        """The lines that it took, without the header."""
        self.writer.close()
        assert self._reader is not None
        self._reader.join(LIMIT_S)
        os.close(self._out)
        return self.taken.splitlines(keepends=True)[1:]


LONG = line(0, 2 * PIPE_BYTES)


def put(tape: TapeWriter, *lines: bytes) -> None:
    """Put lines one after the other; fails if that does not end."""

    def work() -> None:
        for each in lines:
            tape.put(1, each)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(LIMIT_S)
    assert not thread.is_alive()


def test_a_disk_that_stalls_is_not_waited_for() -> None:
    disk = Stalled()
    disk.take_later(2 * PIPE_BYTES)
    put(disk.writer, LONG)
    put(disk.writer, LONG)  # while it takes nothing
    disk.work_again()
    assert disk.close() == [LONG, LONG]
    assert disk.writer.lost_records == 0
    assert ["synced" in alarm for alarm in disk.alarms] == [True]  # no pipe can be


def test_a_disk_that_hangs_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "_HANGING_NS", 0)
    disk = Stalled()
    disk.writer.watch()
    assert disk.alarms == []
    disk.take_later(0)
    put(disk.writer, LONG)
    while not disk.alarms:
        pause(0.001)
        disk.writer.watch()
    assert "the disk takes no bytes" in disk.alarms[0]
    disk.work_again()
    assert disk.close() == [LONG]


def test_while_it_stalls_lines_wait_and_what_is_too_much_is_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(writer, "WAITING_BYTES", 4 * PIPE_BYTES)
    disk = Stalled()
    disk.take_later(0)
    put(disk.writer, LONG, *(line(number, 1000) for number in range(1000)), END)
    lost = disk.writer.lost_records
    assert 0 < lost < 1000
    assert disk.alarms == [f"taping fails: {writer.TOO_SLOW}; the tape loses records"]
    disk.work_again()
    first, *others, end = disk.close()
    assert first == LONG
    assert others == [line(number, 1000) for number in range(1000 - lost)]
    assert f'"lost_records":{lost},' in end.decode()
    assert disk.writer.lost_records == lost


def test_where_lines_did_not_fit_a_note_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "WAITING_BYTES", 3 * PIPE_BYTES)
    disk = Stalled()
    disk.take_later(0)
    put(disk.writer, LONG, line(1, 2 * PIPE_BYTES), line(2, 2 * PIPE_BYTES), line(3))
    disk.work_again()
    disk.writer.flush()
    put(disk.writer, line(4))
    lines = disk.close()
    assert [number_of(each) for each in lines] == [0, 3, 3, 4]
    assert f"{LOSS_NOTE}{writer.TOO_SLOW}; 2 so far" in lines[1].decode()


END = payload_record(5000, 1, EndRecord(reason=EndReason.COMPLETE, bytes=0, sha256=""))


RECORDER = """
import sys
from pathlib import Path
from deltatape.clock import SystemClock
from deltatape.model.exchange import Source
from deltatape.store.writer import TapeWriter

sys.stdin.read(1)  # all start at the same instant
writer = TapeWriter.create(
    Path(sys.argv[1]), "run", clock=SystemClock(), tool=sys.argv[2], source=Source.GATEWAY,
    alarm=print,
)
for number in range(300):
    writer.put(1, b'[%d,1,"note",{"text":"%b"}]\\n' % (number, sys.argv[2].encode()))
writer.close()
print(writer.path)
"""


def test_recorders_that_start_at_the_same_instant_have_a_tape_each(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", RECORDER, folder, f"tool{number}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(6)
    ]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("x")
        process.stdin.flush()
    paths = [Path(process.communicate(timeout=300)[0].strip()) for process in processes]
    assert sorted(path.name for path in paths) == [
        *(f"run-{number}.tape" for number in range(2, 7)),
        "run.tape",
    ]
    for number, path in enumerate(paths):
        tape = open_tape(path)
        assert tape.header.tool == f"tool{number}"
        assert len(list(tape.records())) == 300
        assert path.read_bytes().count(f'"tool{number}"'.encode()) == 301


EXHAUSTED = """
import os, resource, sys
from pathlib import Path
from deltatape.clock import SystemClock
from deltatape.model.exchange import Source
from deltatape.store.writer import TapeWriter

def create(stem):
    return TapeWriter.create(
        Path(sys.argv[1]), stem, clock=SystemClock(), tool="", source=Source.GATEWAY, alarm=print
    )

first = create("first")
held = []
resource.setrlimit(resource.RLIMIT_NOFILE, (20, 20))
try:
    while True:
        held.append(os.open("/dev/null", os.O_RDONLY))
except OSError:
    pass
second = create("second")
for writer in (first, second):
    writer.put(1, b'[1,1,"note",{"text":"x"}]\\n')
    writer.durable()
    writer.flush()
print(first.lost_records, second.path, second.lost_records)
for fd in held:
    os.close(fd)
third = create("third")
for writer in (first, second, third):
    writer.close()
print(third.path is not None)
"""


def test_without_descriptors_a_tape_goes_on_and_no_new_one_is_begun(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", EXHAUSTED, tmp_path],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        f"nothing will be taped: {tmp_path}: Too many open files; the streams go on unrecorded",
        "0 None 1",
        "True",
    ]
    assert len(list(open_tape(tmp_path / "first.tape").records())) == 1


def test_a_tape_can_be_renamed_while_it_is_written(tmp_path: Path) -> None:
    alarms: list[str] = []
    ledger = LossCounter(alarms.append)
    old, new = tmp_path / "old.tape", tmp_path / "new.tape"
    file = TapeFile(
        os.open(old, os.O_WRONLY | os.O_CREAT | os.O_APPEND), old, header_line(HEADER), ledger
    )
    clock = SystemClock()
    tape = TapeWriter(file, HEADER, clock, clock.now_ns(), ledger)
    tape.put(1, line(0))
    tape.flush()
    assert tape.rename(new)
    assert tape.path == new
    assert not tape.rename(tmp_path / "missing" / "x.tape")
    assert alarms == [f"{new}: cannot be called x.tape: No such file or directory"]
    tape.put(1, line(1))
    tape.flush()
    assert tape.size == new.stat().st_size
    tape.close()
    assert not old.exists()
    assert len(list(open_tape(new).records())) == 2
    new.unlink()
    assert not TapeWriter(None, HEADER, clock, 0, ledger).rename(old)
