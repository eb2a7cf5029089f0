"""The files of a project that can hold a provider's URL: which they are, and their code.

Strategy: git knows best what belongs to a project, so it is asked first; else the folders are
walked. What others wrote or a machine made (installed packages, build output, bundles, lock files,
prose) is left out. Everything is bounded: files, bytes per file, and time; what was left out for
that reason is told. Of a notebook only the code is kept, each line with its line in the file.

A project is untrusted input: links are not followed, and git runs none of its hooks.
"""

import json
import os
import stat
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from deltatape.clock import SystemClock

LANGUAGES = {
    "py": "python",
    "ipynb": "python",
    "js": "javascript",
    "jsx": "javascript",
    "mjs": "javascript",
    "cjs": "javascript",
    "ts": "javascript",
    "tsx": "javascript",
    "mts": "javascript",
    "cts": "javascript",
    "vue": "javascript",
    "svelte": "javascript",
    "go": "go",
    "rs": "rust",
    "java": "java",
    "kt": "kotlin",
    "cs": "csharp",
    "rb": "ruby",
    "php": "php",
    "sh": "shell",
    "bash": "shell",
    "yaml": "yaml",
    "yml": "yaml",
    "toml": "toml",
    "json": "json",
    "ini": "ini",
    "cfg": "ini",
    "env": "env",
}
"""The language of a file by what its name ends in; `.env` and its kin are `env`, too."""

COMPOSE = "compose"
"""The language of Compose files: YAML in which variables are put in."""

_LEFT_OUT = frozenset(
    {
        "__pycache__",
        "bower_components",
        "build",
        "coverage",
        "dist",
        "node_modules",
        "out",
        "site-packages",
        "target",
        "third_party",
        "vendor",
        "venv",
    }
)
"""Folders that hold no code of the project's own; with all whose name begins with a dot."""
_LEFT_OUT_NAMES = frozenset(
    {"package-lock.json", "npm-shrinkwrap.json", "pnpm-lock.yaml", "composer.lock", "deno.lock"}
)
_TESTS = frozenset({"test", "tests", "__tests__", "spec", "e2e", "fixtures"})
_GIT_S = 2.0
_NS = 1_000_000_000
_MINIFIED = 1000
"""Characters per line, on average, that nobody writes by hand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much is read of a project at most."""

    files: int = 5000
    file_bytes: int = 1024 * 1024
    seconds: float = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The code of a file. `lines`: for a notebook the file's line of each line of `text`."""

    path: str
    language: str
    text: str
    lines: tuple[int, ...] | None = None

    @property
    def is_test(self) -> bool:
        """Whether it is there to test the project, by its name."""
        path = PurePosixPath(self.path)
        stem = path.name.lower()
        return bool(_TESTS & {part.lower() for part in path.parts[:-1]}) or (
            stem.startswith(("test_", "conftest.")) or "_test." in stem or ".test." in stem
        )

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column of an offset in `text`, both counted from 1."""
        line = self.text.count("\n", 0, offset)
        column = offset - (self.text.rfind("\n", 0, offset) + 1)
        return self.lines[line] if self.lines else line + 1, column + 1


class Sources:
    """The sources of a folder, one after the other."""

    def __init__(self, folder: Path, limits: Limits) -> None:
        self._folder = folder
        self._limits = limits
        self._clock = SystemClock()
        self._end_ns = self._clock.now_ns() + int(limits.seconds * _NS)
        self.read = 0
        """How many files were read so far."""
        self.stopped = ""
        """Why not all of them were: "" or `after 5000 files`."""

    def __iter__(self) -> Iterator[Source]:
        for path in _paths(self._folder):
            language = language_of(path)
            if not language:
                continue
            if self.read >= self._limits.files:
                self.stopped = f"after {self.read} files"
            if self.stopped or self.is_over():
                return
            source = read_source(self._folder, path, language, self._limits.file_bytes)
            if source is not None:
                self.read += 1
                yield source

    def is_over(self) -> bool:
        """Whether the time is up; then that is why it stops."""
        if self._clock.now_ns() > self._end_ns:
            self.stopped = f"after {self._limits.seconds:g} s"
            return True
        return False


def language_of(path: str) -> str:
    """The language of a file by its name; "" for one that is not looked into."""
    name = PurePosixPath(path).name.lower()
    if name.startswith(".env"):
        return "env"
    stem, _, ending = name.rpartition(".")
    if name in _LEFT_OUT_NAMES or stem.endswith((".min", ".bundle", "-min")):
        return ""
    language = LANGUAGES.get(ending, "")
    if language == "yaml" and stem.startswith(("docker-compose", "compose")):
        return COMPOSE
    return language


def _paths(folder: Path) -> Iterator[str]:
    """Paths of files relative to `folder`, those of the environment first, then in order."""
    listed = _listed_by_git(folder)
    if not listed:
        yield from _walked(folder)
        return
    # Ignored by git as a rule, and the place where base URLs stand.
    dotenv = [path.name for path in sorted(folder.glob(".env*"))]
    yield from dotenv
    for path in listed:
        if path not in dotenv and not any(map(_left_out, PurePosixPath(path).parts[:-1])):
            yield path


def _listed_by_git(folder: Path) -> list[str]:
    """What git tracks or would track; nothing where there is no git, or no answer in time."""
    command = ["git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "ls-files"]
    try:
        answer = subprocess.run(  # noqa: S603 - a fixed command
            [*command, "-z", "--cached", "--others", "--exclude-standard"],
            cwd=folder,
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_GIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    return sorted({os.fsdecode(path) for path in answer.stdout.split(b"\0") if path})


def _walked(folder: Path) -> Iterator[str]:
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not _left_out(name))
        if "pyvenv.cfg" in names:
            folders.clear()
            continue
        yield from (Path(parent, name).relative_to(folder).as_posix() for name in sorted(names))


def _left_out(name: str) -> bool:
    return name.startswith(".") or name in _LEFT_OUT


def read_source(folder: Path, path: str, language: str, most: int) -> Source | None:
    """The code of one file; None when it is no plain text file of at most `most` bytes."""
    place = folder / path
    try:
        status = place.lstat()
        if not stat.S_ISREG(status.st_mode) or status.st_size > most:
            return None
        data = place.read_bytes()
    except OSError:
        return None
    if b"\0" in data or len(data) > _MINIFIED * (data.count(b"\n") + 1):
        return None
    text = data.decode("utf-8", "replace").replace("\r\n", "\n")
    if path.lower().endswith(".ipynb"):
        return _notebook(path, text)
    return Source(path=path, language=language, text=text)


def _notebook(path: str, text: str) -> Source:
    """The code cells of a notebook as one program."""
    at, code, lines = 0, [], []
    for each in _code_lines(text):
        for written in (json.dumps(each, ensure_ascii=False), json.dumps(each)):
            found = text.find(written, at)
            if found >= 0:
                at = found
                break
        code.append(each.rstrip("\n"))
        lines.append(text.count("\n", 0, at) + 1)
    return Source(path=path, language="python", text="\n".join(code), lines=tuple(lines))


def _code_lines(text: str) -> Iterator[str]:
    try:
        notebook: object = json.loads(text)
    except (ValueError, RecursionError):
        return
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    for cell in cells if isinstance(cells, list) else ():
        if not isinstance(cell, dict) or cell.get("cell_type") != "code":
            continue
        source = cell.get("source")
        for each in source if isinstance(source, list) else ():
            if isinstance(each, str):
                yield each
