"""The tapes of a run: named ones, rotation, who is connected, what is still being watched."""

import asyncio
import shutil
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from deltatape.clock import SystemClock
from deltatape.gateway import tapes
from deltatape.gateway.tapes import OpenTape, TapeBook
from deltatape.model.exchange import Source
from deltatape.store import tape_file, writer
from deltatape.store.names import open_new
from deltatape.store.reader import open_tape
from deltatape.store.tape_file import Line, TapeFile, WriterThread
from deltatape.store.writer import TapeWriter
from deltatape.tape.mask import Masker
from deltatape.tape.payload import ClientState
from helpers.upstream import eventually, run

OPENED, CLOSED = ClientState.OPENED, ClientState.CLOSED


def book(folder: Path) -> TapeBook:
    def create(name: str | None, thread: WriterThread) -> TapeWriter:
        return TapeWriter.create(
            folder,
            name or "run",
            clock=SystemClock(),
            tool="test",
            source=Source.GATEWAY,
            alarm=print,
            thread=thread,
        )

    return TapeBook(create, Masker(b"key"))


def records_of(path: str | Path) -> list[str]:
    """The records of a tape as text: `client 1 opened`, `idle`, `stop rotated`."""
    records = []
    for _, record in open_tape(path).records():
        value = record.payload.to_json()
        assert isinstance(value, dict)
        records.append(" ".join((record.payload.code, *map(str, value.values()))))
    return records


def test_a_name_is_a_tape_and_no_name_is_the_runs_own(tmp_path: Path) -> None:
    async def scenario() -> None:
        run_tapes = book(tmp_path)
        assert run_tapes.named(None) is run_tapes.current
        one = run_tapes.named("test_one")
        assert run_tapes.named("test_one") is one
        run_tapes.stop("test", None)
        assert one.path == str(tmp_path / "test_one.tape")
        assert records_of(one.path) == ["stop test"]

    run(scenario())


def test_each_tape_is_told_of_the_connections_that_it_saw(tmp_path: Path) -> None:
    async def scenario() -> None:
        run_tapes = book(tmp_path)
        run_tapes.client(1, OPENED)
        run_tapes.client(2, OPENED)
        named = run_tapes.named("n")
        named.client(1, OPENED)
        named.client(1, OPENED)
        for connection in (1, 2):
            run_tapes.client(connection, CLOSED)
        run_tapes.stop("test", 3)
        run_tapes.client(3, OPENED)  # too late: `stop` is the last line
        assert records_of(named.path) == ["client 1 opened", "client 1 closed", "stop test 3"]
        assert records_of(run_tapes.current.path) == [
            *("client 1 opened", "client 2 opened", "client 1 closed", "client 2 closed"),
            "stop test 3",
        ]

    run(scenario())


def test_rotation_waits_for_what_goes_on_and_names_who_is_connected(tmp_path: Path) -> None:
    async def scenario() -> None:
        run_tapes = book(tmp_path)
        closed: list[OpenTape] = []
        run_tapes.on_closed = closed.append
        run_tapes.client(7, OPENED)
        old = run_tapes.current
        old.active = 1
        assert await run_tapes.rotate(run_tapes.current)
        assert run_tapes.current.path == str(tmp_path / "run-2.tape")
        run_tapes.release(old)
        assert not closed
        old.active = 0
        run_tapes.release(old)
        await eventually(lambda: closed == [old], "the old tape is closed")
        run_tapes.stop("test", None)
        assert records_of(old.path) == ["client 7 opened", "stop rotated"]
        assert records_of(run_tapes.current.path) == ["client 7 opened", "stop test"]

    run(scenario())


def test_where_no_new_tape_can_be_made_the_old_one_goes_on(tmp_path: Path) -> None:
    async def scenario() -> None:
        run_tapes = book(tmp_path / "tapes")
        old = run_tapes.current
        (tmp_path / "tapes").rename(tmp_path / "moved")
        (tmp_path / "tapes").touch()
        assert not await run_tapes.rotate(old)
        assert run_tapes.current is old
        run_tapes.note("still here")
        run_tapes.stop("test", None)
        assert records_of(tmp_path / "moved" / "run.tape") == ["note still here", "stop test"]

    run(scenario())


