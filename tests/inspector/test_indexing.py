"""What the indexing process knows of tapes, without its process."""

import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest

from deltatape.clock import SystemClock
from deltatape.errors import DeltatapeError
from deltatape.inspector.index import Filter, IndexReader
from deltatape.inspector.indexing import MAX_STARTS, Indexing, Library
from deltatape.model.rule_settings import DEFAULTS, Settings
from deltatape.render.exchange_rows import row_object
from deltatape.store.reader import open_tape
from deltatape.store.tail import LONG_LINE
from deltatape.tape.encode import header_line
from deltatape.tape.tap import ExchangeTap
from deltatape.why.exchange_index import index_rows
from helpers.inspected import Growing
from helpers.sealing import sealed_copy, table_of
from helpers.shards import sharded
from helpers.tapes import HEADER, MASKER, Lines, start, write_tape

ROOT = Path(__file__).parent.parent.parent
INCIDENTS = ROOT / "recordings" / "incidents"
TAPE = INCIDENTS / "itinerary-broken.tape"


class SkippingClock(SystemClock):
    """The machine's clock, which a test can put forward."""

    def __init__(self) -> None:
        self.skipped_ns = 0
        self.step_ns = 0
        """How much later it is each time, as on a machine that is busy otherwise."""
        self.stopped_ns: int | None = None

    def now_ns(self) -> int:
        self.skipped_ns += self.step_ns
        now_ns = SystemClock.now_ns() if self.stopped_ns is None else self.stopped_ns
        return now_ns + self.skipped_ns

    def stop(self) -> None:
        """Let no time pass but what the test says."""
        self.stopped_ns = SystemClock.now_ns()

    def skip(self) -> None:
        self.skipped_ns += 3_600_000_000_000


class Run:
    """An indexing of a folder."""

    def __init__(self, library: Library, index: Path, settings: Settings = DEFAULTS) -> None:
        self.index = index
        self.clock = SkippingClock()
        self.indexing = Indexing(library, index, settings, self.clock)

    def go(self) -> "Run":
        """Look through the folders and read everything that is there."""
        self.clock.skip()
        self.indexing.scan()
        while self.indexing.busy:
            self.indexing.work()
        self.indexing.work()  # on what grows, which may take more than the time for once
        while self.indexing.busy:
            self.indexing.work()
        return self

    def rows(self, tape: str = "") -> list[Mapping[str, Any]]:
        reader = IndexReader(self.index)
        try:
            page = reader.page(Filter(tape=tape), "at", offset=0, limit=500)
            return [json.loads(each) for each in page.rows]
        finally:
            reader.close()

    def tapes(self) -> dict[str, Any]:
        reader = IndexReader(self.index)
        try:
            return {state.id: state for state, _ in reader.tapes()}
        finally:
            reader.close()

    def stop(self) -> None:
        self.indexing.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "tapes"
    made.mkdir()
    return made


@pytest.fixture
def run(folder: Path, tmp_path: Path) -> Iterator[Run]:
    made = Run(Library(folders=[folder]), tmp_path / "index")
    yield made
    made.stop()


def expected(tape: Path, name: str) -> list[Mapping[str, object]]:
    """The last row of each exchange of a whole tape."""
    opened = open_tape(tape)
    rows = {row.exchange: row for row in index_rows(opened, DEFAULTS, opened.logs)}
    return [{**row_object(row), "tape": name} for row in rows.values()]


def same(rows: Sequence[Mapping[str, object]], others: Sequence[Mapping[str, object]]) -> bool:
    def text(row: Mapping[str, object]) -> str:
        return json.dumps(row, sort_keys=True)

    return sorted(map(text, rows)) == sorted(map(text, others))


