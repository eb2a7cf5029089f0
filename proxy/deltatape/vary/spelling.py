"""Harmless: the same events in other lines, and their JSON spelled differently.

Sources: WHATWG HTML 9.2.6 (line ends, comments, fields in any order, an optional space after the
colon, data over several lines); JSON Lines; RFC 8259; Amazon's event stream encoding, whose readers
skip unknown headers.
"""

import re
from collections.abc import Callable, Iterator

from deltatape.diagnose.rebuild import analyse
from deltatape.dialects import traits_of
from deltatape.model.exchange import Exchange
from deltatape.model.stream import Format, Stream
from deltatape.mutate import MutableEvent, MutableExchange, MutationChoices
from deltatape.vary._base import harmless, rewriting
from deltatape.vary.reads import cut_plain, ends_of
from deltatape.wire.aws_eventstream import (
    PRELUDE_SIZE,
    encode_headers,
    encode_message,
    payload_span,
)

_LINE_END = re.compile(rb"\r\n|\n|\r")
_BETWEEN = re.compile(rb"\r(?=\n)")
_LINE_FEED = re.compile(rb"(?<!\r)\n")
_SPACE = re.compile(rb"^(?:data|event|id|retry):( )(?! )", re.MULTILINE)
_NO_SPACE = re.compile(rb"^(?:data|event|id|retry):(?! )", re.MULTILINE)
_DATA = re.compile(rb"^data:", re.MULTILINE)
_EVENT_LINE = re.compile(rb"^event:[^\r\n]*(\r\n|\n|\r)", re.MULTILINE)
_DATA_LINE = re.compile(rb"^data:[^\r\n]*(\r\n|\n|\r)", re.MULTILINE)
_OBJECT = re.compile(rb"^data: ?\{", re.MULTILINE)
_ID = re.compile(rb"^id(?::|$)", re.MULTILINE)
_BLANKS = {Format.SSE: b"\n\n", Format.JSON_ARRAY: b"\n\n", Format.NDJSON: b"  "}
"""In NDJSON a reader may reject an empty line, so spaces come before the value instead."""


def _blocks(stream: Stream) -> Iterator[tuple[int, bytes]]:
    """Yield the server-sent events: offset and bytes of each."""
    if stream.format is Format.SSE:
        for event in stream.events:
            start, end = event.place.span
            yield start, stream.body[start:end]


def _inserted(draft: MutableExchange, at: int, data: bytes) -> None:
    draft.edit(at, at, data)


@rewriting("crlf")
def crlf(draft: MutableExchange, stream: Stream, _: MutationChoices) -> None:
    """Lines end with CRLF."""
    if stream.format not in (Format.SSE, Format.NDJSON):
        return
    pattern = _LINE_END if stream.format is Format.SSE else _LINE_FEED
    for match in pattern.finditer(stream.body):
        draft.edit(*match.span(), b"\r\n")


@rewriting("cr")
def cr(draft: MutableExchange, stream: Stream, _: MutationChoices) -> None:
    """Lines end with CR alone."""
    if stream.format is Format.SSE:
        for match in _LINE_END.finditer(stream.body):
            draft.edit(*match.span(), b"\r")


@harmless("split-crlf")
def split_crlf(exchange: Exchange, chance: MutationChoices) -> Exchange | None:
    """Lines end with CRLF, and CR and LF arrive in different reads."""
    made = crlf.make(exchange, chance) or exchange
    return cut_plain(made, ends_of(made, _BETWEEN, Format.SSE, Format.NDJSON))


@rewriting("comments")
def comments(draft: MutableExchange, stream: Stream, _: MutationChoices) -> None:
    """A keep-alive comment and a blank line precede every event."""
    for start, _block in _blocks(stream):
        _inserted(draft, start, b": keep-alive\n\n")


@rewriting("comments-inside")
def comments_inside(draft: MutableExchange, stream: Stream, _: MutationChoices) -> None:
    """Every event has a comment line before its `data:` line."""
    for start, block in _blocks(stream):
        for match in _DATA.finditer(block):
            _inserted(draft, start + match.start(), b": inside\n")


@rewriting("no-space")
def no_space(draft: MutableExchange, stream: Stream, _: MutationChoices) -> None:
    """No space follows the colon of a field: `data:{`."""
    for start, block in _blocks(stream):
        for match in _SPACE.finditer(block):
            draft.edit(start + match.start(1), start + match.end(1), b"")


@rewriting("space")
def space(draft: MutableExchange, stream: Stream, _: MutationChoices) -> None:
    """A space follows the colon of every field: `data: {`."""
    for start, block in _blocks(stream):
        for match in _NO_SPACE.finditer(block):
            _inserted(draft, start + match.end(), b" ")


@rewriting("ids")
def ids(draft: MutableExchange, stream: Stream, _: MutationChoices) -> None:
    """Every event has an `id:` line, the first also a `retry:` line."""
    for number, (start, block) in enumerate(_blocks(stream)):
        if not _ID.search(block):
            retry = b"" if number else b"retry: 3000\n"
            _inserted(draft, start, b"%bid: %d\n" % (retry, number))


@rewriting("event-message")
def event_message(draft: MutableExchange, stream: Stream, _: MutationChoices) -> None:
    """Events without an `event:` line get the default one, `event: message`."""
    for start, block in _blocks(stream):
        if not _EVENT_LINE.search(block):
            _inserted(draft, start, b"event: message\n")