def test_a_tape_on_which_nothing_goes_on_says_that_it_is_watched(tmp_path: Path) -> None:
    async def scenario() -> None:
        run_tapes = book(tmp_path)
        busy = run_tapes.named("busy")
        busy.active = 1
        run_tapes.watch(0)
        run_tapes.watch(3600 * 10**9)  # just said
        busy.active = 0
        run_tapes.stop("test", None)
        assert records_of(run_tapes.current.path) == ["idle", "stop test"]
        assert records_of(busy.path) == ["stop test"]

    run(scenario())


def test_a_tape_that_was_replaced_is_closed_in_the_background(tmp_path: Path) -> None:
    async def scenario() -> None:
        run_tapes = book(tmp_path)
        closed: list[OpenTape] = []
        run_tapes.on_closed = closed.append
        old = run_tapes.current
        await run_tapes.rotate(old)
        await eventually(lambda: closed == [old], "the old tape is closed")
        assert records_of(old.path) == ["stop rotated"]
        run_tapes.stop("test", None)

    run(scenario())


def test_a_run_that_ends_while_a_tape_is_being_closed_leaves_no_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = threading.Event()
    sync = TapeFile.sync

    def sync_late(file: TapeFile) -> None:
        if file.path.name == "n.tape":
            synced.wait(10)
        sync(file)

    monkeypatch.setattr(TapeFile, "sync", sync_late)

    async def scenario() -> TapeBook:
        run_tapes = book(tmp_path)
        await run_tapes.rotate(run_tapes.named("n"))
        run_tapes.stop("test", None)
        return run_tapes

    run_tapes = run(scenario())
    thread = run_tapes._thread._thread
    assert thread is not None
    assert thread.is_alive()
    synced.set()
    thread.join(10)
    assert not thread.is_alive()
    assert records_of(tmp_path / "n.tape") == ["stop rotated"]


def test_too_many_names_close_the_tape_that_was_quiet_for_longest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tapes, "MAX_NAMED", 2)

    async def scenario() -> None:
        run_tapes = book(tmp_path)
        closed: list[OpenTape] = []
        run_tapes.on_closed = closed.append
        first, second = run_tapes.named("a"), run_tapes.named("b")
        first.active = 1
        run_tapes.named("c")
        await eventually(lambda: closed == [second], "b is closed")
        assert run_tapes.named("a") is first
        run_tapes.named("b")
        run_tapes.stop("test", None)

    run(scenario())
    assert sorted(path.name for path in tmp_path.glob("*.tape")) == [
        *("a.tape", "b-2.tape", "b.tape", "c.tape", "run.tape"),
    ]


def test_losses_of_all_tapes_are_counted_once() -> None:
    async def scenario() -> None:
        run_tapes = book(Path("/dev/null/none"))
        run_tapes.note("lost")
        named = run_tapes.named("n")
        named.tap.note(0, "lost, too")
        assert await run_tapes.rotate(named)
        await eventually(lambda: run_tapes.losses()[0] == 3, "two notes and a stop")
        run_tapes.stop("test", None)
        assert run_tapes.losses()[0] == 4

    run(scenario())


def test_a_name_whose_tape_could_not_be_created_is_tried_again(tmp_path: Path) -> None:
    async def scenario() -> None:
        run_tapes = book(tmp_path / "tapes")
        shutil.rmtree(tmp_path / "tapes")
        (tmp_path / "tapes").touch()
        failed = run_tapes.named("n")
        failed.writer.flush()
        assert failed.writer.broken
        failed.active = 1
        assert run_tapes.named("n") is failed
        assert run_tapes.in_trouble
        failed.active = 0
        assert not run_tapes.in_trouble
        (tmp_path / "tapes").unlink()
        again = run_tapes.named("n")
        assert again is not failed
        run_tapes.stop("test", None)
        assert records_of(again.path) == ["stop test"]

    run(scenario())


