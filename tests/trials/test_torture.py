"""Applications with and without mistakes, tortured: real processes, a real player."""

import asyncio
import re
import shlex
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from deltatape.errors import UsageError
from deltatape.model.exchange import Exchange
from deltatape.model.torture import MatrixCell
from deltatape.store.reader import open_tape
from deltatape.trials.torture import TortureRunner, TortureSetup, torture
from deltatape.trials.torture_judge import Oracle, OutputRules
from deltatape.trials.torture_plan import tasks
from deltatape.trials.trial import TrialResult
from helpers.tortured import answers, marks, named, rig, tortured


def test_a_careful_application_stands_all(tmp_path: Path) -> None:
    heard: list[tuple[MatrixCell, ...]] = []
    tasks: list[int] = []
    careful = rig(tmp_path, only=("split-event", "crlf", "split-utf8", "cut-in-text"))
    result = torture(careful, tasks.append, heard.append)
    assert result.passes
    assert result.columns == ("#1", "#2")
    assert result.runs == 2 + 3 + 2
    assert tasks == [5]
    assert sorted(cell.variation for cells in heard for cell in cells) == sorted(
        cell.variation for cell in result.cells
    )
    assert marks(result) == {
        "split-event #1": "same",
        "split-event #2": "same",
        "crlf #1": "same",
        "crlf #2": "same",
        "split-utf8 #1": "no-place",
        "split-utf8 #2": "same",
        "cut-in-text #1": "told",
        "cut-in-text #2": "told",
    }


def test_one_that_takes_reads_for_events_is_found_and_in_which_exchange(tmp_path: Path) -> None:
    result = tortured(tmp_path, "by-read", only=("every-byte",), deadline_s=3.0)
    assert marks(result) == {"every-byte #1": "differs", "every-byte #2": "differs"}
    first = result.failed[0]
    assert first.why == (
        "output line 1: something went wrong: the answer broke off instead of Guten Tag"
    )
    assert "--only every-byte --exchange 1 -- " in first.reproduce
    assert first.printed.startswith("something went wrong: the answer broke off\n")


def test_one_that_swallows_what_goes_wrong_is_found(tmp_path: Path) -> None:
    result = tortured(tmp_path, "deaf", "once", only=("cut-in-text", "end-in-text", "status-500"))
    assert set(marks(result).values()) == {"swallowed"}


def test_one_that_never_gives_up_waiting_is_found_and_ended(tmp_path: Path) -> None:
    result = tortured(tmp_path, "once", only=("stall-in-text",), deadline_s=0.5)
    (cell,) = result.cells
    assert (cell.verdict, cell.seconds > 0.5) == ("hangs", True)


def test_one_that_asks_again_gets_the_answer(tmp_path: Path) -> None:
    result = tortured(tmp_path, "retry", "mute", "once", only=("cut-in-text", "status-529"))
    assert marks(result) == {"cut-in-text #1": "told", "status-529 #1": "told"}
    result = tortured(tmp_path, "retry", "once", only=("cut-in-text", "status-529"))
    assert marks(result) == {"cut-in-text #1": "same", "status-529 #1": "same"}


@pytest.mark.parametrize(
    ("how", "problem"),
    [
        ("again", "the output"),
        ("crash", "ended by SIGSEGV"),
        (
            "once-only",
            "the command did not request x.tape#2; if that is correct, name only ",
        ),
        ("flaky", "two runs with the unchanged tapes differ: output line 1: Guten Tag "),
    ],
)
def test_one_that_fails_with_the_tapes_as_they_are_is_not_varied(
    how: str, problem: str, tmp_path: Path
) -> None:
    result = tortured(tmp_path, how, only=("crlf",))
    assert not result.passes
    assert result.cells == ()
    assert result.runs == 2
    if how == "again":
        assert result.problem.startswith('request differs at $.number: "1again" instead of "1"')
    else:
        assert result.problem.startswith(problem)


def test_an_oracle_may_take_less_than_all_exchanges(tmp_path: Path) -> None:
    first = rig(tmp_path, "once", only=("crlf",))
    oracle = Oracle(command="true", environ=first.environ, folder=tmp_path, limit_s=10)
    result = torture(replace(first, exchanges=answers(), oracle=oracle))
    assert result.idle == ("#2",)
    assert result.columns == ("#1",)


