"""One run of a command against varied tapes: what is played, how often, how long it may take."""

import asyncio
import shlex
from dataclasses import replace
from pathlib import Path

from deltatape.model.exchange import Exchange
from deltatape.trials.torture_plan import tasks
from deltatape.trials.torture_rig import Rig, Runner
from deltatape.trials.trial import Outcome
from helpers.tortured import answers, named, rig


def varied(name: str) -> dict[int, Exchange]:
    """A variation of the first exchange."""
    (task,) = tasks(named(name), answers(), (0,), (1,))
    return dict(task.tries[0].varied)


def ran(runner: Runner, name: str, *, harmless: bool = True) -> Outcome:
    return asyncio.run(runner.run(varied(name), name=name, harmless=harmless, standard_s=0.2))


def notes(outcome: Outcome) -> list[tuple[int, str]]:
    return [(one.exchange.number, one.note) for one in outcome.report.played]


def started(folder: Path, *how: str, deadline_s: float = 5.0) -> Rig:
    return rig(folder, *how, only=("crlf",), deadline_s=deadline_s)


def test_the_exchange_in_question_is_varied_and_the_others_are_as_they_are(tmp_path: Path) -> None:
    runner = Runner(started(tmp_path))
    assert notes(ran(runner, "crlf")) == [(1, "crlf"), (2, "")]
    assert [one.body for one in runner.played(varied("crlf"))] == [
        answers()[0].body.replace(b"\n", b"\r\n"),
        answers()[1].body,
    ]


def test_a_broken_answer_is_broken_once(tmp_path: Path) -> None:
    runner = Runner(started(tmp_path, "retry", "once"))
    outcome = ran(runner, "cut-in-text", harmless=False)
    assert notes(outcome) == [(1, "cut-in-text"), (1, "")]
    assert outcome.stdout == b"Guten Tag\n"
    assert outcome.report.whole


def test_a_run_may_take_as_long_as_a_variation_waits(tmp_path: Path) -> None:
    runner = Runner(started(tmp_path, "once", deadline_s=1.0))
    outcome = ran(runner, "pause")
    assert (outcome.exit_code, runner.runs) == (0, 1)
    assert outcome.seconds > 1.5


def test_a_whole_stream_at_which_it_does_not_end_gets_more_time(tmp_path: Path) -> None:
    careful = started(tmp_path, "once", deadline_s=0.1)
    app = shlex.join(careful.command)
    # The first run takes longer than it may; the next one does not.
    slow = f"echo >> runs; [ $(wc -l < runs) != 1 ] || sleep 9; {app}"
    runner = Runner(replace(careful, command=("sh", "-c", slow)))
    outcome = ran(runner, "crlf")
    assert (outcome.timed_out, runner.runs) == (False, 2)


def test_at_a_broken_stream_it_gets_no_more_time(tmp_path: Path) -> None:
    runner = Runner(started(tmp_path, "once", deadline_s=0.1))
    outcome = ran(runner, "stall-in-text", harmless=False)
    assert (outcome.timed_out, runner.runs) == (True, 1)
