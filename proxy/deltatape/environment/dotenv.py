"""Reads `.env` files as applications' loaders do, to find the provider that an app reaches.

No library does this, since one reader covers several loaders: python-dotenv knows neither back
quotes nor `$NAME`, Node's dotenv knows both, and neither reports bad lines or resolves against
another process's environment. Where they differ, the more lenient reading is used: only URLs and
keys are looked for.

Nothing is executed, files and values are bounded, a bad line is reported with file and line and
skipped.

Precedence, from the weakest: `.env`, `.env.MODE`, `.env.local`, `.env.MODE.local`, then the
environment; MODE is NODE_ENV or `development`; `.env.local` is skipped in mode `test`. Sources: the
documentation of python-dotenv, of dotenv and dotenv-expand, and of Next.js.
"""

import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

MAX_FILE_BYTES = 256 * 1024
MAX_VALUE_CHARS = 64 * 1024
"""The limit of an interpolated value: each reference may double the one before."""

_MODE = re.compile(r"[A-Za-z0-9_-]{1,32}")
_SPACE = re.compile(r"[^\S\r\n]*")
_NAME = re.compile(r"(?:export[^\S\r\n]+)?(?:'([^'\r\n]+)'|([A-Za-z_][A-Za-z0-9_.-]*))")
_EQUALS = re.compile(r"[^\S\r\n]*(?:=|:(?=[^\S\r\n]))[^\S\r\n]*")
_QUOTED = {quote: re.compile(rf"{quote}((?:\\{quote}|[^{quote}])*){quote}") for quote in "'\"`"}
_UNQUOTED = re.compile(r"[^\r\n]*")
_COMMENT = re.compile(r"(?:^|(?<=\s))#.*")
_REST = re.compile(r"[^\S\r\n]*(?:#[^\r\n]*)?(?=[\r\n]|\Z)")
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")
_NEWLINE = re.compile(r"\r\n|\r|\n")
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "f": "\f", "v": "\v", "a": "\a", "b": "\b"}
_ESCAPE = re.compile(r"\\([\\'\"`nrtfvab])")
_REFERENCE = re.compile(
    r"(\\\$)|\$\{([A-Za-z_][A-Za-z0-9_]*)(?::?-([^}]*))?\}|\$([A-Za-z_][A-Za-z0-9_]*)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DotenvEntry:
    """One `NAME=value` of a file, before interpolation."""

    name: str
    value: str
    line: int
    """1-based."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DotenvFile:
    """The content of one file."""

    path: str
    """As shown to the user: `.env` or `../.env`."""
    entries: tuple[DotenvEntry, ...] = ()
    problems: tuple[str, ...] = ()
    """One line for the user each: file, line, what was skipped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedValue:
    """A value that an application gets, and its origin."""

    value: str
    where: str
    """`.env:3`, or `the environment`."""
    hidden: tuple[tuple[str, str], ...] = ()
    """Other values of weaker files, each as (where, value)."""


def read_dotenv(folder: Path, environment: Mapping[str, str]) -> tuple[DotenvFile, ...]:
    """Return the files that an application started in `folder` loads, weakest first.

    Searches `folder`; if that has none and is inside a repository, the nearest folder above that
    has some, as python-dotenv does.
    """
    mode = environment.get("NODE_ENV") or "development"
    names = [".env", ".env.local"] if mode != "test" else [".env"]
    if _MODE.fullmatch(mode):
        names[1:1] = [f".env.{mode}"]
        names.append(f".env.{mode}.local")
    for place in _places(folder):
        files = [place / name for name in names]
        found = tuple(read_dotenv_file(f, os.path.relpath(f, folder)) for f in files if _exists(f))
        if found:
            return found
    return ()


def _places(folder: Path) -> Iterator[Path]:
    yield folder
    above = [folder, *folder.parents]
    root = next((at for at, each in enumerate(above) if (each / ".git").exists()), 0)
    yield from above[1 : root + 1]


def _exists(path: Path) -> bool:
    try:
        # A folder of that name is somebody's virtual environment.
        return not stat.S_ISDIR(path.stat().st_mode)
    except OSError:
        return False


def read_file(path: Path, limit: int) -> str:
    """Return the text of a regular file of at most `limit` bytes.

    Raises:
        ValueError: it cannot be read; the message says why.
    """
    try:
        # Opening a pipe that nobody writes to would wait; some password managers make .env one.
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise ValueError(error.strerror) from None
    with os.fdopen(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise ValueError("no regular file")
        data = file.read(limit + 1)
    if len(data) > limit:
        raise ValueError(f"longer than {limit} bytes")
    return data.decode("utf-8", "surrogateescape")


def read_dotenv_file(path: Path, shown: str) -> DotenvFile:
    """Return the content of one file, or why it could not be read."""
    try:
        return parse_dotenv(read_file(path, MAX_FILE_BYTES), shown)
    except ValueError as error:
        return DotenvFile(path=shown, problems=(f"{shown}: not read: {error}",))


def parse_dotenv(text: str, path: str) -> DotenvFile:
    r"""Parse a file's entries in order, repeats included.

    `NAME=value` or `NAME: value`, optionally after `export`; blanks around are dropped. A value in
    '...', "..." or `...` may span lines; in "..." `\n` and the like are escapes. Without quotes it
    ends where a `#` follows a blank. A line that is none of this is a problem, and so is a name
    without a value, which sets nothing.
    """
    text = text.removeprefix("\ufeff")
    entries: list[DotenvEntry] = []
    problems: list[str] = []
    at, line = 0, 1
    while at < len(text):
        start = _end(_SPACE, text, at)
        if start < len(text) and text[start] not in "\r\n#":
            parsed = _binding(text, start)
            if parsed is None:
                problems.append(f"{path}:{line}: not NAME=value; the line is ignored")
            else:
                name, value, start = parsed
                entries.append(DotenvEntry(name=name, value=value, line=line))
        end = _end(_LINE, text, start)
        line += len(_NEWLINE.findall(text, at, end))
        at = end
    return DotenvFile(path=path, entries=tuple(entries), problems=tuple(problems))


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    assert match is not None  # each such pattern matches nothing as well
    return match.end()


def _binding(text: str, at: int) -> tuple[str, str, int] | None:
    """Return name, value and end of a binding; None if there is none."""
    name = _NAME.match(text, at)
    equals = _EQUALS.match(text, name.end()) if name else None
    if name is None or equals is None:
        return None
    at = equals.end()
    quote = text[at : at + 1]
    if quote and quote in _QUOTED:
        quoted = _QUOTED[quote].match(text, at)
        if quoted is None or _REST.match(text, quoted.end()) is None:
            return None
        return name[1] or name[2], _unescape(quote, quoted[1]), quoted.end()
    end = _end(_UNQUOTED, text, at)
    return name[1] or name[2], _COMMENT.sub("", text[at:end], count=1).rstrip(), end


def _unescape(quote: str, value: str) -> str:
    if quote != '"':
        return value.replace(f"\\{quote}", quote)
    return _ESCAPE.sub(lambda match: _ESCAPES.get(match[1], match[1]), value)


def settings(
    files: Sequence[DotenvFile], environment: Mapping[str, str]
) -> tuple[Mapping[str, ResolvedValue], tuple[str, ...]]:
    r"""Return the variables of an application that loads `files`, and a line per unusable value.

    The environment wins over files, and a later file over an earlier one. `${NAME}`,
    `${NAME:-default}` and `$NAME` are replaced by what is known above them, `\$` by `$`.

    Args:
        files: weakest first.
        environment: the environment of the application.
    """
    found: dict[str, ResolvedValue] = {}
    problems: list[str] = []
    for file in files:
        for entry in file.entries:
            where = f"{file.path}:{entry.line}"
            value = _interpolate(entry.value, found, environment)
            if value is None:
                problems.append(
                    f"{where}: {entry.name} is longer than {MAX_VALUE_CHARS} characters"
                )
                continue
            found[entry.name] = _overriding(value, where, found.get(entry.name))
    for name, value in environment.items():
        found[name] = _overriding(value, "the environment", found.get(name))
    return found, tuple(problems)


def _overriding(value: str, where: str, weaker: ResolvedValue | None) -> ResolvedValue:
    hidden = weaker.hidden if weaker else ()
    if weaker is not None and weaker.value != value:
        hidden = (*hidden, (weaker.where, weaker.value))
    return ResolvedValue(value=value, where=where, hidden=hidden)


def _interpolate(
    value: str, found: Mapping[str, ResolvedValue], environment: Mapping[str, str]
) -> str | None:
    """Interpolate a value; None if it becomes too long."""
    parts: list[str] = []
    length = at = 0
    for match in _REFERENCE.finditer(value):
        escaped, braced, default, bare = match.groups()
        name = braced or bare
        known = "$" if escaped else environment.get(name) or _value(found, name)
        parts += (value[at : match.start()], known or default or "")
        length += len(parts[-1]) + len(parts[-2])
        at = match.end()
        if length > MAX_VALUE_CHARS:
            return None
    parts.append(value[at:])
    whole = "".join(parts)
    return whole if len(whole) <= MAX_VALUE_CHARS else None


def _value(found: Mapping[str, ResolvedValue], name: str) -> str:
    return found[name].value if name in found else ""
