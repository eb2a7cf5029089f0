"""`.env` files as the loaders of applications read them."""

import errno
import os
import socket
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as profile
from hypothesis import strategies as st

from deltatape.environment.dotenv import (
    MAX_FILE_BYTES,
    MAX_VALUE_CHARS,
    DotenvFile,
    parse_dotenv,
    read_dotenv,
    settings,
)


def values(text: str) -> dict[str, str]:
    return {entry.name: entry.value for entry in parse_dotenv(text, ".env").entries}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("A=b", "b"),
        ("A = b ", "b"),
        ("  A=b\r\n", "b"),
        ("export A=b", "b"),
        ("A: b", "b"),
        ("'A'=b", "b"),
        ("\ufeffA=b", "b"),
        ("A=", ""),
        ("A=b c", "b c"),
        ("A=b # c", "b"),
        ("A=b#c", "b#c"),
        ("A=# c", ""),
        ("A='b # c' # d", "b # c"),
        ('A="b # c"# d', "b # c"),
        ("A=`b \"'c`", "b \"'c"),
        (r"A='b\'c\n'", r"b'c\n"),
        (r'A="b\"c\n\td\\"', 'b"c\n\td\\'),
        ("A='b\nc'", "b\nc"),
        ("A=https://h/v1?x=1&y==", "https://h/v1?x=1&y=="),
        ("A=$(touch x)`", "$(touch x)`"),
    ],
)
def test_a_value_is_read(text: str, value: str) -> None:
    assert values(text) == {"A": value}


@pytest.mark.parametrize("text", ["A", "export A", "=b", "A='b", 'A="b" c', "A b", "1A=b", "[x]"])
def test_a_line_that_is_no_assignment_is_reported_and_skipped(text: str) -> None:
    parsed = parse_dotenv(f"# first\n\n{text}\nZ=z\n", "sub/.env")
    assert [(entry.name, entry.line) for entry in parsed.entries] == [("Z", 4)]
    assert parsed.problems == ("sub/.env:3: not NAME=value; the line is ignored",)


def test_lines_are_counted_through_values_of_several_lines() -> None:
    parsed = parse_dotenv("A='1\r\n2\n3'\r\nB=4\rC=5", ".env")
    assert [(entry.name, entry.line) for entry in parsed.entries] == [("A", 1), ("B", 4), ("C", 5)]


@profile(max_examples=60)
@given(st.text(alphabet="AB='\"`\\$#{}:- \r\n\t\ufeffé", max_size=60))
def test_any_text_is_read(text: str) -> None:
    parsed = parse_dotenv(text, ".env")
    found, _ = settings([parsed], {})
    assert {entry.name for entry in parsed.entries} == set(found)


@pytest.mark.parametrize("piece", ["A='", 'A="\\"', "A=`\n", "A= ", "A=$", "A=${", "'"])
def test_a_hostile_file_of_the_largest_size_is_read(piece: str) -> None:
    parsed = parse_dotenv("Z=z\nA=x" + piece * (MAX_FILE_BYTES // len(piece)), ".env")
    found, _ = settings([parsed], {})
    assert found["Z"].value == "z"
    assert set(found) <= {entry.name for entry in parsed.entries}


def resolve(text: str, **environment: str) -> dict[str, str]:
    found, problems = settings([parse_dotenv(text, ".env")], environment)
    assert not problems
    return {name: setting.value for name, setting in found.items()}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("B=x\nA=${B}/v1", "x/v1"),
        ("B=x\nA=$B/v1", "x/v1"),
        ("A=${NO}y", "y"),
        ("A=${NO:-d}", "d"),
        ("A=${NO-d}", "d"),
        ("B=\nA=${B:-d}", "d"),
        (r"A=\$B", "$B"),
        ("A=5$ and $1", "5$ and $1"),
        ("A=${HOST}", "from outside"),
        ("HOST=inside\nA=${HOST}", "from outside"),
    ],
)
def test_references_are_replaced_by_what_is_known_above(text: str, value: str) -> None:
    assert resolve(text, HOST="from outside")["A"] == value


def test_references_cannot_grow_without_end() -> None:
    doubling = "\n".join(f"A{n + 1}=${{A{n}}}${{A{n}}}" for n in range(60))
    found, problems = settings([parse_dotenv(f"A0=x\n{doubling}", ".env")], {})
    assert max(len(setting.value) for setting in found.values()) <= MAX_VALUE_CHARS
    assert f".env:18: A17 is longer than {MAX_VALUE_CHARS} characters" in problems
    text = f"B={'x' * MAX_VALUE_CHARS}y"
    assert settings([parse_dotenv(text, ".env")], {})[1] == (
        f".env:1: B is longer than {MAX_VALUE_CHARS} characters",
    )


def test_the_environment_wins_and_weaker_values_are_remembered() -> None:
    files = [parse_dotenv("A=1\nB=1", ".env"), parse_dotenv("A=2\nB=1", ".env.local")]
    found, _ = settings(files, {"A": "3"})
    assert (found["A"].value, found["A"].where) == ("3", "the environment")
    assert found["A"].hidden == ((".env:1", "1"), (".env.local:1", "2"))
    assert (found["B"].where, found["B"].hidden) == (".env.local:2", ())


ALL = (".env", ".env.development", ".env.local", ".env.development.local")


def write(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).write_text("A=1\n")


def paths(files: tuple[DotenvFile, ...]) -> list[str]:
    return [file.path for file in files]


def test_files_are_read_weakest_first(tmp_path: Path) -> None:
    write(tmp_path, *ALL, ".env.test", ".env.production", ".env.example", ".envrc")
    assert paths(read_dotenv(tmp_path, {})) == [*ALL]
    assert paths(read_dotenv(tmp_path, {"NODE_ENV": "test"})) == [".env", ".env.test"]
    production = [".env", ".env.production", ".env.local"]
    assert paths(read_dotenv(tmp_path, {"NODE_ENV": "production"})) == production
    assert paths(read_dotenv(tmp_path, {"NODE_ENV": "../x"})) == [".env", ".env.local"]


def test_the_nearest_folder_of_the_repository_is_looked_in(tmp_path: Path) -> None:
    below = tmp_path / "repository" / "src" / "app"
    below.mkdir(parents=True)
    write(tmp_path, ".env")
    write(tmp_path / "repository", ".env")
    assert read_dotenv(below, {}) == ()  # no repository: nothing above is anybody's business
    (tmp_path / "repository" / ".git").mkdir()
    assert paths(read_dotenv(below, {})) == ["../../.env"]
    write(below, ".env.local")
    assert paths(read_dotenv(below, {})) == [".env.local"]


def test_what_cannot_be_read_is_reported(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".env")
    (tmp_path / ".env.development").write_bytes(b"#" * (MAX_FILE_BYTES + 1))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / ".env.local"))
        problems = [problem for file in read_dotenv(tmp_path, {}) for problem in file.problems]
    assert problems == [
        ".env: not read: no regular file",
        f".env.development: not read: longer than {MAX_FILE_BYTES} bytes",
        f".env.local: not read: {os.strerror(errno.ENXIO)}",
    ]


def test_a_virtual_environment_of_that_name_is_nothing_to_tell(tmp_path: Path) -> None:
    (tmp_path / ".env").mkdir()
    assert read_dotenv(tmp_path, {}) == ()


def test_bytes_that_are_not_text_survive(tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(b"A=\xff\xfe\n")
    (file,) = read_dotenv(tmp_path, {})
    assert file.entries[0].value.encode("utf-8", "surrogateescape") == b"\xff\xfe"
