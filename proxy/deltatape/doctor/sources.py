"""Read the files of a project that can hold a provider's URL, and the URLs in their code.

Strategy: the files that git knows, else those found by walking the folders. Third-party and
generated files (installed packages, build output, bundles, lock files) and prose are left out.
Files, bytes per file, and time are limited; what was left out for that reason is reported. Of a
notebook only the code is kept, with the line numbers of the file.

A project is untrusted input: links are not followed, and git runs none of its hooks.
"""

import json
import os
import re
import stat
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path, PurePosixPath

from deltatape.clock import SystemClock
from deltatape.doctor.programs import git

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
"""The language of a file, by its extension; `.env`, `.env.local` and so on are `env`, too."""
COMPOSE = "compose"
"""The language of Compose files: YAML with variables."""
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
"""Folders without the project's own code, in addition to all whose name starts with a dot."""
_LEFT_OUT_NAMES = frozenset(
    {"package-lock.json", "npm-shrinkwrap.json", "pnpm-lock.yaml", "composer.lock", "deno.lock"}
)
_TESTS = frozenset({"test", "tests", "__tests__", "spec", "e2e", "fixtures"})
_NS = 1_000_000_000
_MINIFIED = 1000
"""A file with longer lines on average, in characters, is generated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much of a project to read at most."""

    files: int = 5000
    file_bytes: int = 1024 * 1024
    seconds: float = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """The code of a file. `lines`: for a notebook the file's line of each line of `text`."""

    path: str
    language: str
    text: str
    lines: tuple[int, ...] | None = None

    @property
    def is_test(self) -> bool:
        """Return whether the file's name is one of a test."""
        path = PurePosixPath(self.path)
        stem = path.name.lower()
        return bool(_TESTS & {part.lower() for part in path.parts[:-1]}) or (
            stem.startswith(("test_", "conftest.")) or "_test." in stem or ".test." in stem
        )

    def place(self, offset: int) -> tuple[int, int]:
        """Return line and column of an offset in `text`, both counted from 1."""
        line = self.text.count("\n", 0, offset)
        column = offset - (self.text.rfind("\n", 0, offset) + 1)
        return self.lines[line] if self.lines else line + 1, column + 1


class SourceFiles:
    """The source files of a folder, in order."""

    def __init__(self, folder: Path, limits: Limits) -> None:
        self._folder = folder
        self._limits = limits
        self._clock = SystemClock()
        self._end_ns = self._clock.now_ns() + int(limits.seconds * _NS)
        self.read = 0
        """How many files were read so far."""
        self.stopped = ""
        """Where reading stopped: `after 5000 files`; "" if everything was read."""

    def __iter__(self) -> Iterator[SourceFile]:
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
        """Return whether the time is up, which ends the search."""
        if self._clock.now_ns() > self._end_ns:
            self.stopped = f"after {self._limits.seconds:g} s"
            return True
        return False


def language_of(path: str) -> str:
    """Return the language of a file by its name; "" for one that is not read."""
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
    """Yield paths of files relative to `folder`, those of the environment first."""
    listed = _listed_by_git(folder)
    if not listed:
        yield from _walked(folder)
        return
    # Usually ignored by git, but a common place for base URLs.
    dotenv = [path.name for path in sorted(folder.glob(".env*"))]
    yield from dotenv
    for path in listed:
        if path not in dotenv and not any(map(_is_ignored_folder, PurePosixPath(path).parts[:-1])):
            yield path


def _listed_by_git(folder: Path) -> list[str]:
    """Return the files that git tracks or would track; [] without git or a timely answer."""
    answer = git(folder, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    if answer is None:
        return []
    return sorted({os.fsdecode(path) for path in answer.stdout.split(b"\0") if path})


def _walked(folder: Path) -> Iterator[str]:
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not _is_ignored_folder(name))
        if "pyvenv.cfg" in names:
            folders.clear()
            continue
        yield from (Path(parent, name).relative_to(folder).as_posix() for name in sorted(names))


def _is_ignored_folder(name: str) -> bool:
    return name.startswith(".") or name in _LEFT_OUT


def read_source(folder: Path, path: str, language: str, most: int) -> SourceFile | None:
    """Return the code of one file; None if it is no plain text file of at most `most` bytes."""
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
    return SourceFile(path=path, language=language, text=text)


def _notebook(path: str, text: str) -> SourceFile:
    """Join the code cells of a notebook into one program."""
    at, code, lines = 0, [], []
    for each in _code_lines(text):
        for written in (json.dumps(each, ensure_ascii=False), json.dumps(each)):
            found = text.find(written, at)
            if found >= 0:
                at = found
                break
        code.append(each.rstrip("\n"))
        lines.append(text.count("\n", 0, at) + 1)
    return SourceFile(path=path, language="python", text="\n".join(code), lines=tuple(lines))


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


