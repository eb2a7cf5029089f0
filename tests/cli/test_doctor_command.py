"""`deltatape doctor`, on projects as users have them."""

import json
import re
from pathlib import Path

from helpers.console import called, on_terminal
from helpers.program import deltatape
from helpers.projects import node_package, put, python_environment

ROUTER = "https://openrouter.ai/api/v1"
PLAIN = dict.fromkeys(("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"), "")


def told(folder: Path, *arguments: str, **environment: str) -> str:
    return called("doctor", *arguments, folder=folder, env={**PLAIN, **environment}).stdout.decode()


def python_project(folder: Path) -> Path:
    python_environment(folder, "openai-3.54.0", "mistralai-3.7.0")
    return put(
        folder,
        "src/llm.py",
        "import os\n\nfrom openai import OpenAI\n\n"
        f'client = OpenAI(api_key=os.environ["KEY"], base_url="{ROUTER}")\n',
    )


def test_a_hard_coded_url_is_a_problem_until_the_advice_is_followed(tmp_path: Path) -> None:
    program = python_project(tmp_path)
    first = deltatape("doctor", folder=tmp_path, env=PLAIN)
    assert (first.returncode, first.stderr) == (1, b"")
    shown = first.stdout.decode()
    assert "PROBLEM  src/llm.py:5:54 goes to openrouter.ai" in shown
    assert "openai 3.54.0 (.venv) reads OPENAI_BASE_URL: set by `deltatape record" in shown
    assert "mistralai 3.7.0 (.venv) reads no variable" in shown
    replacement = re.search(r"write (.*)\n", shown)
    assert replacement is not None
    assert replacement[1] == f'base_url=os.environ.get("OPENROUTER_API_BASE", "{ROUTER}")'
    text = program.read_text()
    program.write_text(text.replace(f'base_url="{ROUTER}"', replacement[1]))
    second = deltatape("doctor", folder=tmp_path, env=PLAIN)
    assert second.returncode == 0
    assert "openrouter" not in second.stdout.decode()
    assert "no hard-coded base URL; 1 file read" in second.stdout.decode()


def test_in_a_mixed_project_everything_that_json_says_can_be_followed(tmp_path: Path) -> None:
    python_project(tmp_path)
    put(tmp_path, "package.json", "{}")
    node_package(tmp_path, "openai", "7.57.0")
    put(tmp_path, "web/a.ts", f"new OpenAI({{ baseURL: '{ROUTER}' }})\n")
    put(tmp_path, "run.sh", "curl https://api.openai.com/v1/models\n")
    put(tmp_path, "config.yaml", f"base_url: {ROUTER}\n")
    put(tmp_path, "docker-compose.yml", "    OLLAMA_HOST: http://localhost:11434\n")
    report = json.loads(told(tmp_path, "--format", "json"))
    assert report["version"] == 1
    places = [check for check in report["checks"] if "path" in check]
    assert report["problems"] == len(places) == 5
    for check in places:
        file = tmp_path / check["path"]
        assert check["old"] in file.read_text().split("\n")[check["line"] - 1]
        file.write_text(file.read_text().replace(check["old"], check["instead"]))
    assert json.loads(told(tmp_path, "--format", "json"))["problems"] == 0
    sdks = [check["package"] for check in report["checks"] if "package" in check]
    assert sdks == ["mistralai", "openai", "openai"]


def test_the_environment_file_of_the_folder_counts(tmp_path: Path) -> None:
    project = tmp_path / "project"
    put(project, ".env", f"LLM_URL={ROUTER}\nOPENROUTER_API_KEY=sk-fake-000000\n")
    put(project, "a.py", f'import os\nurl = os.environ.get("LLM_URL", "{ROUTER}")\n')
    shown = told(tmp_path, "project")
    assert f"LLM_URL in .env:1 points at {ROUTER}: taped as /openrouter/api/v1" in shown
    assert "OPENROUTER_API_KEY (.env:2)" in shown
    assert "sk-fake" not in shown
    assert "no hard-coded base URL" in shown
    (project / ".env").unlink()
    assert "a.py:2:34 goes to openrouter.ai unless LLM_URL is set" in told(tmp_path, "project")


def test_settings_are_checked_all_of_them(tmp_path: Path) -> None:
    assert "ok       no deltatape.yaml" in told(tmp_path)
    # Above the working directory, so that it is the project's alone.
    project = tmp_path / "project"
    settings = put(project, "deltatape.yaml", "replay:\n  speed: instant\n")
    assert "deltatape.yaml is valid" in told(tmp_path, "project")
    for text, problem in (
        ("replay:\n  sped: 1\n", "'sped' is no option of deltatape replay"),
        ("upstreams:\n  corp: nowhere\n", "nowhere"),
        ("rules:\n  stal: 1s\n", "stal"),
        ("record: [\n", "deltatape.yaml:"),
    ):
        settings.write_text(text)
        shown = told(tmp_path, "project")
        assert re.search(r"PROBLEM  deltatape\.yaml:[0-9]+", shown), text
        assert problem in shown


def test_it_changes_nothing(tmp_path: Path) -> None:
    python_project(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    told(tmp_path, "--format", "json")
    assert sorted(tmp_path.rglob("*")) == before


def test_a_folder_that_is_none_is_a_wrong_call(tmp_path: Path) -> None:
    result = called("doctor", "missing", folder=tmp_path)
    assert result.returncode == 2
    assert (
        result.stderr == b"deltatape: missing: not a folder; the project's own folder is wanted\n"
    )


def test_on_a_terminal_levels_are_coloured_and_names_of_files_cannot_act(tmp_path: Path) -> None:
    put(tmp_path, "\x1b[2Ja.py", f'url = "{ROUTER}"\n')
    shown = on_terminal("doctor", folder=tmp_path, env=PLAIN).stdout
    assert b"\x1b[1;31m  PROBLEM  " in shown
    assert b"\\x1b[2Ja.py:1:8" in shown
    assert b"\x1b[2J" not in shown


def test_it_is_as_wide_as_the_terminal(tmp_path: Path) -> None:
    python_project(tmp_path)
    for columns in (80, 100):
        lines = told(tmp_path, COLUMNS=str(columns)).splitlines()
        longest = max(len(line) for line in lines if " write " not in line)
        assert columns - 12 < longest <= columns
