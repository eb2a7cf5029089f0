"""Harmless: the same events in other lines that the standards allow.

Sources: WHATWG HTML 9.2.6 (line ends, comments, fields in any order, a space behind the colon or
none, data over several lines); JSON Lines; RFC 8259 section 2 (blanks).
"""

import re
from collections.abc import Iterator

from deltatape.model.exchange import Exchange
from deltatape.model.stream import Format, Stream
from deltatape.mutate import MutableExchange, MutationChoices
from deltatape.vary._base import harmless, rewriting
from deltatape.vary.reads import cut_plain, ends_of

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
"""An empty line of JSON is for its reader to like or not; spaces in front of a value are JSON."""


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


LINES = (
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
)
