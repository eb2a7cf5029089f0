"""Which files of a project are read, and what of them."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from deltatape.doctor.sources import Limits, Source, Sources, language_of, read_source


def paths(folder: Path, limits: Limits | None = None) -> list[str]:
    return [source.path for source in Sources(folder, limits or Limits())]


def put(folder: Path, path: str, text: str = "x = 1\n") -> None:
    place = folder / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, timeout=30)


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
    sources = Sources(tmp_path, Limits(files=3))
    assert [source.path for source in sources] == ["0.py", "1.py", "2.py"]
    assert (sources.read, sources.stopped) == (3, "after 3 files")


def test_the_search_stops_after_some_time_and_says_so(tmp_path: Path) -> None:
    put(tmp_path, "a.py")
    sources = Sources(tmp_path, Limits(seconds=0))
    assert list(sources) == []
    assert sources.stopped == "after 0 s"


def test_a_place_is_a_line_and_a_column_from_one() -> None:
    source = Source(path="x.py", language="python", text="ab\ncd\n")
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
    assert Source(path=path, language="", text="").is_test is is_test


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
