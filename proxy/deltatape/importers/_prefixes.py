"""What terminals and loggers put in front of the lines of a stream, and around them.

`strip_line` finds the event-stream line in a line of a log: behind time stamps, levels, logger and
container names, markers, in quotes (Python's, JSON's), or as a value of a JSON log record. The
grammar is small and each step shortens the line, so any text is done in linear time. `json_line`
finds the object that a line of a log ends with, bare or in quotes.
"""

import ast
import contextlib
import json
import re
import warnings

from deltatape.wire.json_scan import Verdict
from deltatape.wire.json_value import parse

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-_]")
"""ECMA-48 control sequences: colours, titles."""

_FIELD = re.compile(r"(?:data|event|id|retry)?:")
_DATA = re.compile(r"""(?<![A-Za-z0-9_"'-])data: ?(?=[\[{"]|$)""")

_QUOTE = re.compile(r"""(?<!\w)b?(["'])(?=(?:data|event|id|retry):)""")

_OBJECT = re.compile(r"""(?:(?<!\w)b?(["']))?\{(?=\s*["}])""")

_PREFIX = re.compile(
    r"""
      \[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:\ ?(?:Z|UTC|[+-]\d\d:?\d\d))?\]?
    | \[?\d\d:\d\d:\d\d(?:[.,]\d{1,9})?\]?
    | (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)
      \ [ \d]\d\ \d\d:\d\d:\d\d\ \S{1,80}\ \S{1,80}:
    | [\[(]?(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|FATAL|LOG)[\])]?:?(?=\s|$)
    | \[[^\[\]\s"{}]{1,60}\]:?
    | [A-Za-z0-9][\w./-]{0,60}\ +\|
    | \d{1,9}[:|\t](?=\s*(?:data|event|id|retry)?:)
    | [<>|•-]+(?=\s)
    """,
    re.VERBOSE | re.IGNORECASE,
)
_MOST_PREFIXES = 12


def without_escapes(text: str) -> str:
    """`text` without the control sequences of a terminal."""
    return _ESCAPES.sub("", text)


def is_field(line: str) -> bool:
    """Whether `line` is a line of an event stream as it stands: a field or a comment."""
    return _FIELD.match(line) is not None


def strip_line(line: str) -> tuple[str, ...] | None:
    """The event-stream lines in a line of a log; None if there are none.

    One, unless the log quoted several with their line feeds. A line with nothing behind its
    prefix is the blank line that was logged.
    """
    if is_field(line):
        return (line,)
    rest = _after_prefixes(line)
    if is_field(rest) or not rest:
        return (rest,)
    quoted = _unquoted(rest)
    if quoted is not None:
        return tuple(quoted.split("\n"))
    data = _DATA.search(line)
    return (line[data.start() :],) if data else None


def json_line(line: str, *, cut: bool = False) -> str | None:
    """The JSON object that a line of a log ends with; if `cut`, also the beginning of one."""
    start = _OBJECT.search(line)
    if start is None:
        return None
    text = line[start.start() :].strip()
    if start[1]:
        value = _text(_literal(text[: text.rfind(start[1]) + 1]))
        text = "" if value is None else value.strip()
    found = parse(text)
    begun = cut and found.error is not None and found.error.verdict is Verdict.PREFIX
    return text if text and (begun or isinstance(found.value, dict)) else None


def _after_prefixes(line: str) -> str:
    """`line` from the end of what is known to stand before; the space of a logger belongs to it."""
    rest = line.lstrip()
    for _ in range(_MOST_PREFIXES):
        match = _PREFIX.match(rest)
        if match is None or is_field(rest):
            break
        rest = rest[match.end() :].lstrip()
    return rest


def _unquoted(text: str) -> str | None:
    """The stream text in a JSON log record, or in the first literal that begins with a field."""
    text = text.strip()
    value = _literal(text) if text.startswith("{") else None
    if isinstance(value, dict):
        found = (item for item in value.values() if isinstance(item, str) and is_field(item))
        return next(found, None)
    start = _QUOTE.search(text)
    if start is None:
        return None
    end = text.rfind(start[1])
    return _text(_literal(text[start.start() : end + 1]))


def _text(value: object) -> str | None:
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    return value if isinstance(value, str) else None


def _literal(text: str) -> object:
    """The value of JSON, or of a Python string or bytes literal; None if it is neither."""
    value: object = None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        refused = contextlib.suppress(ValueError, SyntaxError, RecursionError, MemoryError)
        with refused, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes that are none, such as \d
            value = ast.literal_eval(text)
    return value