# Find URLs in code, and how the code uses them.
#
# Strategy: no parser per language. One regular expression per family of languages tells strings
# from comments, so that URLs in comments and in Python's docstrings are ignored. The text just
# before a URL tells its use: the name that it is assigned to, the call that it is an argument of,
# the environment variable that it is the default of. If that is not certain, the URL is a mention.

_STRINGS = r"""(?P<s>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')"""
# A `//` after a colon belongs to a URL, even outside a recognised string.
_C_COMMENTS = r"(?P<c>(?<!:)//[^\n]*|/\*.*?(?:\*/|\Z))"
_HASH_COMMENTS = r"(?P<c>(?:^|(?<=\s))\#[^\n]*)"
_PYTHON = re.compile(
    r"(?P<c>\"\"\".*?(?:\"\"\"|\Z)|'''.*?(?:'''|\Z)|\#[^\n]*)|" + _STRINGS, re.DOTALL
)
_C_LIKE = re.compile(rf"(?P<t>`(?:\\.|[^`\\])*`)|{_C_COMMENTS}|{_STRINGS}", re.DOTALL)
_PHP = re.compile(rf"{_C_COMMENTS}|(?P<h>\#[^\n]*)|{_STRINGS}", re.DOTALL)
_HASH = re.compile(rf"{_HASH_COMMENTS}|{_STRINGS}", re.MULTILINE)
_INI = re.compile(r"(?P<c>^\s*[\#;][^\n]*)", re.MULTILINE)
_LEXERS = {
    "python": _PYTHON,
    "php": _PHP,
    "ruby": _HASH,
    "shell": _HASH,
    "yaml": _HASH,
    COMPOSE: _HASH,
    "toml": _HASH,
    "env": _HASH,
    "ini": _INI,
}
"""Comments by language; all other languages comment like C."""
_URL = re.compile(r"""https?://(?P<host>[^\s"'`<>\\/?\#]+)[^\s"'`<>\\]*""")
_BARE_HOST = re.compile(r"""(?<=["'`])(?P<host>[a-z0-9.-]{3,100}\.[a-z]{2,12})(?=["'`])""")
_UNQUOTED = frozenset({"shell", "yaml", COMPOSE, "env", "ini"})
_QUOTES = ("'", '"', "`")
_LONGEST_LINE = 2000
_BEFORE = 400
_NEAR = 160
"""How far before a URL its name, call or variable may be, in characters."""
_ASSIGNED = re.compile(
    r"""(?P<key>[\w.$-]*)["']?\]?\s*(?::\s*[\w\[\]|. ]+\s*(?==))?(?:=>|:=|=|:)\s*
        [rfbuRFBU@$]{0,2}["'`]?\Z""",
    re.VERBOSE,
)
_URL_NAME = re.compile(r"url|uri|base|endpoint|host|server|api", re.IGNORECASE)
_BASE_NAME = re.compile(
    r"base_?url|api_?base|server_?url|api_?url|endpoint|base_?path|\bhost\b", re.IGNORECASE
)
_CALLED = re.compile(
    r"""(?:\b(?:fetch|axios|got|ky|curl|wget|urlopen|url|uri|open)
        |\.?(?:post|get|put|request|stream|connect|connection|client|withbaseurl|baseurl))
        \w*["']?\s*\([^()]*\Z|\b(?:curl|wget|http)\s[^\n]*\Z""",
    re.IGNORECASE | re.VERBOSE,
)
_NAME = r"""["'\[(.\s]*(?P<name>[A-Z][A-Z0-9_]{2,60})"""
_READ = (
    r"(?:environ(?:\.get|\.setdefault)?|[gG]etenv|process\.env|import\.meta\.env|(?:Deno|Bun)\.env(?:\.get)?"
    r"|env::var|GetEnvironmentVariable|ENV(?:\.fetch)?|\benv(?:\.str|\.url)?|\bconfig)"
    r"(?:\(\)\s*\.getOrDefault|\(\)\s*\.get)?"
)
_MAY_READ = re.compile(r"env|config|[-=]\Z", re.IGNORECASE)
"""Every way to read a variable has one of these: a quick test before the slow ones."""
_DEFAULT_OF = re.compile(
    rf"""{_READ}{_NAME}(?:["']\s*,\s*(?:default(?:_value)?\s*=\s*)?
        |["'\])]*\s*(?:\?\?|\|\||\bor\b|\?:|!?\.unwrap_or(?:_else)?\((?:\|_\|)?)\s*)
        [rfbu]?["'`]\Z""",
    re.VERBOSE,
)
_FIRST_OF = re.compile(rf"""cmp\.Or\(\s*os\.Getenv{_NAME}["']\)\s*,\s*["'`]\Z""")
_SUBSTITUTED = re.compile(r"\$\{(?P<name>[A-Za-z_]\w{0,60}):?[-=]\Z")
_FIELD = re.compile(
    r"""(?P<name>\w{1,60})\s*:\s*[\w\[\]|. ]+=\s*(?:Field\(\s*(?:default\s*=\s*)?)?["']\Z"""
)
_PREFIX = re.compile(r"""env_prefix["']?\s*[=:]\s*["'](?P<prefix>\w{0,40})["']""")


