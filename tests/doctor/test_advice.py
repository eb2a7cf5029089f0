"""What to write instead of a hard-coded base URL: right in each language, and it does what it says.

What is written for Python, Node and the shell is run, with and without the variable.
"""

import os
import subprocess
import sys

import pytest

from deltatape.doctor.advice import Advice, advise, is_redirected, is_usual
from deltatape.doctor.literals import literals
from deltatape.doctor.sources import Source

ROUTER = "https://openrouter.ai/api/v1"
OPENAI = "https://api.openai.com"
BEDROCK = "https://bedrock-runtime.eu-west-1.amazonaws.com"
LEAVE = "leave it as it is: `deltatape record --via mitm -- CMD` tapes what goes there"
HERE = "http://127.0.0.1:9999/here"


def advice(language: str, text: str, provider: str) -> Advice:
    (found,) = literals(Source(path="x", language=language, text=text))
    return advise(found, provider)


def rewritten(language: str, text: str, provider: str) -> tuple[str, str]:
    """The code with the replacement made, and the variable that it reads."""
    found = advice(language, text, provider)
    assert found.old
    assert text.count(found.old) == 1
    return text.replace(found.old, found.new), found.variable


def printed(language: str, code: str, variables: dict[str, str]) -> str:
    commands = {
        "python": [sys.executable, "-I", "-c", f"import os\npath = 'p'\n{code}\nprint(url)"],
        "javascript": ["node", "-e", f"const path = 'p'\n{code}\nconsole.log(url)"],
        "shell": ["sh", "-c", f"{code}\necho $url"],
    }
    done = subprocess.run(
        commands[language],
        env={"PATH": os.environ["PATH"], **variables},
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    return done.stdout.rstrip("\n")


@pytest.mark.parametrize(
    ("language", "text", "provider", "variable", "value", "redirected"),
    [
        ("python", f'url = "{ROUTER}"', "openrouter", "OPENROUTER_API_BASE", ROUTER, HERE),
        ("python", f"url = '{ROUTER}/'", "openrouter", "OPENROUTER_API_BASE", ROUTER, HERE),
        (
            "python",
            f"url = f'{OPENAI}/v1/{{path}}'",
            "openai",
            "OPENAI_BASE_URL",
            f"{OPENAI}/v1/p",
            f"{HERE}/p",
        ),
        ("python", f'url = "{OPENAI}"', "openai", "OPENAI_BASE_URL", OPENAI, HERE),
        (
            "javascript",
            f"let url = '{OPENAI}/v1/chat/completions'",
            "openai",
            "OPENAI_BASE_URL",
            f"{OPENAI}/v1/chat/completions",
            f"{HERE}/chat/completions",
        ),
        (
            "javascript",
            f"let url = `{OPENAI}/v1/${{path}}`",
            "openai",
            "OPENAI_BASE_URL",
            f"{OPENAI}/v1/p",
            f"{HERE}/p",
        ),
        ("javascript", f'let url = "{OPENAI}"', "openai", "OPENAI_BASE_URL", OPENAI, HERE),
        ("javascript", f'let url = "{ROUTER}"', "openrouter", "OPENROUTER_API_BASE", ROUTER, HERE),
        (
            "shell",
            f"url={OPENAI}/v1/models",
            "openai",
            "OPENAI_BASE_URL",
            f"{OPENAI}/v1/models",
            f"{HERE}/models",
        ),
        ("shell", f"url='{ROUTER}'", "openrouter", "OPENROUTER_API_BASE", ROUTER, HERE),
        ("shell", f'url="{ROUTER}"', "openrouter", "OPENROUTER_API_BASE", ROUTER, HERE),
    ],
)
def test_the_new_code_goes_where_the_variable_says_and_else_where_it_went(
    language: str, text: str, provider: str, variable: str, value: str, redirected: str
) -> None:
    code, read = rewritten(language, text, provider)
    assert read == variable
    assert printed(language, code, {}) == value
    assert printed(language, code, {variable: HERE}) == redirected


@pytest.mark.parametrize(
    ("language", "text", "provider", "expected"),
    [
        (
            "go",
            f'cfg.BaseURL = "{ROUTER}"',
            "openrouter",
            f'cfg.BaseURL = cmp.Or(os.Getenv("OPENROUTER_API_BASE"), "{ROUTER}")',
        ),
        (
            "rust",
            f'let base = "{OPENAI}/v1";',
            "openai",
            (
                'let base = std::env::var("OPENAI_BASE_URL")'
                f'.unwrap_or_else(|_| "{OPENAI}/v1".into());'
            ),
        ),
        (
            "java",
            f'post("{OPENAI}/v1/responses")',
            "openai",
            f'post(System.getenv().getOrDefault("OPENAI_BASE_URL", "{OPENAI}/v1") + "/responses")',
        ),
        (
            "kotlin",
            f'val url = "{ROUTER}"',
            "openrouter",
            f'val url = (System.getenv("OPENROUTER_API_BASE") ?: "{ROUTER}")',
        ),
        (
            "csharp",
            f'var url = $"{ROUTER}/{{path}}";',
            "openrouter",
            (
                'var url = (Environment.GetEnvironmentVariable("OPENROUTER_API_BASE")'
                f' ?? "{ROUTER}") + $"/{{path}}";'
            ),
        ),
        (
            "ruby",
            f'url = "{ROUTER}"',
            "openrouter",
            f'url = ENV.fetch("OPENROUTER_API_BASE", "{ROUTER}")',
        ),
        (
            "php",
            f"$url = '{OPENAI}/v1/responses';",
            "openai",
            f"$url = (getenv('OPENAI_BASE_URL') ?: '{OPENAI}/v1') . '/responses';",
        ),
        (
            "compose",
            f"  - OPENAI_BASE_URL={ROUTER}",
            "openrouter",
            f"  - OPENAI_BASE_URL=${{OPENAI_BASE_URL:-{ROUTER}}}",
        ),
        (
            "compose",
            f"  LLM: {ROUTER}",
            "openrouter",
            f"  LLM: ${{OPENROUTER_API_BASE:-{ROUTER}}}",
        ),
        (
            "yaml",
            f"base_url: {ROUTER}",
            "openrouter",
            "base_url: http://127.0.0.1:8377/openrouter/api/v1",
        ),
        (
            "json",
            '{"apiBase": "http://localhost:1234/v1"}',
            "lmstudio",
            '{"apiBase": "http://127.0.0.1:8377/localhost-1234/v1"}',
        ),
    ],
)
def test_each_language_gets_its_own_expression(
    language: str, text: str, provider: str, expected: str
) -> None:
    assert rewritten(language, text, provider)[0] == expected


@pytest.mark.parametrize(
    ("language", "text", "provider", "how"),
    [
        ("python", f'url = "{ROUTER}"', "openrouter", "import os; then `deltatape record -- CMD`"),
        (
            "python",
            f'import sys, os\nurl = "{ROUTER}"',
            "openrouter",
            "then `deltatape record -- CMD` redirects it",
        ),
        (
            "javascript",
            "baseURL: 'https://llm.corp.example/v1'",
            "",
            "then `OPENAI_BASE_URL=https://llm.corp.example/v1 deltatape record -- CMD`",
        ),
        (
            "javascript",
            "url = 'http://llm.corp.example/v1/chat/completions'",
            "",
            "then `OPENAI_BASE_URL=http://llm.corp.example/v1 deltatape record -- CMD`",
        ),
        (
            "javascript",
            "url = 'https://x.openai.azure.com/openai/deployments'",
            "azure",
            "then `AZURE_OPENAI_ENDPOINT=https://x.openai.azure.com deltatape record -- CMD`",
        ),
        ("python", f"url = '{BEDROCK}'", "bedrock", LEAVE),
        ("env", f"AWS_ENDPOINT_URL_BEDROCK_RUNTIME={BEDROCK}", "bedrock", LEAVE),
        ("rust", f'post("{OPENAI}/v1/responses")', "openai", "read OPENAI_BASE_URL here; then"),
        ("go", f'base := "{OPENAI}"', "openai", "read OPENAI_BASE_URL here, without its /v1;"),
        ("shell", f"curl {OPENAI}", "openai", "read OPENAI_BASE_URL here, without its /v1;"),
        ("python", f'print("at {ROUTER}")', "openrouter", "read OPENROUTER_API_BASE here; then"),
        ("python", f'url = "{ROUTER}', "openrouter", "read OPENROUTER_API_BASE here; then"),
        ("python", 'host = "api.openai.com"', "openai", "take scheme, host and port from OPENAI_"),
        ("python", 'host = "api.friendli.ai"', "friendli", "take scheme, host and port from OPEN"),
        ("yaml", f"url: {ROUTER}", "openrouter", "while `deltatape record` runs"),
        (
            "toml",
            'url = "https://llm.corp.example/v1"',
            "",
            "while `deltatape record --upstream llm.corp.example=https://llm.corp.example` runs",
        ),
        (
            "yaml",
            "url: https://{{host}}/v1",
            "",
            "while `deltatape record --upstream NAME=https://{{host}}` runs",
        ),
        (
            "python",
            f'os.getenv("OPENAI_BASE_URL", "{ROUTER}")',
            "openrouter",
            (
                f"start `OPENAI_BASE_URL={ROUTER} deltatape record -- CMD`, or put it into .env:"
                " else OPENAI_BASE_URL will be another provider's"
            ),
        ),
        (
            "python",
            f'os.getenv("MY_ROUTER", "{ROUTER}")',
            "openrouter",
            f"start `MY_ROUTER={ROUTER} deltatape record -- CMD`, or put it into .env: else this",
        ),
        (
            "python",
            'os.getenv("MY_SERVER", "https://llm.corp.example/v1")',
            "",
            (
                "`deltatape record -- CMD` does not set MY_SERVER: start `deltatape record"
                " --upstream llm.corp.example=https://llm.corp.example`, then the app with"
                " MY_SERVER=http://127.0.0.1:8377/llm.corp.example/v1"
            ),
        ),
    ],
)
def test_it_says_how_to_record_then(language: str, text: str, provider: str, how: str) -> None:
    assert advice(language, text, provider).how.startswith(how)


def test_a_server_on_this_machine_keeps_the_name_it_was_called_by() -> None:
    code, variable = rewritten("python", 'url = "http://localhost:11434/v1"', "ollama")
    assert variable == "OLLAMA_HOST"
    assert printed("python", code, {}) == "http://localhost:11434/v1"


def test_which_variables_are_redirected() -> None:
    assert is_usual("OPENROUTER_API_BASE", f"{ROUTER}/")
    assert not is_usual("OPENAI_BASE_URL", ROUTER)
    assert not is_usual("MY_ROUTER", ROUTER)
    assert is_redirected("MY_ROUTER", ROUTER), "the gateway knows this address"
    assert is_redirected("LLM_BASE_URL", "https://llm.corp.example"), "by its name"
    assert is_redirected("OPENAI_BASE_URL", "https://llm.corp.example"), "SDKs read it"
    assert not is_redirected("MY_SERVER", "https://llm.corp.example")
    assert not is_redirected("AWS_ENDPOINT_URL", ROUTER), "never"
