"""HTTP heads in pasted text: what `curl -i` and `curl -v` print around a body.

`curl -v` marks what it sent with `> `, what it got with `< `, and its own remarks with `* `;
`curl -i` prints the response head as it is. The last response head counts: those before it are
informational, redirects, or the proxy's.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from deltatape.importers._base import Answered, Asked, PlainHeaders

_STATUS_LINE = re.compile(r"(?:< )?HTTP/([0-9](?:\.[0-9])?) ([1-9][0-9]{2})(?: (.*?))?\r?")
_REQUEST_LINE = re.compile(r"> ([A-Z]+) (\S+) HTTP/([0-9](?:\.[0-9])?)\r?")
_FIELD = re.compile(r"(?:[<>] )?([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*?)\r?")
_END_OF_HEAD = re.compile(r"[<>]? ?\r?")
_REMARK = re.compile(
    r"\*(?: .*)?|[{}] \[.*\]|\$ curl .*|  % Total .*|\r?[ \d].*--:--:--.*|curl: \(\d+\) .*"
)
_GLUED = re.compile(
    r"\r[ \d][^\r]*--:--:--[^\r]*"
    r"|\* (?:Connection #\d+ to host \S+ left intact|Closing connection.*|transfer closed with .*)$"
    r"|curl: \(\d+\) .*$"
)
"""Remarks and progress that follow a body without a line feed on the same line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heads:
    """What the heads say, and the lines that are neither head nor remark."""

    asked: Asked | None
    answered: Answered | None
    rest: tuple[str, ...]


def has_head(lines: Sequence[str]) -> bool:
    """Whether a status line comes before any data of an event stream."""
    for line in lines:
        if line.startswith("data:"):
            return False
        if _STATUS_LINE.fullmatch(line):
            return True
    return False


def split_heads(lines: Sequence[str]) -> Heads:
    """Tell heads and curl's remarks from the body."""
    asked: Asked | None = None
    answered: Answered | None = None
    rest: list[str] = []
    at = 0
    while at < len(lines):
        line = lines[at]
        request, status = _REQUEST_LINE.fullmatch(line), _STATUS_LINE.fullmatch(line)
        at += 1
        if request is not None:
            fields, at = _fields(lines, at)
            asked = _asked(request, fields)
        elif status is not None:
            fields, at = _fields(lines, at)
            answered = _answered(status, fields)
            rest.clear()
        elif not _REMARK.fullmatch(line):
            rest.append(_GLUED.sub("", line))
    return Heads(asked=asked, answered=answered, rest=tuple(rest))


def _fields(lines: Sequence[str], at: int) -> tuple[PlainHeaders, int]:
    """The header fields from line `at` on, and the line after the blank one that ends them."""
    fields = []
    while at < len(lines):
        line = lines[at]
        if not _REMARK.fullmatch(line):
            field = _FIELD.fullmatch(line)
            if field is None:
                break
            fields.append((field[1].encode(), field[2].encode("utf-8", "surrogateescape")))
        at += 1
    if at < len(lines) and _END_OF_HEAD.fullmatch(lines[at]):
        at += 1
    return tuple(fields), at


def _asked(line: re.Match[str], fields: PlainHeaders) -> Asked:
    hosts = [value.decode("latin-1") for name, value in fields if name.lower() == b"host"]
    # curl does not print the scheme; the APIs in question are served by https.
    url = f"https://{hosts[0]}{line[2]}" if hosts else line[2]
    return Asked(method=line[1], url=url, http=line[3], headers=fields)


def _answered(line: re.Match[str], fields: PlainHeaders) -> Answered:
    reason = (line[3] or "").encode("utf-8", "surrogateescape")
    return Answered(status=int(line[2]), reason=reason, http=line[1], headers=fields)