def test_the_rows_are_those_of_each_tape(run: Run, folder: Path) -> None:
    shutil.copytree(INCIDENTS, folder, dirs_exist_ok=True)
    run.go()
    names = sorted(str(each.relative_to(folder)) for each in folder.rglob("*.tape"))
    assert sorted(run.tapes()) == names
    for name in names:
        assert same(run.rows(name), expected(folder / name, name)), name
    news = run.indexing.news()
    assert news is not None
    assert news["indexed"]["done"] == news["indexed"]["of"] == len(names)  # type: ignore[index]
    assert run.indexing.news() is None  # nothing is new


def test_how_much_of_a_large_tape_was_read_is_told_meanwhile(run: Run, folder: Path) -> None:
    place = folder / "x.tape"
    note = b'[1,0,"note",{"text":"%b"}]\n' % (b"x" * 5000)
    whole = TAPE.read_bytes().splitlines(keepends=True)
    end = next(at for at, line in enumerate(whole, 1) if b'"end"' in line)
    place.write_bytes(b"".join([*whole[:end], *[note] * 200, *whole[end:]]))
    run.indexing.scan()
    run.indexing._reading = run.indexing._begin(run.indexing._next())  # type: ignore[arg-type]
    told = []
    for _ in run.indexing._reading:
        news = run.indexing.news()
        assert news is not None
        told.append(news["indexed"]["bytes"])  # type: ignore[index]
    assert told
    assert all(0 < each["done"] <= each["of"] == place.stat().st_size for each in told)
    run.go()
    news = run.indexing.news()
    assert news is not None
    assert news["indexed"]["bytes"] == {"done": told[0]["of"], "of": told[0]["of"]}  # type: ignore[index]


def test_what_has_not_changed_is_not_read_again(run: Run, folder: Path, tmp_path: Path) -> None:
    shutil.copy(TAPE, folder)
    run.go().stop()
    again = Run(Library(folders=[folder]), tmp_path / "index")
    again.indexing.scan()
    assert not again.indexing.busy
    assert same(again.rows(), expected(folder / TAPE.name, TAPE.name))
    again.stop()


def test_other_thresholds_make_other_rows(run: Run, folder: Path, tmp_path: Path) -> None:
    shutil.copy(TAPE, folder)
    run.go().stop()
    again = Run(Library(folders=[folder]), tmp_path / "index", Settings(stall_s=1.0))
    again.indexing.scan()
    assert again.indexing.busy
    again.stop()


def test_a_tape_that_changes_is_read_again_and_one_that_goes_is_forgotten(
    run: Run, folder: Path
) -> None:
    place = folder / "x.tape"
    shutil.copy(TAPE, place)
    shutil.copy(TAPE, folder / "y.tape")
    run.go()
    shutil.copy(INCIDENTS / "empty-arguments.tape", place)
    (folder / "y.tape").unlink()
    run.go()
    assert list(run.tapes()) == ["x.tape"]
    assert same(run.rows(), expected(place, "x.tape"))


@pytest.mark.parametrize(
    ("damage", "problem", "left"),
    [
        (b"", "empty; a tape starts with a header line", 0),
        (b"no tape\n", "line 1: no tape", 0),
        (None, "line ", 1),
    ],
)
def test_a_damaged_tape_says_so_and_keeps_what_is_before(
    run: Run, folder: Path, damage: bytes | None, problem: str, left: int
) -> None:
    place = folder / "x.tape"
    whole = TAPE.read_bytes().splitlines(keepends=True)
    end = next(at for at, line in enumerate(whole) if b'"end"' in line)
    place.write_bytes(b"".join([*whole[: end + 1], b"[oops\n"]) if damage is None else damage)
    run.go()
    state = run.tapes()["x.tape"]
    assert state.indexed
    assert (problem if damage is not None else f"line {end + 2}: ") in state.problem
    assert len(run.rows()) == left


def test_an_index_that_is_no_index_is_made_anew(folder: Path, tmp_path: Path) -> None:
    shutil.copy(TAPE, folder)
    index = tmp_path / "index"
    index.write_bytes(b"SQLite format 3\0" + b"x" * 5000)
    run = Run(Library(folders=[folder]), index).go()
    assert same(run.rows(), expected(TAPE, TAPE.name))
    assert index.stat().st_mode & 0o777 == 0o600
    run.stop()


