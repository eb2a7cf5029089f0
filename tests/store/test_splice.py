"""Several tapes as one: nothing of an exchange changes but its number and what times count from."""

import fcntl
import os
import shutil
import stat
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltatape.clock import parse_rfc3339
from deltatape.errors import TapeFormatError, UsageError
from deltatape.model.exchange import Source
from deltatape.model.tape_summary import TapeSummary
from deltatape.rules.progress import watched_until
from deltatape.store.audit import audit
from deltatape.store.reader import Tape, open_tape
from deltatape.store.splice import (
    SplicedTape,
    SpliceSource,
    find_duplicates,
    lines_to_copy,
    splice,
    split_line,
    survey,
)
from deltatape.tape.decode import decode_record
from deltatape.tape.fields import MalformedError
from helpers.splice_tapes import BEGUN_NS, Plan, at, plans
from helpers.tapes import HEADER, StillClock, whole_tape, write_tape

TWO = ((1, 0, 5), (2, 0, 5), (1, 1, 5), (2, 1, 5), (1, 2, 5), (1, 3, 5), (2, 5, 5), (1, 5, 5))


def joined(output: Path, *paths: Path, **picks: set[int]) -> tuple[Tape, SplicedTape]:
    """`paths` as one tape; of those called as in `picks` only these exchanges."""
    parts = [
        SpliceSource(
            tape=open_tape(path),
            numbers=frozenset(picks[path.stem]) if path.stem in picks else None,
        )
        for path in paths
    ]
    done = splice(parts, output, StillClock())
    return open_tape(output), done


def plan(name: str, **more: object) -> Plan:
    return replace(Plan(name=name, begun_ns=BEGUN_NS, steps=TWO), **more)  # type: ignore[arg-type]


def payloads(tape: Tape, code: str) -> list[object]:
    return [
        record.payload.to_json()
        for _, record in tape.records()
        if record.exchange == 0 and record.payload.code == code
    ]


@given(plans("a"), plans("b"))
def test_every_exchange_stays_what_it_is_at_the_same_hour(one: Plan, other: Plan) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        paths = [each.write(folder) for each in (one, other)]
        tape, _ = joined(folder / "out.tape", *paths)
        before = {
            each.id: at(each, parse_rfc3339(source.header.recorded_at))
            for source in map(open_tape, paths)
            for each in source
        }
        after = [at(each, parse_rfc3339(tape.header.recorded_at)) for each in tape]
        assert {each.id: each for each in after} == before
        assert sorted(each.number for each in tape) == list(range(1, len(before) + 1))
        logs = sum(len(open_tape(path).logs) for path in paths)
        assert len(tape.logs) == logs
        times = [record.t_ns for _, record in tape.records()]
        assert times == sorted(times)
        allowed = ("`", "a second", "`end`", "`end.sha256`", "a read of")
        for problem in audit(folder / "out.tape").problems:
            assert problem.message.startswith(allowed)
            assert "after the `stop`" not in problem.message


@settings(max_examples=30)
@given(plans("a"), st.data())
def test_an_exchange_that_is_cut_out_is_the_same_exchange(one: Plan, data: st.DataObject) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        source = open_tape(one.write(folder))
        numbers = sorted(each.number for each in source)
        if not numbers:
            return
        wanted = set(data.draw(st.lists(st.sampled_from(numbers), min_size=1)))
        tape, _ = joined(folder / "out.tape", Path(source.path), a=wanted)
        begun_ns = parse_rfc3339(source.header.recorded_at)
        expected = [at(each, begun_ns) for each in source if each.number in wanted]
        assert sorted(expected, key=lambda each: each.id) == sorted(
            (at(each, parse_rfc3339(tape.header.recorded_at)) for each in tape),
            key=lambda each: each.id,
        )
        assert (tape.logs, tape.clients) == ((), ())


def test_one_tape_alone_stays_the_same_but_for_its_header(tmp_path: Path) -> None:
    path = plan("a", stop="child-exit").write(tmp_path)
    tape, done = joined(tmp_path / "out.tape", path)
    before, after = (each.read_bytes().split(b"\n", 1) for each in (path, done.path))
    assert before[1] == after[1]
    assert before[0] != after[0]
    assert tape.header.recorded_at == open_tape(path).header.recorded_at


