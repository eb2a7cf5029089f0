"""What doctor says of a project's SDKs and code."""

import os
import sys
from pathlib import Path

import pytest

from deltatape.doctor.project import (
    InstalledSdk,
    code_remarks,
    is_node_project,
    node_sdks,
    node_version,
    python_place,
    python_sdks,
    sdk_remarks,
)
from deltatape.doctor.sources import Limits
from deltatape.render.doctor import RemarkLevel
from helpers.projects import node_package, put, python_environment

ROUTER = "https://openrouter.ai/api/v1"


def said(folder: Path, **environment: str) -> list[tuple[RemarkLevel, str, str]]:
    found = sdk_remarks(folder, environment)
    return [(each.level, each.text, each.fix) for each in found]


def node(folder: Path, version: str) -> str:
    put(folder, "bin/node", f"#!/bin/sh\necho v{version}\n").chmod(0o755)
    return f"{folder}/bin"


SAID = {
    "aiohttp-3.14.5": (
        RemarkLevel.NOTE,
        ": what goes past is only noticed with ClientSession(trust_env=True)",
        "",
    ),
    "botocore-1.44.5": (
        RemarkLevel.NOTE,
        (
            " reads AWS_ENDPOINT_URL_BEDROCK_RUNTIME; for Bedrock only, where it signs for the host"
            " or sends a token over https alone: `deltatape record --via mitm -- CMD` tapes it"
        ),
        "",
    ),
    "langchain-openai-1.0.0": (
        RemarkLevel.OK,
        " reads OPENAI_API_BASE, then OPENAI_BASE_URL: set by `deltatape record -- CMD`",
        "",
    ),
    "mistralai-3.7.0": (
        RemarkLevel.NOTE,
        " reads no variable for its base URL",
        "pass server_url=... in code, or use `deltatape mitm`",
    ),
    "openai-3.54.0": (
        RemarkLevel.OK,
        " reads OPENAI_BASE_URL: set by `deltatape record -- CMD`",
        "",
    ),
}


def test_each_sdk_is_reported_with_what_it_reads(tmp_path: Path) -> None:
    python_environment(tmp_path, *(name.replace("n-o", "n_o") for name in SAID))
    assert said(tmp_path) == [
        (level, " ".join(name.rsplit("-", 1)) + f" (.venv){text}", fix)
        for name, (level, text, fix) in SAID.items()
    ]


def test_an_endpoint_of_bedrock_is_not_said_to_be_set_by_a_recording(tmp_path: Path) -> None:
    python_environment(tmp_path, "botocore-1.44.5")
    url = "https://bedrock-runtime.eu-west-1.amazonaws.com"
    (told, *_) = said(tmp_path, AWS_ENDPOINT_URL_BEDROCK_RUNTIME=url)
    assert told[0] is RemarkLevel.NOTE
    assert told[1].endswith(SAID["botocore-1.44.5"][1])


def test_node_packages_are_reported_with_where_they_are_from(tmp_path: Path) -> None:
    python_environment(tmp_path)
    put(tmp_path, "package.json", '{"dependencies": {"groq-sdk": "^1.0.0"}}')
    node_package(tmp_path, "@ai-sdk/anthropic", "3.0.0")
    texts = [text for _, text, _ in said(tmp_path, PATH=node(tmp_path, "20.20.2"))]
    assert texts[0].startswith("@ai-sdk/anthropic 3.0.0 (node_modules) reads ANTHROPIC_BASE_URL")
    assert texts[0].endswith("; it expects /v1 in it; the gateway takes both")
    assert texts[1].startswith("groq-sdk ^1.0.0 (package.json, not installed) reads GROQ_BASE_URL")


@pytest.mark.parametrize(
    ("version", "level"),
    [
        ("20.20.2", RemarkLevel.NOTE),
        ("22.20.0", RemarkLevel.NOTE),
        ("22.21.0", RemarkLevel.OK),
        ("23.11.0", RemarkLevel.NOTE),
        ("24.0.0", RemarkLevel.OK),
        ("24", RemarkLevel.OK),
        ("22", RemarkLevel.NOTE),
    ],
)
def test_a_node_whose_fetch_ignores_proxies_is_noted(
    tmp_path: Path, version: str, level: RemarkLevel
) -> None:
    put(tmp_path, "package.json", "{}")
    python_environment(tmp_path)
    found = [each for each in said(tmp_path, PATH=node(tmp_path, version)) if "node " in each[1]]
    assert found[0][0] is level


def test_what_is_missing_is_noted(tmp_path: Path) -> None:
    put(tmp_path, "package.json", "{}")
    texts = [text for _, text, _ in said(tmp_path, PATH=str(tmp_path))]
    assert texts == [
        "package.json is here, but no node is on PATH",
        "no LLM SDK is installed in any Python (there is none on PATH), nor in node_modules",
    ]


def test_hard_coded_urls_are_problems_and_mentions_are_not(tmp_path: Path) -> None:
    put(tmp_path, "a.py", f'url = "{ROUTER}"\n')
    put(tmp_path, "b.py", f'X = ["{ROUTER}", "{ROUTER}"]\n')
    put(tmp_path, "c.py", f'os.getenv("OPENAI_BASE_URL", "{ROUTER}")\n')
    put(tmp_path, "tests/d.py", f'url = "{ROUTER}"\n')
    found = list(code_remarks(tmp_path, (), Limits()))
    assert [(each.level, each.text) for each in found] == [
        (RemarkLevel.PROBLEM, "a.py:1:8 goes to openrouter.ai, and no variable redirects it"),
        (RemarkLevel.NOTE, "b.py:1:39 mentions openrouter.ai"),
        (RemarkLevel.NOTE, "c.py:1:31 goes to openrouter.ai unless OPENAI_BASE_URL is set"),
        (RemarkLevel.NOTE, "tests/d.py:1:8 goes to openrouter.ai; a test"),
    ]
    assert found[0].shown == f'url = "{ROUTER}"'
    assert found[0].instead == f'url = os.environ.get("OPENROUTER_API_BASE", "{ROUTER}")'
    assert found[0].fix.startswith("import os; then")
    assert found[1].instead == found[1].fix == ""
    assert found[2].fix.startswith(f"start `OPENAI_BASE_URL={ROUTER}")
    data = found[0].data or {}
    assert (data["path"], data["line"], data["old"]) == ("a.py", 1, f'url = "{ROUTER}"')


