"""What is said of a run beside the runs with the unchanged tapes."""

import asyncio
import json
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from deltatape.errors import DeltatapeError, UsageError
from deltatape.match.difference import JsonDifference
from deltatape.model.torture import RunVerdict
from deltatape.player.play_options import PlayReport
from deltatape.run_check import RunMistake
from deltatape.trials.torture_judge import (
    ERROR_WORDS,
    BaselineKnowledge,
    BaselineRuns,
    Oracle,
    OutputRules,
    VariationVerdict,
    baseline_problem,
    first_difference,
    judged,
    request_difference,
    unknown_error_line,
)
from deltatape.trials.trial import TrialResult
from helpers.explanations import lost_arguments
from helpers.taped import taped
from helpers.tortured import outcome

RULES = OutputRules()
BASELINE = BaselineRuns([outcome()], RULES)


def verdict_of(found: TrialResult, *, harmless: bool = True) -> tuple[str, str]:
    verdict, why = judged(found, BASELINE, harmless=harmless)
    return verdict.value, why


def test_the_same_outcome_is_the_same_whatever_stderr_says_of_it() -> None:
    assert verdict_of(outcome(stderr="40 chunks in 3 ms\n")) == ("same", "")
    assert verdict_of(outcome(), harmless=False) == ("same", "")


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (outcome(code=3), "exit code 3"),
        (outcome("hallo\n"), "output line 1: hallo instead of hello"),
        (outcome(unplayed=2), "2 requests missing"),
        (outcome(missed=1), "POST /v1/chat/completions: nothing is recorded"),
    ],
)
def test_a_whole_stream_may_change_no_outcome(found: TrialResult, why: str) -> None:
    assert verdict_of(found) == ("differs", why)


@pytest.mark.parametrize(
    ("found", "verdict", "why"),
    [
        (outcome(code=3), "told", "exit code 3"),
        (outcome("he\n", "Error: boom\n"), "told", "prints Error: boom"),
        (outcome("he\nSorry, it broke off.\n"), "told", "prints Sorry, it broke off."),
        (outcome("he\n", "TypeError: x\n"), "told", "prints TypeError: x"),
        (
            outcome("he\n"),
            "swallowed",
            "exit code 0 and no error message: output line 1: he instead of hello",
        ),
        (
            outcome(code=1, missed=1),
            "swallowed",
            (
                "continued as if the response were complete: POST /v1/chat/completions: nothing is"
                " recorded"
            ),
        ),
    ],
)
def test_a_broken_stream_has_to_be_noticed(found: TrialResult, verdict: str, why: str) -> None:
    assert verdict_of(found, harmless=False) == (verdict, why)


def test_what_was_printed_of_a_whole_stream_is_not_a_word_about_a_broken_one() -> None:
    baseline = BaselineRuns([outcome("the error is in line 3\n")], RULES)
    cut = outcome("the error is in\n")
    assert judged(cut, baseline, harmless=False).verdict is RunVerdict.SWALLOWED
    other = BaselineRuns([outcome("the error is in line 3\n"), outcome(stderr="error 1\n")], RULES)
    late = outcome("the\n", "error 1\n")
    assert judged(late, other, harmless=False).verdict is RunVerdict.SWALLOWED


def test_a_summary_with_another_time_is_not_a_word_about_an_error() -> None:
    summary = "1 request, 0 errors, 0.{} s\n"
    baseline = BaselineRuns([outcome(stderr=summary.format(at)) for at in (3121, 3004)], RULES)
    swallowed = outcome("he\n", summary.format(2870))
    assert judged(swallowed, baseline, harmless=False).verdict is RunVerdict.SWALLOWED


@pytest.mark.parametrize(
    "cut", ["Sorry, the museum is closed", "Sorry", "Sorry, the museum is clos"]
)
@pytest.mark.parametrize("form", ['{{"answer": "{}", "n": {}}}\n', "{}\n{}\n"])
def test_what_the_model_says_is_not_a_word_about_an_error(form: str, cut: str) -> None:
    whole = "Sorry, the museum is closed on Mondays."
    baseline = BaselineRuns([outcome(form.format(whole, 39))], RULES)
    found = outcome(form.format(cut, len(cut)))
    assert judged(found, baseline, harmless=False).verdict is RunVerdict.SWALLOWED