@rewriting("event-behind-data")
def event_behind_data(draft: MutableExchange, stream: Stream, _: MutationChoices) -> None:
    """The `event:` line follows the `data:` line."""
    for start, block in _blocks(stream):
        named, data = _EVENT_LINE.search(block), _DATA_LINE.search(block)
        if named and data and named.start() < data.start():
            draft.edit(start + named.start(), start + named.end(), b"")
            _inserted(draft, start + data.end(), named[0])


@rewriting("data-lines")
def data_lines(draft: MutableExchange, stream: Stream, _: MutationChoices) -> None:
    """The JSON of every event is split over two `data:` lines."""
    for start, block in _blocks(stream):
        for match in _OBJECT.finditer(block):
            _inserted(draft, start + match.end(), b"\ndata: ")


@rewriting("blanks")
def blanks(draft: MutableExchange, stream: Stream, _: MutationChoices) -> None:
    """There are additional blank lines or spaces between the events."""
    more = _BLANKS.get(stream.format)
    for event in stream.events:
        if more is not None and event.start:
            _inserted(draft, event.start, more)


@rewriting("no-final-line-end")
def no_final_line_end(draft: MutableExchange, stream: Stream, _: MutationChoices) -> None:
    """The last JSON line has no line end."""
    if stream.format is Format.NDJSON:
        size = len(stream.body) - len(stream.body.rstrip(b"\r\n"))
        draft.shorten(size)


def _objects(draft: MutableExchange) -> Iterator[MutableEvent]:
    for unit in draft.units:
        if isinstance(unit.value, dict):
            yield unit


def _rewritten(draft: MutableExchange, change: Callable[[str], str]) -> None:
    for unit in _objects(draft):
        unit.text = change(unit.text)


@rewriting("json-blanks")
def json_blanks(draft: MutableExchange, _stream: Stream, _: MutationChoices) -> None:
    """There are spaces between the tokens of the JSON."""
    _rewritten(draft, spaced)


@rewriting("json-escapes")
def json_escapes(draft: MutableExchange, _stream: Stream, _: MutationChoices) -> None:
    r"""Non-ASCII characters are written as `\uXXXX`."""
    _rewritten(draft, escaped)


@rewriting("json-order")
def json_order(draft: MutableExchange, _stream: Stream, _: MutationChoices) -> None:
    """The members of JSON objects are in reverse order."""
    _rewritten(draft, reversed_members)


@rewriting("unknown-member")
def unknown_member(draft: MutableExchange, stream: Stream, _: MutationChoices) -> None:
    """Every event has an unknown member, such as the padding that some providers send."""
    if traits_of(analyse(draft.exchange).reply.dialect).strict:
        return
    name = "p" if stream.format is Format.EVENTSTREAM else "obfuscation"
    for unit in _objects(draft):
        if not unit.source((name,)):
            unit.put((name,), '"abcdefgh"')


@rewriting("unknown-header")
def unknown_header(draft: MutableExchange, stream: Stream, _: MutationChoices) -> None:
    """Every binary message has an unknown header."""
    if stream.format is Format.EVENTSTREAM:
        for event in stream.events:
            start, end = event.place.span
            draft.edit(start, end, _with_header(stream.body[start:end], "x-trace", "fake"))


def _with_header(message: bytes, name: str, value: str) -> bytes:
    start, end = payload_span(message)
    headers = message[PRELUDE_SIZE:start] + encode_headers({name: value})
    return encode_message(headers, message[start:end])


SPELLINGS = (
    crlf,
    cr,
    split_crlf,
    comments,
    comments_inside,
    no_space,
    space,
    ids,
    event_message,
    event_behind_data,
    data_lines,
    blanks,
    no_final_line_end,
    json_blanks,
    json_escapes,
    json_order,
    unknown_member,
    unknown_header,
)


# Rewrites JSON texts: the same value in other bytes.
#
# Numbers, escapes and nested values keep their spelling, since a nested value can be the arguments
# of a call, which count byte for byte. All texts are valid JSON.
#
# Spec: RFC 8259.

_TOKEN = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[\[\]{}:,]|[^\s"\[\]{}:,]++|\s++')
_STEPS = {"{": 1, "[": 1, "}": -1, "]": -1}
_ESCAPED = re.compile(r"[^\x00-\x7f\ud800-\udfff]")
_MEMBER = 1


def spaced(text: str) -> str:
    """Return `text` with spaces around each token of its outermost level."""
    parts: list[str] = []
    for part, depth in _tokens(text):
        outer = depth == _MEMBER and part in "{}[]:,"
        parts.append(f" {part} " if outer else part)
    return "".join(parts).strip()


def escaped(text: str) -> str:
    r"""Return `text` with `\uXXXX` for every character beyond ASCII."""
    return _ESCAPED.sub(lambda match: _escape(match[0]), text)


def _escape(character: str) -> str:
    units = character.encode("utf-16-be").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def reversed_members(text: str) -> str:
    """Return the object `text` with its members reversed; itself if a name occurs twice."""
    members: list[list[str]] = [[]]
    for part, depth in _tokens(text):
        if depth == _MEMBER and part == ",":
            members.append([])
        elif depth > _MEMBER or part not in "{}":
            members[-1].append(part)
    names = [next((part for part in each if not part.isspace()), "") for each in members]
    if len(names) != len(set(names)):
        return text
    inside = ",".join("".join(each).strip() for each in reversed(members))
    return f"{{{inside}}}"


def _tokens(text: str) -> Iterator[tuple[str, int]]:
    """Yield the tokens with their depth: brackets of the outermost value have 1."""
    depth = 0
    for match in _TOKEN.finditer(text):
        token = match[0]
        step = _STEPS.get(token, 0)
        depth += max(step, 0)
        yield token, depth
        depth += min(step, 0)
