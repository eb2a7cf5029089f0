"""Which programs are recognised in a command, and what they get."""

import shlex
from collections.abc import Mapping
from pathlib import Path

import pytest

from deltatape.environment.application import EnvironmentPlan, EnvironmentPurpose, plan
from deltatape.environment.clients import (
    Client,
    clients,
    recognised,
    started_clients,
    telemetry_hosts,
)
from deltatape.environment.variables import KEY_VARIABLES, is_listed
from deltatape.gateway.routes import parse_upstream
from deltatape.providers import PROVIDERS
from helpers.projects import put

BASE = "http://127.0.0.1:4000"
FIRST_PARTY = "ENABLE_TOOL_SEARCH"


def in_command(line: str) -> list[tuple[str, str]]:
    """The programs in a command, with their words."""
    return [(each.client.name, shlex.join(each.words)) for each in recognised(shlex.split(line))]


def client(name: str) -> Client:
    (found,) = (each for each in clients() if each.name == name)
    return found


def planned(
    line: str,
    folder: Path,
    environment: Mapping[str, str] | None = None,
    *upstreams: str,
    purpose: EnvironmentPurpose = EnvironmentPurpose.RECORD,
    base: str = BASE,
) -> EnvironmentPlan:
    """The plan for a command in `folder`, which is the home folder, too."""
    environment = {"HOME": str(folder), **(environment or {})}
    started = started_clients(shlex.split(line), folder, environment)
    given = [parse_upstream(each) for each in upstreams]
    return plan(base, environment, (), given, purpose, started)


# Recognising.


@pytest.mark.parametrize(
    "line",
    [
        "claude -p hi",
        "LANG=C claude -p hi",
        "env -u X -i LANG=C claude -p hi",
        "timeout -k 3 10s nice -n 5 claude -p hi",
        "stdbuf -oL command claude -p hi",
        "poetry run claude -p hi",
        "mise exec -- claude -p hi",
        "npx -p @anthropic-ai/claude-code@2.1 claude -p hi",
        "npx --package=@anthropic-ai/claude-code claude -p hi",
        "npm exec -c 'claude -p hi'",
        "npx --call='claude -p hi'",
        "sh -c 'claude -p hi'",
        "bash -euo pipefail -c 'cd x && A=b exec claude -p hi | tee log'",
        "bash -lc 'if true; then claude -p hi; fi'",
        "sh -c 'for i in 1 2\ndo\nclaude -p hi\ndone'",
        "sh -c '(claude -p hi) & wait'",
        "env sh -c \"bash -c 'claude -p hi'\"",
    ],
)
def test_a_program_is_recognised_behind_what_starts_it(line: str) -> None:
    assert in_command(line) == [("claude-code", "claude -p hi")]


@pytest.mark.parametrize(
    ("line", "name", "words"),
    [
        ("npx -y @openai/codex@latest exec hi", "codex", "@openai/codex@latest exec hi"),
        ("bunx cline hi", "cline", "cline hi"),
        ("pnpm dlx @google/gemini-cli", "gemini-cli", "@google/gemini-cli"),
        ("uvx --from aider-chat aider x.py", "aider", "aider x.py"),
        ("uvx mini-swe-agent", "mini-swe-agent", "mini-swe-agent"),
        ("uv tool run --from aider-chat==0.86 aider", "aider", "aider"),
        ("pipx run --spec litellm[proxy] litellm", "litellm", "litellm"),
        ("uv run --with x python -u -m aider", "aider", "python -u -m aider"),
        ("python3.12 -m litellm.proxy", "litellm", "python3.12 -m litellm.proxy"),
        ("venv/bin/python venv/bin/llm hi", "llm", "venv/bin/python venv/bin/llm hi"),
        ("node node_modules/@qwen-code/qwen-code/cli.js", "qwen-code", None),
        ("npx -p cline", "cline", ""),
        ("/usr/local/bin/claude -p hi", "claude-code", None),
    ],
)
def test_a_program_is_recognised_by_its_package(line: str, name: str, words: str | None) -> None:
    assert in_command(line) == [(name, line if words is None else words)]


@pytest.mark.parametrize(
    "line",
    [
        "",
        "env",
        "env A=b",
        "python app.py claude",
        "git commit -m claude",
        "sh script.sh claude",
        "sh -c 'echo claude'",
        "sh -c 'claude \"'",
        "sh -c",
        "npx -y",
        "npx -y prettier claude",
        "python -m",
        "python",
        "node",
        "python llm.py",
        "python -m pytest -k claude",
    ],
)
def test_a_word_that_is_no_command_is_not_recognised(line: str) -> None:
    assert in_command(line) == []


def test_each_program_of_a_script_is_found_once() -> None:
    line = "sh -c 'claude -p a; gemini -p b; claude -p c'"
    assert [name for name, _ in in_command(line)] == ["claude-code", "gemini-cli"]


def test_shells_in_shells_end() -> None:
    line = "claude"
    for _ in range(6):
        line = shlex.join(("sh", "-c", line))
    assert in_command(line) == []


# The table.


