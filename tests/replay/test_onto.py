"""Recordings go onto the tape that was played, whole or not at all."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from deltatape import __version__
from deltatape.clock import SystemClock
from deltatape.errors import UsageError
from deltatape.model.exchange import EndReason, Framing, Source
from deltatape.replay.onto import Beside
from deltatape.store.reader import open_tape
from deltatape.store.writer import TapeWriter
from deltatape.tape.tap import ExchangeTap, TapeTap
from helpers.tapes import MASKER

CLOCK = SystemClock()


def write(
    folder: Path, *feeds: Callable[[ExchangeTap], None], source: Source = Source.GATEWAY
) -> Path:
    """A tape in `folder` with an exchange for each of `feeds`."""
    writer = TapeWriter.create(
        folder, "new", clock=CLOCK, tool=f"deltatape {__version__}", source=source, alarm=print
    )
    for place, feed in enumerate(feeds, 1):
        tap = ExchangeTap(place, writer.put, MASKER)
        tap.request(
            place * 100,
            id=f"{os.urandom(13).hex().upper()}",
            method="POST",
            target=b"/v1/chat/completions",
            upstream="https://api.example.com",
            http="1.1",
            headers=(),
        )
        tap.request_body(place * 100 + 1, b'{"a":%d}' % place)
        tap.request_end(place * 100 + 2)
        feed(tap)
        tap.flush()
    TapeTap(writer.put, MASKER).stop(9000, "replayed", None)
    writer.close()
    assert writer.path is not None
    return writer.path


def answered(status: int, reason: EndReason = EndReason.COMPLETE) -> Callable[[ExchangeTap], None]:
    def feed(tap: ExchangeTap) -> None:
        tap.response(
            1000, status=status, reason=b"", http="1.1", framing=Framing.LENGTH, headers=()
        )
        tap.read(1001, b"data: 1\n\n", None)
        tap.end(1002, reason)

    return feed


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def lost(tap: ExchangeTap) -> None:
    tap.response(1000, status=200, reason=b"", http="1.1", framing=Framing.LENGTH, headers=())
    tap.end(1001, EndReason.COMPLETE, recorder={"lost_records": 1})


def refused(tap: ExchangeTap) -> None:
    tap.end(1000, EndReason.REFUSED, detail="no connection")


def silent(tap: ExchangeTap) -> None:
    tap.end(1000, EndReason.UPSTREAM_CLOSED)


def unfinished(tap: ExchangeTap) -> None:
    tap.flush()


def test_a_tape_that_is_not_there_is_made(tmp_path: Path) -> None:
    tape = tmp_path / "deep" / "x.tape"
    beside = Beside(tape)
    folder = beside.make()
    assert (folder.parent, folder.stat().st_mode & 0o777) == (tape.parent, 0o700)
    write(folder, answered(200), answered(429))
    done = beside.take(folder, CLOCK)
    assert [(e.tape, e.number) for e in done.kept] == [(str(tape), 1), (str(tape), 2)]
    assert done.left_out == ()
    assert names(tape.parent) == ["x.tape"]
    assert open_tape(tape).watch.stop == "replayed"


def test_a_tape_grows_and_keeps_its_mode(tmp_path: Path) -> None:
    tape = write(tmp_path, answered(200))
    tape.chmod(0o644)
    os.utime(tape, (1, 1))
    beside = Beside(tape)
    folder = beside.make()
    write(folder, answered(201))
    (kept,) = beside.take(folder, CLOCK).kept
    assert kept.number == 2
    assert [e.response.status for e in open_tape(tape) if e.response] == [200, 201]
    assert tape.stat().st_mode & 0o777 == 0o644
    assert tape.stat().st_mtime > 1
    assert names(tmp_path) == [tape.name]


def test_what_would_fail_a_test_for_ever_is_left_out(tmp_path: Path) -> None:
    tape = tmp_path / "x.tape"
    beside = Beside(tape)
    folder = beside.make()
    stopped = answered(200, EndReason.STOPPED)
    write(folder, refused, answered(200), answered(401), stopped, lost, silent, unfinished)
    done = beside.take(folder, CLOCK)
    assert [e.number for e in done.kept] == [1]
    assert [e.request.body for e in done.kept] == [b'{"a":2}']
    assert sorted(why for _, why in done.left_out) == [
        "it went on when the run ended",
        "it went on when the run ended",
        "no connection",
        "not all of it could be taped",
        "the provider did not answer",
        "the provider refused the key (401)",
    ]


def test_where_nothing_is_worth_it_the_tape_stays_as_it_is(tmp_path: Path) -> None:
    beside = Beside(tmp_path / "x.tape")
    folder = beside.make()
    write(folder, refused)
    assert beside.take(folder, CLOCK).kept == ()
    assert names(tmp_path) == []


def test_what_cannot_be_put_onto_the_tape_is_not_lost(tmp_path: Path) -> None:
    tape = write(tmp_path, answered(200))
    before = tape.read_bytes()
    beside = Beside(tape)
    folder = beside.make()
    write(folder, answered(200))
    write(folder, answered(200), source=Source.IMPORT)
    with pytest.raises(UsageError, match=f"what was recorded is in {folder}"):
        beside.take(folder, CLOCK)
    assert tape.read_bytes() == before
    assert len(names(folder)) == 2


class Intruder:
    """A clock that, when a tape is spliced, has somebody else write to the original."""

    def __init__(self, tape: Path) -> None:
        self._tape = tape

    def now_ns(self) -> int:
        return CLOCK.now_ns()

    def wall_ns(self) -> int:
        with self._tape.open("ab") as file:
            file.write(b'[99999,0,"idle",{}]\n')
        return CLOCK.wall_ns()


def test_what_others_do_to_the_tape_at_the_same_time_is_not_undone(tmp_path: Path) -> None:
    tape = write(tmp_path, answered(200))
    beside = Beside(tape)
    folder = beside.make()
    write(folder, answered(200))
    with pytest.raises(UsageError, match=r"changed .*; what was recorded is in "):
        beside.take(folder, Intruder(tape))
    assert tape.read_bytes().endswith(b'"idle",{}]\n')
    assert "new.tape" in names(folder)


def test_a_tape_that_cannot_grow_is_refused_at_once(tmp_path: Path) -> None:
    imported = write(tmp_path, answered(200), source=Source.IMPORT)
    with pytest.raises(UsageError, match="is an import, without times or endings"):
        Beside(imported)
    writer = TapeWriter.create(
        tmp_path, "open", clock=CLOCK, tool="deltatape", source=Source.GATEWAY, alarm=print
    )
    assert writer.path is not None
    with pytest.raises(UsageError, match="is being recorded"):
        Beside(writer.path)
    writer.close()
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="its folder has to be writable"):
        Beside(tmp_path / "file" / "x.tape").make()


def test_what_the_application_left_once_it_was_being_ended_stays_away(tmp_path: Path) -> None:
    for until, kept in ((1002, 0), (1003, 1)):
        beside = Beside(tmp_path / f"{until}.tape")
        folder = beside.make()
        tape = write(folder, answered(200, EndReason.CLIENT_CLOSED))
        recorded = beside.take(folder, CLOCK, {tape.name: until})
        assert len(recorded.kept) == kept
        assert len(recorded.left_out) == 1 - kept


def test_only_folders_whose_process_is_gone_are_left_over(tmp_path: Path) -> None:
    beside = Beside(tmp_path / "x.tape")
    ours = beside.make()
    empty, full, other = (tmp_path / name for name in (".x.1.new", ".x.2.new", ".y.3.new"))
    for folder in (empty, full, other):
        folder.mkdir()
        write(folder, answered(200)) if folder is not empty else None
    (tmp_path / ".x.4.new").touch()
    assert Beside(tmp_path / "x.tape").leftovers() == (full,)
    assert ours.is_dir()
    assert not empty.exists()
    assert other.exists()
    beside.take(ours, CLOCK)
    assert not ours.exists()


def test_runs_that_end_on_one_tape_at_the_same_time_are_all_on_it(tmp_path: Path) -> None:
    tape = tmp_path / "x.tape"
    several = [Beside(tape) for _ in range(8)]
    folders = [beside.make() for beside in several]
    for folder in folders:
        write(folder, *(answered(200) for _ in range(20)))
    with ThreadPoolExecutor(len(several)) as threads:
        done = threads.map(lambda beside, folder: beside.take(folder, CLOCK), several, folders)
        assert [len(one.kept) for one in done] == [20] * len(several)
    assert len(list(open_tape(tape).exchanges())) == 20 * len(several)
    assert names(tmp_path) == ["x.tape"]


@pytest.mark.parametrize("is_there", [True, False])
def test_a_link_to_a_tape_stays_one(tmp_path: Path, *, is_there: bool) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "links").mkdir()
    real = tmp_path / "kept" / "x.tape"
    if is_there:
        write(real.parent, answered(200)).rename(real)
    link = tmp_path / "links" / "y.tape"
    link.symlink_to("../kept/x.tape")
    beside = Beside(link)
    folder = beside.make()
    write(folder, answered(200))
    beside.take(folder, CLOCK)
    assert link.is_symlink()
    assert len(list(open_tape(link).exchanges())) == 1 + is_there
    assert (names(link.parent), names(real.parent)) == (["y.tape"], ["x.tape"])
