"""Hard-coded base URLs: what is a find, what is none, and where a host is named."""

from pathlib import Path

import pytest

from deltatape.doctor.hardcoded import MOST, Hardcoded, find, places_of_host
from deltatape.doctor.literals import Use
from deltatape.doctor.sources import Limits
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
    assert (found.use, found.certain, found.variable) == (Use.SENT_TO, True, "")
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
    assert (found.use, found.certain, found.variable) == (Use.DEFAULT, False, "OPENAI_BASE_URL")
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


def test_no_credential_is_in_anything_that_is_told(tmp_path: Path) -> None:
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


def test_how_far_the_search_went_is_told(tmp_path: Path) -> None:
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
