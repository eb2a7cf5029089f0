"""Which SDKs a project has, read from folders as pip and npm leave them."""

import os
import sys
from pathlib import Path

import pytest

from deltatape.doctor.installed import (
    Installed,
    is_node_project,
    node_sdks,
    node_version,
    python_place,
    python_sdks,
)
from helpers.projects import node_package, put, python_environment


def named(found: tuple[Installed, ...]) -> list[tuple[str, str, bool]]:
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
