"""Tests that a shrunk tape comes with: for pytest, and for a shell.

They play the tape as the provider to the command and fail while it fails as it did. Nothing of the
tape stands in them, and what the command printed only as a quoted pattern, so that neither can
become code.
"""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from string import Template
from typing import NamedTuple

from deltatape.shrink.failure import Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class ShrinkKit:
    """What the tests need to know."""

    tape: str
    """The name of the tape's file, beside the tests."""
    folder: str
    """Where the command is started, relative to the tests."""
    command: Sequence[str]
    options: Sequence[str]
    """Of `deltatape replay`."""
    deadline_s: float
    failure: Failure
    oracle: str | None = None


class _Judging(NamedTuple):
    """How a test for pytest finds out whether the failure is gone."""

    imports: str
    constant: Template
    body: str


def pytest_text(kit: ShrinkKit) -> str:
    """A test for pytest."""
    judging = _ORACLE if kit.oracle is not None else _PATTERN if kit.failure.shown else _SUCCESS
    return _PYTEST.substitute(
        tape=ascii(kit.tape),
        folder=ascii(kit.folder),
        command=_listed(kit.command),
        options=_listed(kit.options),
        limit=f"{kit.deadline_s:g}",
        imports=judging.imports,
        constant=judging.constant.substitute(
            oracle=ascii(kit.oracle), pattern=ascii(kit.failure.pattern)
        ),
        judged=judging.body,
    )


def shell_text(kit: ShrinkKit) -> str | None:
    """A script whose exit code is 0 when the failure is gone; None where an oracle has to judge."""
    if kit.oracle is not None:
        return None
    literal = kit.failure.literal
    replay = shlex.join(["deltatape", "replay", *kit.options])
    return _SHELL.substitute(
        folder=shlex.quote(kit.folder),
        tape=shlex.quote(kit.tape),
        replay=f"timeout {kit.deadline_s:g} {replay}" if kit.failure.ending.timed_out else replay,
        command=shlex.join(kit.command),
        judged=_GREP.substitute(literal=shlex.quote(literal)) if literal else 'exit "$code"',
    )


def _listed(words: Sequence[str]) -> str:
    """A list in Python, in ASCII."""
    return f"[{', '.join(ascii(word) for word in words)}]"


_PYTEST = Template('''\
"""Does the command still fail on the tape beside this file? Made by `deltatape shrink`.

Plays the tape as the provider and runs the command: no key, no network.
"""

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

def ran(*options):
    """The exit code of the command against the tape, and what it printed."""
    replay = [sys.executable, "-m", "deltatape", "replay", str(TAPE), *OPTIONS, *options]
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
    return process.returncode, stdout, stderr


$judged''')

_PATTERN = _Judging(
    "import re\n",
    Template('PATTERN = $pattern\n"""What it prints when it fails."""\n'),
    """\
def test_the_failure_is_gone():
    _, stdout, stderr = ran()
    assert re.search(PATTERN, stdout) is None, stdout
    assert re.search(PATTERN, stderr) is None, stderr
""",
)
_SUCCESS = _Judging(
    "",
    Template(""),
    """\
def test_the_failure_is_gone():
    code, stdout, stderr = ran()
    assert code == 0, stdout + stderr
""",
)
_ORACLE = _Judging(
    "import json\n",
    Template('ORACLE = $oracle\n"""Judges by its exit code: 0 is right."""\n'),
    """\
def test_the_failure_is_gone(tmp_path):
    path = tmp_path / "report.json"
    code, stdout, stderr = ran("--report", str(path))
    played = json.loads(path.read_text())
    report = {
        "played": [f"{one['tape']}#{one['exchange']}" for one in played["played"]],
        "missed": [one["message"] for one in played["missed"]],
        "unplayed": [f"{one['tape']}#{one['exchange']}" for one in played["unplayed"]],
    }
    outcome = {"exit_code": code, "stdout": stdout, "stderr": stderr, "report": report}
    told = {"version": 1, "outcome": {**outcome, "signal": "", "timed_out": False}}
    judged = subprocess.run(
        ["/bin/sh", "-c", ORACLE], cwd=FOLDER, input=json.dumps(told), text=True, timeout=LIMIT_S
    )
    assert judged.returncode == 0, stdout + stderr
""",
)

_SHELL = Template("""\
#!/bin/sh
# Does the command still fail on the tape beside this file? Exit code 0: no.
# Made by `deltatape shrink`. Plays the tape as the provider: no key, no network.
here=$$(cd "$$(dirname "$$0")" && pwd) || exit 2
cd "$$here"/$folder || exit 2
output=$$($replay "$$here"/$tape -- $command 2>&1)
code=$$?
printf '%s\\n' "$$output"
$judged
""")

_GREP = Template("""\
if printf '%s\\n' "$$output" | grep -qF -e $literal; then
    exit 1
fi
exit 0""")
