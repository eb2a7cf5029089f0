"""Import a stream copied from a terminal or a log, and undo what copying and logging did to it.

Strategy: separate curl's heads and remarks from the body, remove logger prefixes from every line of
the body, and drop lines that belong to no event stream. Blank lines are restored only if there is
none at all, since a stream that has some shows where its events end. If no event stream is found,
JSON is taken from the ends of lines. Every change is listed in the exchange's notes: only a
recording has the wire's own bytes.
"""

import ast
import contextlib
import json
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from deltatape.diagnose.exchange_parts import Part
from deltatape.importers.parts import (
    UNKNOWN,
    ImportedRequest,
    ImportedResponse,
    ImportSource,
    PlainHeaders,
    build,
    read_request,
    read_response,
    sniff,
)
from deltatape.model.exchange import Exchange
from deltatape.wire.json_scan import ScanState
from deltatape.wire.json_value import parse, read_object

_SHOWN = 60
_FEW = 2


class PastedImporter:
    """Imports text that shows a stream without being one."""

    name = "pasted text"
    accepts = "text from a terminal or a log that shows a response (`curl -i`, `curl -v`)"
    is_body = True
    holds = frozenset({Part.STATUS, Part.RESPONSE_HEADERS, Part.BODY})
    remark = "`curl -i`, `curl -v`, loggers' prefixes; what the text does not show is not there"

    def claims(self, source: ImportSource) -> bool:
        lines = _lines(source.only)
        return lines is not None and (
            has_head(lines) or _has_meter(lines) or _shows_stream(lines) or _shows_json_lines(lines)
        )

    def read(self, source: ImportSource) -> Sequence[Exchange]:
        notes: list[str] = []
        lines = _lines(source.only) or []
        request, response = ImportedRequest(), ImportedResponse()
        headed = has_head(lines)
        if headed or _has_meter(lines):
            heads = split_heads(lines)
            lines = list(heads.rest)
            request, response = heads.request or request, heads.response or response
            notes.append(
                "pasted: HTTP headers taken from the text"
                if headed
                else "pasted: curl's progress removed"
            )
        if source.request is not None:
            request = read_request(source.request_name, source.request)
        if source.response is not None:
            response = read_response(source.response_name, source.response)
        if _shows_stream(lines):
            lines = _stream_lines(lines, notes)
        elif _shows_json_lines(lines):
            lines = _json_lines(lines, notes)
        body = "\n".join(lines).encode("utf-8", "surrogateescape")
        return [build(source.name, request, response, body, notes)]


def _lines(data: bytes | None) -> list[str] | None:
    """Return the lines, with surrogates for bytes that are not UTF-8; None for binary data."""
    if data is None or b"\0" in data:
        return None
    text = data.decode("utf-8", "surrogateescape")
    return (_METER.sub("", text) if _METER_TITLE in text else text).split("\n")


def _is_altered(lines: Sequence[str]) -> bool:
    """Return whether the text shows an altered event stream.

    A stream whose data fields begin their lines, with blank lines between, is not
    altered even if other lines do not belong to it: they may be the defect.
    """
    plain = sum(line.removeprefix("\ufeff").startswith("data:") for line in lines)
    found = sum(map(_shows_data, lines)) - plain
    first = next((line for line in lines if line.strip()), "")
    if first.lstrip().startswith("{") and _FEW * found < sum(map(bool, lines)):
        return False  # JSON, some of whose texts look like data lines
    return found > plain or _lacks_blank_lines(lines)


def _shows_data(line: str) -> bool:
    return any(part.startswith("data:") for part in strip_line(without_escapes(line)) or ())


def _shows_stream(lines: Sequence[str]) -> bool:
    """Return whether the text shows an altered event stream, and is no source code with `data:`."""
    if not _is_altered(lines):
        return False
    shown = [without_escapes(line) for line in lines if line.strip()]
    found = [parts for line in shown if (parts := strip_line(line)) is not None]
    fields = [part for parts in found for part in parts if part.startswith("data:")]
    data = [field.removeprefix("data:").strip() for field in fields]
    mostly = _FEW * len(found) > len(shown) and any(data)
    return mostly or any(read_object(value) for value in data)


def _lacks_blank_lines(lines: Sequence[str]) -> bool:
    """Return whether several events follow one another without any blank line."""
    data = sum(line.startswith("data:") for line in lines)
    return data >= _FEW and not any(line in {"", "\r"} for line in lines[:-1])