def test_the_table_names_variables_that_are_set() -> None:
    known = {name for names in KEY_VARIABLES.values() for name in names}
    known |= {name for each in PROVIDERS.values() for name in (*each.instead_of_keys, *each.keys)}
    for each in clients():
        assert all(map(is_listed, each.base_urls)), each.name
        assert known.issuperset(each.keys), each.name


def test_the_table_has_each_name_once_and_an_example_that_is_recognised() -> None:
    assert len({each.name for each in clients()}) == len(clients())
    names = [name for each in clients() for name in (*each.commands, *each.modules)]
    assert len(names) == len(set(names)) + 3  # modules that are called as the command
    for each in clients():
        found = [invocation.client for invocation in recognised(shlex.split(each.example))]
        assert found == ([each] if each.commands else []), each.name


def test_what_reads_no_variable_has_another_way() -> None:
    for each in clients():
        assert each.base_urls or each.arguments or (each.listen and each.configure), each.name


# What they get.


def test_claude_code_sends_its_own_prompt(tmp_path: Path) -> None:
    assert planned("claude -p hi", tmp_path).variables[FIRST_PARTY] == "true"
    own = {"ANTHROPIC_BASE_URL": "https://api.anthropic.com"}
    assert planned("claude", tmp_path, own).variables[FIRST_PARTY] == "true"
    replay = planned("claude", tmp_path, purpose=EnvironmentPurpose.REPLAY)
    assert replay.variables[FIRST_PARTY] == "true"


def test_claude_code_behind_a_gateway_of_the_users_sends_what_it_sends_there(
    tmp_path: Path,
) -> None:
    theirs = {"ANTHROPIC_BASE_URL": "https://llm.corp.example"}
    assert FIRST_PARTY not in planned("claude", tmp_path, theirs).variables
    router = {"ANTHROPIC_BASE_URL": "https://openrouter.ai/api"}
    assert FIRST_PARTY not in planned("claude", tmp_path, router).variables


def test_a_variable_that_the_user_has_set_stays(tmp_path: Path) -> None:
    assert FIRST_PARTY not in planned("claude", tmp_path, {FIRST_PARTY: "false"}).variables


def test_other_programs_get_nothing_more(tmp_path: Path) -> None:
    plain = planned("python app.py", tmp_path)
    assert FIRST_PARTY not in plain.variables
    assert plain.client_notes == ()
    assert planned("aider", tmp_path) == plain


def test_codex_is_told_the_line_that_is_missing(tmp_path: Path) -> None:
    (note,) = planned('codex exec "don\'t"', tmp_path).client_notes
    told, _, line = note.partition(" start it with: deltatape record -- ")
    assert told == "Codex reads no base URL from its environment;"
    shell, option, script = shlex.split(line)
    assert (shell, option) == ("sh", "-c")
    words = shlex.split(script.replace("$OPENAI_BASE_URL", "http://here/v1"))
    assert words[:4] == ["codex", "-c", "model_provider=dt", "-c"]
    assert 'base_url="http://here/v1"' in words[4]
    assert words[5:] == ["exec", "don't"]
    assert planned(line, tmp_path).client_notes == ()


def test_the_missing_line_keeps_what_runs_the_package(tmp_path: Path) -> None:
    (note,) = planned("npx -y @openai/codex", tmp_path).client_notes
    assert "sh -c 'npx -y @openai/codex -c model_provider=dt" in note
    (note,) = planned("codex", tmp_path, purpose=EnvironmentPurpose.REPLAY).client_notes
    assert "start it with: deltatape replay -- sh -c" in note


def test_cline_is_told_how_to_configure_it(tmp_path: Path) -> None:
    (note,) = planned("cline hi", tmp_path).client_notes
    assert note.endswith(
        "Once: cline auth -p openai-native -b http://127.0.0.1:8377/openai/v1;"
        " then record with --listen 127.0.0.1:8377"
    )


# Telemetry.


def test_hosts_of_telemetry_are_those_of_what_runs_and_of_who_asks() -> None:
    assert telemetry_hosts((), ()) == {}
    assert telemetry_hosts((client("claude-code"),), ("", "python-httpx/0.28")) == {
        "api.anthropic.com": "Claude Code"
    }
    assert telemetry_hosts((client("aider"),), ("Agents/Python 0.24.0",)) == {
        "api.openai.com": "OpenAI Agents SDK"
    }


# The user's own files.

CLAUDE = ".claude/settings.json"
CODEX = ".codex/config.toml"


def test_settings_that_win_over_the_environment_are_told(tmp_path: Path) -> None:
    put(tmp_path, CLAUDE, '{"env": {"ANTHROPIC_BASE_URL": "https://me:fake@llm.corp.example/a"}}')
    answer = planned("claude", tmp_path)
    assert answer.client_notes[0] == (
        "env.ANTHROPIC_BASE_URL in ~/.claude/settings.json points at https://llm.corp.example/a,"
        " and wins over the environment: Claude Code goes there past deltatape. Set"
        " ANTHROPIC_BASE_URL in the environment instead: it is kept"
    )
    assert FIRST_PARTY not in answer.variables