def test_what_ends_the_process_again_and_again_is_left_out(run: Run, folder: Path) -> None:
    shutil.copy(TAPE, folder)
    run.indexing.scan()
    writer = run.indexing._writer
    with writer.changing():
        writer.put_tape(writer.tapes()[TAPE.name]._replace(starts=MAX_STARTS))
    run.stop()
    again = Run(Library(folders=[folder]), run.index).go()
    state = again.tapes()[TAPE.name]
    assert state.indexed
    assert "could not read it 3 times" in state.problem
    assert again.rows() == []
    os.utime(folder / TAPE.name)  # changed: it gets another chance
    again.go()
    assert len(again.rows()) == len(expected(TAPE, TAPE.name))
    again.stop()


def test_a_start_that_ends_well_does_not_count(run: Run, folder: Path) -> None:
    for _ in range(MAX_STARTS + 1):
        shutil.copy(TAPE, folder)
        os.utime(folder / TAPE.name)
        run.go()
    assert run.tapes()[TAPE.name].problem is None


def test_names_that_are_no_unicode_have_ids_that_are(run: Run, folder: Path) -> None:
    name = b"caf\xe9\n.tape"
    shutil.copy(TAPE, folder / os.fsdecode(name))
    run.go()
    (only,) = run.tapes()
    assert only == "caf\\xe9\n.tape"
    only.encode()
    assert {row["tape"] for row in run.rows()} == {only}


