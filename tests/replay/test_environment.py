"""The environment of a command that talks to a player: every base URL there, no key missing."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from deltatape.environment.dotenv import parse_dotenv
from deltatape.model.exchange import Exchange
from deltatape.replay.environment import (
    PLACEHOLDER,
    client_notes,
    known_telemetry,
    placeholders,
    replay_environment,
)
from helpers.taped import taped

URL = "http://127.0.0.1:8378"


def keys(environment: Mapping[str, str]) -> set[str]:
    """The variables that got a placeholder."""
    return {name for name, value in environment.items() if value == PLACEHOLDER}


def made(
    folder: Path, environ: Mapping[str, str] | None = None, *exchanges: Exchange
) -> Mapping[str, str]:
    return replay_environment(URL, environ or {}, folder, exchanges)


def of(upstream: str, target: bytes = b"/v1/chat/completions") -> Exchange:
    return taped(upstream=upstream, target=target)


def test_every_base_url_points_at_the_player_whatever_the_user_has_set(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("ANTHROPIC_BASE_URL=https://llm.corp.example/anthropic\n")
    given = {"OPENAI_BASE_URL": "https://openrouter.ai/api/v1", "HOME": "/home/me"}
    environment = made(tmp_path, given)
    assert environment["OPENAI_BASE_URL"] == f"{URL}/openrouter/api/v1"
    assert environment["ANTHROPIC_BASE_URL"] == f"{URL}/llm.corp.example/anthropic"
    assert environment["GOOGLE_GEMINI_BASE_URL"] == f"{URL}/gemini"
    assert environment["HOME"] == "/home/me"


def test_a_known_program_gets_what_it_got_when_it_was_recorded(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path)}
    replayed = replay_environment(URL, environ, tmp_path, (), ("npx", "-p", "x", "claude"))
    assert replayed["ENABLE_TOOL_SEARCH"] == "true"
    assert client_notes(URL, environ, tmp_path, ("claude",)) == ()
    (note,) = client_notes(URL, environ, tmp_path, ("codex",))
    assert "start it with: deltatape replay -- sh -c" in note


def test_who_sends_telemetry_is_known_by_the_command_and_the_tape() -> None:
    plain = taped()
    headers = ((b"User-Agent", b"Agents/Python 0.24.0"),)
    asked = replace(plain, request=replace(plain.request, headers=headers))
    known = known_telemetry(("python", "app.py"), [plain, asked])
    assert known == {"api.openai.com": "OpenAI Agents SDK"}
    assert known_telemetry(("claude",), [taped()]) == {"api.anthropic.com": "Claude Code"}


def test_no_proxy_is_left(tmp_path: Path) -> None:
    given = {"HTTPS_PROXY": "http://proxy.example", "http_proxy": "http://proxy.example"}
    environment = made(tmp_path, {**given, "NO_PROXY": "corp.example"})
    assert not environment.keys() & given.keys()
    assert environment["NO_PROXY"] == "corp.example,127.0.0.1,localhost,::1"


@pytest.mark.parametrize(
    ("exchange", "names"),
    [
        (of("https://api.openai.com"), {"OPENAI_API_KEY"}),
        (of("https://api.anthropic.com"), {"ANTHROPIC_API_KEY"}),
        (
            of("https://generativelanguage.googleapis.com"),
            {"GOOGLE_API_KEY", "GEMINI_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY"},
        ),
        (of("http://10.0.0.1:8000"), {"OPENAI_API_KEY"}),
        (of("http://10.0.0.1:8000", b"/v1/messages?beta=true"), {"ANTHROPIC_API_KEY"}),
        (of("http://10.0.0.1:8000", b"/v1/other"), {"OPENAI_API_KEY", "ANTHROPIC_API_KEY"}),
        (of("https://api.perplexity.ai"), {"OPENAI_API_KEY"}),
        (of("https://x.openai.azure.com"), {"AZURE_OPENAI_API_KEY", "AZURE_API_KEY"}),
    ],
    ids=lambda each: each.request.upstream if isinstance(each, Exchange) else "",
)
def test_only_providers_of_the_tapes_get_a_placeholder(
    tmp_path: Path, exchange: Exchange, names: set[str]
) -> None:
    assert keys(made(tmp_path, None, exchange)) == names


def test_without_tapes_all_providers_get_one(tmp_path: Path) -> None:
    assert {"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GROQ_API_KEY"} < keys(made(tmp_path))
    assert "AWS_ACCESS_KEY_ID" not in keys(made(tmp_path))


def test_a_key_that_is_there_stays_and_so_do_its_other_names(tmp_path: Path) -> None:
    gemini, claude = (
        of("https://generativelanguage.googleapis.com"),
        of("https://api.anthropic.com"),
    )
    (tmp_path / ".env").write_text("GEMINI_API_KEY=g-fake-000000\n")
    assert not keys(made(tmp_path, {"ANTHROPIC_AUTH_TOKEN": "fake"}, gemini, claude))
    assert keys(made(tmp_path, {"ANTHROPIC_API_KEY": " "}, claude)) == {"ANTHROPIC_API_KEY"}
    dotenv = parse_dotenv("OPENAI_API_KEY=sk-fake-000000", ".env")
    assert placeholders((of("https://api.openai.com"), claude), {}, (dotenv,)) == {
        "ANTHROPIC_API_KEY": PLACEHOLDER
    }


def test_who_talks_to_azure_and_to_openai_reaches_the_player_for_both(tmp_path: Path) -> None:
    azure, openai = of("https://x.openai.azure.com"), of("https://api.openai.com")
    environment = made(tmp_path, None, azure, openai)
    assert environment["AZURE_OPENAI_ENDPOINT"] == f"{URL}/azure"
    assert environment["OPENAI_BASE_URL"] == f"{URL}/v1"
    assert "OPENAI_BASE_URL" not in made(tmp_path, None, azure)


def test_amazons_sdks_sign_since_a_token_would_need_tls(tmp_path: Path) -> None:
    bedrock = of("https://bedrock-runtime.eu-west-1.amazonaws.com")
    environment = made(tmp_path, {"AWS_BEARER_TOKEN_BEDROCK": "fake"}, bedrock)
    assert "AWS_BEARER_TOKEN_BEDROCK" not in environment
    assert environment["AWS_ENDPOINT_URL_BEDROCK_RUNTIME"] == f"{URL}/bedrock"
    assert keys(environment) == {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}
    assert environment["AWS_REGION"] == environment["AWS_DEFAULT_REGION"] == "us-east-1"
    assert "AWS_DEFAULT_REGION" not in made(tmp_path, {"AWS_REGION": "eu-west-1"}, bedrock)