def test_settings_of_the_project_and_of_another_folder_count(tmp_path: Path) -> None:
    text = '{"env": {"ANTHROPIC_BASE_URL": "https://llm.corp.example"}}'
    put(tmp_path, "project/.claude/settings.local.json", text)
    put(tmp_path, "elsewhere/settings.json", text)
    environment = {"HOME": str(tmp_path), "CLAUDE_CONFIG_DIR": str(tmp_path / "elsewhere")}
    started = started_clients(("claude",), tmp_path / "project", environment)
    assert [url.file for url in started.urls] == [
        str(tmp_path / "elsewhere/settings.json"),
        ".claude/settings.local.json",
    ]


def test_settings_that_lead_here_are_right(tmp_path: Path) -> None:
    put(
        tmp_path,
        CODEX,
        'model_provider = "dt"\n'
        '[model_providers.dt]\nbase_url = "http://127.0.0.1:4000/openai/v1"\n'
        '[model_providers.other]\nbase_url = "https://llm.corp.example/v1"\n',
    )
    assert planned("codex", tmp_path).client_notes == ()


def test_settings_that_lead_to_another_port_are_told(tmp_path: Path) -> None:
    put(tmp_path, ".continue/config.yaml", "models:\n- apiBase: http://localhost:8377/openai/v1\n")
    (note,) = planned("cn", tmp_path).client_notes
    assert note == (
        "models.0.apiBase in ~/.continue/config.yaml points at http://localhost:8377/openai/v1:"
        " record with --listen localhost:8377"
    )


def test_settings_of_what_reads_no_variable_get_their_own_advice(tmp_path: Path) -> None:
    put(
        tmp_path,
        CODEX,
        'model_provider = "c"\n[model_providers.c]\nbase_url = "https://llm.corp.example/v1"\n',
    )
    (note,) = planned("codex", tmp_path).client_notes
    assert note.endswith(
        "Write http://127.0.0.1:8377/llm.corp.example/v1 there, and record with"
        " --listen 127.0.0.1:8377 --upstream llm.corp.example=https://llm.corp.example"
    )
    put(tmp_path, CODEX, 'openai_base_url = "https://api.openai.com/v1"\n')
    (note,) = planned("codex", tmp_path).client_notes
    assert note.endswith("/openai/v1 there, and record with --listen 127.0.0.1:8377")


def test_settings_taken_from_the_environment_are_right(tmp_path: Path) -> None:
    text = '{"provider": {"openai": {"options": {"baseURL": "{env:OPENAI_BASE_URL}"}}}}'
    put(tmp_path, "opencode.json", text)
    assert planned("opencode", tmp_path).client_notes == ()


@pytest.mark.parametrize(
    ("line", "path", "text", "kind"),
    [
        ("claude", CLAUDE, "{", "JSON"),
        ("claude", CLAUDE, "[" * 100_000, "JSON"),
        ("codex exec -c openai_base_url=x", CODEX, "=", "TOML"),
        ("aider", ".aider.conf.yml", "a: [", "YML"),
    ],
)
def test_a_file_that_cannot_be_read_is_told(
    tmp_path: Path, line: str, path: str, text: str, kind: str
) -> None:
    put(tmp_path, path, text)
    notes = planned(line, tmp_path).client_notes
    assert notes
    assert all(f"base URL: no valid {kind}" in note for note in notes)


def test_a_file_that_is_too_large_or_holds_other_things_is_no_problem(tmp_path: Path) -> None:
    put(tmp_path, CODEX, f"x = '{'x' * 1024 * 1024}'")
    (note, _) = planned("codex", tmp_path).client_notes
    assert "longer than 1048576 bytes" in note
    put(tmp_path, CLAUDE, '{"env": {"ANTHROPIC_BASE_URL": 5}}')
    assert planned("claude", tmp_path).client_notes == ()
    put(tmp_path, CLAUDE, '{"env": {"ANTHROPIC_BASE_URL": "unix:/x"}}')
    (note,) = planned("claude", tmp_path).client_notes
    assert note.endswith("is not an http or https URL")
    put(tmp_path, CLAUDE, '["env"]')
    assert planned("claude", tmp_path).client_notes == ()
    put(tmp_path, CODEX, "[model_providers]\n")
    put(tmp_path, ".continue/config.yaml", "- 1\n")
    assert len(planned("sh -c 'codex; cn'", tmp_path).client_notes) == 2


def test_variables_in_a_file_of_the_program_stay_the_provider(tmp_path: Path) -> None:
    put(tmp_path, ".qwen/.env", "OPENAI_BASE_URL=https://openrouter.ai/api/v1\n")
    answer = planned("qwen", tmp_path)
    assert answer.variables["OPENAI_BASE_URL"] == f"{BASE}/openrouter/api/v1"
    assert "OPENAI_BASE_URL in ~/.qwen/.env:1 points at" in answer.notes[0]
    own = {"OPENAI_BASE_URL": "https://api.groq.com/openai/v1"}
    variables = planned("qwen", tmp_path, own).variables
    assert variables["OPENAI_BASE_URL"] == f"{BASE}/groq/openai/v1"
