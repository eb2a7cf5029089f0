"""The report of torture for people: matrix, failures, and how to see one again."""

import json
from collections.abc import Iterable

from deltatape.model.torture import RunVerdict, TortureResult
from deltatape.render.lines import plain
from deltatape.render.torture import (
    cell_line,
    torture_json,
    torture_junit,
    torture_lines,
    untried,
    variation_lines,
)
from deltatape.vary.variation import VARIATIONS
from helpers.reports import valid_junit
from helpers.tortured import cell, failed, named, result


def text(found: TortureResult, width: int = 100) -> str:
    return plain(torture_lines(found, width))


def test_the_matrix_has_a_row_for_a_variation_and_a_column_for_an_exchange() -> None:
    found = result(
        cell(),
        cell(exchange="#2"),
        cell("split-utf8", verdict=RunVerdict.NO_PLACE),
        failed("split-utf8", exchange="#2"),
        cell("cut-in-text", verdict=RunVerdict.REPORTED),
        cell("cut-in-text", exchange="#2"),
    )
    assert text(found).splitlines()[:4] == [
        "                       #1  #2",
        "harmless  every-byte   ok  ok",
        "          split-utf8   -   FAIL",
        "hostile   cut-in-text  ok  ok",
    ]


def test_many_exchanges_have_a_character_each() -> None:
    cells = [cell(exchange=f"#{number}") for number in range(1, 31)]
    bad = [failed("crlf", exchange="#30")]
    shown = text(result(*cells, *bad), 60).splitlines()
    assert shown[:3] == [
        "one column per exchange, from #1 to #30",
        "harmless  every-byte  " + "o" * 30,
        "          crlf        " + "-" * 29 + "F",
    ]
    assert max(map(len, shown)) <= 60


def test_a_variation_without_a_place_is_no_row() -> None:
    found = result(cell(), cell("cr", verdict=RunVerdict.NO_PLACE))
    assert "cr  " not in text(found)
    assert "not applicable to these responses: cr\n" in text(found)


def test_a_failure_shows_what_was_printed_and_how_to_see_it_again() -> None:
    found = result(failed(why="exit code 1", seed=3, kept="kept/every-byte-1-3.tape"))
    assert text(found).split("\n\n", 1)[1] == (
        "FAILED every-byte #1 (seed 3)\n"
        "  differs: exit code 1\n"
        "  | Traceback\n"
        "  | boom\n"
        "  deltatape torture x.tape --only every-byte -- app\n"
        "  tape: kept/every-byte-1-3.tape\n"
        "\n"
        "1 of 1 variation failed; 1 run in 1.5 s\n"
    )


def test_of_a_long_output_the_beginning_and_the_end_are_shown() -> None:
    printed = "\n".join(f"line {number}" for number in range(30))
    shown = [one for one in text(result(failed(printed=printed))).splitlines() if "|" in one]
    assert shown == [
        *(f"  | line {number}" for number in range(5)),
        "  | ...",
        *(f"  | line {number}" for number in range(27, 30)),
    ]


def test_variations_that_fail_alike_are_shown_once() -> None:
    found = result(
        failed("cr"),
        failed("cr", exchange="#2", why="exit code 2"),
        failed("no-space"),
        failed("no-space", exchange="#2", why="exit code 2"),
        failed("data-lines", printed="other"),
    )
    shown = text(found).splitlines()
    assert shown.count("  | boom") == 1
    assert "  also #2: exit code 2" in shown
    assert "  same failure: no-space #1, #2" in shown
    assert "FAILED data-lines #1" in shown


def test_all_that_hang_are_shown_once() -> None:
    hangs = {"verdict": RunVerdict.HANGS, "printed": ""}
    found = result(
        failed("stall-in-text", why="no end after 2.9 s", **hangs),
        failed("stall-before-end", exchange="#2", why="no end after 3.0 s", **hangs),
    )
    shown = text(found).splitlines()
    assert "  hangs: no end after 2.9 s" in shown
    assert "  same failure: stall-before-end #2" in shown
    assert not [one for one in shown if "3.0 s" in one]


def test_what_stands_all_is_shown_in_a_line() -> None:
    found = result(cell(), idle=("#2", "#3"), runs=4)
    assert text(found).splitlines()[-2:] == [
        "1 variation passed; 4 runs in 1.5 s",
        "not requested by the command, so not varied: #2, #3",
    ]


def test_tapes_that_fail_as_they_are_leave_nothing_to_vary() -> None:
    shown = text(result(problem="exit code 3", printed="boom\n"))
    assert shown == (
        "FAILED with the unchanged tapes\n"
        "  exit code 3\n"
        "  | boom\n"
        "\n"
        "No variation was run: each one is compared with a run that passes with the unchanged"
        " tapes.\n"
    )


def test_text_of_the_command_cannot_act_on_a_terminal() -> None:
    shown = text(result(failed(printed="\x1b[31mred", why="\x1b[0m")))
    assert "\x1b" not in shown
    assert r"\x1b[31mred" in shown


def test_a_failure_on_one_line_names_its_cell() -> None:
    assert cell_line(failed(seed=2)) == "FAILED every-byte #1 (seed 2): exit code 1"


