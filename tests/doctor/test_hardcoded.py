"""Hard-coded base URLs: what is a find, what is none, and where a host is named."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from deltatape.doctor.hardcoded import (
    MOST,
    Hardcoded,
    MigrationAdvice,
    advise,
    conceal,
    find,
    is_redirected,
    is_usual,
    places_of_host,
)
from deltatape.doctor.sources import Limits, SourceFile, UrlUse, literals
from helpers.projects import put

ROUTER = "https://openrouter.ai/api/v1"


def finds(folder: Path, *known: str) -> tuple[Hardcoded, ...]:
    return find(folder, Limits(), known).found


def only(folder: Path) -> Hardcoded:
    (found,) = finds(folder)
    return found


def test_a_find_names_its_place_its_provider_and_what_to_write(tmp_path: Path) -> None:
    code = f'AI(api_key="fake-000", base_url="{ROUTER}")'
    put(tmp_path, "src/llm.py", f"import os\n\n{code}\n")
    found = only(tmp_path)
    assert (found.path, found.line, found.column) == ("src/llm.py", 3, code.index(ROUTER) + 1)
    assert found.code == code.replace("fake-000", "***")
    assert (found.provider, found.host, found.url) == ("openrouter", "openrouter.ai", ROUTER)
    assert (found.use, found.certain, found.variable) == (UrlUse.SENT_TO, True, "")
    assert found.advice.old == f'base_url="{ROUTER}"'
    assert found.advice.new == f'base_url=os.environ.get("OPENROUTER_API_BASE", "{ROUTER}")'


@pytest.mark.parametrize(
    ("path", "code", "provider"),
    [
        ("a.ts", "new OpenAI({ baseURL: 'https://api.groq.com/openai/v1' })", "groq"),
        ("a.ts", 'fetch("https://api.openai.com/v1/responses")', "openai"),
        ("a.py", 'requests.post("https://api.anthropic.com/v1/messages")', "anthropic"),
        ("a.py", 'HTTPSConnection("api.openai.com")', "openai"),
        ("a.py", 'ollama.Client(host="http://localhost:11434")', "ollama"),
        ("a.py", 'url = "http://127.0.0.1:1234/v1"', "lmstudio"),
        ("a.py", 'llm(base_url="http://localhost:8000/v1")', ""),
        ("a.py", 'OpenAI(base_url="http://localhost:3000")', ""),
        ("a.py", 'ChatOpenAI(\n  temperature=f(0),\n  base_url="https://llm.corp.example")', ""),
        ("a.py", 'openai.api_base = "https://llm.corp.example"', ""),
        ("a.ts", "createOpenAI({ baseURL: 'https://llm.corp.example' })", ""),
        ("a.ts", "endpoint: `https://${name}.openai.azure.com`", "azure"),
        ("a.py", "url='https://bedrock-runtime.eu-west-1.amazonaws.com'", "bedrock"),
        ("a.py", 'url = "https://ollama.com/api"', "ollama"),
        ("a.py", 'url = "https://openrouter.ai"', "openrouter"),
        ("a.json", '{"apiBase": "https://openrouter.ai/api/v1"}', "openrouter"),
    ],
)
def test_what_no_variable_reaches_is_found(
    tmp_path: Path, path: str, code: str, provider: str
) -> None:
    put(tmp_path, path, code)
    found = only(tmp_path)
    assert found.certain
    assert found.provider == provider


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("a.py", 'os.getenv("OPENAI_BASE_URL", "https://api.openai.com/v1")'),
        ("a.ts", "process.env.ANTHROPIC_BASE_URL ?? 'https://api.anthropic.com'"),
        ("compose.yaml", f"X: ${{OPENROUTER_API_BASE:-{ROUTER}}}"),
        (".env", f"OPENAI_BASE_URL={ROUTER}"),
        (".env", f"MY_ROUTER={ROUTER}"),
        (".env.example", "MY_SERVER=https://api.perplexity.ai"),
        ("a.ts", "baseURL: 'http://localhost:3000'"),
        ("a.py", 'OpenAI(); page = new(base_url="http://localhost:3000")'),
        ("a.py", 'OpenAI(base_url="http://127.0.0.1:8377/openai/v1")'),
        ("a.py", 'url = "https://openrouter.ai/keys"'),
        ("a.py", 'url = "https://ollama.com/download"'),
        ("a.py", 'url = "https://api.together.xyz/settings/api-keys"'),
        ("a.py", 'url = "https://api.github.com"'),
        ("a.py", 'HOSTS = ["api.openai.com"]'),
        ("a.py", 'host = "localhost.localdomain"'),
        ("a.py", 'name = "127.0.0.1.example"'),
        ("notes.md", ROUTER),
    ],
)
def test_what_is_reached_or_no_llm_is_no_find(tmp_path: Path, path: str, code: str) -> None:
    put(tmp_path, path, code)
    assert finds(tmp_path) == ()


def test_a_default_that_record_would_send_to_another_provider_is_found(tmp_path: Path) -> None:
    put(tmp_path, "a.py", f'os.getenv("OPENAI_BASE_URL", "{ROUTER}")')
    found = only(tmp_path)
    assert (found.use, found.certain, found.variable) == (UrlUse.DEFAULT, False, "OPENAI_BASE_URL")
    assert finds(tmp_path, "OPENAI_BASE_URL") == (), "the user's own URL becomes the upstream"


def test_a_variable_that_record_does_not_know_is_found_even_if_set(tmp_path: Path) -> None:
    put(tmp_path, "a.py", 'os.getenv("MY_SERVER", "https://api.perplexity.ai")')
    put(tmp_path, "prod.env", "MY_SERVER=https://api.perplexity.ai")
    assert len(finds(tmp_path, "MY_SERVER")) == 2


def test_certain_places_come_first_and_tests_are_not_certain(tmp_path: Path) -> None:
    put(tmp_path, "tests/test_a.py", f'base_url="{ROUTER}"')
    put(tmp_path, "a.py", f'X = ["{ROUTER}"]')
    put(tmp_path, "z.py", f'base_url="{ROUTER}"')
    found = finds(tmp_path)
    assert [(each.path, each.certain, each.test) for each in found] == [
        ("z.py", True, False),
        ("a.py", False, False),
        ("tests/test_a.py", False, True),
    ]


def test_what_is_shown_is_one_line_short_and_without_credentials(tmp_path: Path) -> None:
    put(
        tmp_path,
        "a.py",
        f'x = {"1 + " * 80}0; url = "https://me:fake@openrouter.ai/api/v1\u202e"  # {"y" * 99}\n',
    )
    found = only(tmp_path)
    assert "https://***@openrouter.ai/api/v1\\u202e" in found.code
    assert len(found.code) == 120
    assert found.code.endswith("...")
    assert "fake" not in found.url


def test_no_credential_is_in_anything_that_is_reported(tmp_path: Path) -> None:
    secrets = ("fake-secret-of-a-key", "fake-password")
    url = f"https://me:{secrets[1]}@openrouter.ai/api/v1"
    put(tmp_path, "a.py", f'client = AI(name="a long one", api_key="{secrets[0]}", url="{url}")')
    put(tmp_path, "a.yaml", f"base_url: {url}\n")
    put(tmp_path, "b.py", f'os.getenv("MY_ROUTER", "{url}")\n')
    found = finds(tmp_path)
    assert len(found) == 3
    # Also not a piece of one.
    assert not any(part in repr(found) for part in ("fake", "of-a-key", "word@"))


def test_the_search_ends_after_many_places_and_says_so(tmp_path: Path) -> None:
    put(tmp_path, "a.py", f'url = "{ROUTER}"\n' * (MOST + 1))
    put(tmp_path, "b.py", f'url = "{ROUTER}"\n')
    search = find(tmp_path, Limits())
    assert (search.files, search.stopped) == (1, f"after {MOST} places")


def test_the_search_ends_in_time_also_within_a_file(tmp_path: Path) -> None:
    put(tmp_path, "a.py", 'x = "https://pages.example/a"\n' * 30_000)
    assert find(tmp_path, Limits(seconds=0.2)).stopped == "after 0.2 s"


def test_how_far_the_search_went_is_reported(tmp_path: Path) -> None:
    put(tmp_path, "a.py", "")
    put(tmp_path, "b.py", "")
    assert find(tmp_path, Limits()).stopped == ""
    assert find(tmp_path, Limits(files=1)).stopped == "after 1 files"


def test_the_places_of_a_host_that_was_reached_are_named_the_likeliest_first(
    tmp_path: Path,
) -> None:
    put(tmp_path, "a.py", f'X = ["{ROUTER}"]\ny = os.getenv("OPENROUTER_API_BASE", "{ROUTER}")')
    put(tmp_path, "z.py", f'\nurl = "{ROUTER}"\nother = "https://api.openai.com"')
    places = places_of_host(tmp_path, "OpenRouter.ai", Limits())
    assert [(each.path, each.line) for each in places] == [("z.py", 2), ("a.py", 1), ("a.py", 2)]


def test_the_places_of_a_host_of_no_known_provider_are_found_too(tmp_path: Path) -> None:
    put(tmp_path, "a.py", 'X = "https://llm.corp.example:8443/v1"')
    for host, number in (
        ("llm.corp.example", 1),
        ("llm.corp.example:8443", 1),
        ("llm.corp.example:443", 0),
        ("corp.example", 0),
    ):
        assert len(places_of_host(tmp_path, host, Limits())) == number, host


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        (
            'OpenAI(api_key="fake-000", base_url="https://x")',
            'OpenAI(api_key="***", base_url="https://x")',
        ),
        ("apiKey: 'fake-000',", "apiKey: '***',"),
        ('{"x-api-key": "fake-000"}', '{"x-api-key": "***"}'),
        ("OPENAI_API_KEY=fake-000", "OPENAI_API_KEY=***"),
        ('-H "Authorization: Bearer fake-000"', '-H "Authorization: Bearer ***"'),
        ("https://user:pw@host/v1?key=fake-000&x=1", "https://***@host/v1?key=***&x=1"),
        ('call("sk-fake-000000")', 'call("***")'),
    ],
)
def test_a_credential_is_hidden(code: str, shown: str) -> None:
    assert conceal(code) == shown


@pytest.mark.parametrize(
    "code",
    [
        'OpenAI(api_key=os.environ["OPENAI_API_KEY"], base_url="https://x")',
        "apiKey: process.env.OPENROUTER_KEY,",
        "api_key=settings.key",
        'base_url="https://openrouter.ai/api/v1"',
        "max_tokens=4096000",
    ],
)
def test_what_is_none_stays(code: str) -> None:
    assert conceal(code) == code


OPENAI = "https://api.openai.com"
BEDROCK = "https://bedrock-runtime.eu-west-1.amazonaws.com"
LEAVE = "leave it as it is: `deltatape record --via mitm -- CMD` tapes what goes there"
HERE = "http://127.0.0.1:9999/here"


def advice(language: str, text: str, provider: str) -> MigrationAdvice:
    (found,) = literals(SourceFile(path="x", language=language, text=text))
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
        timeout=300,
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
