from dataclasses import replace

import pytest

from deltatape.render.lines import Line, plain
from deltatape.render.report import FORMATS, Part, TextReport, report_in
from helpers.chat import FINISH, calls, choice, entry
from helpers.exchanges import call, pasted
from helpers.reports import FAILING, report_on, unreadable

BAD = report_on(pasted(calls(entry(0, "c1", name="get", arguments="[1]")), FINISH))
MILD = report_on(pasted(calls(entry(0, "c1", name="get", arguments="")), FINISH))
GOOD = report_on(pasted(*call(), FINISH))


def text(*parts: Part) -> str:
    lines: list[Line] = []
    for part in parts:
        assert not isinstance(part, str)
        lines += part
    return plain(lines)


def test_findings_are_told_tape_by_tape_and_counted_in_the_end() -> None:
    report = TextReport(100)
    assert text(report.tape(GOOD)) == ""
    assert text(report.tape(BAD)).startswith("error T006 ")
    assert text(report.tape(MILD)).startswith("warning T001 ")
    assert text(report.end()) == ("1 error, 1 warning\nmore about a code: deltatape why T006\n")


def test_nothing_found_is_said_and_nothing_read_is_not() -> None:
    report = TextReport()
    assert text(report.tape(unreadable()), report.end()) == ""
    assert text(report.tape(GOOD), report.end()) == "no findings\n"


def test_no_line_is_a_command_of_a_ci_system() -> None:
    evil = "##[error]x " + " ".join("::error::" + "y" * n for n in range(40, 90))
    stream = pasted(calls(entry(0, "c", name=evil, arguments=evil)), choice({}, evil))
    for width in (60, 80, 100, 140):
        shown = text(TextReport(width).tape(report_on(stream, name=evil)))
        assert "##[" not in shown
        assert not [line for line in shown.splitlines() if line.lstrip().startswith("::")]


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_has_a_report(form: str) -> None:
    report = report_in(form, width=100, failing=FAILING)
    told = [report.tape(BAD), report.tape(unreadable()), report.end()]
    if form == "text":
        assert "T006" in text(*told)
    else:
        assert "T006" in "".join(part for part in told if isinstance(part, str))


@pytest.mark.parametrize("form", FORMATS)
def test_what_is_made_for_those_that_show_the_wire_is_made_for_all_that_do(form: str) -> None:
    bare = replace(BAD, reported=tuple(each._replace(excerpt=None) for each in BAD.reported))
    whole = report_in(form, width=100, failing=FAILING)
    without = report_in(form, width=100, failing=FAILING)
    assert (whole.tape(BAD) != without.tape(bare)) is whole.excerpts
