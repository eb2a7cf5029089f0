"""The report of `deltatape shrink`, and the tests that it writes."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from string import Template
from typing import NamedTuple

from deltatape.diagnose.decode import decode
from deltatape.model.exchange import Exchange
from deltatape.printable import count, excerpt
from deltatape.render.json_document import document
from deltatape.render.lines import BOLD, DIM, Line, StyledText
from deltatape.shrink.body import event_count
from deltatape.shrink.failure import TargetFailure

_MOST_EVENTS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class TapeSize:
    """The number of exchanges, events and bytes on a tape."""

    exchanges: int
    events: int
    bytes: int
    """The size of all response bodies."""

    @property
    def text(self) -> str:
        """Describe the size in words."""
        return ", ".join(
            count(number, what)
            for number, what in (
                (self.exchanges, "exchange"),
                (self.events, "event"),
                (self.bytes, "byte"),
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ShrinkReport:
    """The result of a search."""

    before: Sequence[Exchange]
    after: Sequence[Exchange]
    failure: TargetFailure
    runs: int
    seconds: float
    whole: bool
    """Whether nothing more can be removed."""
    files: Sequence[str]
    """The written files, the tape first."""
    still: bool = True
    """Whether the final tape fails in the same way each time."""


def amount_of(exchanges: Sequence[Exchange]) -> TapeSize:
    """Count what is on a tape."""
    return TapeSize(
        exchanges=len(exchanges),
        events=event_count(exchanges),
        bytes=sum(len(one.body) for one in exchanges),
    )


def shrink_lines(report: ShrinkReport, width: int) -> list[Line]:
    """Format the result for people."""
    before, after = amount_of(report.before), amount_of(report.after)
    fails = "still fails" if report.still else "no longer fails in the same way"
    lines: list[Line] = [
        (StyledText(excerpt(f"{fails}: {report.failure.description}", width)),),
        (StyledText(f"before: {before.text}"),),
        (
            StyledText(f" after: {after.text}", BOLD),
            StyledText(f"  ({count(report.runs, 'run')}, {report.seconds:.0f} s)", DIM),
        ),
    ]
    events = [
        f"  #{number} {event.data}"
        for number, one in enumerate(report.after, 1)
        for event in decode(one).events
    ]
    lines += [(StyledText(excerpt(data, width), DIM),) for data in events[:_MOST_EVENTS]]
    if len(events) > _MOST_EVENTS:
        lines.append(
            (StyledText(f"  ... and {count(len(events) - _MOST_EVENTS, 'more event')}", DIM),)
        )
    return lines


def shrink_json(report: ShrinkReport) -> str:
    """Format the result for programs."""
    ending = report.failure.ending
    return document(
        failure={
            "exit_code": ending.exit_code,
            "signal": ending.signal,
            "timed_out": ending.timed_out,
            "error": report.failure.shown,
        },
        before=_amount(report.before),
        after=_amount(report.after),
        runs=report.runs,
        minimal=report.whole,
        files=[*report.files],
    )


def _amount(exchanges: Sequence[Exchange]) -> dict[str, int]:
    found = amount_of(exchanges)
    return {"exchanges": found.exchanges, "events": found.events, "bytes": found.bytes}


# Tests that a shrunk tape comes with: for pytest, and for a shell.
#
# They play the tape as the provider to the command and fail while it fails as it did. Nothing of
# the tape stands in them, and what the command printed only as a quoted pattern, so that neither
# can become code.
#
# Invariant: they are green only if the command ran and got an answer of the tape: one that is not
# there, or a deltatape that is not, prints no error of the command's either.


@dataclass(frozen=True, slots=True, kw_only=True)
class ShrinkKit:
    """The input for generated tests."""

    tape: str
    """The name of the tape's file, beside the tests."""
    folder: str
    """The folder to run the command in, relative to the tests."""
    command: Sequence[str]
    options: Sequence[str]
    """The options of `deltatape replay`."""
    deadline_s: float
    failure: TargetFailure
    oracle: str | None = None


_NOT_RUN = (125, 126, 127)
"""Exit codes of `deltatape replay`, as of env(1), where the command was not run."""
_START_S = 10
"""The most time that deltatape takes to start and to end on a busy machine."""


class _Judging(NamedTuple):
    """How a generated pytest test decides whether the failure is gone."""

    imports: str
    constant: Template
    body: str


def pytest_text(kit: ShrinkKit) -> str:
    """Write a test for pytest."""
    judging = _ORACLE if kit.oracle is not None else _PATTERN if kit.failure.shown else _SUCCESS
    return _PYTEST.substitute(
        tape=ascii(kit.tape),
        folder=ascii(kit.folder),
        command=_listed(kit.command),
        options=_listed(kit.options),
        limit=_limit(kit),
        imports=judging.imports,
        not_run="" if _is_own_exit_code(kit) else _ASSERT,
        constant=judging.constant.substitute(
            oracle=ascii(kit.oracle), pattern=ascii(kit.failure.pattern)
        ),
        judged=judging.body,
    )


