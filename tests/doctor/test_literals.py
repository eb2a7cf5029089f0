"""URLs in code: which are seen, and what they are there for."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltatape.doctor.literals import Use, is_base_name, literals
from deltatape.doctor.sources import LANGUAGES, Source

URL = "https://api.openai.com/v1"


def seen(language: str, text: str) -> list[tuple[str, Use, str, str]]:
    source = Source(path="x", language=language, text=text)
    return [(each.url, each.use, each.key, each.variable) for each in literals(source)]


def use(language: str, text: str) -> tuple[Use, str, str]:
    (found,) = seen(language, text)
    return found[1:]


@pytest.mark.parametrize(
    ("language", "text", "key"),
    [
        ("python", f'OpenAI(base_url="{URL}")', "base_url"),
        ("python", f"openai.api_base = '{URL}'", "openai.api_base"),
        ("python", f'base_url: str = "{URL}"', "base_url"),
        ("python", f'os.environ["OPENAI_BASE_URL"] = "{URL}"', "OPENAI_BASE_URL"),
        ("python", f'url = f"{URL}/{{path}}"', "url"),
        ("javascript", f"new OpenAI({{ baseURL: '{URL}' }})", "baseURL"),
        ("javascript", f"const apiUrl: string = `{URL}`", "apiUrl"),
        ("go", f'cfg.BaseURL = "{URL}"', "cfg.BaseURL"),
        ("go", f'base := "{URL}"', "base"),
        ("ruby", f'"uri_base" => "{URL}"', "uri_base"),
        ("php", f"$baseUrl = '{URL}';", "$baseUrl"),
        ("yaml", f"llm:\n  base_url: {URL}\n", "base_url"),
        ("json", f'{{"apiBase": "{URL}"}}', "apiBase"),
        ("toml", f'api_base = "{URL}"', "api_base"),
        ("compose", f"- OPENAI_BASE_URL={URL}", "OPENAI_BASE_URL"),
        ("shell", f"export OPENAI_BASE_URL='{URL}'", "OPENAI_BASE_URL"),
    ],
)
def test_a_url_given_to_such_a_name_is_sent_to(language: str, text: str, key: str) -> None:
    assert use(language, text) == (Use.SENT_TO, key, "")


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("python", f'requests.post("{URL}/responses", json={{}})'),
        ("python", f'requests.post(\n    f"{URL}/{{path}}",\n)'),
        ("python", f"urllib.request.urlopen('{URL}')"),
        ("javascript", f'await fetch("{URL}", {{}})'),
        ("javascript", f"axios.post(`{URL}/${{path}}`)"),
        ("javascript", f"new URL('{URL}')"),
        ("go", f'http.NewRequest("POST", "{URL}", nil)'),
        ("go", f'option.WithBaseURL("{URL}")'),
        ("rust", f'client.post("{URL}")'),
        ("shell", f"curl -sN {URL}/models"),
        ("shell", f"wget '{URL}'"),
    ],
)
def test_a_url_that_is_an_argument_of_a_request_is_sent_to(language: str, text: str) -> None:
    assert use(language, text)[0] is Use.SENT_TO


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("python", f'ALLOWED = ["{URL}"]'),
        ("python", f'print("see {URL}")'),
        ("python", f'base = "ask {URL}"'),
        ("javascript", f"throw new Error('{URL}')"),
        ("yaml", f"- {URL}"),
    ],
)
def test_any_other_url_is_only_mentioned(language: str, text: str) -> None:
    assert use(language, text)[0] is Use.MENTIONED


@pytest.mark.parametrize(
    ("language", "text", "variable"),
    [
        ("python", f'os.environ.get("LLM_URL", "{URL}")', "LLM_URL"),
        ("python", f"os.getenv('LLM_URL', default='{URL}')", "LLM_URL"),
        ("python", f'os.environ.get(\n    "LLM_URL",\n    "{URL}",\n)', "LLM_URL"),
        ("python", f'os.getenv("LLM_URL") or "{URL}"', "LLM_URL"),
        ("python", f'env.str("LLM_URL", "{URL}")', "LLM_URL"),
        ("javascript", f"process.env.LLM_URL ?? '{URL}'", "LLM_URL"),
        ("javascript", f"process.env['LLM_URL'] || `{URL}`", "LLM_URL"),
        ("javascript", f"import.meta.env.VITE_LLM_URL ??\n  '{URL}'", "VITE_LLM_URL"),
        ("javascript", f'Deno.env.get("LLM_URL") ?? "{URL}"', "LLM_URL"),
        ("go", f'cmp.Or(os.Getenv("LLM_URL"), "{URL}")', "LLM_URL"),
        ("rust", f'env::var("LLM_URL").unwrap_or_else(|_| "{URL}".into())', "LLM_URL"),
        ("java", f'System.getenv().getOrDefault("LLM_URL", "{URL}")', "LLM_URL"),
        ("kotlin", f'System.getenv("LLM_URL") ?: "{URL}"', "LLM_URL"),
        ("csharp", f'Environment.GetEnvironmentVariable("LLM_URL") ?? "{URL}"', "LLM_URL"),
        ("ruby", f'ENV.fetch("LLM_URL", "{URL}")', "LLM_URL"),
        ("php", f"getenv('LLM_URL') ?: '{URL}'", "LLM_URL"),
        ("shell", f"X=${{LLM_URL:-{URL}}}", "LLM_URL"),
        ("compose", f"URL: ${{LLM_URL-{URL}}}", "LLM_URL"),
        ("env", f'export LLM_URL="{URL}"', "LLM_URL"),
        ("env", f"LLM_URL={URL}", "LLM_URL"),
        (
            "python",
            (
                f'class S(BaseSettings):\n    model_config = dict(env_prefix="app_")\n'
                f'    llm_url: str = "{URL}"'
            ),
            "APP_LLM_URL",
        ),
        ("python", f'class S(BaseSettings):\n    url: str = Field(default="{URL}")', "URL"),
    ],
)
def test_the_default_of_a_variable_is_known_with_its_variable(
    language: str, text: str, variable: str
) -> None:
    found, _, found_variable = use(language, text)
    assert (found, found_variable) == (Use.DEFAULT, variable)


@pytest.mark.parametrize(
    "text",
    [
        f'OpenAI(api_key=os.environ["KEY_NAME"], base_url="{URL}")',
        f'Client(os.environ["KEY_NAME"], "{URL}")',
        f'OpenAI(api_key=os.getenv("KEY_NAME"), base_url="{URL}")',
    ],
)
def test_a_variable_that_is_another_argument_does_not_go_before_the_url(text: str) -> None:
    assert use("python", text)[2] == ""


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("python", f'# base_url="{URL}"'),
        ("python", f'x = 1  # "{URL}"'),
        ("python", f'"""Says base_url="{URL}"."""'),
        ("python", f"def f():\n    '''\n    {URL}\n    \"quoted\"\n    '''\n"),
        ("python", f'"""never closed {URL}'),
        ("javascript", f"// fetch('{URL}')"),
        ("javascript", f"let a = '\"'; /* fetch('{URL}') */"),
        ("go", f"/* {URL}\n */"),
        ("php", f'# "{URL}"'),
        ("yaml", f"a: 1 # {URL}"),
        ("shell", f"#curl {URL}"),
        ("ini", f"; url = {URL}"),
    ],
)
def test_a_url_in_a_comment_or_docstring_is_none(language: str, text: str) -> None:
    assert seen(language, text) == []


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("python", f'x = "#"; url = "{URL}"'),
        ("javascript", f"x = '//'; fetch('{URL}')"),
        ("javascript", f"x = `\n// no comment\n`; fetch('{URL}')"),
        ("shell", f"x=$#; curl {URL}"),
        ("yaml", f"url: {URL}#fragment"),
    ],
)
def test_what_looks_like_a_comment_in_a_string_hides_nothing(language: str, text: str) -> None:
    assert len(seen(language, text)) == 1


