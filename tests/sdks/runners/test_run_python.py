"""The program that runs SDKs for Python keeps to its protocol, line by line."""

import json
import subprocess
from pathlib import Path

from helpers.clients import PYTHON, ROOT, SDKS, available

PROGRAM = ROOT / "proxy" / "deltatape" / "sdks" / "runners" / "run_python.py"
NOWHERE = {"url": "http://127.0.0.1:9/0", "dialect": "openai-chat", "tools": ["get"]}


def said(package: str, *lines: object, folder: Path) -> list[dict[str, object]]:
    available(SDKS[0])
    done = subprocess.run(
        [str(PYTHON), str(PROGRAM), package],
        input="".join(f"{json.dumps(line)}\n" for line in lines),
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
        env={"PYTHONPATH": str(folder)},
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_the_versions_come_first_then_an_answer_per_line(tmp_path: Path) -> None:
    versions, *answers = said("openai", NOWHERE, NOWHERE, folder=tmp_path)
    assert set(versions) == {"openai"}
    assert len(answers) == 2
    for answer in answers:
        error = answer.pop("error")
        assert isinstance(error, dict)
        assert error["type"] == "APIConnectionError"
        assert answer == {"calls": [], "refused": [], "text": "", "finish": None}


def test_what_an_sdk_prints_does_not_come_between(tmp_path: Path) -> None:
    (tmp_path / "anthropic.py").write_text("print('hello')\n")
    _, answer = said("anthropic", NOWHERE | {"dialect": "anthropic-messages"}, folder=tmp_path)
    error = answer["error"]
    assert isinstance(error, dict)
    assert error["type"] == "AttributeError"