def test_ignored_output_may_differ(tmp_path: Path) -> None:
    output_rules = OutputRules(ignore=(re.compile(r" [0-9]+$", re.MULTILINE),))
    assert tortured(tmp_path, "flaky", only=("crlf",), output_rules=output_rules).passes


def test_an_oracle_judges_in_place_of_the_outputs(tmp_path: Path) -> None:
    careful = rig(tmp_path, "once", only=("crlf", "cut-in-text"))
    oracle = Oracle(
        command='grep -q \'"variation": "\\(\\|crlf\\)"\' || { echo no; exit 1; }',
        environ=careful.environ,
        folder=tmp_path,
        limit_s=10,
    )
    result = torture(replace(careful, oracle=oracle))
    assert marks(result) == {"crlf #1": "same", "cut-in-text #1": "refused"}
    assert result.failed[0].why == "rejected by the oracle: no"
    never = replace(oracle, command="echo never; exit 1")
    assert torture(replace(careful, oracle=never)).problem == "rejected by the oracle: never"


def test_only_the_exchanges_that_are_wanted_are_varied(tmp_path: Path) -> None:
    chosen = replace(rig(tmp_path, only=("crlf", "cut-in-text")), only=frozenset({1}))
    assert marks(torture(chosen)) == {"crlf #2": "same", "cut-in-text #2": "told"}


def test_a_failure_that_comes_and_goes_is_reported_as_such(tmp_path: Path) -> None:
    careful = rig(tmp_path, "once", only=("crlf",))
    # Each run leaves a mark; the third, the first with a variation, goes wrong.
    counting = f"echo >> runs; [ $(wc -l < runs) != 3 ] || echo oops; {shlex.join(careful.command)}"
    result = torture(replace(careful, command=("sh", "-c", counting)))
    (cell,) = result.cells
    assert cell.why == "in 1 of 2 runs: output line 1: oops instead of Guten Tag"


def test_what_fails_only_with_all_exchanges_at_once_has_a_column_of_its_own(
    tmp_path: Path,
) -> None:
    careful = rig(tmp_path, only=("crlf",))
    counting = f"echo >> runs; [ $(wc -l < runs) != 3 ] || echo oops; {shlex.join(careful.command)}"
    result = torture(replace(careful, command=("sh", "-c", counting)))
    assert marks(result) == {"crlf #1": "same", "crlf #2": "same", "crlf all": "differs"}
    assert result.columns == ("#1", "#2", "all")
    assert "--exchange" not in result.failed[0].reproduce


def test_the_tape_of_a_failure_is_kept_and_plays_the_same(tmp_path: Path) -> None:
    careful = rig(tmp_path, "deaf", "once", only=("cut-in-text",))
    filing = replace(careful.filing, folder=tmp_path / "kept")
    (cell,) = torture(replace(careful, filing=filing)).cells
    assert cell.kept == str(tmp_path / "kept" / "cut-in-text-1-1.tape")
    (kept,) = open_tape(Path(cell.kept)).exchanges()
    whole, _ = answers()
    assert whole.body.startswith(kept.body)
    assert kept.body != whole.body


def test_exchanges_of_several_tapes_are_called_by_their_tapes(tmp_path: Path) -> None:
    first, second = answers()
    two = (first, replace(second, tape="y.tape", number=1))
    result = tortured(tmp_path, only=("crlf",), exchanges=two)
    assert result.columns == ("x.tape#1", "y.tape#1")
    assert result.tapes == ("x.tape", "y.tape")


def test_a_command_that_cannot_be_run_is_an_error(tmp_path: Path) -> None:
    absent = replace(rig(tmp_path, only=("crlf",)), command=("absent-program",))
    with pytest.raises(UsageError, match="absent-program"):
        torture(absent)


