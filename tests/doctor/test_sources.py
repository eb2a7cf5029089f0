"""Which files of a project are read, and what of them."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltatape.doctor.sources import (
    LANGUAGES,
    Limits,
    SourceFile,
    SourceFiles,
    UrlUse,
    is_base_name,
    language_of,
    literals,
    read_source,
)


def paths(folder: Path, limits: Limits | None = None) -> list[str]:
    return [source.path for source in SourceFiles(folder, limits or Limits())]


def put(folder: Path, path: str, text: str = "x = 1\n") -> None:
    place = folder / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, timeout=300)


@pytest.mark.parametrize(
    ("path", "language"),
    [
        ("a/x.py", "python"),
        ("x.IPYNB", "python"),
        ("x.tsx", "javascript"),
        ("x.rs", "rust"),
        ("docker-compose.dev.yml", "compose"),
        ("compose.yaml", "compose"),
        ("values.yaml", "yaml"),
        (".env", "env"),
        (".env.local", "env"),
        ("prod.env", "env"),
        ("README.md", ""),
        ("Makefile", ""),
        ("app.min.js", ""),
        ("package-lock.json", ""),
    ],
)
def test_a_file_is_known_by_its_name(path: str, language: str) -> None:
    assert language_of(path) == language


def test_what_others_wrote_or_a_machine_made_is_left_out(tmp_path: Path) -> None:
    for path in ("src/a.py", "b.ts", ".env", "node_modules/m/x.js", "build/x.py", ".tox/x.py"):
        put(tmp_path, path)
    put(tmp_path, "myenv/pyvenv.cfg", "")
    put(tmp_path, "myenv/lib/x.py")
    put(tmp_path, "one-line.js", "x" * 5000)
    (tmp_path / "binary.py").write_bytes(b"\0\1\2\n")
    put(tmp_path, "large.py", "x = 1\n" * 200_000)
    assert paths(tmp_path) == [".env", "b.ts", "src/a.py"]


def test_in_a_repository_what_git_ignores_is_left_out_but_not_the_environment(
    tmp_path: Path,
) -> None:
    for path in ("src/a.py", "new.py", "generated/x.py", "gone.py", ".env", "vendor/x.py"):
        put(tmp_path, path)
    put(tmp_path, ".gitignore", "generated/\n.env\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "src", "gone.py")
    (tmp_path / "gone.py").unlink()
    assert paths(tmp_path) == [".env", "new.py", "src/a.py"]
    assert paths(tmp_path / "generated") == ["x.py"], "named, so it is wanted"


def test_a_repository_runs_no_program_of_its_own(tmp_path: Path) -> None:
    put(tmp_path, "a.py")
    git(tmp_path, "init", "-q")
    put(tmp_path, "hook", f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    (tmp_path / "hook").chmod(0o755)
    git(tmp_path, "config", "core.fsmonitor", str(tmp_path / "hook"))
    assert paths(tmp_path) == ["a.py"]
    assert not (tmp_path / "ran").exists()


def test_without_git_the_folders_are_walked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, "a.py")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert paths(tmp_path) == ["a.py"]


def test_links_pipes_and_what_cannot_be_read_are_left_out(tmp_path: Path) -> None:
    put(tmp_path, "a.py")
    (tmp_path / "link.py").symlink_to(tmp_path / "a.py")
    os.mkfifo(tmp_path / "pipe.py")
    assert paths(tmp_path) == ["a.py"]
    assert read_source(tmp_path, "gone.py", "python", 100) is None


def test_the_search_stops_after_so_many_files_and_says_so(tmp_path: Path) -> None:
    for number in range(5):
        put(tmp_path, f"{number}.py")
    sources = SourceFiles(tmp_path, Limits(files=3))
    assert [source.path for source in sources] == ["0.py", "1.py", "2.py"]
    assert (sources.read, sources.stopped) == (3, "after 3 files")


def test_the_search_stops_after_some_time_and_says_so(tmp_path: Path) -> None:
    put(tmp_path, "a.py")
    sources = SourceFiles(tmp_path, Limits(seconds=0))
    assert list(sources) == []
    assert sources.stopped == "after 0 s"


def test_a_place_is_a_line_and_a_column_from_one() -> None:
    source = SourceFile(path="x.py", language="python", text="ab\ncd\n")
    assert [source.place(offset) for offset in (0, 1, 3, 4)] == [(1, 1), (1, 2), (2, 1), (2, 2)]


@pytest.mark.parametrize(
    ("path", "is_test"),
    [
        ("tests/x.py", True),
        ("src/__tests__/x.ts", True),
        ("src/test_x.py", True),
        ("x_test.go", True),
        ("x.test.ts", True),
        ("src/contest.py", False),
        ("testing/x.py", False),
    ],
)
def test_a_test_is_known_by_its_path(path: str, *, is_test: bool) -> None:
    assert SourceFile(path=path, language="", text="").is_test is is_test


def test_of_a_notebook_the_code_is_read_with_its_lines_in_the_file(tmp_path: Path) -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# text\n"]},
        {"cell_type": "code", "source": ["a = 1\n", "b = 'é'"], "outputs": [{"text": ["c\n"]}]},
        {"cell_type": "code", "source": "no list"},
        "no cell",
        {"cell_type": "code", "source": ["a = 1\n", 7]},
    ]
    text = json.dumps({"cells": cells}, indent=1)
    put(tmp_path, "n.ipynb", text)
    source = read_source(tmp_path, "n.ipynb", "python", 10_000)
    assert source is not None
    assert source.text == "a = 1\nb = 'é'\na = 1"
    lines = text.split("\n")
    numbers = [source.place(source.text.index(part))[0] for part in ("a = 1", "b =")]
    numbers.append(source.place(len(source.text))[0])
    assert [lines[number - 1].strip(" ,") for number in numbers] == [
        '"a = 1\\n"',
        "\"b = '\\u00e9'\"",
        '"a = 1\\n"',
    ]
    assert numbers == sorted(numbers)


@pytest.mark.parametrize("text", ["no json\n", "[]", '{"cells": 1}', "[" * 900])
def test_a_damaged_notebook_has_no_code(tmp_path: Path, text: str) -> None:
    put(tmp_path, "n.ipynb", text)
    source = read_source(tmp_path, "n.ipynb", "python", 10_000)
    assert source is not None
    assert source.text == ""


def test_a_line_that_is_written_in_an_unusual_way_gets_the_place_before_it(tmp_path: Path) -> None:
    text = '{"cells": [\n{"cell_type": "code", "source": [\n"a = 1\\n",\n"b = \\u0032 \\/ c"]}]}\n'
    put(tmp_path, "n.ipynb", text)
    source = read_source(tmp_path, "n.ipynb", "python", 10_000)
    assert source is not None
    assert source.text == "a = 1\nb = 2 / c"
    assert source.place(len(source.text))[0] == 3


URL = "https://api.openai.com/v1"


def seen(language: str, text: str) -> list[tuple[str, UrlUse, str, str]]:
    source = SourceFile(path="x", language=language, text=text)
    return [(each.url, each.use, each.key, each.variable) for each in literals(source)]


def use(language: str, text: str) -> tuple[UrlUse, str, str]:
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
    assert use(language, text) == (UrlUse.SENT_TO, key, "")


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
    assert use(language, text)[0] is UrlUse.SENT_TO


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
    assert use(language, text)[0] is UrlUse.MENTIONED


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
    assert (found, found_variable) == (UrlUse.DEFAULT, variable)


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
        SourceFile(path="x", language="yaml", text="url: http://u:p@Host.example:80/a;")
    )
    assert (found.host, found.url) == ("host.example:80", "http://u:p@Host.example:80/a")


def test_a_bare_host_is_seen_between_quotes() -> None:
    text = 'HTTPSConnection("api.openai.com"); name = "some.file"; x = "api.openai.com/v1"'
    assert [each[0] for each in seen("python", text)] == ["api.openai.com", "some.file"]
    assert seen("python", text)[0][1] is UrlUse.SENT_TO


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
def test_any_text_is_taken(language: str, text: str) -> None:
    for found in literals(SourceFile(path="x", language=language, text=f"{text}'{URL}'")):
        assert found.host
