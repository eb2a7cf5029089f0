"""One run of a command against tapes: it ends in time, and all of it is known."""

import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from deltatape.errors import UsageError
from deltatape.match.schedule import ReplayTempo
from deltatape.model.exchange import EndReason, Exchange
from deltatape.player.play_options import PlayOptions
from deltatape.trials.trial import MAX_OUTPUT_BYTES, TrialResult, attempt, wait_to_the_end
from helpers.taped import taped
from helpers.upstream import eventually, run

PLAYING = PlayOptions(tempo=ReplayTempo(factor=0.0))
EXCHANGE = taped(body={"a": 1})
CURL = "curl -sS -H content-type:application/json $OPENAI_BASE_URL/chat/completions"
ASK = f"""{CURL} -d '{{"a": 1}}'"""


def trial(
    command: Sequence[str], exchanges: Sequence[Exchange], folder: Path, deadline_s: float = 10.0
) -> TrialResult:
    """A command, tried."""
    return asyncio.run(attempt(command, exchanges, PLAYING, os.environ, folder, deadline_s))


def tried(command: str, folder: Path, deadline_s: float = 10.0) -> TrialResult:
    """A line for the shell, tried."""
    return trial(["sh", "-c", command], (EXCHANGE,), folder, deadline_s)


def test_a_command_gets_its_answers_and_is_reported_as_a_whole(tmp_path: Path) -> None:
    outcome = tried(f"{ASK}; pwd; echo oh >&2; exit 3", tmp_path)
    assert outcome.stdout == EXCHANGE.body + f"{tmp_path}\n".encode()
    assert (outcome.exit_code, outcome.stderr, outcome.signal) == (3, b"oh\n", "")
    assert (outcome.timed_out, outcome.report.whole) == (False, True)
    assert outcome.seconds > 0


def test_what_a_command_did_not_ask_for_and_asked_differently_is_in_the_report(
    tmp_path: Path,
) -> None:
    report = tried(f"{CURL} -d '{{}}'", tmp_path).report
    assert (len(report.missed), report.unplayed) == (1, (EXCHANGE,))


def test_a_signal_is_no_exit_code(tmp_path: Path) -> None:
    outcome = tried("kill -SEGV $$", tmp_path)
    assert (outcome.exit_code, outcome.signal, outcome.timed_out) == (None, "SIGSEGV", False)
    assert tried("kill -36 $$", tmp_path).signal == "signal 36"


def test_at_the_deadline_all_that_it_started_is_killed(tmp_path: Path) -> None:
    outcome = tried("echo begun; (sleep 60; echo late) & wait", tmp_path, 0.3)
    assert (outcome.exit_code, outcome.signal, outcome.timed_out) == (None, "SIGKILL", True)
    assert outcome.stdout == b"begun\n"
    assert outcome.seconds > 0.25


def test_background_processes_end_with_the_command(tmp_path: Path) -> None:
    outcome = tried("sleep 60 & echo $! >pid; exit 0", tmp_path)
    assert outcome.exit_code == 0
    assert not outcome.timed_out
    pid = int((tmp_path / "pid").read_text())
    run(eventually(lambda: _is_over(pid), "the end of a killed process"))


def _is_over(pid: int) -> bool:
    try:
        return " Z " in Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_what_has_left_its_group_holds_it_up_for_a_moment_only(tmp_path: Path) -> None:
    outcome = tried("setsid sh -c 'echo $$ >pid; sleep 60' & sleep 0.3; echo over", tmp_path)
    assert outcome.stdout == b"over\n"
    assert not outcome.timed_out
    os.kill(int((tmp_path / "pid").read_text()), 9)


def test_of_long_output_the_beginning_and_the_end_are_kept(tmp_path: Path) -> None:
    size = 3 * MAX_OUTPUT_BYTES
    program = f"import sys; sys.stdout.write('a' + 'x' * {size} + 'b')"
    outcome = tried(f'{sys.executable} -c "{program}"', tmp_path)
    left_out = size + 2 - MAX_OUTPUT_BYTES
    gap = b"\n[... %d bytes left out ...]\n" % left_out
    half = MAX_OUTPUT_BYTES // 2
    assert outcome.stdout == b"a" + b"x" * (half - 1) + gap + b"x" * (half - 1) + b"b"


def test_it_has_no_stdin_to_wait_for(tmp_path: Path) -> None:
    assert tried("cat", tmp_path).exit_code == 0


def test_a_script_without_a_first_line_runs_as_in_every_shell(tmp_path: Path) -> None:
    script = tmp_path / "run"
    script.write_text("echo $1\n")
    script.chmod(0o700)
    outcome = trial([str(script), "this"], (), tmp_path)
    assert outcome.stdout == b"this\n"


def test_a_command_that_cannot_be_started_has_the_exit_code_of_env(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nothing-here: cannot be run: No such file") as caught:
        trial(["nothing-here"], (), tmp_path)
    assert caught.value.exit_code == 127
    with pytest.raises(UsageError, match="Permission denied") as caught:
        trial([str(tmp_path)], (), tmp_path)
    assert caught.value.exit_code == 126


def test_a_stall_lasts_until_the_deadline_and_no_longer(tmp_path: Path) -> None:
    held = taped(body={"a": 1}, reason=EndReason.TIMEOUT)
    outcome = trial(["sh", "-c", ASK], (held,), tmp_path, 0.4)
    assert outcome.timed_out
    assert len(outcome.report.played) == 1


def test_several_run_side_by_side_in_one_loop(tmp_path: Path) -> None:
    async def three() -> list[TrialResult]:
        each = (
            attempt(
                ["sh", "-c", f"{ASK}; exit {n}"], (EXCHANGE,), PLAYING, os.environ, tmp_path, 10
            )
            for n in range(3)
        )
        return await asyncio.gather(*each)

    outcomes = asyncio.run(three())
    assert [outcome.exit_code for outcome in outcomes] == [0, 1, 2]
    assert all(outcome.report.whole for outcome in outcomes)


def test_a_wait_for_a_killed_process_outlasts_its_cancellation() -> None:
    async def cancelled_while_waiting() -> None:
        ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting = asyncio.ensure_future(wait_to_the_end(ended))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait([waiting], timeout=0)
        await asyncio.sleep(0)
        assert not waiting.done()
        ended.set_result(None)
        with pytest.raises(asyncio.CancelledError):
            await waiting

    run(cancelled_while_waiting())
