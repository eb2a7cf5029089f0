from dataclasses import replace

from rich.cells import cell_len

from deltatape.diagnose.check import check
from deltatape.diagnose.check_tape import ReportedFinding
from deltatape.diagnose.wire_excerpt import MarkedLine, WireExcerpt
from deltatape.model.finding import Severity
from deltatape.render.findings import (
    FindingContext,
    blamed,
    ending_lines,
    one_finding,
    place,
    reported_lines,
    seen_from,
    summary,
    wire_lines,
)
from deltatape.render.lines import plain
from deltatape.why.explain import explain
from helpers.chat import FINISH, calls, entry
from helpers.exchanges import FINISH_TEXT, pasted, timed
from helpers.reports import report_on

BAD = calls(entry(0, "c1", name="get", arguments="[1]"))


def reported(*, name: str = "x.tape", evidence: str | None = None) -> ReportedFinding:
    (found,) = report_on(timed((0.1, BAD), (0.2, FINISH))).reported
    finding = replace(found.finding, tape=name, line=9)
    return found._replace(
        finding=finding if evidence is None else replace(finding, evidence=evidence)
    )


def test_a_reported_finding_says_what_where_who_shows_the_wire_and_what_to_do() -> None:
    assert plain(reported_lines(reported())) == (
        "error T006 arguments-not-an-object  upstream, proven\n"
        "  --> x.tape#1, line 9, event 0, 0.100 s into the tape\n"
        "    the arguments of call 0 (get) are JSON, but not an object\n"
        "    |\n"
        '  9 | ..., "id": "c1", "function": {"name": "get", "arguments": "[1]"}}]}, '
        '"finish_reason": null}]}\n'
        "    |                                                            ^^^\n"
        "    fix: the server must send the arguments as one JSON object in a string\n"
        "\n"
    )


def test_evidence_that_the_wire_does_not_show_is_shown() -> None:
    bare = reported()._replace(excerpt=None)
    assert "    evidence: [1]\n" in plain(reported_lines(bare))
    assert "evidence" not in plain(reported_lines(reported(evidence="")._replace(excerpt=None)))
    excerpt = bare._replace(excerpt=reported().excerpt).excerpt
    assert excerpt is not None
    hidden = bare._replace(excerpt=replace(excerpt, evident=False))
    assert "    evidence: [1]\n" in plain(reported_lines(hidden))


def test_a_report_keeps_to_its_width() -> None:
    for width in (60, 80, 140):
        lines = plain(reported_lines(reported(name="folder/" * 20 + "x.tape"), width)).splitlines()
        assert max(map(len, lines)) <= width


def test_a_finding_in_a_story_says_what_where_who_and_what_to_do() -> None:
    (finding,) = check(timed((0.1, BAD), (0.2, FINISH)))
    assert plain(one_finding(finding)) == (
        "error T006 arguments-not-an-object  upstream, proven"
        "  x.tape#1, event 0, 0.100 s into the tape\n"
        "    the arguments of call 0 (get) are JSON, but not an object\n"
        "    evidence: [1]\n"
        "    fix: the server must send the arguments as one JSON object in a string\n"
        "\n"
    )
    assert place(finding) == "x.tape#1, event 0, 0.100 s into the tape"


def test_a_place_that_does_not_fit_has_a_line_of_its_own() -> None:
    (finding,) = check(timed((0.1, BAD), (0.2, FINISH)))
    lines = plain(one_finding(finding, width=60)).splitlines()
    assert lines[:3] == [
        "error T006 arguments-not-an-object  upstream, proven",
        "    x.tape#1, event 0, 0.100 s into the tape",
        "    the arguments of call 0 (get) are JSON, but not an",
    ]
    assert max(map(len, lines)) <= 60


def test_the_place_can_be_left_out() -> None:
    (finding,) = check(pasted(BAD, FINISH))
    assert plain(one_finding(finding, FindingContext("", 1))).startswith(
        "error T006 arguments-not-an-object  upstream, likely  event 0\n"
    )