def _shows_json_lines(lines: Sequence[str]) -> bool:
    """Return whether every line with JSON has a prefix, and the text is nothing else."""
    found = sum(json_line(without_escapes(line)) is not None for line in lines)
    body = "\n".join(lines).encode("utf-8", "surrogateescape")
    return found >= _FEW and sniff(body) == UNKNOWN


def _json_lines(lines: Sequence[str], notes: list[str]) -> list[str]:
    """Return the JSON lines in `lines`; add to `notes` what was done."""
    shown = [without_escapes(line) for line in lines if line.strip()]
    *found, last = map(json_line, shown)
    kept = [text for text in found if text is not None]
    cut = json_line(shown[-1], cut=True)
    kept += [cut or ""] if last is None else [last, ""]
    lost = found.count(None) + (cut is None)
    notes.append(f"pasted: JSON taken from the ends of lines: {len(shown) - lost}")
    if lost:
        notes.append(f"pasted: lines without JSON left out: {lost}")
    return kept


def _stream_lines(lines: Sequence[str], notes: list[str]) -> list[str]:
    """Return the lines of the event stream in `lines`; add to `notes` what was done."""
    stream: list[str] = []
    left_out: list[str] = []
    freed = 0
    for line in lines:
        parts = strip_line(without_escapes(line.removesuffix("\r")))
        if parts is None:
            left_out.append(line)
        else:
            freed += parts != (line,)
            stream.extend(parts)
    if freed:
        notes.append(f"pasted: lines with a log or terminal prefix removed: {freed}")
    if left_out:
        shown = ascii(left_out[0][:_SHOWN])
        notes.append(
            f"pasted: lines outside the event stream left out: {len(left_out)}, first {shown}"
        )
    if _lacks_blank_lines(stream):
        stream = list(_separated(stream))
        notes.append("pasted: blank lines added after each data line, since the text had none")
    return _ended(stream, notes)


def _separated(stream: Sequence[str]) -> Iterator[str]:
    for line, following in zip(stream, [*stream[1:], ""], strict=True):
        yield line
        if line.startswith("data:") and following:
            yield ""


def _ended(stream: list[str], notes: list[str]) -> list[str]:
    """Add the blank line that copying cuts off, if the last line of `stream` is complete."""
    content = [line for line in stream if line]
    if not content or stream[-2:] == ["", ""] or not _is_whole(content[-1]):
        return stream
    notes.append("pasted: blank line added after the last event, since copying cuts it off")
    return [*stream[: len(stream) - 1 if stream[-1] == "" else len(stream)], "", ""]


def _is_whole(line: str) -> bool:
    """Return whether a field's value is not truncated JSON."""
    _, _, value = line.partition(":")
    if not value.strip().startswith(("{", "[{", '"')):
        return True
    try:
        json.loads(value)
    except (ValueError, RecursionError):
        return False
    return True


# HTTP heads in pasted text: what `curl -i` and `curl -v` print around a body.
#
# `curl -v` marks what it sent with `> `, what it got with `< `, and its own remarks with `* `;
# `curl -i` prints the response head as it is. The last response head counts: those before it are
# informational, redirects, or the proxy's.

_STATUS_LINE = re.compile(r"(?:< )?HTTP/([0-9](?:\.[0-9])?) ([1-9][0-9]{2})(?: (.*?))?\r?")
_REQUEST_LINE = re.compile(r"> ([A-Z]+) (\S+) HTTP/([0-9](?:\.[0-9])?)\r?")
_FIELD = re.compile(r"(?:[<>] )?([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*?)\r?")
_END_OF_HEAD = re.compile(r"[<>]? ?\r?")
_REMARK = re.compile(
    r"\*(?: .*)?|[{}] \[.*\]|\$ curl .*|  % Total .*| +Dload  Upload .*|\r?[ \d].*--:--:--.*"
    r"|curl: \(\d+\) .*"
)
_GLUED = re.compile(
    r"\r[ \d][^\r]*--:--:--[^\r]*"
    r"|\* (?:Connection #\d+ to host \S+ left intact|Closing connection.*|transfer closed with .*)$"
    r"|curl: \(\d+\) .*$"
)
"""Remarks and progress that follow a body without a line feed on the same line."""
_METER_TITLE = "  % Total    % Received"
_METER = re.compile(r"^[\r \d:.kMGTP-]*--:--:-- *[\d.]+[kMGTP]?(?=HTTP/|[a-z:{\[])", re.MULTILINE)
"""Progress that is followed by a head or a body on the same line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PastedHeads:
    """The heads, and the lines that are neither head nor remark."""

    request: ImportedRequest | None
    response: ImportedResponse | None
    rest: tuple[str, ...]


def has_head(lines: Sequence[str]) -> bool:
    """Return whether a status line comes before any data of an event stream."""
    for line in lines:
        if line.startswith("data:"):
            return False
        if _STATUS_LINE.fullmatch(line):
            return True
    return False


def _has_meter(lines: Sequence[str]) -> bool:
    """Return whether the text begins with the table of curl's progress."""
    return next((line for line in lines if line.strip()), "").startswith(_METER_TITLE)


