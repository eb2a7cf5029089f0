"""The analysing process of a recording: real processes, real tapes."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from deltatape.live import client
from deltatape.live.client import LiveAnalysis
from deltatape.live.messages import ExchangeReport, SilenceReport, encode
from deltatape.model.exchange import Exchange
from deltatape.model.rule_settings import DEFAULTS
from deltatape.model.tape_summary import ROTATED, TapeSummary
from deltatape.tape.encode import header_line
from deltatape.tape.payload import Stop
from deltatape.tape.serialize import tape_lines
from helpers.exchanges import CALL_REPLY, TEXT_REPLY, USER, asks, assistant, conversation, result
from helpers.tapes import HEADER
from helpers.upstream import eventually, run

CHANGED = asks(USER, assistant(("c1", "get", "")), result("c1"))
FIRST, SECOND = conversation((asks(USER), CALL_REPLY), (CHANGED, TEXT_REPLY))
WATCH = TapeSummary(until_ns=10**12, stop="sigint")


@dataclass(eq=False)
class GrowingTape:
    """A `LiveTape` that is written by hand."""

    path: str
    name: str | None = None
    pending: bool = False

    def begin(self) -> None:
        Path(self.path).write_bytes(header_line(HEADER))

    def move(self, path: Path) -> None:
        self.path = str(Path(self.path).rename(path))

    def add(self, exchange: Exchange) -> None:
        lines = list(tape_lines(HEADER, [exchange], stop=Stop(reason="x", exit_code=None)))[1:-1]
        number = f",{exchange.number},".encode()
        with Path(self.path).open("ab") as file:
            file.writelines(line.replace(b",1,", number, 1) for line in lines)


@dataclass
class Seen:
    """A `LiveObserver` that keeps what it gets."""

    reports: list[tuple[str | None, int, list[object] | None]] = field(default_factory=list)
    """The name of the tape, the number, and the codes; None: not analysed."""
    silences: list[SilenceReport] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    then: Callable[[], None] = lambda: None
    """Called after each problem, before the process is replaced."""

    def analysed(self, tape: GrowingTape, number: int, report: ExchangeReport | None) -> None:
        codes = None if report is None else [finding["code"] for finding in report.findings]
        self.reports.append((tape.name, number, codes))

    def silent(self, tape: GrowingTape, report: SilenceReport) -> None:
        del tape
        self.silences.append(report)

    def analysis_failed(self, problem: str) -> None:
        self.problems.append(problem)
        self.then()


@asynccontextmanager
async def analysing() -> AsyncIterator[tuple[LiveAnalysis[GrowingTape], Seen]]:
    seen = Seen()
    analysis: LiveAnalysis[GrowingTape] = LiveAnalysis(DEFAULTS, seen)
    analysis.start()
    try:
        yield analysis, seen
    finally:
        await analysis.stop()


def codes(seen: Seen) -> list[list[object] | None]:
    return [found for _, _, found in seen.reports]


def test_exchanges_are_reported_as_they_end_and_the_silence_of_a_tape_that_ends(
    tmp_path: Path,
) -> None:
    tape = GrowingTape(str(tmp_path / "x.tape"), "named")
    tape.begin()

    async def scenario() -> None:
        async with analysing() as (analysis, seen):
            tape.add(FIRST)
            analysis.ended(tape, 1)
            await eventually(lambda: len(seen.reports) == 1, "the first report")
            tape.add(SECOND)
            analysis.ended(tape, 2)
            await analysis.finish()
            assert [(name, number) for name, number, _ in seen.reports] == [
                ("named", 1),
                ("named", 2),
            ]
            assert "C002" in (codes(seen)[1] or [])
            assert seen.problems == []

    run(scenario())


def test_the_end_of_a_tape_reports_what_was_never_answered(tmp_path: Path) -> None:
    tape = GrowingTape(str(tmp_path / "x.tape"))
    tape.begin()
    tape.add(FIRST)

    async def scenario() -> None:
        async with analysing() as (analysis, seen):
            analysis.close(tape, WATCH)  # nothing has ended on it: it is not even known
            analysis.ended(tape, 1)
            analysis.close(tape, WATCH)
            await analysis.finish()
            assert [report.number for report in seen.silences] == [1]
            assert seen.reports == [(None, 1, [])]
            assert not analysis.silences_unknown

    run(scenario())


def test_a_tape_that_a_slow_disk_has_yet_to_create_is_analysed_when_it_is_there(
    tmp_path: Path,
) -> None:
    late, other = GrowingTape("", "late", pending=True), GrowingTape(str(tmp_path / "other.tape"))
    other.begin()

    async def scenario() -> None:
        async with analysing() as (analysis, seen):
            analysis.ended(late, 1)
            other.add(FIRST)
            analysis.ended(other, 1)
            await eventually(lambda: len(seen.reports) == 1, "the report on the other tape")
            analysis.ended(late, 2)
            analysis.close(late, WATCH)
            late.path = str(tmp_path / "late.tape")
            late.begin()
            late.add(FIRST)
            late.add(SECOND)
            late.pending = False
            await analysis.finish()
            assert [(name, number) for name, number, _ in seen.reports] == [
                (None, 1),
                ("late", 1),
                ("late", 2),
            ]
            assert "C002" in (codes(seen)[2] or [])
            assert seen.problems == []

    run(scenario())


def test_a_tape_that_could_not_be_created_is_not_analysed() -> None:
    tape = GrowingTape("", "lost", pending=True)

    async def scenario() -> None:
        async with analysing() as (analysis, seen):
            await eventually(_running(analysis), "the process")
            analysis.ended(tape, 1)
            tape.pending = False
            await eventually(lambda: bool(seen.reports), "the report")
            assert seen.reports == [("lost", 1, None)]
            assert len(seen.problems) == 1

    run(scenario())


def _running(analysis: LiveAnalysis[GrowingTape]) -> Callable[[], bool]:
    return lambda: analysis._process is not None


def test_a_process_that_dies_is_replaced_and_nothing_is_lost_or_told_twice(tmp_path: Path) -> None:
    tape = GrowingTape(str(tmp_path / "x.tape"))
    tape.begin()

    async def scenario() -> None:
        async with analysing() as (analysis, seen):
            tape.add(FIRST)
            analysis.ended(tape, 1)
            await eventually(lambda: len(seen.reports) == 1, "the first report")
            process = analysis._process
            assert process is not None
            os.kill(process.pid, signal.SIGKILL)
            await eventually(lambda: len(seen.problems) == 1, "the death")
            tape.move(tmp_path / "y.tape")  # as a ring does with a pin
            tape.add(SECOND)
            analysis.ended(tape, 2)
            await analysis.finish()
            assert [number for _, number, _ in seen.reports] == [1, 2]
            assert "C002" in (codes(seen)[1] or [])  # it knows the conversation again
            assert "exit code -9; recording goes on, starting it again" in seen.problems[0]

    run(scenario())


@pytest.mark.parametrize("becomes", ["closed.ring.tape", "closed.tape", None])
def test_a_replacement_knows_the_conversations_of_tapes_that_were_closed(
    tmp_path: Path, becomes: str | None
) -> None:
    closed = GrowingTape(str(tmp_path / "closed.ring.tape"))
    running = GrowingTape(str(tmp_path / "running.ring.tape"))
    closed.begin()
    running.begin()

    async def scenario() -> None:
        async with analysing() as (analysis, seen):
            closed.add(FIRST)
            analysis.ended(closed, 1)
            analysis.close(closed, TapeSummary(until_ns=1, stop=ROTATED))
            await eventually(lambda: bool(analysis._closed), "the end of the first tape")
            process = analysis._process
            assert process is not None
            os.kill(process.pid, signal.SIGKILL)
            await eventually(lambda: len(seen.problems) == 1, "the death")
            if becomes is None:
                os.unlink(closed.path)  # noqa: PTH108 - as a ring does with the oldest
            else:
                os.rename(closed.path, tmp_path / becomes)  # noqa: PTH104 - with a pin
            running.add(SECOND)
            analysis.ended(running, 2)
            await analysis.finish()
            assert [number for _, number, _ in seen.reports] == [1, 2]
            # Without the reply, nothing is known to be changed.
            assert ("C002" in (codes(seen)[1] or [])) is (becomes is not None)
            assert seen.silences == []
            assert len(seen.problems) == 1

    run(scenario())


def test_as_many_closed_tapes_are_kept_in_mind_as_conversations_may_need() -> None:
    async def scenario() -> None:
        async with analysing() as (analysis, _):
            for name, exchanges, number in (
                *((None, 100, number) for number in range(5)),
                ("other", 1, 5),
                (None, client.RECALLED_EXCHANGES, 6),
            ):
                followed = client._Followed(number, GrowingTape(f"{number}.tape", name))
                followed.ended = exchanges
                analysis._remember(followed)
                if number == 4:
                    assert [path for _, path, _ in analysis._closed] == [
                        *("2.tape", "3.tape", "4.tape"),
                    ]
            assert list(analysis._closed) == [("other", "5.tape", 1), (None, "6.tape", 256)]

    run(scenario())


def _script(path: Path, *commands: str) -> str:
    """A shell script as the process: it costs no start of Python."""
    path.write_text("\n".join(("#!/bin/sh", *commands, "")))
    path.chmod(0o700)
    return str(path)


def _printing(*messages: ExchangeReport) -> str:
    return "".join(f"echo '{encode(each).decode().strip()}'\n" for each in messages)


def _report(number: int) -> ExchangeReport:
    return ExchangeReport(key=1, number=number, lines=[], findings=[])


def test_a_replacement_is_told_of_all_ends_since_it_reads_all_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tape = GrowingTape(str(tmp_path / "x.tape"))
    received = tmp_path / "received"
    # What is reported of it twice would count as two ends: it would not wait for the last one.
    commands = ("head -n 3 >>received", _printing(_report(1)), "read -r line")
    monkeypatch.setattr(sys, "executable", _script(tmp_path / "analyst", *commands))
    monkeypatch.chdir(tmp_path)

    async def scenario() -> None:
        async with analysing() as (analysis, seen):
            analysis.ended(tape, 1)
            await eventually(lambda: len(seen.reports) == 1, "the first report")
            analysis.ended(tape, 2)  # it ends when it hears of it
            await eventually(lambda: received.read_bytes().count(b'"look"') == 2, "another one")
            looks = [line for line in received.read_text().splitlines() if '"look"' in line]
            assert [json.loads(line)["ended"] for line in looks] == [1, 2]
            assert [number for _, number, _ in seen.reports] == [1]

    run(scenario())


def test_deaths_of_processes_that_have_caught_up_are_not_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tape = GrowingTape(str(tmp_path / "x.tape"))
    deaths = client.MAX_STARTS + 2
    # Each reports what the ones before have reported, too, and one more.
    reports = _printing(*map(_report, range(1, deaths + 1)))
    commands = (
        'i=$(cat count 2>>errors || echo 0); i=$((i + 1)); echo "$i" >count',
        "head -n 3 >>received",
        f"{{ {reports}}} | head -n $i",
    )
    monkeypatch.setattr(sys, "executable", _script(tmp_path / "analyst", *commands))
    monkeypatch.chdir(tmp_path)

    async def scenario() -> None:
        async with analysing() as (analysis, seen):
            seen.then = lambda: analysis.ended(tape, len(seen.problems) + 1)
            analysis.ended(tape, 1)
            await eventually(lambda: len(seen.problems) >= deaths, "the deaths")
            await analysis.stop()
            assert all(each.endswith("starting it again") for each in seen.problems)
            assert [number for _, number, _ in seen.reports[:deaths]] == [*range(1, deaths + 1)]

    run(scenario())


def test_a_process_that_dies_of_what_was_left_is_given_up_whatever_else_it_reports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tape = GrowingTape(str(tmp_path / "x.tape"))
    # It dies of exchange 1, and has always reported a new one before.
    commands = (
        'i=$(cat count 2>>errors || echo 1); i=$((i + 1)); echo "$i" >count',
        "head -n 3 >>received",
        *(f"test $i -ne {n} || {_printing(_report(n))}" for n in range(2, 8)),
    )
    monkeypatch.setattr(sys, "executable", _script(tmp_path / "analyst", *commands))
    monkeypatch.chdir(tmp_path)

    async def scenario() -> None:
        async with analysing() as (analysis, seen):
            for number in range(1, 8):
                analysis.ended(tape, number)
            await eventually(lambda: len(seen.reports) == 7, "giving up")
            assert len(seen.problems) == client.MAX_STARTS
            lost = [number for _, number, found in seen.reports if found is None]
            assert lost == [1, 5, 6, 7]

    run(scenario())


def test_deaths_after_a_long_idle_life_are_not_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "LONG_LIFE_S", 0.0)
    monkeypatch.setattr(sys, "executable", "/bin/false")
    tape = GrowingTape(str(tmp_path / "x.tape"))

    async def scenario() -> None:
        async with analysing() as (analysis, seen):
            await eventually(lambda: len(seen.problems) > client.MAX_STARTS, "the deaths")
            assert all(each.endswith("starting it again") for each in seen.problems)
            analysis.ended(tape, 1)  # with work to do, it may be the cause
            await eventually(lambda: len(seen.reports) == 1, "giving up")
            assert seen.problems[-1].endswith("deltatape check does it")

    run(scenario())


def test_a_tape_that_is_renamed_before_it_was_opened_is_analysed_to_its_end(
    tmp_path: Path,
) -> None:
    tape = GrowingTape(str(tmp_path / "x.tape"))
    tape.begin()
    tape.add(FIRST)

    async def scenario() -> None:
        async with analysing() as (analysis, seen):
            await eventually(_running(analysis), "the process")
            analysis.ended(tape, 1)
            tape.move(tmp_path / "y.tape")
            analysis.close(tape, WATCH)
            await analysis.finish()
            assert seen.reports == [(None, 1, [])]
            assert [report.number for report in seen.silences] == [1]

    run(scenario())


def test_a_silence_is_reported_once_and_half_a_message_is_no_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tape = GrowingTape(str(tmp_path / "x.tape"))
    silence = encode(SilenceReport(key=1, number=1, lines=[], findings=[])).decode()
    # It dies between the silence and the message that says that all was reported.
    monkeypatch.setattr(
        sys,
        "executable",
        _script(
            tmp_path / "dies", "head -n 4 >>lines", f"printf '%s\n%s' '{silence.strip()}' '{{'"
        ),
    )
    monkeypatch.chdir(tmp_path)

    async def scenario() -> None:
        async with analysing() as (analysis, seen):
            analysis.ended(tape, 1)
            analysis.close(tape, WATCH)
            await analysis.finish()
            assert len(seen.silences) == 1
            assert len(seen.problems) == client.MAX_STARTS
            assert "ended with exit code 0" in seen.problems[0]
            assert seen.reports == [(None, 1, None)]
            assert analysis.silences_unknown

    run(scenario())


def test_a_process_that_dies_again_and_again_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    tape = GrowingTape(str(tmp_path / "x.tape"))
    tape.begin()
    tape.add(FIRST)

    async def scenario() -> None:
        async with analysing() as (analysis, seen):
            analysis.ended(tape, 1)
            await eventually(lambda: len(seen.reports) == 1, "giving up")
            assert seen.reports == [(None, 1, None)]
            assert len(seen.problems) == client.MAX_STARTS
            assert seen.problems[-1].endswith("deltatape check does it")
            analysis.ended(tape, 2)
            assert seen.reports[1:] == [(None, 2, None)]
            assert not analysis.silences_unknown
            analysis.close(tape, WATCH)
            assert analysis.silences_unknown
            await analysis.finish()

    run(scenario())


def test_a_program_that_cannot_be_started_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "none"))

    async def scenario() -> None:
        async with analysing() as (_, seen):
            await eventually(lambda: len(seen.problems) == client.MAX_STARTS, "the problems")
            assert "could not start (No such file or directory)" in seen.problems[0]

    run(scenario())


def test_a_tape_that_is_gone_is_told_and_its_exchanges_are_not_analysed(tmp_path: Path) -> None:
    tape = GrowingTape(str(tmp_path / "gone.tape"))

    async def scenario() -> None:
        async with analysing() as (analysis, seen):
            analysis.ended(tape, 1)
            await analysis.finish()
            assert seen.reports == [(None, 1, None)]
            assert "gone.tape" in seen.problems[0]

    run(scenario())


def test_a_hurry_ends_the_wait_for_reports(tmp_path: Path) -> None:
    tape = GrowingTape(str(tmp_path / "x.tape"))
    tape.begin()

    async def scenario() -> None:
        async with analysing() as (analysis, seen):
            analysis.ended(tape, 1)  # its end never comes
            await eventually(_running(analysis), "the process")
            analysis.hurry()
            await analysis.finish()
            assert seen.reports == [(None, 1, None)]
            await analysis.finish()

    run(scenario())


def test_it_ends_with_the_recorder(tmp_path: Path) -> None:
    del tmp_path

    async def scenario() -> int:
        async with analysing() as (analysis, _):
            await eventually(_running(analysis), "the process")
            process = analysis._process
            assert process is not None
            assert process.stdin is not None
            process.stdin.close()  # as the kernel does when a recorder is killed
            return await asyncio.wait_for(process.wait(), 60)

    assert run(scenario()) == 0


def test_the_recorder_imports_nothing_that_reads_streams() -> None:
    script = "import sys, deltatape.cli.record_command\nprint(*sys.modules)"
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    packages = {name.split(".")[1] for name in done.stdout.split() if "deltatape." in name}
    assert "record" in packages
    assert not packages & {"conversation", "diagnose", "dialects", "rules", "suspects", "why"}