def test_exchanges_interleave_by_the_hour_and_are_numbered_in_that_order(tmp_path: Path) -> None:
    early = plan("a").write(tmp_path)
    later = plan("b", begun_ns=BEGUN_NS + 7).write(tmp_path)
    for order in ((early, later), (later, early)):
        output = tmp_path / f"{order[0].stem}.out"
        tape, done = joined(output, *order)
        assert done.exchanges == 4
        assert tape.header.recorded_at == "2026-11-21T20:36:01.000000000Z"
        assert [each.id[-3:] for each in sorted(tape, key=lambda one: one.number)] == [
            "1DH",
            "1DJ",
            "2DH",
            "2DJ",
        ]


def test_a_tape_that_was_recorded_long_after_is_moved_by_the_difference(tmp_path: Path) -> None:
    first = plan("a").write(tmp_path)
    second = plan("b", begun_ns=BEGUN_NS + 3600 * 10**9, stop="child-exit").write(tmp_path)
    tape, _ = joined(tmp_path / "out.tape", second, first)
    assert tape[3].request.t_ns == 3600 * 10**9 + 5
    assert payloads(tape, "note") == [{"text": "a.tape ends here: interrupted"}]
    assert payloads(tape, "stop") == [{"reason": "child-exit", "code": 3}]
    assert tape.stopped_ns == 3600 * 10**9 + 40
    assert not audit(tmp_path / "out.tape").problems


def test_a_tape_that_broke_off_says_so_where_the_new_one_goes_on(tmp_path: Path) -> None:
    steps = (*TWO[:-1],)
    first = plan("a", steps=steps, stop=None, torn=b'[1,1,"re').write(tmp_path)
    second = plan("b", begun_ns=BEGUN_NS + 10**9, stop="child-exit").write(tmp_path)
    third = plan("c", begun_ns=BEGUN_NS + 2 * 10**9, stop=None).write(tmp_path)
    tape, done = joined(tmp_path / "out.tape", first, second, third)
    assert payloads(tape, "note") == [
        {"text": "a.tape breaks off here: its recorder did not stop in good order"},
        {"text": "b.tape ends here: child-exit, exit code 3"},
    ]
    assert not tape.stopped
    assert done.exchanges == 6
    assert tape[1].end is None
    assert (tape[1].watch, tape[1].stopped_ns) == (TapeSummary(until_ns=35), None)
    assert tape[3].watch == TapeSummary(until_ns=10**9 + 40, stop="child-exit", exit_code=3)
    assert tape[3].stopped_ns == 10**9 + 40
    assert tape[5].watch == TapeSummary(until_ns=2 * 10**9 + 40)
    assert [each.end is not None for each in tape].count(False) == 1


def test_single_exchanges_come_without_log_and_end_with_a_stop_of_their_own(tmp_path: Path) -> None:
    steps = ((0, 0, 1), (0, 1, 1), *TWO)
    first = plan("a", steps=steps, stop="child-exit").write(tmp_path)
    second = plan("b", steps=steps, begun_ns=BEGUN_NS + 10**9).write(tmp_path)
    tape, done = joined(tmp_path / "out.tape", first, second, a={2}, b={1, 2})
    assert done.exchanges == 3
    assert (tape.logs, tape.clients, payloads(tape, "note")) == ((), (), [])
    assert payloads(tape, "stop") == [{"reason": "spliced"}]
    again, _ = joined(tmp_path / "again.tape", tmp_path / "out.tape", second, b={1})
    assert len(again) == 3
    later = plan("c", begun_ns=BEGUN_NS + 2 * 10**9).write(tmp_path)
    more, _ = joined(tmp_path / "more.tape", tmp_path / "out.tape", later)
    assert payloads(more, "note") == []


def test_a_tape_that_goes_on_does_not_prove_a_silence_that_nobody_watched(tmp_path: Path) -> None:
    stalled = (*TWO[:5],)
    first = plan("a", steps=stalled, stop=None).write(tmp_path)
    second = plan("b", begun_ns=BEGUN_NS + 600 * 10**9).write(tmp_path)
    tape, _ = joined(tmp_path / "out.tape", first, second)
    assert watched_until(tape[1]) == watched_until(open_tape(first)[1]) == 25
    again, _ = joined(tmp_path / "again.tape", tmp_path / "out.tape", first)
    assert watched_until(again[1]) == 25
    earlier = plan("c", begun_ns=BEGUN_NS - 100).write(tmp_path)
    moved, _ = joined(tmp_path / "moved.tape", tmp_path / "out.tape", earlier)
    assert (moved[3].id, watched_until(moved[3])) == (tape[1].id, 125)
    picked, _ = joined(tmp_path / "picked.tape", first, a={1})
    assert picked[1].watch == open_tape(first)[1].watch