def test_several_folders_are_told_apart_by_their_names(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    for each in (folder, other):
        shutil.copy(TAPE, each / "x.tape")
    run = Run(Library(folders=[folder, other, tmp_path / "missing"]), tmp_path / "index").go()
    assert sorted(run.tapes()) == ["other/x.tape", "tapes/x.tape"]
    run.stop()


def test_a_single_tape_is_alone(folder: Path, tmp_path: Path) -> None:
    for name in ("x.tape", "y.tape"):
        shutil.copy(TAPE, folder / name)
    run = Run(Library(only=folder / "x.tape"), tmp_path / "index").go()
    assert list(run.tapes()) == ["x.tape"]
    (folder / "x.tape").unlink()
    run.go()
    assert run.tapes() == {}
    run.stop()


def test_shards_are_read_as_one_and_each_has_its_own_rows(run: Run, folder: Path) -> None:
    paths = sharded(TAPE, folder)
    run.go()
    rows = [{**row, "tape": "x"} for row in run.rows()]
    assert same(rows, expected(TAPE, "x"))
    for at, path in enumerate(paths, start=1):
        own = run.rows(path.name)
        assert own
        assert {row["exchange"] % 2 for row in own} == {at % 2}


def test_a_tape_that_grows_is_followed_to_its_end(run: Run, folder: Path) -> None:
    growing = Growing(TAPE, folder / "x.tape")
    growing.write(growing.until(1, b"request-end"))
    run.go()
    assert run.tapes()["x.tape"].recording
    (running,) = run.indexing.running()
    assert (running["exchange"], running["open"], running["duration_ns"]) == (1, True, None)
    assert running["tape"] == "x.tape"
    assert running["model"] is not None
    assert run.rows() == []

    growing.write(growing.until(1, b"read"))
    run.go()
    (running,) = run.indexing.running()
    assert running["first_event_ns"] is not None

    growing.write(growing.until(1, b"end"))
    run.go()
    assert run.indexing.running() == []
    assert [row["exchange"] for row in run.rows()] == [1]
    news = run.indexing.news()
    assert news is not None
    assert news["indexed"]["done"] == 1  # type: ignore[index]

    growing.write(len(growing.lines))
    growing.file.close()
    run.go()
    assert same(run.rows(), expected(TAPE, "x.tape"))
    assert run.tapes()["x.tape"].indexed
    run.go()
    assert not run.indexing.busy


@pytest.mark.parametrize("name", ["conformance", "dialects", "incidents"])
def test_however_a_tape_grows_its_rows_are_those_of_the_whole(name: str, tmp_path: Path) -> None:
    different = []
    for number, tape in enumerate(sorted((ROOT / "recordings" / name).glob("*.tape"))):
        try:
            rows = expected(tape, "x.tape")
        except DeltatapeError:  # damaged on purpose
            continue
        folder = tmp_path / str(number)
        folder.mkdir()
        run = Run(Library(folders=[folder]), tmp_path / f"{number}.index")
        growing = Growing(tape, folder / "x.tape")
        data, chance = b"".join(growing.lines), Random(number)
        cuts = sorted(chance.sample(range(1, len(data)), 3))
        for start_at, end_at in pairwise((0, *cuts, len(data))):
            growing.file.write(data[start_at:end_at])
            if chance.random() < 0.8:
                run.go()
                run.indexing.running()
        growing.file.close()
        if not same(run.go().rows(), rows):
            different.append(tape.name)
        run.stop()
    assert different == []


def test_what_is_recorded_last_is_read_even_if_time_was_up_before(run: Run, folder: Path) -> None:
    growing = Growing(TAPE, folder / "x.tape")
    growing.write(growing.until(1, b"request-end"))
    run.go()
    growing.write(growing.until(2, b"request"))
    run.clock.stop()
    run.clock.step_ns = 60_000_000
    run.indexing.work()  # has read all there is, and had no time to notice
    run.clock.step_ns = 0
    assert [row["exchange"] for row in run.rows()] == [1]
    assert run.indexing.busy

    growing.write(len(growing.lines))
    growing.file.close()
    run.go()
    assert same(run.rows(), expected(TAPE, "x.tape"))


def test_an_exchange_with_a_long_request_is_seen_in_progress(run: Run, folder: Path) -> None:
    lines = Lines()
    tap = ExchangeTap(1, lines.put, MASKER)
    start(tap, body=b'{"model": "gpt-4o", "messages": ["%b"]}' % (b"x" * LONG_LINE))
    tap.flush()
    source = write_tape(folder.parent, header_line(HEADER) + lines.text.encode(), "source")
    growing = Growing(Path(source), folder / "x.tape")
    growing.write(len(growing.lines))
    run.go()
    assert [row["model"] for row in run.indexing.running()] == ["gpt-4o"]
    growing.file.close()


def test_a_row_in_progress_follows_what_has_come(run: Run, folder: Path) -> None:
    growing = Growing(TAPE, folder / "x.tape")
    growing.write(growing.until(1, b"request-end"))
    seen = []
    for _ in range(growing.until(1, b"end") - 1):
        growing.write(1)
        run.go()
        (row,) = run.indexing.running()
        assert row["open"]
        seen.append((row["calls"], row["first_event_ns"]))
    ended = expected(TAPE, "x.tape")[0]
    assert ended["calls"]
    assert seen[0] == (0, None)
    assert seen[-1] == (ended["calls"], ended["first_event_ns"])
    growing.file.close()


def test_where_many_are_in_progress_their_rows_take_turns(run: Run, folder: Path) -> None:
    lines = Lines()
    many = range(1, 31)
    for number in many:
        tap = ExchangeTap(number, lines.put, MASKER)
        start(tap)
        tap.flush()
    source = write_tape(folder.parent, header_line(HEADER) + lines.text.encode(), "source")
    growing = Growing(Path(source), folder / "x.tape")
    growing.write(len(growing.lines))
    run.go()
    run.clock.stop()
    run.clock.step_ns = 10_000_000  # so that there is time for a few of them
    shown = [0]
    while shown[-1] < len(many):
        run.clock.skip()
        shown.append(len(run.indexing.running()))
        assert shown[-1] > shown[-2]
    assert len(shown) > len(many) / 10

    growing.file.write(b"".join(b'[%d,%d,"read","data: 1\\n\\n"]\n' % (9, at) for at in many))
    run.clock.step_ns = 0
    run.go()
    run.clock.step_ns = 10_000_000
    for _ in shown[1:]:  # none is left out, however little there is time for
        run.clock.skip()
        rows = run.indexing.running()
        assert {row["exchange"] for row in rows} == set(many)
    assert None not in {row["first_event_ns"] for row in run.indexing.running()}
    growing.file.close()


def test_damage_in_what_is_in_progress_is_a_problem_of_the_tape(run: Run, folder: Path) -> None:
    growing = Growing(TAPE, folder / "x.tape")
    growing.write(growing.until(1, b"read"))
    growing.file.write(b'[1,1,"read",7]\n')
    run.go()
    growing.file.close()
    run.go()
    state = run.tapes()["x.tape"]
    assert state.indexed
    assert state.problem is not None
    assert state.problem.startswith("line ")
    assert [row["exchange"] for row in run.rows()] == [1]


def test_a_long_prompt_is_shown_while_its_answer_comes(run: Run, folder: Path) -> None:
    growing = Growing(TAPE, folder / "x.tape")
    body = growing.until(1, b"request-body") - 1
    said = b'\\"content\\": \\"'
    growing.lines[body] = growing.lines[body].replace(said, said + b"x" * 100_000)
    assert len(growing.lines[body]) > 100_000
    growing.write(growing.until(1, b"read"))
    run.go()
    (running,) = run.indexing.running()
    assert running["model"] == "demo-model"
    assert running["first_event_ns"] is not None
    growing.file.close()


def test_what_is_damaged_while_it_grows_keeps_its_rows(run: Run, folder: Path) -> None:
    growing = Growing(TAPE, folder / "x.tape")
    growing.write(growing.until(1, b"end"))
    run.go()
    growing.file.write(b"[oops\n")
    run.go()
    state = run.tapes()["x.tape"]
    assert "line " in state.problem
    assert [row["exchange"] for row in run.rows()] == [1]
    growing.file.close()


def test_a_tape_that_is_gone_while_it_grows_is_forgotten(run: Run, folder: Path) -> None:
    growing = Growing(TAPE, folder / "x.tape")
    growing.write(growing.until(1, b"end"))
    run.go()
    (folder / "x.tape").unlink()
    run.go()
    assert run.tapes() == {}
    assert run.rows() == []
    growing.file.close()


def test_another_tape_in_the_place_of_one_that_grew_is_read(run: Run, folder: Path) -> None:
    growing = Growing(TAPE, folder / "x.tape")
    growing.write(growing.until(1, b"end"))
    run.go()
    (folder / "x.tape").rename(folder / "old.tape")
    shutil.copy(INCIDENTS / "empty-arguments.tape", folder / "x.tape")
    run.go()
    assert same(run.rows("x.tape"), expected(folder / "x.tape", "x.tape"))
    assert run.tapes()["old.tape"].recording
    growing.file.close()


def test_a_sealed_tape_is_indexed_by_its_own_index(run: Run, folder: Path) -> None:
    shutil.copy(TAPE, folder / "x.tape")
    expected = run.go().rows()
    apps = [each for _, each in _with_apps(run)]
    path = sealed_copy(TAPE, folder)
    path.rename(folder / "x.tape.zst")
    (folder / "x.tape").unlink()
    data = bytearray((folder / "x.tape.zst").read_bytes())
    data[table_of(folder / "x.tape.zst")["frames"][1][0] + 20] ^= 1  # what is not read
    (folder / "x.tape.zst").write_bytes(data)
    found = run.go().rows()
    assert [{**each, "tape": "x.tape"} for each in found] == expected
    assert [each for _, each in _with_apps(run)] == apps


def _with_apps(run: Run) -> list[Any]:
    reader = IndexReader(run.index)
    try:
        return [(state.id, apps) for state, apps in reader.tapes()]
    finally:
        reader.close()
