from dataclasses import replace

from deltatape.diagnose.check import check
from deltatape.render.findings import (
    Viewpoint,
    blamed,
    finding_lines,
    one_finding,
    seen_from,
    summary,
)
from deltatape.render.lines import plain
from deltatape.why import tell
from helpers.chat import FINISH, calls, entry
from helpers.exchanges import FINISH_TEXT, call, pasted, timed

BAD = calls(entry(0, "c1", name="get", arguments="[1]"))


def test_a_finding_says_what_where_who_and_what_to_do() -> None:
    findings = check(timed((0.1, BAD), (0.2, FINISH)))
    assert plain(finding_lines(findings)) == (
        "error T006 arguments-not-an-object  upstream, proven"
        "  x.tape#1, event 0, 0.100 s into the tape\n"
        "    the arguments of call 0 (get) are JSON, but no object\n"
        "    evidence: [1]\n"
        "    fix: the server has to send a string with one JSON object in it\n"
        "\n"
        "1 error\n"
        "more about a code: deltatape why T006\n"
    )


def test_a_place_that_does_not_fit_has_a_line_of_its_own() -> None:
    findings = check(timed((0.1, BAD), (0.2, FINISH)))
    lines = plain(finding_lines(findings, 60)).splitlines()
    assert lines[:3] == [
        "error T006 arguments-not-an-object  upstream, proven",
        "    x.tape#1, event 0, 0.100 s into the tape",
        "    the arguments of call 0 (get) are JSON, but no object",
    ]
    assert max(map(len, lines)) <= 60


def test_the_place_can_be_left_out() -> None:
    (finding,) = check(pasted(BAD, FINISH))
    assert plain(one_finding(finding, Viewpoint("", 1))).startswith(
        "error T006 arguments-not-an-object  upstream, likely  event 0\n"
    )


def test_a_finding_without_blame_evidence_and_place_is_shorter() -> None:
    (finding,) = check(pasted(calls(entry(0, "c1", name="get", arguments="")), FINISH))
    assert blamed(finding) == "not provable"
    bare = replace(finding, evidence="", event=None, tape="x.tape", line=3)
    assert "evidence" not in plain(one_finding(bare))
    assert "x.tape#1, line 3" in plain(one_finding(bare))
    assert "  #1, line 3\n" in plain(one_finding(bare, Viewpoint("x.tape", 2)))
    nowhere = replace(bare, line=None)
    assert plain(one_finding(nowhere, Viewpoint("x.tape", 1))).startswith(
        "warning T001 empty-arguments  not provable\n"
    )


def test_a_story_tells_times_by_its_own_clock() -> None:
    exchange = timed((0.1, BAD), (0.2, FINISH))
    moved = replace(exchange, request=replace(exchange.request, t_ns=40_000_000))
    story = tell([moved])
    (finding,) = story.findings
    assert plain(one_finding(finding, seen_from(story))).startswith(
        "error T006 arguments-not-an-object  upstream, proven  event 0, at 0.060 s\n"
    )


def test_the_summary_counts_by_severity() -> None:
    findings = check(pasted(BAD, FINISH, FINISH_TEXT))
    assert summary(findings) == "1 error, 1 warning"
    assert summary([]) == "no findings"


def test_nothing_found_is_said() -> None:
    assert plain(finding_lines(check(pasted(*call(), FINISH)))) == "no findings\n"