def shell_text(kit: ShrinkKit) -> str | None:
    """Write a script that exits with 0 when the failure is gone; None if an oracle has to judge."""
    if kit.oracle is not None:
        return None
    literal = kit.failure.literal
    replay = shlex.join(["deltatape", "replay", *kit.options])
    timed = f"timeout {_limit(kit)} {replay}" if kit.failure.ending.timed_out else replay
    return _SHELL.substitute(
        folder=shlex.quote(kit.folder),
        tape=shlex.quote(kit.tape),
        replay=timed,
        command=shlex.join(kit.command),
        judged=(_GREP if literal else _CODE).substitute(
            literal=shlex.quote(literal), not_run="" if _is_own_exit_code(kit) else _CASE
        ),
    )


def _is_own_exit_code(kit: ShrinkKit) -> bool:
    """Check whether the command itself failed with the code that means "not run" elsewhere.

    Then an answer that it got from the tape is the proof that it ran.
    """
    return kit.failure.ending.exit_code in _NOT_RUN


def _limit(kit: ShrinkKit) -> str:
    return f"{kit.deadline_s + _START_S:g}"


def _listed(words: Sequence[str]) -> str:
    """Return a Python list in ASCII."""
    return f"[{', '.join(ascii(word) for word in words)}]"


_PYTEST = Template('''\
"""Test that the command no longer fails on the tape in this folder. By `deltatape shrink`.

Plays the tape as the provider and runs the command; needs no API key and no network.
"""

import json
${imports}import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
TAPE = HERE / $tape
FOLDER = HERE / $folder
COMMAND = $command
OPTIONS = $options
LIMIT_S = $limit
$constant

def ran(path):
    """Run the command against the tape; return its exit code, stdout, stderr and the report."""
    replay = [sys.executable, "-m", "deltatape", "replay", str(TAPE), *OPTIONS, "--report", path]
    with subprocess.Popen(
        [*replay, "--", *COMMAND],
        cwd=FOLDER,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            stdout, stderr = process.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            process.terminate()
            raise
    report = json.loads(path.read_text()) if path.exists() else {}
    return process.returncode, stdout, stderr, report


def check_that_it_ran(code, stderr, report):
    """Fail if the command could not be run, or got no response from the tape."""
${not_run}    assert report.get("played"), stderr


$judged''')
_PATTERN = _Judging(
    "import re\n",
    Template('PATTERN = $pattern\n"""What the command prints when it fails."""\n'),
    """\
def test_the_failure_is_gone(tmp_path):
    code, stdout, stderr, report = ran(tmp_path / "report.json")
    assert re.search(PATTERN, stdout) is None, stdout
    assert re.search(PATTERN, stderr) is None, stderr
    check_that_it_ran(code, stderr, report)
""",
)
_SUCCESS = _Judging(
    "",
    Template(""),
    """\
def test_the_failure_is_gone(tmp_path):
    code, stdout, stderr, report = ran(tmp_path / "report.json")
    assert code == 0, stdout + stderr
    check_that_it_ran(code, stderr, report)
""",
)
_ORACLE = _Judging(
    "",
    Template('ORACLE = $oracle\n"""Exit code 0: the run is correct."""\n'),
    """\
def test_the_failure_is_gone(tmp_path):
    code, stdout, stderr, asked = ran(tmp_path / "report.json")
    check_that_it_ran(code, stderr, asked)
    report = {
        "played": [f"{one['tape']}#{one['exchange']}" for one in asked["played"]],
        "missed": [one["message"] for one in asked["missed"]],
        "unplayed": [f"{one['tape']}#{one['exchange']}" for one in asked["unplayed"]],
    }
    outcome = {"exit_code": code, "stdout": stdout, "stderr": stderr, "report": report}
    data = {"version": 1, "outcome": {**outcome, "signal": "", "timed_out": False}}
    judged = subprocess.run(
        ["/bin/sh", "-c", ORACLE], cwd=FOLDER, input=json.dumps(data), text=True, timeout=LIMIT_S
    )
    assert judged.returncode == 0, stdout + stderr
""",
)
_SHELL = Template("""\
#!/bin/sh
# Exit code 1: the command still fails on the tape in this folder; 0: it no longer fails;
# 2: it did not run. Made by `deltatape shrink`. Needs no API key and no network.
here=$$(cd "$$(dirname "$$0")" && pwd) || exit 2
cd "$$here"/$folder || exit 2
report=$$(mktemp) || exit 2
trap 'rm -f "$$report"' EXIT
output=$$($replay --report "$$report" "$$here"/$tape -- $command 2>&1)
code=$$?
printf '%s\\n' "$$output"
$judged
""")
_GREP = Template("""\
if printf '%s\\n' "$$output" | grep -qF -e $literal; then
    exit 1
fi
${not_run}grep -qF '"matched":' "$$report" || exit 2
exit 0""")
_CODE = Template("""\
grep -qF '"matched":' "$$report" || exit 2
[ "$$code" -ne 0 ] || exit 0
${not_run}exit 1""")
_ASSERT = "    assert code not in (125, 126, 127), stderr\n"
_CASE = "case $code in 125 | 126 | 127) exit 2 ;; esac\n"