def test_a_finding_without_blame_evidence_and_place_is_shorter() -> None:
    (finding,) = check(pasted(calls(entry(0, "c1", name="get", arguments="")), FINISH))
    assert blamed(finding) == "not provable"
    bare = replace(finding, evidence="", event=None, tape="x.tape", line=3)
    assert "evidence" not in plain(one_finding(bare))
    assert "x.tape#1, line 3" in plain(one_finding(bare))
    assert "  #1, line 3\n" in plain(one_finding(bare, FindingContext("x.tape", 2)))
    nowhere = replace(bare, line=None)
    assert plain(one_finding(nowhere, FindingContext("x.tape", 1))).startswith(
        "warning T001 empty-arguments  not provable\n"
    )


def test_a_story_tells_times_by_its_own_clock() -> None:
    exchange = timed((0.1, BAD), (0.2, FINISH))
    moved = replace(exchange, request=replace(exchange.request, t_ns=40_000_000))
    explanation = explain([moved])
    (finding,) = explanation.findings
    assert plain(one_finding(finding, seen_from(explanation))).startswith(
        "error T006 arguments-not-an-object  upstream, proven  event 0, at 0.060 s\n"
    )


def test_the_summary_counts_by_severity() -> None:
    findings = check(pasted(BAD, FINISH, FINISH_TEXT))
    assert summary(findings) == "1 error, 1 warning"
    assert summary([]) == "no findings"


def test_a_report_ends_with_a_summary() -> None:
    assert plain(ending_lines(0, "", "")) == "no findings\n"
    assert plain(ending_lines(2, "2 errors", "T001")) == (
        "2 errors\nmore about a code: deltatape why T001\n"
    )


def shown(*lines: MarkedLine, number: int | None = 12, width: int = 60, more: bool = False) -> str:
    excerpt = WireExcerpt(lines=lines, more=more, evident=True)
    return plain(wire_lines(excerpt, number, Severity.ERROR, width))


def test_carets_stand_under_the_marked_bytes() -> None:
    assert shown(MarkedLine('data: {"a": ', "[1]", "}")) == (
        '     |\n  12 | data: {"a": [1]}\n     |             ^^^\n'
    )


def test_nothing_marked_is_one_caret_and_an_unknown_line_has_an_empty_gutter() -> None:
    assert shown(MarkedLine("data: x", "", ""), number=None) == (
        "   |\n   | data: x\n   |        ^\n"
    )


def test_wide_and_combining_characters_are_measured() -> None:
    _, text, carets = shown(MarkedLine("日本 e\u0301 ", "語", " x")).splitlines()
    assert cell_len(carets) - 2 == cell_len(text[: text.index("語")])
    assert carets.endswith(" ^^")


def test_further_lines_have_no_number() -> None:
    two = (MarkedLine("", "event: a", ""), MarkedLine("", "data: b", ""))
    assert shown(*two, more=True) == (
        "     |\n  12 | event: a\n     | ^^^^^^^^\n     | data: b\n     | ^^^^^^^\n     | ...\n"
    )


def test_what_is_marked_stays_on_a_narrow_page() -> None:
    for before in ("", "b" * 8, "b" * 300, "語" * 150):
        for marked in ("", "m", "m" * 30, "m" * 300, "語" * 160):
            for after in ("", "a", "a" * 300):
                for width in (60, 61, 100):
                    text = shown(MarkedLine(before, marked, after), width=width)
                    lines = text.splitlines()
                    assert max(map(cell_len, lines)) <= width, text
                    start = lines[2].index("^")
                    if marked:
                        at = [n for n in range(len(lines[1])) if cell_len(lines[1][:n]) == start]
                        assert lines[1][at[0]] == marked[0]
                    if len(marked) > 100:
                        assert lines[2].count("^") > width // 2 - 10