def test_a_run_that_ends_during_a_rotation_leaves_no_empty_tape(tmp_path: Path) -> None:
    async def scenario() -> None:
        run_tapes = book(tmp_path)
        rotating = asyncio.ensure_future(run_tapes.rotate(run_tapes.current))
        await asyncio.sleep(0)
        assert not await run_tapes.rotate(run_tapes.current)  # one at a time
        run_tapes.stop("test", None)
        assert not await rotating

    run(scenario())
    assert [path.name for path in tmp_path.iterdir()] == ["run.tape"]


def test_a_rotation_that_a_hanging_disk_kept_from_a_new_tape_leaves_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    works = threading.Event()

    def open_late(folder: Path, stem: str) -> tuple[int, Path]:
        works.wait(10)
        return open_new(folder, stem)

    async def scenario() -> None:
        run_tapes = book(tmp_path)
        monkeypatch.setattr(writer, "open_new", open_late)
        monkeypatch.setattr(tape_file, "_PATIENCE_S", 0.01)
        assert not await run_tapes.rotate(run_tapes.current)
        works.set()
        monkeypatch.setattr(tape_file, "_PATIENCE_S", 10.0)
        await eventually(run_tapes.current.writer.flush, "the disk works again")
        run_tapes.stop("test", None)

    run(scenario())
    assert [path.name for path in tmp_path.iterdir()] == ["run.tape"]


def test_a_disk_that_hung_and_works_again_is_no_trouble_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    works = threading.Event()
    works.set()
    append = TapeFile.append

    def append_late(file: TapeFile, lines: Sequence[Line], now_ns: int) -> None:
        works.wait(60)
        append(file, lines, now_ns)

    monkeypatch.setattr(TapeFile, "append", append_late)
    monkeypatch.setattr(writer, "_HANGING_NS", 1)

    async def scenario() -> None:
        run_tapes = book(tmp_path)
        await eventually(lambda: not run_tapes.in_trouble, "the tape is created")
        for _ in range(2):
            works.clear()
            run_tapes.note("x")
            await eventually(lambda: run_tapes.in_trouble, "the disk hangs")
            run_tapes.watch(0)
            works.set()
            assert run_tapes.current.writer.flush()
            await eventually(lambda: not run_tapes.in_trouble, "the disk works again")
            run_tapes.settle()
        run_tapes.stop("test", None)

    run(scenario())
    # Each time is told.
    assert capsys.readouterr().out.count("the disk takes no bytes") == 2


def test_a_named_tape_is_replaced_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        run_tapes = book(tmp_path)
        named = run_tapes.named("n")
        assert await run_tapes.rotate(named)
        assert await run_tapes.rotate(named)
        assert run_tapes.named("n") is not named
        run_tapes.stop("test", None)

    run(scenario())


def test_what_was_read_of_an_exchange_stands_on_its_tape_as_long_as_that_is_open(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        run_tapes = book(tmp_path)
        old = run_tapes.current
        closed: list[OpenTape] = []
        run_tapes.on_closed = closed.append
        run_tapes.parsed(old, 1, PARSED)
        await run_tapes.rotate(old)
        run_tapes.parsed(old, 2, PARSED)  # too late: `stop` is the last line
        await eventually(lambda: closed == [old], "the old tape is closed")
        run_tapes.stop("test", None)
        run_tapes.parsed(run_tapes.current, 3, PARSED)
        assert records_of(old.path) == ["parsed test d 1 0 1 08", "stop rotated"]
        assert records_of(run_tapes.current.path) == ["stop test"]

    run(scenario())


PARSED: Mapping[str, object] = {
    "tool": "test",
    "dialect": "d",
    "events": 1,
    "calls": 0,
    "form": 1,
    "sha256": "08",
}
