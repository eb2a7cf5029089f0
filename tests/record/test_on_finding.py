import asyncio
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from deltatape.clock import SystemClock
from deltatape.diagnose.check import check
from deltatape.record import on_finding
from deltatape.record.on_finding import JsonFinding, OnFinding
from deltatape.render.json_document import finding_object
from helpers.taped import taped
from helpers.upstream import eventually, run

FOUND = check(taped(reads=((5, b"data: {\n\n"),)))
FINDINGS = tuple(map(finding_object, FOUND))


class Hook:
    """An `OnFinding`, and what it told."""

    def __init__(self, command: str, limit_s: float = 60.0) -> None:
        self.told: list[str] = []
        self.hook = OnFinding(command, self.told.append, limit_s=limit_s)

    def found(self, number: int = 1, findings: tuple[JsonFinding, ...] = FINDINGS) -> None:
        self.hook.run("a b/x.tape", number, findings)


def after(command: str, feed: Callable[[Hook], None] = Hook.found, limit_s: float = 60.0) -> Hook:
    """A hook that was fed, and then stopped."""

    async def scenario() -> Hook:
        hook = Hook(command, limit_s)
        feed(hook)
        await hook.hook.stop(20.0)
        return hook

    return run(scenario())


def test_there_are_findings_to_tell() -> None:
    assert FINDINGS


def test_the_command_gets_the_tape_and_the_findings(tmp_path: Path) -> None:
    out = tmp_path / "out"
    hook = after(f'printf "%s|%s|" "$1" "$DELTATAPE_TAPE" > {out}; cat >> {out}')
    assert hook.told == []
    first, second, text = out.read_text().split("|", 2)
    assert first == second == "a b/x.tape"
    document = json.loads(text)
    assert list(document) == ["version", "tape", "exchange", "findings"]
    assert (document["version"], document["tape"], document["exchange"]) == (1, "a b/x.tape", 1)
    assert [each["code"] for each in document["findings"]] == [each.code for each in FOUND]
    assert {each["tape"] for each in document["findings"]} == {"a b/x.tape"}
    assert all(text.isascii() and text.isprintable() for text in (text.strip(),))


def test_without_findings_nothing_is_run(tmp_path: Path) -> None:
    after(f"touch {tmp_path / 'ran'}", lambda hook: hook.found(findings=()))
    assert not (tmp_path / "ran").exists()


def test_after_the_end_nothing_is_run(tmp_path: Path) -> None:
    async def scenario() -> None:
        hook = Hook(f"touch {tmp_path / 'ran'}")
        await hook.hook.stop()
        hook.found()
        await hook.hook.stop()

    run(scenario())
    assert not (tmp_path / "ran").exists()


def test_what_it_prints_and_how_it_ends_is_told() -> None:
    hook = after("echo out; echo err >&2; printf 'no end'; exit 3")
    assert sorted(hook.told[:2]) == ["on-finding: err", "on-finding: out"]
    assert set(hook.told[2:]) == {
        "on-finding: no end",
        "on-finding (a b/x.tape#1): exit code 3",
    }


def test_a_command_that_kills_itself_is_told() -> None:
    assert after("kill -9 $$").told == ["on-finding (a b/x.tape#1): ended by signal 9"]


def test_a_command_that_prints_without_end_is_cut_short() -> None:
    hook = after("yes | head -n 100000; head -c 200000 /dev/zero | tr '\\0' x; echo; exit 0")
    assert hook.told.count("on-finding: y") == 100
    assert hook.told[-1] == "on-finding: prints more than 100 lines; they are left out"
    assert len(hook.told) == 101
    (line,) = after("head -c 200000 /dev/zero | tr '\\0' x").told
    assert len(line) < 1100


def test_a_command_that_reads_nothing_is_fine() -> None:
    many = FINDINGS * 2000
    assert after("exec 0<&-; true", lambda hook: hook.found(findings=many)).told == []


def test_two_run_at_a_time_and_the_rest_in_turn(tmp_path: Path) -> None:
    def feed(hook: Hook) -> None:
        for number in range(1, 7):
            hook.found(number)

    log = tmp_path / "log"
    hook = after(f"echo + >> {log}; sleep 0.2; echo - >> {log}", feed)
    assert hook.told == []
    marks = log.read_text().split()
    assert len(marks) == 12
    running = [marks[:n].count("+") - marks[:n].count("-") for n in range(13)]
    assert max(running) == 2


def test_what_is_too_much_is_left_out_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_finding, "WAITING", 3)

    def feed(hook: Hook) -> None:
        for number in range(1, 11):
            hook.found(number)

    hook = after("true", feed)
    assert hook.told == [
        "on-finding: 3 runs wait already, so some exchanges are left out",
        "on-finding: not run for 5 exchanges with findings",
    ]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def gone(pid: int) -> bool:
    """Whether a process ends within some seconds."""
    clock = SystemClock()
    deadline_ns = clock.now_ns() + 10_000_000_000
    while alive(pid) and clock.now_ns() < deadline_ns:
        pass
    return not alive(pid)


def test_one_that_takes_too_long_is_ended_with_all_it_started(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    hook = after(f"sleep 999 & echo $! $$ > {pids}; wait", limit_s=0.5)
    assert hook.told == [
        "on-finding (a b/x.tape#1): ended after 0.5 s: it was still running",
    ]
    assert all(gone(int(pid)) for pid in pids.read_text().split())


def test_one_that_does_not_listen_to_signals_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(on_finding, "_TERMINATED_S", 0.3)
    pid = tmp_path / "pid"
    after(f"trap '' TERM; echo $$ > {pid}; while :; do sleep 0.05; done", limit_s=0.3)
    assert gone(int(pid.read_text()))


def test_the_end_of_the_recording_waits_a_moment_and_not_longer(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    pids.touch()

    async def scenario() -> list[str]:
        hook = Hook(f"echo $$ >> {pids}; sleep 999")
        for number in (1, 2, 3):
            hook.found(number)
        await eventually(lambda: len(pids.read_text().split()) == 2, "both run")
        await hook.hook.stop(0.1)
        return hook.told

    *ended, last = run(scenario())
    assert sorted(ended) == [
        "on-finding (a b/x.tape#1): ended with the recording: it was still running",
        "on-finding (a b/x.tape#2): ended with the recording: it was still running",
    ]
    assert last == "on-finding: not run for 1 exchange with findings"
    assert all(gone(int(pid)) for pid in pids.read_text().split())


def test_one_that_was_about_to_start_is_told() -> None:
    async def scenario() -> list[str]:
        hook = Hook("sleep 999")
        hook.found()
        await asyncio.sleep(0)
        await hook.hook.stop(0.0)
        return hook.told

    assert run(scenario()) == ["on-finding (a b/x.tape#1): not run: the recording has ended"]


def test_what_the_command_leaves_running_holds_nothing_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(on_finding, "_PIPE_S", 0.1)
    pid = tmp_path / "pid"
    hook = after(f"sleep 999 & echo $! > {pid}")
    assert hook.told == []
    left = int(pid.read_text())
    assert alive(left)
    os.kill(left, signal.SIGKILL)


def test_a_system_without_a_shell_is_told(tmp_path: Path) -> None:
    async def scenario() -> list[str]:
        told: list[str] = []
        # No `sh` is found on this path.
        hook = OnFinding("true", told.append, environment={"PATH": str(tmp_path)})
        hook.run("x.tape", 1, FINDINGS)
        await hook.stop(10.0)
        return told

    assert run(scenario()) == [
        "on-finding (x.tape#1): cannot be run: No such file or directory",
    ]
