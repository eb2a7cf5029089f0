import re
from dataclasses import replace

import pytest

from deltatape.diagnose.check_tape import TapeReport
from deltatape.render.lines import Line, plain
from deltatape.render.report import FORMATS, Annotations, Part, TextReport, report_in
from helpers.chat import FINISH, calls, choice, entry
from helpers.exchanges import call, pasted
from helpers.reports import FAILING, report_on, unreadable, written

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


def test_of_many_tapes_the_first_finding_of_a_code_is_shown_and_all_are_counted() -> None:
    report = TextReport(100, first_only=True)
    assert text(report.tape(BAD)).startswith("error T006 ")
    assert text(report.tape(BAD), report.tape(GOOD)) == ""
    assert text(report.tape(MILD)).startswith("warning T001 ")
    assert text(report.end()).splitlines() == [
        "error    T006 arguments-not-an-object  2 findings  on 2 tapes",
        "warning  T001 empty-arguments           1 finding  on 1 tape",
        "1 more finding like those above: deltatape check --all",
        "",
        "2 errors, 1 warning",
        "more about a code: deltatape why T006",
    ]


def test_many_healthy_tapes_have_no_totals() -> None:
    report = TextReport(first_only=True)
    assert text(report.tape(GOOD), report.tape(GOOD), report.end()) == "no findings\n"


def test_each_code_once_hides_nothing() -> None:
    report = TextReport(first_only=True)
    assert "--all" not in text(report.tape(BAD), report.tape(MILD), report.end())


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


BAD_CALL = calls(entry(0, "c1", name="get", arguments="[1]"))
COMMAND = re.compile(r"::(error|warning|notice) file=[^:,]*,line=[0-9]+,title=[^:,]*::.*")


def lines(*tapes: TapeReport) -> list[str]:
    text = written(Annotations(), tapes)
    *found, last = text.split("\n")
    assert last == ""
    return found


def test_a_finding_is_an_annotation_of_a_line_of_the_tape() -> None:
    annotation, summary = lines(report_on(pasted(BAD_CALL, FINISH)))
    assert annotation == (
        "::error file=x.tape,line=1,title=T006 arguments-not-an-object (upstream%2C likely)::"
        "the arguments of call 0 (get) are JSON, but not an object%0A#1, event 0%0Aevidence: [1]%0A"
        "fix: the server must send the arguments as one JSON object in a string"
    )
    assert summary == "1 error"


def test_warnings_and_unreadable_tapes_are_described_by_their_levels() -> None:
    mild = calls(entry(0, "c1", name="get", arguments=""))
    assert lines(report_on(pasted(mild, FINISH)))[0].startswith("::warning file=x.tape,line=1,")
    assert lines(unreadable()) == [
        "::error file=bad.tape,line=1,title=tape not readable::bad.tape:5: no JSON"
    ]
    assert lines(report_on(pasted(*call(), FINISH))) == ["no findings"]


def test_no_text_of_a_tape_or_a_name_begins_a_command() -> None:
    evil = "x\n::set-env name=a::b\r::stop-commands::t\x1b##[error]%0A::error::y##vso[task.x]"
    stream = pasted(calls(entry(0, evil, name=evil, arguments=evil)), choice({}, evil))
    found = lines(report_on(stream, name=f"a,b:c%{evil}.tape"))
    assert len(found) > 1
    for line in found[:-1]:
        assert COMMAND.fullmatch(line), line
        assert not re.search(r"##[a-z]*\[", line)
        assert "%0A::" not in line.partition("::")[2]
    assert "file=a%2Cb%3Ac%25x\\n%3A%3Aset-env" in found[0]