def test_urls_end_where_the_code_around_begins() -> None:
    text = f"markdown_url = '[x]({URL}), y'"
    assert seen("python", text)[0][0] == URL
    (found,) = literals(
        Source(path="x", language="yaml", text="url: http://u:p@Host.example:80/a;")
    )
    assert (found.host, found.url) == ("host.example:80", "http://u:p@Host.example:80/a")


def test_a_bare_host_is_seen_between_quotes() -> None:
    text = 'HTTPSConnection("api.openai.com"); name = "some.file"; x = "api.openai.com/v1"'
    assert [each[0] for each in seen("python", text)] == ["api.openai.com", "some.file"]
    assert seen("python", text)[0][1] is Use.SENT_TO


def test_lines_that_nobody_wrote_are_left_out() -> None:
    assert seen("javascript", f"x={'1+' * 1500}0; fetch('{URL}')") == []
    assert seen("python", "nothing here\n") == []


@pytest.mark.parametrize("name", ["base_url", "baseURL", "api_base", "server_url", "host"])
def test_names_of_base_urls(name: str) -> None:
    assert is_base_name(name)


def test_other_names_are_none() -> None:
    assert not is_base_name("ghostwriter")


@given(
    st.sampled_from(sorted(set(LANGUAGES.values()))),
    st.text(st.sampled_from("\"'`#/*\\${}()=:?| \nabA_https://x.y\u202e"), max_size=300),
)
@settings(max_examples=60)
def test_any_text_is_taken(language: str, text: str) -> None:
    for found in literals(Source(path="x", language=language, text=f"{text}'{URL}'")):
        assert found.host
