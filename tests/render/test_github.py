import re

from deltatape.diagnose.check_tape import TapeReport
from deltatape.render.github import Annotations
from helpers.chat import FINISH, calls, choice, entry
from helpers.exchanges import call, pasted
from helpers.reports import report_on, unreadable, written

BAD = calls(entry(0, "c1", name="get", arguments="[1]"))
COMMAND = re.compile(r"::(error|warning|notice) file=[^:,]*,line=[0-9]+,title=[^:,]*::.*")


def lines(*tapes: TapeReport) -> list[str]:
    text = written(Annotations(), tapes)
    *found, last = text.split("\n")
    assert last == ""
    return found


def test_a_finding_is_an_annotation_of_a_line_of_the_tape() -> None:
    annotation, summary = lines(report_on(pasted(BAD, FINISH)))
    assert annotation == (
        "::error file=x.tape,line=1,title=T006 arguments-not-an-object (upstream%2C likely)::"
        "the arguments of call 0 (get) are JSON, but no object%0A#1, event 0%0Aevidence: [1]%0A"
        "fix: the server has to send a string with one JSON object in it"
    )
    assert summary == "1 error"


def test_warnings_and_unreadable_tapes_are_told_by_their_levels() -> None:
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
