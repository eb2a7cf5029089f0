"""URLs in code: where they stand, in what kind of place, and what is around them.

Strategy: no parser per language. One regular expression per family of languages tells strings from
comments, so that a URL in a comment or in Python's docstrings is none; the text just before a URL
tells the rest: the name it is given to, the call it is an argument of, the variable of the
environment that it is the default of. Where that is not certain the place is called a mention.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from deltatape.doctor.sources import COMPOSE, Source

_STRINGS = r"""(?P<s>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')"""
# A `//` after a colon belongs to a URL whose string was not recognised as one.
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
"""How comments look; all other languages are like C."""

_URL = re.compile(r"""https?://(?P<host>[^\s"'`<>\\/?\#]+)[^\s"'`<>\\]*""")
_BARE_HOST = re.compile(r"""(?<=["'`])(?P<host>[a-z0-9.-]{3,100}\.[a-z]{2,12})(?=["'`])""")
_UNQUOTED = frozenset({"shell", "yaml", COMPOSE, "env", "ini"})
_QUOTES = ("'", '"', "`")
_LONGEST_LINE = 2000
_BEFORE = 400
_NEAR = 160
"""How far a name, a call or a variable may be from its URL, in characters."""

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
"""What every way to read a variable has: looked for first, since it is quick."""
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


class Use(StrEnum):
    """What a URL in code is there for."""

    SENT_TO = "sent-to"
    """A request goes there: an argument of a call, or given to a name such as `base_url`."""
    DEFAULT = "default"
    """Taken where a variable of the environment is not set."""
    MENTIONED = "mentioned"
    """Anything else: a list of hosts, a message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Literal:
    """A URL, or the bare name of a host, in code."""

    source: Source
    start: int
    """Offset of the URL in the source's text."""
    url: str
    """As it is written; a bare host has no scheme."""
    host: str
    """In lower case, with its port if it has one."""
    use: Use
    key: str
    """The name it is given to; "" for none."""
    variable: str
    """The variable of the environment that goes before it; "" for none."""

    @property
    def before(self) -> str:
        """The code before it, as far as it may belong to it."""
        return self.source.text[max(0, self.start - _BEFORE) : self.start]


def literals(source: Source) -> Iterator[Literal]:
    """The URLs and hosts in the code of a file, in order of kind, then of place."""
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


def _comments(source: Source) -> Iterator[tuple[int, int]]:
    """Where comments are, and what Python puts between three quotes."""
    lexer = _LEXERS.get(source.language, _C_LIKE)
    for match in lexer.finditer(source.text):
        if match.lastgroup in ("c", "h"):
            yield match.span()


def _line_length(text: str, at: int) -> int:
    end = text.find("\n", at)
    return (len(text) if end < 0 else end) - text.rfind("\n", 0, at)


def _literal(source: Source, match: re.Match[str]) -> Literal:
    before = source.text[max(0, match.start() - _NEAR) : match.start()]
    assigned = _ASSIGNED.search(before)
    key = assigned["key"] if assigned else ""
    variable = _variable(source, before, key)
    return Literal(
        source=source,
        start=match.start(),
        url=match[0].rstrip(").,;]}") if "{" not in match[0] else match[0].rstrip(").,;]"),
        host=match["host"].lower().rstrip(").,;]").rpartition("@")[2],
        use=Use.DEFAULT if variable else _use(source.language, before, key),
        key=key,
        variable=variable,
    )


def _use(language: str, before: str, key: str) -> Use:
    if language not in _UNQUOTED and before[-1:] not in _QUOTES:
        return Use.MENTIONED  # somewhere in a text
    if key:
        return Use.SENT_TO if _URL_NAME.search(key) else Use.MENTIONED
    return Use.SENT_TO if _CALLED.search(before) else Use.MENTIONED


def _variable(source: Source, before: str, key: str) -> str:
    """The variable of the environment that is asked before this literal is taken."""
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
    """Whether a name such as `baseURL` or `openai.api_base` holds the base URL of an API."""
    return _BASE_NAME.search(key) is not None