def test_many_mentions_are_counted(tmp_path: Path) -> None:
    put(tmp_path, "a.py", f'X = ["{ROUTER}"]\n' * 12)
    found = list(code_remarks(tmp_path, (), Limits()))
    assert len(found) == 12
    assert found[10].text == "2 more places that only mention a provider's URL"
    assert found[11].text == "no hard-coded base URL; 1 file read"


def test_a_search_that_stopped_says_so(tmp_path: Path) -> None:
    put(tmp_path, "a.py", "")
    put(tmp_path, "b.py", "")
    (found,) = code_remarks(tmp_path, (), Limits(files=1))
    assert (found.level, found.text) == (
        RemarkLevel.NOTE,
        "1 file read; the search stopped after 1 files",
    )


def named(found: tuple[InstalledSdk, ...]) -> list[tuple[str, str, bool]]:
    return [(each.package, each.version, each.present) for each in found]


def program(folder: Path, name: str, script: str) -> dict[str, str]:
    """An environment in which `name` is this script."""
    put(folder, f"bin/{name}", f"#!/bin/sh\n{script}\n").chmod(0o755)
    return {"PATH": f"{folder}/bin:/usr/bin:/bin"}


def test_the_environment_in_the_folder_is_looked_at(tmp_path: Path) -> None:
    python_environment(
        tmp_path, "openai-3.54.0", "google_genai-3.4.0", "requests-2.32.0", "Mistralai-3.7.0"
    )
    put(tmp_path, ".venv/lib/python3.11/site-packages/openai/__init__.py", "raise SystemExit")
    place = python_place(tmp_path, {})
    assert place.name == ".venv"
    assert named(python_sdks(place)) == [
        ("google-genai", "3.4.0", True),
        ("mistralai", "3.7.0", True),
        ("openai", "3.54.0", True),
    ]


def test_an_active_environment_goes_before_that_of_the_folder(tmp_path: Path) -> None:
    python_environment(tmp_path, "openai-3.54.0")
    active = python_environment(tmp_path / "elsewhere", "anthropic-2.12.0", name="active")
    place = python_place(tmp_path, {"VIRTUAL_ENV": str(active)})
    assert place.name == str(active)
    assert [each.package for each in python_sdks(place)] == ["anthropic"]


def test_without_an_environment_python_on_the_path_is_asked(tmp_path: Path) -> None:
    folder = tmp_path / "packages"
    put(folder, "cohere-7.3.1.dist-info/METADATA", "")
    put(tmp_path, "site.py", "raise SystemExit('the folder was imported from')")
    env = program(tmp_path, "python3", f'exec {sys.executable} "$@" | sed "1s|.*|{folder}|"')
    place = python_place(tmp_path, env)
    assert place.name == f"{tmp_path}/bin/python3"
    assert "cohere" in [each.package for each in python_sdks(place)]


def test_a_python_that_fails_has_no_packages(tmp_path: Path) -> None:
    assert python_place(tmp_path, {"PATH": str(tmp_path)}).folders == ()
    put(tmp_path, "bin/python3", "no program").chmod(0o755)
    assert python_place(tmp_path, {"PATH": f"{tmp_path}/bin"}).folders == ()
    place = python_place(tmp_path, program(tmp_path, "python3", "echo /nowhere"))
    assert python_sdks(place) == ()


def test_node_packages_are_found_as_node_finds_them(tmp_path: Path) -> None:
    node_package(tmp_path, "openai", "7.57.0")
    app = tmp_path / "apps" / "web"
    node_package(app, "@ai-sdk/google", "3.0.1")
    dependencies = '{"openai": "^7", "groq-sdk": "^1.0.0", "left-pad": "1", "ollama": 7}'
    put(app, "package.json", f'{{"dependencies": {dependencies}, "devDependencies": []}}')
    assert named(node_sdks(app)) == [
        ("@ai-sdk/google", "3.0.1", True),
        ("groq-sdk", "^1.0.0", False),
        ("openai", "7.57.0", True),
    ]
    assert is_node_project(app)
    assert not is_node_project(tmp_path)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"dependencies": "x"}', "[" * 9999])
def test_a_damaged_package_file_asks_for_nothing(tmp_path: Path, text: str) -> None:
    put(tmp_path, "package.json", text)
    assert node_sdks(tmp_path) == ()


def test_the_version_of_node_is_that_on_the_path(tmp_path: Path) -> None:
    assert node_version(tmp_path, program(tmp_path, "node", "echo v22.21.1")) == "22.21.1"
    assert node_version(tmp_path, program(tmp_path, "node", "echo none")) == ""
    assert node_version(tmp_path, {"PATH": str(tmp_path)}) == ""
    put(tmp_path, "bin/node", "no program").chmod(0o755)
    assert node_version(tmp_path, {"PATH": f"{tmp_path}/bin"}) == ""
    assert node_version(tmp_path, dict(os.environ)).split(".")[0].isdigit()