def test_connections_of_clients_are_counted_anew(tmp_path: Path) -> None:
    steps = ((0, 0, 1), (0, 4, 1), (0, 0, 1))
    paths = [plan(name, steps=steps).write(tmp_path) for name in "ab"]
    tape, _ = joined(tmp_path / "out.tape", *paths)
    assert [each.connection for each in tape.clients] == [1, 2, 3, 4, 1, 2]


def test_masked_spans_stay_with_their_log_line(tmp_path: Path) -> None:
    def spoken(name: str) -> Path:
        lines = [
            b'[5,0,"masked",{"spans":[[0,2,"ab12cd34"]]}]\n',
            b'[5,0,"log",{"stream":"stderr","line":"** %s"}]\n' % name.encode(),
            b'[9,0,"masked",{"spans":[]}]\n',
        ]
        content = Plan(name=name, begun_ns=BEGUN_NS, steps=(), stop=None).content()
        return Path(write_tape(tmp_path, content + b"".join(lines), f"{name}.tape"))

    tape, _ = joined(tmp_path / "out.tape", spoken("a"), spoken("b"))
    told = [record.payload.code for _, record in tape.records()]
    assert told == ["masked", "log", "masked", "log", "masked", "note", "masked"]
    assert [each.line for each in tape.logs] == [b"** a", b"** b"]


def test_what_is_there_twice_is_taken_once_if_it_is_equal(tmp_path: Path) -> None:
    first = plan("a", steps=((0, 1, 1), *TWO)).write(tmp_path)
    second = tmp_path / "copy.tape"
    shutil.copy(first, second)
    tape, done = joined(tmp_path / "out.tape", first, second)
    assert [(one.number, other.number) for one, other in done.duplicates] == [
        (0, 0),
        (1, 1),
        (2, 2),
    ]
    assert (len(tape), len(tape.logs)) == (2, 1)
    assert payloads(tape, "note") == []
    spliced = tmp_path / "out.tape"
    later = plan("b", begun_ns=BEGUN_NS - 500).write(tmp_path)
    moved, _ = joined(tmp_path / "moved.tape", spliced, later)
    final, done = joined(tmp_path / "final.tape", tmp_path / "moved.tape", first, a={1})
    assert (len(final), len(done.duplicates), len(moved)) == (4, 1, 4)


def test_the_same_id_with_other_bytes_is_refused(tmp_path: Path) -> None:
    first = plan("a").write(tmp_path)
    second = Path(write_tape(tmp_path, first.read_bytes().replace(b"200", b"201"), "b.tape"))
    with pytest.raises(UsageError, match=r"a\.tape#1 and .*b\.tape#1 are the same exchange"):
        joined(tmp_path / "out.tape", first, second)
    third = Path(write_tape(tmp_path, first.read_bytes()[:-30] + b"\n", "c.tape"))
    third.write_bytes(first.read_bytes().replace(b"interrupted", b"sigterm"))
    with pytest.raises(UsageError, match=r"a\.tape and .*c\.tape are the same tape"):
        joined(tmp_path / "out.tape", first, third)
    assert not (tmp_path / "out.tape").exists()


def test_imports_are_joined_in_the_order_given_and_only_with_imports(tmp_path: Path) -> None:
    def imported(name: str, begun_ns: int) -> Path:
        steps = tuple((which, what, 0) for which, what, _ in TWO if what != 5)
        return plan(
            name, begun_ns=begun_ns, steps=steps, stop="imported", source=Source.IMPORT
        ).write(tmp_path)

    late, early = imported("a", BEGUN_NS + 10**9), imported("b", BEGUN_NS)
    tape, done = joined(tmp_path / "out.tape", late, early)
    assert [each.request.t_ns for each in tape] == [0, 0, 0, 0]
    ids = [each.id for each in sorted(tape, key=lambda one: one.number)]
    assert ids == [each.id for each in (*open_tape(late), *open_tape(early))]
    assert (tape.header.source, done.exchanges) == (Source.IMPORT, 4)
    assert b"watched" not in (tmp_path / "out.tape").read_bytes()
    assert payloads(tape, "stop") == [{"reason": "imported"}]
    recorded = plan("c").write(tmp_path)
    with pytest.raises(UsageError, match="splice imports with imports"):
        joined(tmp_path / "mixed.tape", late, recorded)


