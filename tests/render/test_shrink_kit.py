import subprocess
from pathlib import Path

import pytest

from deltatape.render.shrink_kit import ShrinkKit, pytest_text, shell_text
from deltatape.shrink.failure import Ending, Failure, failure_of


def failed(output: str = "KeyError: 'tool'", **how: object) -> Failure:
    found = failure_of(Ending(exit_code=1, output=output, **how))  # type: ignore[arg-type]
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


def test_no_script_comes_where_an_oracle_has_to_judge() -> None:
    assert shell_text(KITS["oracle"]) is None