def test_the_list_has_every_variation_under_its_kind() -> None:
    def lines(text: str) -> Iterable[str]:
        return (line.strip() for line in text.splitlines())

    shown = plain(variation_lines(VARIATIONS, 100))
    assert shown.startswith("harmless\n  every-byte")
    assert "\n\nhostile\n  cut-before-first" in shown
    for one in VARIATIONS:
        assert any(line.startswith(f"{one.name} ") for line in lines(shown)), one.name
    narrow = plain(variation_lines(named("crlf", "cut-in-text"), 60))
    assert max(map(len, narrow.splitlines())) <= 60
    assert variation_lines((), 100) == []


def test_where_nothing_was_tried_there_is_no_matrix() -> None:
    none = cell("cr", verdict=RunVerdict.NO_PLACE), cell("crlf", verdict=RunVerdict.NO_PLACE)
    assert text(result(*none, idle=("#2",))) == (
        "no variation was run: none of the selected variations applies to #1\n"
        "not applicable to these responses: crlf, cr\n"
        "not requested by the command, so not varied: #2\n"
    )
    second = cell("cr", exchange="#2", verdict=RunVerdict.NO_PLACE)
    assert untried(result(*none, second)).endswith(" applies to any of the 2 responses")
    assert text(result()) == (
        "no variation was run: the command requested none of the selected exchanges\n"
    )
    assert not untried(result(*none, cell()))
    assert not untried(result(problem="exit code 3"))


def test_the_document_has_all_that_is_known() -> None:
    found = result(
        cell("crlf", verdict=RunVerdict.NO_PLACE),
        failed(seed=3, kept="kept/x.tape", seconds=0.12345),
        idle=("#2",),
    )
    told = json.loads(torture_json(found))
    first, second = told.pop("cells")
    assert [one["name"] for one in told.pop("variations")] == ["every-byte", "crlf"]
    assert told == {
        "version": 1,
        "passes": False,
        "problem": "",
        "printed": "",
        "command": ["app"],
        "tapes": ["x.tape"],
        "exchanges": ["#1"],
        "unplayed": ["#2"],
        "runs": 2,
        "seconds": 1.5,
    }
    assert (first["verdict"], first["passes"], first["seed"]) == ("no-place", True, None)
    assert second == {
        "variation": "every-byte",
        "harmless": True,
        "exchange": "#1",
        "verdict": "differs",
        "passes": False,
        "why": "exit code 1",
        "seed": 3,
        "seconds": 0.123,
        "runs": 1,
        "reproduce": "deltatape torture x.tape --only every-byte -- app",
        "tape": "kept/x.tape",
        "printed": "Traceback\nboom",
    }


def test_what_tried_nothing_passes_nothing() -> None:
    told = json.loads(torture_json(result(cell("crlf", verdict=RunVerdict.NO_PLACE))))
    assert told["passes"] is False
    assert told["problem"].startswith(
        "no variation was run: none of the selected variations applies "
    )


def test_harmless_and_hostile_variations_are_a_suite_each() -> None:
    found = result(cell(), failed("crlf"), cell("cut-in-text", verdict=RunVerdict.REPORTED))
    harmless, hostile = valid_junit(torture_junit(found))
    assert (harmless.get("name"), hostile.get("name")) == ("harmless", "hostile")
    assert [case.get("name") for case in harmless] == ["every-byte #1", "crlf #1"]
    assert harmless.get("failures") == "1"
    assert [case.get("time") for case in hostile] == ["0.250"]


def test_a_failure_tells_why_and_how_to_see_it_again() -> None:
    (suite,) = valid_junit(torture_junit(result(failed())))
    failure = suite[0].find("failure")
    assert failure is not None
    assert (failure.get("type"), failure.get("message")) == ("differs", "exit code 1")
    assert failure.text == "deltatape torture x.tape --only every-byte -- app\nTraceback\nboom\n"


def test_a_variation_without_a_place_is_skipped() -> None:
    none = cell(verdict=RunVerdict.NO_PLACE)
    (suite,) = valid_junit(torture_junit(result(none, cell("crlf"))))
    assert suite.get("skipped") == "1"
    assert suite[0].find("skipped") is not None


def test_where_nothing_was_tried_a_case_fails() -> None:
    tried, suite = valid_junit(torture_junit(result(cell(verdict=RunVerdict.NO_PLACE))))
    failure = tried[0].find("failure")
    assert failure is not None
    assert str(failure.get("message")).startswith("no variation was run: none of the selected ")
    assert suite.get("skipped") == "1"


def test_tapes_that_fail_as_they_are_are_the_only_case() -> None:
    (suite,) = valid_junit(torture_junit(result(problem="exit code 3", printed="boom")))
    failure = suite[0].find("failure")
    assert failure is not None
    assert (failure.get("message"), failure.text) == ("exit code 3", "boom\n")


def test_text_of_the_command_cannot_act_in_a_ci_log() -> None:
    text = torture_junit(result(failed(printed="##[error]\x1b[0m")))
    assert "##[" not in text
    assert "\x1b" not in text
    valid_junit(text)