def test_what_the_model_says_is_known_although_it_is_never_printed_whole() -> None:
    body = b'data: {"choices":[{"index":0,"delta":{"content":"Sorry, we cannot come."}}]}\n\n'
    first = outcome()
    (played,) = first.report.played
    spoken = replace(played, exchange=taped([(10, body)], target=b"/v1/chat/completions"))
    baseline = BaselineRuns([replace(first, report=PlayReport(played=(spoken,)))], RULES)
    found = outcome("partly heard: Sorry, we cannot\n")
    assert judged(found, baseline, harmless=False).verdict is RunVerdict.SWALLOWED
    told = outcome("an error: Sorry, we cannot\n")
    assert judged(told, baseline, harmless=False).verdict is RunVerdict.REPORTED


@pytest.mark.parametrize(
    "line",
    [
        "Connection lost. The answer is not whole.",
        "Rate limit reached. Please wait a moment.",
        "The service is busy right now",
        "Too many requests",
        "connection dropped, retrying 1",
        "what you see is not complete",
        '{"answer": "he", "error": true}',
    ],
)
def test_plain_english_is_a_word_about_an_error(line: str) -> None:
    assert verdict_of(outcome(f"he\n{line}\n"), harmless=False)[0] == "told"


def again(found: TrialResult) -> TrialResult:
    """The same, asked once more."""
    return replace(found, report=replace(found.report, played=found.report.played * 2))


def test_who_asks_again_may_print_more_than_the_whole_answer() -> None:
    found = judged(again(outcome("he...\nhello\n")), BASELINE, harmless=False)
    assert found == (RunVerdict.SAME, "retried, and printed the complete output")
    lines = BaselineRuns([outcome("one\ntwo\n")], RULES)
    wrong = [again(outcome("two\none\n")), outcome("one\n-\ntwo\n"), again(outcome("one\n"))]
    for one in wrong:
        assert judged(one, lines, harmless=False).verdict is RunVerdict.SWALLOWED
    silent = BaselineRuns([outcome("")], RULES)
    assert judged(again(outcome("...")), silent, harmless=False).verdict is RunVerdict.SWALLOWED


def test_the_user_says_what_a_word_about_an_error_is() -> None:
    output_rules = OutputRules(visible=(re.compile("oha"), re.compile("oje")))
    baseline = BaselineRuns([outcome()], output_rules)
    assert judged(outcome("he\noje\n"), baseline, harmless=False).verdict is RunVerdict.REPORTED
    assert judged(outcome("he\nerror\n"), baseline, harmless=False).verdict is RunVerdict.SWALLOWED


@pytest.mark.parametrize("harmless", [True, False])
def test_a_run_has_to_end_of_its_own(*, harmless: bool) -> None:
    late = outcome(code=None, signal="SIGKILL", timed_out=True)
    assert verdict_of(late, harmless=harmless) == ("hangs", "still running after 0.2 s")
    dead = outcome(code=None, signal="SIGSEGV")
    assert verdict_of(dead, harmless=harmless) == ("dies", "ended by SIGSEGV")


def test_the_port_of_the_player_may_differ_and_what_the_user_ignores() -> None:
    output_rules = OutputRules(ignore=(re.compile(r"took [0-9]+ ms"),))
    baseline = BaselineRuns([outcome("http://127.0.0.1:4711/v1 took 3 ms\n")], output_rules)
    other = outcome("http://127.0.0.1:38111/v1 took 12 ms\n")
    assert judged(other, baseline, harmless=True).verdict is RunVerdict.SAME


def test_a_difference_is_shown_where_it_is() -> None:
    long = "x" * 100
    assert first_difference(f"{long}1\n", f"{long}2\n") == (
        f"output line 1: ...{'x' * 20}2 instead of ...{'x' * 20}1"
    )
    assert first_difference(f"{long}1\n", f"{long}\n") == (
        f"output line 1: ...{'x' * 20} instead of ...{'x' * 20}1"
    )
    assert first_difference("a\nb\n", "a\n") == "missing output line: b"
    assert first_difference("a\n", "a\nb\n") == "additional output line: b"
    assert first_difference("a\n", "a") == "the line end of the last output line differs"