def test_of_two_kinds_of_recorders_the_weaker_claim_is_made(tmp_path: Path) -> None:
    paths = [plan("a").write(tmp_path), plan("b", source=Source.MITM).write(tmp_path)]
    tape, _ = joined(tmp_path / "out.tape", *paths)
    assert tape.header.source is Source.MITM


def test_nothing_is_written_over_and_the_tape_is_its_owners_alone(tmp_path: Path) -> None:
    path, output = plan("a").write(tmp_path), tmp_path / "out.tape"
    os.utime(path, ns=(5, 7))
    joined(output, path)
    assert stat.S_IMODE(output.stat().st_mode) == 0o600
    assert output.stat().st_mtime_ns == 7
    with pytest.raises(UsageError, match="never overwritten"):
        joined(output, path)
    with pytest.raises(UsageError, match="No such file"):
        joined(tmp_path / "missing" / "out.tape", path)
    with pytest.raises(UsageError, match="too long"):
        joined(tmp_path / f"{'x' * 300}.tape", path)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.tape", "out.tape"]


def test_times_that_nobody_can_place_are_refused(tmp_path: Path) -> None:
    path = plan("a").write(tmp_path)
    odd = plan("b").content().replace(b"2026-11-21T20:36:01", b"2026-13-21T20:36:01")
    with pytest.raises(UsageError, match="nobody knows where its records belong"):
        joined(tmp_path / "out.tape", path, Path(write_tape(tmp_path, odd, "b.tape")))
    far = plan("b").content().replace(b"[5,", b"[%d," % (2**63 - 1), 1)
    late = plan("c", begun_ns=BEGUN_NS - 10**9).write(tmp_path)
    with pytest.raises(UsageError, match="too many years younger"):
        joined(tmp_path / "out.tape", late, Path(write_tape(tmp_path, far, "b.tape")))


def test_damage_is_told_before_anything_is_written(tmp_path: Path) -> None:
    path = Path(write_tape(tmp_path, plan("a").content() + b"{}\n"))
    with pytest.raises(TapeFormatError, match=r"x\.tape:12"):
        joined(tmp_path / "out.tape", path)
    assert not (tmp_path / "out.tape").exists()


def test_a_tape_that_is_changed_while_it_is_read_is_refused(tmp_path: Path) -> None:
    path = plan("a").write(tmp_path)

    class Meddler(StillClock):
        """Asked for the time between the two passes, it writes to the tape."""

        def wall_ns(self) -> int:
            os.utime(path, ns=(1, 1))
            return super().wall_ns()

    with pytest.raises(UsageError, match="was changed while it was read"):
        splice([SpliceSource(tape=open_tape(path))], tmp_path / "out.tape", Meddler())
    assert not (tmp_path / "out.tape").exists()


def test_lines_of_unknown_codes_come_along(tmp_path: Path) -> None:
    first = plan("a", stop=None).content() + b'[99,2,"future",{"x":[1.50]}]\n'
    paths = [Path(write_tape(tmp_path, first, "a.tape")), plan("b").write(tmp_path)]
    joined(tmp_path / "out.tape", *paths)
    assert b'[99,3,"future",{"x":[1.50]}]\n' in (tmp_path / "out.tape").read_bytes()
    assert HEADER.id.encode() not in (tmp_path / "out.tape").read_bytes()


def of(folder: Path, content: bytes, *numbers: int, name: str = "x.tape") -> SpliceSource:
    tape = open_tape(write_tape(folder, content, name))
    return SpliceSource(tape=tape, numbers=frozenset(numbers) if numbers else None)


def test_exchanges_are_told_with_their_ids(tmp_path: Path) -> None:
    found = survey(of(tmp_path, whole_tape()))
    assert [each.number for each in found.exchanges] == [0, 1, 2]
    assert found.exchanges[0].id == "01JD3ZQ8T0000000000000TAPE"
    assert found.exchanges[1].id == "01JD3ZQ8T0000000000000001A"
    assert (found.last_ns, found.watch.stop) == (160, "child-exit")