class UrlUse(StrEnum):
    """How code uses a URL."""

    SENT_TO = "sent-to"
    """Requests go there: an argument of a call, or assigned to a name such as `base_url`."""
    DEFAULT = "default"
    """The default of an environment variable."""
    MENTIONED = "mentioned"
    """Anything else: a list of hosts, a message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlLiteral:
    """A URL, or the bare name of a host, in code."""

    source: SourceFile
    start: int
    """Offset of the URL in the source's text."""
    url: str
    """As written; a bare host has no scheme."""
    host: str
    """In lower case, with its port if it has one."""
    use: UrlUse
    key: str
    """The name that it is assigned to; "" for none."""
    variable: str
    """The environment variable that it is the default of; "" for none."""

    @property
    def before(self) -> str:
        """Return the code before it that may belong to the same expression."""
        return self.source.text[max(0, self.start - _BEFORE) : self.start]


def literals(source: SourceFile) -> Iterator[UrlLiteral]:
    """Yield the URLs and hosts in the code of a file, in order of kind, then of place."""
    if "://" not in source.text and not _BARE_HOST.search(source.text):
        return
    comments = tuple(_comments(source))
    for pattern in (_URL, _BARE_HOST):
        for match in pattern.finditer(source.text):
            # The last comment that begins before it is the only one that can hold it.
            near = bisect_right(comments, (match.start(), len(source.text))) - 1
            if near >= 0 and match.start() < comments[near][1]:
                continue
            if _line_length(source.text, match.start()) <= _LONGEST_LINE:
                yield _literal(source, match)


def _comments(source: SourceFile) -> Iterator[tuple[int, int]]:
    """Yield the spans of comments, and of Python strings in triple quotes."""
    lexer = _LEXERS.get(source.language, _C_LIKE)
    for match in lexer.finditer(source.text):
        if match.lastgroup in ("c", "h"):
            yield match.span()


def _line_length(text: str, at: int) -> int:
    end = text.find("\n", at)
    return (len(text) if end < 0 else end) - text.rfind("\n", 0, at)


def _literal(source: SourceFile, match: re.Match[str]) -> UrlLiteral:
    before = source.text[max(0, match.start() - _NEAR) : match.start()]
    assigned = _ASSIGNED.search(before)
    key = assigned["key"] if assigned else ""
    variable = _variable(source, before, key)
    return UrlLiteral(
        source=source,
        start=match.start(),
        url=match[0].rstrip(").,;]}") if "{" not in match[0] else match[0].rstrip(").,;]"),
        host=match["host"].lower().rstrip(").,;]").rpartition("@")[2],
        use=UrlUse.DEFAULT if variable else _use(source.language, before, key),
        key=key,
        variable=variable,
    )


def _use(language: str, before: str, key: str) -> UrlUse:
    if language not in _UNQUOTED and before[-1:] not in _QUOTES:
        return UrlUse.MENTIONED  # somewhere in a text
    if key:
        return UrlUse.SENT_TO if _URL_NAME.search(key) else UrlUse.MENTIONED
    return UrlUse.SENT_TO if _CALLED.search(before) else UrlUse.MENTIONED


def _variable(source: SourceFile, before: str, key: str) -> str:
    """Return the environment variable for which this literal is the default."""
    if source.language == "env":
        return key
    if _MAY_READ.search(before):
        for pattern in (_DEFAULT_OF, _FIRST_OF, _SUBSTITUTED):
            match = pattern.search(before)
            if match:
                return match["name"]
    if (field := _FIELD.search(before)) and "BaseSettings" in source.text:
        prefix = _PREFIX.search(source.text)
        return f"{prefix['prefix'] if prefix else ''}{field['name']}".upper()
    return ""


def is_base_name(key: str) -> bool:
    """Return whether a name such as `baseURL` or `openai.api_base` means the base URL of an API."""
    return _BASE_NAME.search(key) is not None
