"""Whether a tape is still read as it was read when it was taped."""

import json
from pathlib import Path

import pytest

from deltatape.model.app_names import CONTRACT
from deltatape.redact.audit import ProblemKind, TapeProblem
from deltatape.store.audit import audit
from deltatape.store.names import open_new
from deltatape.store.tape_file import LossCounter, TapeFile
from deltatape.tape.encode import header_line
from helpers.disk import file_size_limit
from helpers.readings import BODY, TOOL, parsed_exchange
from helpers.secret_tapes import exchange, record, tape
from helpers.tapes import HEADER, write_tape


def found(folder: Path, *lines: bytes) -> tuple[TapeProblem, ...]:
    report = audit(Path(write_tape(folder, tape(*lines))), CONTRACT)
    return tuple(each for each in report.problems if each.kind is ProblemKind.PARSED)


def test_a_tape_that_is_read_as_it_was_has_no_problem(tmp_path: Path) -> None:
    assert found(tmp_path, *parsed_exchange(1), *parsed_exchange(2)) == ()
    assert found(tmp_path, *exchange(1)) == ()


def test_what_is_read_in_another_way_is_told_with_line_and_exchange(tmp_path: Path) -> None:
    (problem,) = found(tmp_path, *parsed_exchange(1), *parsed_exchange(2, calls=2, sha256="0" * 64))
    assert (problem.kind, problem.line, problem.exchange) == (ProblemKind.PARSED, 15, 2)
    assert problem.message == f"is not read as when {TOOL} taped it: calls 2, now 1"


def test_a_change_of_the_bytes_shows_also_where_hashes_were_made_anew(tmp_path: Path) -> None:
    lines = parsed_exchange(1)
    changed = exchange(1, reads=[BODY.replace(b"1}", b"2}")])
    (problem,) = found(tmp_path, *changed, lines[-1])
    assert "a call or its arguments" in problem.message


@pytest.mark.parametrize("cut", ["recorder", "end"])
def test_what_the_tape_does_not_hold_whole_is_not_compared(tmp_path: Path, cut: str) -> None:
    *lines, end, parsed = parsed_exchange(1, events=9)
    t_ns, number, code, payload = json.loads(end)
    if cut == "recorder":
        lines.append(record(t_ns, number, code, {**payload, "recorder": {"lost_records": 1}}))
    assert found(tmp_path, *lines, parsed) == ()


def test_what_stands_behind_damage_is_left_to_who_looks_for_that(tmp_path: Path) -> None:
    assert found(tmp_path, *parsed_exchange(1), b"garbage\n", *parsed_exchange(2, events=9)) == ()
    for damage in (b"garbage\n", b'[1,2,"parsed",[]]\n', b'["x,",1,"note","parsed"]\n'):
        (problem,) = found(
            tmp_path, *parsed_exchange(1, events=9), damage, *parsed_exchange(2, events=9)
        )
        assert problem.exchange == 1


def test_a_body_that_speaks_of_it_is_none(tmp_path: Path) -> None:
    speaking = exchange(2, reads=[b'data: [1,2,"parsed",{}]\n\n'])
    assert found(tmp_path, *parsed_exchange(1), *speaking) == ()


@pytest.mark.parametrize("ended", [True, False])
def test_a_tape_is_in_order_whichever_lines_its_disk_refused(
    tmp_path: Path, *, ended: bool
) -> None:
    """Each line of an exchange in turn, and the one after it."""
    lines = exchange(1, framing="chunked", reads=[b"abc", b"de"])[: None if ended else -1]
    for refused in range(len(lines) - 1):
        fd, path = open_new(tmp_path, "x")
        file = TapeFile(fd, path, header_line(HEADER), LossCounter(lambda _: None))
        file.append((), 0)
        for at, line in enumerate(lines):
            with file_size_limit(file.size if at in {refused, refused + 1} else 1 << 20):
                file.append([(1, line)], 0)
        file.finish(0)
        file.close()
        report = audit(path)
        assert report.problems == ()
        assert ("lost" in str(report.facts)) is (ended or refused < len(lines) - 2)


@pytest.mark.parametrize("count", [2, 70])
def test_a_parsed_record_counts_however_late_it_comes_and_the_last_one_does(
    tmp_path: Path, count: int
) -> None:
    exchanges = [parsed_exchange(number) for number in range(1, count + 1)]
    wrong = parsed_exchange(1, calls=2, sha256="0" * 64)[-1]
    whole = [line for lines in exchanges for line in lines[:-1]]
    right = [lines[-1] for lines in exchanges]
    first = sum(map(len, exchanges)) - count + 2
    assert [(each.line, each.exchange) for each in found(tmp_path, *whole, wrong)] == [(first, 1)]
    assert found(tmp_path, *whole, *right) == ()
    assert found(tmp_path, *whole, wrong, *right) == ()
    assert [each.exchange for each in found(tmp_path, *whole, *right, wrong)] == [1]


def test_a_parsed_record_counts_also_before_the_end(tmp_path: Path) -> None:
    *lines, end, parsed = parsed_exchange(1, calls=2, sha256="0" * 64)
    assert [each.exchange for each in found(tmp_path, *lines, parsed, end)] == [1]