def test_an_error_in_the_middle_ends_the_whole(tmp_path: Path) -> None:
    careful = rig(tmp_path, "once", only=("crlf", "cr"))
    slow = 'grep -q \'"variation": ""\' || sleep 30'
    oracle = Oracle(command=slow, environ=careful.environ, folder=tmp_path, limit_s=0.3)
    with pytest.raises(Exception, match="still running after") as error:
        torture(replace(careful, oracle=oracle))
    assert not isinstance(error.value, BaseExceptionGroup)


def test_of_a_long_output_whole_lines_are_kept(tmp_path: Path) -> None:
    def printed(code: str) -> str:
        careful = rig(tmp_path, "once", only=("crlf",))
        command = (sys.executable, "-I", "-S", "-c", f"{code}; raise SystemExit(3)")
        return torture(replace(careful, command=command)).printed

    lines = printed("print(*(f'line {at:04}' for at in range(1000)), sep='\\n')").splitlines()
    assert lines == ["...", *(f"line {at:04}" for at in range(1000 - len(lines) + 1, 1000))]
    assert len(lines) == 151
    assert printed("print('a' * 9000)") == "..." + "a" * 1500
    assert printed("print('a' * 1500)") == "a" * 1500


def test_an_oracle_that_cannot_be_run_is_an_error(tmp_path: Path) -> None:
    careful = rig(tmp_path, "once", only=("crlf",))
    oracle = Oracle(command="absent", environ=careful.environ, folder=tmp_path, limit_s=10)
    with pytest.raises(UsageError, match="--oracle 'absent' cannot be run: "):
        torture(replace(careful, oracle=oracle))


def varied(name: str) -> dict[int, Exchange]:
    """A variation of the first exchange."""
    (task,) = tasks(named(name), answers(), (0,), (1,))
    return dict(task.tries[0].varied)


def ran(runner: TortureRunner, name: str, *, harmless: bool = True) -> TrialResult:
    return asyncio.run(runner.run(varied(name), name=name, harmless=harmless, baseline_s=0.2))


def notes(outcome: TrialResult) -> list[tuple[int, str]]:
    return [(one.exchange.number, one.note) for one in outcome.report.played]


def started(folder: Path, *how: str, deadline_s: float = 5.0) -> TortureSetup:
    return rig(folder, *how, only=("crlf",), deadline_s=deadline_s)


def test_the_exchange_in_question_is_varied_and_the_others_are_as_they_are(tmp_path: Path) -> None:
    runner = TortureRunner(started(tmp_path))
    assert notes(ran(runner, "crlf")) == [(1, "crlf"), (2, "")]
    assert [one.body for one in runner.played(varied("crlf"))] == [
        answers()[0].body.replace(b"\n", b"\r\n"),
        answers()[1].body,
    ]


def test_a_broken_answer_is_broken_once(tmp_path: Path) -> None:
    runner = TortureRunner(started(tmp_path, "retry", "once"))
    outcome = ran(runner, "cut-in-text", harmless=False)
    assert notes(outcome) == [(1, "cut-in-text"), (1, "")]
    assert outcome.stdout == b"Guten Tag\n"
    assert outcome.report.whole


def test_a_run_may_take_as_long_as_a_variation_waits(tmp_path: Path) -> None:
    runner = TortureRunner(started(tmp_path, "once", deadline_s=1.0))
    outcome = ran(runner, "pause")
    assert (outcome.exit_code, runner.runs) == (0, 1)
    assert outcome.seconds > 1.5


def test_a_whole_stream_at_which_it_does_not_end_gets_more_time(tmp_path: Path) -> None:
    careful = started(tmp_path, "once", deadline_s=0.1)
    app = shlex.join(careful.command)
    # The first run takes longer than it may; the next one does not.
    slow = f"echo >> runs; [ $(wc -l < runs) != 1 ] || sleep 9; {app}"
    runner = TortureRunner(replace(careful, command=("sh", "-c", slow)))
    outcome = ran(runner, "crlf")
    assert (outcome.timed_out, runner.runs) == (False, 2)


def test_at_a_broken_stream_it_gets_no_more_time(tmp_path: Path) -> None:
    runner = TortureRunner(started(tmp_path, "once", deadline_s=0.1))
    outcome = ran(runner, "stall-in-text", harmless=False)
    assert (outcome.timed_out, runner.runs) == (True, 1)