def test_a_request_is_described_by_the_first_path_that_differs() -> None:
    (missed,) = outcome(missed=1).report.missed
    difference = JsonDifference(path="$.messages[1].content", recorded='"a"', received='"b"')
    near = replace(missed, miss=replace(missed.miss, differences=(difference,)))
    assert (
        request_difference(near) == 'request differs at $.messages[1].content: "b" instead of "a"'
    )


NOTHING = replace(outcome(), report=PlayReport())
FROM_OUTSIDE = "its base URL must come from the environment (see `deltatape doctor`)"


@pytest.mark.parametrize(
    ("outcomes", "oracle", "problem"),
    [
        ([outcome(), outcome()], False, ""),
        ([outcome(), outcome(unplayed=0, stderr="3 ms")], False, ""),
        ([outcome(code=2)], False, "exit code 2; if that is correct, use --oracle CMD"),
        ([outcome(code=2), outcome()], True, ""),
        ([outcome(unplayed=1)], True, ""),
        (
            [outcome(unplayed=1)],
            False,
            (
                "the command did not request x.tape#2; if that is correct, name only the exchanges"
                " that it requests, as TAPE#N"
            ),
        ),
        ([outcome(), outcome("other\n")], True, ""),
        ([outcome(missed=1)], False, "POST /v1/chat/completions: nothing is recorded"),
        ([outcome(timed_out=True)], True, "still running after 0.2 s"),
        ([outcome(), outcome(code=None, signal="SIGABRT")], False, "ended by SIGABRT"),
        (
            [outcome("a 1\n"), outcome("a 2\n")],
            False,
            (
                "two runs with the unchanged tapes differ: output line 1: a 2 instead of a 1;"
                " use --ignore PATTERN for output that may differ"
            ),
        ),
        ([NOTHING], True, f"the command sent no request to the player; {FROM_OUTSIDE}"),
        (
            [replace(NOTHING, exit_code=2)],
            False,
            "exit code 2 before the first request",
        ),
    ],
)
def test_a_standard_has_to_be_one(
    outcomes: list[TrialResult], *, oracle: bool, problem: str
) -> None:
    assert baseline_problem(outcomes, RULES, oracle=oracle) == problem


def mistaken(found: TrialResult) -> TrialResult:
    """The same, and the command made a mistake with what it was sent."""
    (finding, *_) = lost_arguments().findings
    mistake = RunMistake(finding=finding, request=2, recorded=found.report.played[0].exchange)
    return replace(found, report=replace(found.report, mistakes=(mistake,)))


def test_a_mistake_is_reported_before_the_request_that_it_is_in() -> None:
    found = mistaken(outcome("other\n", missed=1))
    verdict, why = judged(found, BaselineRuns([outcome()], RULES), harmless=True)
    assert verdict is RunVerdict.DIFFERS
    assert why.startswith("C002 in request 2 (x.tape#1): call 0")
    baseline = BaselineRuns([mistaken(outcome())], RULES)
    assert judged(mistaken(outcome()), baseline, harmless=True).verdict is RunVerdict.SAME


def test_an_app_that_is_wrong_with_the_tapes_as_they_are_is_not_a_standard() -> None:
    outcomes = [mistaken(outcome())] * 2
    problem = baseline_problem(outcomes, RULES, oracle=False)
    assert problem.startswith("C002 in request 2 (x.tape#1): ")
    assert baseline_problem(outcomes, RULES, oracle=True) == ""


PATTERNS = (re.compile(ERROR_WORDS, re.IGNORECASE),)


def words(output: str, *known: str) -> str:
    return unknown_error_line(output, BaselineKnowledge(known), PATTERNS)


def test_the_first_line_with_a_new_word_about_an_error_is_given() -> None:
    assert words("all is well\n  TypeError: x \nfailed\n") == "TypeError: x"
    assert words("all is well\n") == ""


