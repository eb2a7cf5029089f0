import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from deltatape.render.lines import plain
from deltatape.render.shrink import (
    ShrinkKit,
    ShrinkReport,
    amount_of,
    pytest_text,
    shell_text,
    shrink_json,
    shrink_lines,
)
from deltatape.shrink.failure import CommandResult, TargetFailure, failure_of
from helpers.chat import choice
from helpers.shrunk import streamed

BEFORE = [streamed(*(choice({"content": "x" * 200}) for _ in range(40)))] * 2
AFTER = streamed(choice({"content": "\x1b[31mred"}), done=False)
FAILURE = failure_of(CommandResult(exit_code=1, output="KeyError: 'tool'"))


def report(*after: object) -> ShrinkReport:
    assert FAILURE is not None
    return ShrinkReport(
        before=BEFORE,
        after=after,  # type: ignore[arg-type]
        failure=FAILURE,
        runs=12,
        seconds=3.4,
        whole=True,
        files=["small.tape"],
    )


def test_before_after_and_what_is_left_are_shown() -> None:
    text = plain(shrink_lines(report(AFTER), 80))
    assert "still fails: exit code 1, KeyError: 'tool'\n" in text
    assert f"before: 2 exchanges, 82 events, {2 * len(BEFORE[0].body)} bytes\n" in text
    assert f" after: 1 exchange, 1 event, {len(AFTER.body)} bytes  (12 runs, 3 s)\n" in text
    assert '  #1 {"choices"' in text
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 80


def test_many_events_are_not_all_shown() -> None:
    text = plain(shrink_lines(report(BEFORE[0], replace(AFTER, number=2)), 80))
    assert "  ... and 30 more events\n" in text


def test_programs_get_the_same_as_json() -> None:
    told = json.loads(shrink_json(report(AFTER)))
    assert told == {
        "version": 1,
        "failure": {
            "exit_code": 1,
            "signal": "",
            "timed_out": False,
            "error": "KeyError: 'tool'",
        },
        "before": {"exchanges": 2, "events": 82, "bytes": 2 * len(BEFORE[0].body)},
        "after": {"exchanges": 1, "events": 1, "bytes": len(AFTER.body)},
        "runs": 12,
        "minimal": True,
        "files": ["small.tape"],
    }
    assert amount_of([]).text == "0 exchanges, 0 events, 0 bytes"


def failed(output: str = "KeyError: 'tool'", code: int = 1, **how: object) -> TargetFailure:
    found = failure_of(CommandResult(exit_code=code, output=output, **how))  # type: ignore[arg-type]
    assert found is not None
    return found


def kit(**changed: object) -> ShrinkKit:
    given: dict[str, object] = {
        "tape": "it's small.tape",
        "folder": "..",
        "command": ["python", "app.py", "a 'b'"],
        "options": ["--speed", "instant"],
        "deadline_s": 2.5,
        "failure": failed(),
    }
    return ShrinkKit(**{**given, **changed})  # type: ignore[arg-type]


NAMED, CODE = "KeyError: 'tool'", "no luck"
"""What a command prints that names an error, and what does not."""
KITS = {
    "error": kit(),
    "code": kit(failure=failed("no luck")),
    "hang": kit(failure=failed(timed_out=True)),
    "oracle": kit(oracle="jq -e '.outcome'"),
}


@pytest.mark.parametrize("name", KITS)
def test_the_test_for_pytest_is_a_program(name: str) -> None:
    text = pytest_text(KITS[name])
    compile(text, "test.py", "exec")
    assert 'TAPE = HERE / "it\'s small.tape"' in text
    assert "LIMIT_S = 12.5" in text
    assert "OPTIONS = ['--speed', 'instant']" in text
    assert ("ORACLE = " in text) == (name == "oracle")
    assert ("re.search" in text) == (name == "error")
    assert ("assert code == 0" in text) == (name in ("code", "hang"))


def test_what_the_command_printed_stays_a_text() -> None:
    evil = failed('XError: """\nimport os\n')
    text = pytest_text(kit(failure=evil, command=['"""', "\u202e", "\n"]))
    compile(text, "test.py", "exec")
    assert text.isascii()


@pytest.mark.parametrize("name", ["error", "code", "hang"])
def test_the_script_is_one_that_a_shell_reads(name: str, tmp_path: Path) -> None:
    text = shell_text(KITS[name])
    assert text is not None
    script = tmp_path / "x.sh"
    script.write_text(text)
    subprocess.run(["sh", "-n", script], check=True)
    assert ("grep -qF -e" in text) == (name == "error")
    assert ("timeout 12.5 deltatape" in text) == (name == "hang")


def test_an_oracle_excludes_a_reproduction_script() -> None:
    assert shell_text(KITS["oracle"]) is None


@pytest.mark.parametrize(
    ("said", "failure", "code", "played", "judged"),
    [
        *((NAMED, 1, 127, played, 2) for played in (True, False)),
        (NAMED, 127, 127, True, 0),
        (NAMED, 127, 127, False, 2),
        (CODE, 1, 0, True, 0),
        (CODE, 1, 0, False, 2),
        (CODE, 1, 1, True, 1),
        (CODE, 1, 3, True, 1),
        (CODE, 1, 1, False, 2),
        (CODE, 1, 125, False, 2),
        (CODE, 1, 127, True, 2),
        (CODE, 127, 127, True, 1),
        (CODE, 127, 127, False, 2),
        (CODE, 127, 0, True, 0),
    ],
)
def test_the_script_tells_a_failure_from_what_did_not_run(
    said: str, failure: int, code: int, judged: int, tmp_path: Path, *, played: bool
) -> None:
    text = shell_text(kit(folder=".", failure=failed(said, code=failure)))
    assert text is not None
    assert ("(125, 126, 127)" in pytest_text(kit(failure=failed(code=failure)))) == (failure == 1)
    report = '{"matched": "exact"}' if played else "{}"
    # The options are `--speed instant --report FILE`.
    fake = f"#!/bin/sh\nprintf '%s' '{report}' > \"$5\"\nexit {code}\n"
    for name, content in (("x.sh", text), ("deltatape", fake)):
        (tmp_path / name).write_text(content)
        (tmp_path / name).chmod(0o755)
    path = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    assert subprocess.run(["sh", "x.sh"], cwd=tmp_path, env=path, check=False).returncode == judged