def test_of_single_exchanges_nothing_else_is_told(tmp_path: Path) -> None:
    found = survey(of(tmp_path, whole_tape(), 1))
    assert [each.number for each in found.exchanges] == [1]
    assert (found.last_ns, found.watch.until_ns) == (130, 160)


def test_an_exchange_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such exchange on the tape; it has 1 to 2"):
        survey(of(tmp_path, whole_tape(), 3))


def test_a_tape_that_is_being_recorded_is_refused(tmp_path: Path) -> None:
    given = of(tmp_path, whole_tape())
    with Path(given.tape.path).open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(UsageError, match="still being recorded"):
            survey(given)


def test_the_hash_of_an_exchange_knows_neither_its_number_nor_its_hour(tmp_path: Path) -> None:
    first = whole_tape()
    moved = b"".join(
        line
        if line.startswith(b"{")
        else b"[%d,%d,%b" % (int(line[1 : line.index(b",")]) + 7, *_number(line))
        for line in first.splitlines(keepends=True)
    )
    one, other = survey(of(tmp_path, first)), survey(of(tmp_path, moved, name="y.tape"))
    assert [a.lines == b.lines for a, b in zip(one.exchanges, other.exchanges, strict=True)] == [
        True,
        True,
        True,
    ]


def _number(line: bytes) -> tuple[int, bytes]:
    _, number, rest = line.split(b",", 2)
    return (int(number) + 4 if int(number) else 0), rest


def test_exchanges_without_an_id_are_never_the_same(tmp_path: Path) -> None:
    header, *lines = whole_tape().splitlines(keepends=True)
    content = header + b"".join(line for line in lines if b'"request",' not in line)
    surveys = [survey(of(tmp_path, content, 1, 2, name=name)) for name in ("a.tape", "b.tape")]
    assert list(find_duplicates(surveys)) == []


def test_a_torn_line_is_left_out_and_a_whole_one_without_its_feed_counts(tmp_path: Path) -> None:
    torn = of(tmp_path, whole_tape() + b'[161,1,"re')
    assert survey(torn).last_ns == 160
    whole = of(tmp_path, whole_tape()[:-1], name="y.tape")
    assert survey(whole).watch.stop == "child-exit"
    assert len(list(lines_to_copy(torn, frozenset()))) == len(
        list(lines_to_copy(whole, frozenset()))
    )


def test_a_tape_that_is_changed_between_the_passes_is_damaged(tmp_path: Path) -> None:
    given = of(tmp_path, whole_tape())
    survey(given)
    os.truncate(given.tape.path, 0)
    write_tape(tmp_path, whole_tape().replace(b'[0,0,"client"', b'[x,0,"client"'))
    with pytest.raises(TapeFormatError, match=r"x\.tape:2"):
        list(lines_to_copy(given, frozenset()))


CLIENT = b'[5,0,"client",{"connection":1,"state":"opened","more":"\\u2028"}]\n'


def test_every_line_put_together_again_is_the_same_line() -> None:
    for line in whole_tape().splitlines(keepends=True)[1:]:
        parts = split_line(line)
        assert parts.line(parts.t_ns, parts.exchange) == line
        assert parts.code == decode_record(line).payload.code


def test_only_time_and_number_change_whatever_the_spelling() -> None:
    line = b' [ 7 ,\t3 , "future" , {"x": [1.50, "\\/"]} ]\n'
    assert split_line(line).line(9, 1) == b'[9,1,"future" , {"x": [1.50, "\\/"]} ]\n'
    assert split_line(b'[-0,0,"idle",{}]').line(2, 0) == b'[2,0,"idle",{}]\n'


def test_a_code_that_is_spelt_otherwise_is_not_known() -> None:
    assert split_line(b'[0,0,"st\\u006fp",{"reason":"x"}]').code == ""


def test_a_payload_may_say_something_else_and_all_else_stays() -> None:
    parts = split_line(CLIENT)
    assert parts.payload["connection"] == 1
    moved = parts.with_payload({**parts.payload, "connection": 7}).line(6, 0)
    assert moved == b'[6,0,"client",{"connection":7,"state":"opened","more":"\\u2028"}]\n'


def test_what_is_no_record_is_refused() -> None:
    with pytest.raises(MalformedError, match="no record"):
        split_line(b"{}\n")