@pytest.mark.parametrize(
    ("line", "known", "own"),
    [
        ("took 31 ms, 0 errors", "took 4 ms, 0 errors", False),
        ("3 retries in all, ok", "0 retries in all, ok", False),
        ("it is closed [connection lost]", "it is closed on Mondays", True),
        ("an error occurred", "there was an error in line 3", True),
        ("error: cut", "the error is in line 3", True),
        ("Error", "Error: in line 3", False),
        (r"said: caf\u00e9 closed", "caf\u00e9 closed today", False),
    ],
)
def test_a_word_counts_in_new_company_alone(line: str, known: str, *, own: bool) -> None:
    assert bool(words(line, known)) is own


def test_a_pattern_that_matches_no_word_is_about_the_line() -> None:
    dots = (re.compile("^[.]{3}$"),)
    assert unknown_error_line("a\n...\n", BaselineKnowledge(["a b"]), dots) == "..."
    assert unknown_error_line("a\n...\n", BaselineKnowledge(["a\n...\nb"]), dots) == ""


def asked(
    folder: Path, command: str, *, harmless: bool = True, limit_s: float = 10
) -> VariationVerdict:
    oracle = Oracle(command=command, environ=os.environ, folder=folder, limit_s=limit_s)
    found = outcome("hé\n", "warned\n", code=3, missed=1, unplayed=1)
    return asyncio.run(oracle.judged(found, outcome(), variation="crlf", harmless=harmless))


def test_it_is_told_of_the_run_and_of_the_tapes_as_they_are(tmp_path: Path) -> None:
    agrees = VariationVerdict(RunVerdict.SAME, "accepted by the oracle")
    assert asked(tmp_path, "cat > told.json") == agrees
    told = json.loads((tmp_path / "told.json").read_text())
    assert told == {
        "version": 1,
        "variation": "crlf",
        "harmless": True,
        "outcome": {
            "exit_code": 3,
            "signal": "",
            "timed_out": False,
            "seconds": 0.25,
            "stdout": "hé\n",
            "stderr": "warned\n",
            "report": {
                "played": ["x.tape#1"],
                "missed": ["not on the tape"],
                "unplayed": ["x.tape#2"],
            },
        },
        "recorded": {
            **told["recorded"],
            "exit_code": 0,
            "stdout": "hello\n",
            "stderr": "",
        },
    }


def test_its_exit_code_decides_and_its_last_line_says_why(tmp_path: Path) -> None:
    why = "echo checked; echo the answer lacks its end >&2; exit 4"
    assert asked(tmp_path, why) == VariationVerdict(
        RunVerdict.REFUSED, "rejected by the oracle: the answer lacks its end"
    )
    assert asked(tmp_path, "exit 4") == VariationVerdict(
        RunVerdict.REFUSED, "rejected by the oracle: exit code 4"
    )


def test_a_broken_stream_with_which_it_agrees_was_told(tmp_path: Path) -> None:
    assert asked(tmp_path, "true", harmless=False).verdict is RunVerdict.REPORTED


def test_one_that_does_not_end_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    with pytest.raises(DeltatapeError, match=r"--oracle 'sleep 30 & sleep 30' still running after"):
        asked(tmp_path, "sleep 30 & sleep 30", limit_s=0.2)


def test_one_that_leaves_something_running_elsewhere_is_not_waited_for(tmp_path: Path) -> None:
    leaves = "setsid sleep 4 & echo checked; exit 0"
    assert asked(tmp_path, leaves, limit_s=0.2).verdict is RunVerdict.SAME


def test_one_that_cannot_be_run_judges_nothing(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("no program\n")
    absent = r"^--oracle 'absent -q' cannot be run: /bin/sh: .*absent: .*not found$"
    for command, problem in (
        ("absent -q", absent),
        ("./plain", "denied"),
        ("exit 127", "code 127"),
    ):
        with pytest.raises(UsageError, match=problem) as error:
            asked(tmp_path, command)
        assert error.value.exit_code == 2