def split_heads(lines: Sequence[str]) -> PastedHeads:
    """Separate heads and curl's remarks from the body."""
    request: ImportedRequest | None = None
    response: ImportedResponse | None = None
    rest: list[str] = []
    at = 0
    while at < len(lines):
        line = lines[at]
        request_line, status = _REQUEST_LINE.fullmatch(line), _STATUS_LINE.fullmatch(line)
        at += 1
        if request_line is not None:
            fields, at = _fields(lines, at)
            request = _request(request_line, fields)
        elif status is not None:
            fields, at = _fields(lines, at)
            response = _response(status, fields)
            rest.clear()
        elif not _REMARK.fullmatch(line):
            rest.append(_GLUED.sub("", line))
    return PastedHeads(request=request, response=response, rest=tuple(rest))


def _fields(lines: Sequence[str], at: int) -> tuple[PlainHeaders, int]:
    """Return the header fields from line `at` on, and the number of the line after them."""
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


def _request(line: re.Match[str], fields: PlainHeaders) -> ImportedRequest:
    hosts = [value.decode("latin-1") for name, value in fields if name.lower() == b"host"]
    # curl does not print the scheme; the APIs in question are served by https.
    url = f"https://{hosts[0]}{line[2]}" if hosts else line[2]
    return ImportedRequest(method=line[1], url=url, http=line[3], headers=fields)


def _response(line: re.Match[str], fields: PlainHeaders) -> ImportedResponse:
    reason = (line[3] or "").encode("utf-8", "surrogateescape")
    return ImportedResponse(status=int(line[2]), reason=reason, http=line[1], headers=fields)


# What terminals and loggers put in front of the lines of a stream, and around them.
#
# `strip_line` finds the event-stream line in a line of a log: behind time stamps, levels, logger
# and container names, markers, in quotes (Python's, JSON's), or as a value of a JSON log record.
# The grammar is small and each step shortens the line, so any text is done in linear time.
# `json_line` finds the object that a line of a log ends with, bare or in quotes.

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-_]")
"""ECMA-48 control sequences: colours, titles."""
_SSE_FIELD = re.compile(r"(?:data|event|id|retry)?:")
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
    """Remove terminal control sequences from `text`."""
    return _ESCAPES.sub("", text)


def is_field(line: str) -> bool:
    """Return whether `line` is an unaltered field or comment of an event stream."""
    return _SSE_FIELD.match(line) is not None


def strip_line(line: str) -> tuple[str, ...] | None:
    """Return the event-stream lines in a line of a log; None if there are none.

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
    """Return the JSON object at the end of a log line; if `cut`, also a truncated one."""
    start = _OBJECT.search(line)
    if start is None:
        return None
    text = line[start.start() :].strip()
    if start[1]:
        value = _text(_literal(text[: text.rfind(start[1]) + 1]))
        text = "" if value is None else value.strip()
    found = parse(text)
    begun = cut and found.error is not None and found.error.verdict is ScanState.PREFIX
    return text if text and (begun or isinstance(found.value, dict)) else None


def _after_prefixes(line: str) -> str:
    """Cut known prefixes from `line`, with a logger's space."""
    rest = line.lstrip()
    for _ in range(_MOST_PREFIXES):
        match = _PREFIX.match(rest)
        if match is None or is_field(rest):
            break
        rest = rest[match.end() :].lstrip()
    return rest


def _unquoted(text: str) -> str | None:
    """Return the stream text in a JSON log record or in the first literal with a field."""
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
    """Return the value of JSON, or of a Python string or bytes literal; None if it is neither."""
    value: object = None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        refused = contextlib.suppress(
            ValueError, SyntaxError, TypeError, RecursionError, MemoryError
        )
        with refused, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes that are none, such as \d
            value = ast.literal_eval(text)
    return value
