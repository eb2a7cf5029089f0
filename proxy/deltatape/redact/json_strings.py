"""Find the JSON in a body, and the strings in it with their paths, also in broken text.

Looser than the decoders of streams: everything that a client might take for data counts. A body is
JSON as a whole, or its lines are, or the data of its events. The binary messages of Amazon are text
only when they have been unfolded, see `eventstream`.

One tolerant scan for strings and brackets finds the strings. Truncated bodies and bodies with
several values are scanned as far as they go. Nothing is unescaped.

The fragments that a stream sends of one text stand at the same path of consecutive events. Such
strings have equal keys: `channel` consists of the path and of the indexes that dialects put next to
a fragment (`index`, `output_index`, ..., anywhere in the object), `trail` of the object keys alone,
for streams with wrong or missing indexes.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import groupby, pairwise
from typing import NamedTuple, TypeAlias

from deltatape.secret_text.escaped_text import LayeredView, plain
from deltatape.wire.json_value import parse

_JSON_START = re.compile(r"(?:\xef\xbb\xbf)?[ \t\r\n]*[\[{]")
_ARRAY_START = re.compile(r"(?:\xef\xbb\xbf)?[ \t\r\n]*\[[ \t\r\n]*\{")
_VALUE_LINE = re.compile(r"(?:\xef\xbb\xbf)?[ \t]*([\[{][^\n]*[\]}])[ \t\r]*\n?")
_LINE = re.compile(r"([^\r\n]*+)(?:\r\n|\r|\n|\Z)")
_DATA = re.compile(r"(?:\xef\xbb\xbf)?data:? ?")


class FramedBody(NamedTuple):
    """The data of a body and the places of its events; none if it is not JSON."""

    view: LayeredView
    events: tuple[tuple[int, int], ...]
    is_stream: bool
    """Whether a text may come in pieces, one at the same place of each event."""


def framed(body: LayeredView) -> FramedBody:
    """Return the data of `body`: of an event stream without its field names."""
    text = body.text
    if _JSON_START.match(text):
        lines = _json_lines(text)
        if lines:
            return FramedBody(body, lines, is_stream=True)
        return FramedBody(body, ((0, len(text)),), is_stream=bool(_ARRAY_START.match(text)))
    events: list[list[tuple[int, int]]] = [[]]
    for line in _LINE.finditer(text):
        start, end = line.span(1)
        data = _DATA.match(text, start, end)
        if data:
            events[-1].append((data.end(), end))
        elif start == end and events[-1]:
            events.append([])
    ranges = []
    at = 0
    for event in filter(None, events):
        size = sum(end - start + 1 for start, end in event)
        ranges.append((at, at + size))
        at += size
    slices = [piece for event in events for piece in event]
    view = body.on(plain(body.text, slices, glue="\n"))
    return FramedBody(view, tuple(ranges), is_stream=True)


def _json_lines(text: str) -> tuple[tuple[int, int], ...]:
    """Return the non-blank lines of JSON lines, with their ends; () for anything else.

    No JSON document has two values without a comma between them, so a line that is one value,
    followed by a line that begins one, shows JSON lines.
    """
    lines = []
    start = 0
    while start < len(text):
        end = text.find("\n", start) + 1 or len(text)  # CR ends no line in this format
        if not text[start:end].isspace():
            lines.append((start, end))
        start = end
    for line, following in pairwise(lines):
        if _JSON_START.match(text, *following):
            value = _VALUE_LINE.fullmatch(text, *line)
            if value is not None and parse(value[1]).error is None:
                return tuple(lines)
    return ()


Channel: TypeAlias = tuple[object, ...]

_TOKEN = re.compile(r'"([^"\\]*+(?:\\.[^"\\]*+)*+)"?|[{}\[\],]|[^\s{}\[\],:"]++', re.DOTALL)
_INDEXES = frozenset(
    {
        "index",
        "output_index",
        "content_index",
        "summary_index",
        "contentBlockIndex",
        "toolCallId",
        "jsonPath",
    }
)
"""Members that tell the texts of one path apart."""
_MARKS = _INDEXES | {"type", "role"}
_MARK_LIMIT = 64
_DEPTH_LIMIT = 32
"""Values nested deeper are read as if they stood at this depth."""


@dataclass(slots=True, kw_only=True, eq=False)
class Node:
    """An object or array that contains a leaf."""

    parent: "Node | None"
    key: str | int
    """In its parent: a key as the text has it, or a position."""
    is_array: bool
    marks: dict[str, str] = field(default_factory=dict)
    """Members that tell what the object is, as the text has them."""
    place: int = 0
    pending: str | None = None
    start: int = 0

    def child_key(self) -> str | int:
        """Return the key of the current value."""
        return self.place if self.is_array else self.pending or ""

    def chain(self) -> tuple["Node", ...]:
        """Return the chain from the outermost value to this one."""
        found = [self]
        while found[-1].parent is not None:
            found.append(found[-1].parent)
        return tuple(reversed(found))


class Leaf(NamedTuple):
    """A string's content, or an object or array as a whole, at `text[start:end]`."""

    node: Node
    key: str | int
    start: int
    end: int
    whole: bool
    """Whether it is an object or array."""

    @property
    def name(self) -> str:
        """Return the nearest object key."""
        if isinstance(self.key, str):
            return self.key
        return next((n.key for n in reversed(self.node.chain()) if isinstance(n.key, str)), "")

    @property
    def channel(self) -> Channel:
        """Return what the strings that form one text have in common."""
        chain = self.node.chain()
        # Elements of an outermost array are events.
        root = chain[1] if chain[0].is_array and len(chain) > 1 else chain[0]
        event = (root.marks.get("type"), _indexes(root))
        return (event, *(_step(node) for node in chain[1:]), self.key)

    @property
    def trail(self) -> Channel:
        """Return the object keys on the path."""
        keys = [node.key for node in self.node.chain() if isinstance(node.key, str)]
        return (*keys, self.key if isinstance(self.key, str) else "")


def _indexes(node: Node) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(mark for mark in node.marks.items() if mark[0] in _INDEXES))


def _step(node: Node) -> object:
    indexes = _indexes(node)
    outermost = node.parent is not None and node.parent.parent is None and node.parent.is_array
    if isinstance(node.key, str):
        return (node.key, indexes)
    return indexes if indexes or outermost else node.key


class _Scan:
    """The state between two tokens."""

    def __init__(self, text: str, whole: frozenset[str]) -> None:
        self._text = text
        self._whole = whole
        self._top: Node | None = None
        self._depth = 0

    def token(self, match: re.Match[str]) -> Leaf | None:
        """Read the next token; return the leaf that it ends."""
        char = self._text[match.start()]
        if char == '"':
            return self._string(match)
        if char in "}]":
            return self._close(match.end())
        if char in "{[":
            self._open(match.start(), is_array=char == "[")
        elif char == ",":
            if self._top is not None:
                self._top.place += 1
                self._top.pending = None
        else:
            self._mark(match.group())
        return None

    def _string(self, match: re.Match[str]) -> Leaf | None:
        top, (start, end) = self._top, match.span(1)
        if top is None:
            return Leaf(Node(parent=None, key="", is_array=False), "", start, end, whole=False)
        if not top.is_array and top.pending is None:
            top.pending = self._text[start:end]
            return None
        self._mark(self._text[start : min(end, start + _MARK_LIMIT)])
        return Leaf(top, top.child_key(), start, end, whole=False)

    def _open(self, start: int, *, is_array: bool) -> None:
        self._depth += 1
        if self._depth <= _DEPTH_LIMIT:
            key = self._top.child_key() if self._top else ""
            self._top = Node(parent=self._top, key=key, is_array=is_array, start=start)

    def _close(self, end: int) -> Leaf | None:
        closed = self._top
        self._depth = max(self._depth - 1, 0)
        if closed is None or self._depth >= _DEPTH_LIMIT:
            return None
        self._top = closed.parent
        if closed.parent is None or closed.key not in self._whole:
            return None
        return Leaf(closed.parent, closed.key, closed.start, end, whole=True)

    def _mark(self, value: str) -> None:
        if self._top is not None and self._top.pending in _MARKS:
            self._top.marks[self._top.pending] = value


def leaves(text: str, start: int, end: int, whole: frozenset[str] = frozenset()) -> Iterator[Leaf]:
    """Yield the string values between `start` and `end`, in order, and what `whole` names.

    Args:
        text: JSON values, one after the other, as far as they go.
        start: where to begin.
        end: where to end.
        whole: keys whose objects and arrays are given as a whole, too, after their strings.
    """
    scan = _Scan(text, whole)
    for match in _TOKEN.finditer(text, start, end):
        leaf = scan.token(match)
        if leaf is not None:
            yield leaf


class StringPlace(NamedTuple):
    """A string's content at `text[start:end]`, and what `Leaf` tells of it."""

    channel: Channel
    trail: Channel
    start: int
    end: int


_STRING = re.compile(r'"([^"\\]*+(?:\\.[^"\\]*+)*+)"?(\s*:)?', re.DOTALL)
"""As `_TOKEN` has it, with the colon behind the name of a member."""
_SHAPES = 256
"""How many shapes of events are remembered."""
_SHAPE_SIZE = 4096
"""Characters of the largest one."""


def string_places(text: str, start: int, end: int, *, is_stream: bool) -> list[StringPlace]:
    """Return the string values between `start` and `end`, in order.

    The channels depend on an event's shape: all of it but the contents of its strings, and of those
    the names and marks. Events of a stream, and requests, have few shapes.
    """
    parts: list[str] = []
    spans: list[tuple[int, int]] = []
    places: list[int] = []
    at, size, marks = start, 0, False
    for match in _STRING.finditer(text, start, end):
        span = match.span(1)
        if match[2] is not None:
            marks = match[1] in _MARKS
            continue
        parts.append(text[at : span[0]])
        size += span[0] - at
        places.append(size)
        spans.append(span)
        at = span[0] if marks else span[1]
    parts.append(text[at:end])
    shape = "".join(parts)
    known = _shape(shape, is_stream=is_stream) if len(shape) <= _SHAPE_SIZE else []
    if [each.start for each in known] == places:
        pairs = zip(known, spans, strict=True)
        return [StringPlace(each.channel, each.trail, *span) for each, span in pairs]
    return _places(text, start, end, is_stream=is_stream)  # too large, or no proper JSON


@lru_cache(_SHAPES)
def _shape(text: str, *, is_stream: bool) -> list[StringPlace]:
    return _places(text, 0, len(text), is_stream=is_stream)


def _places(text: str, start: int, end: int, *, is_stream: bool) -> list[StringPlace]:
    found: Iterator[Leaf] | list[Leaf] = leaves(text, start, end)
    if is_stream:
        found = list(found)  # an index may stand behind what it is about
    return [StringPlace(leaf.channel, leaf.trail, leaf.start, leaf.end) for leaf in found]


# The texts that strings make when they are joined, without their places.
#
# Strategy: events of a stream have few shapes. Once a shape has come several times, a regular
# expression that is made of it reads all strings of an event at once; numbers that are no marks may
# differ.

_CONTENT = r'([^"\\]*+(?:\\.[^"\\]*+)*+)'
_MEMBER = re.compile(r'"((?:[^"\\]|\\.)*+)"\s*:\s*(-?[0-9][0-9.eE+-]*+)', re.DOTALL)
_NUMBER = "-?[0-9][0-9.eE+-]*+"
_LF_EVENTS = re.compile(r"(?:(?:event: [^\n]*+\n)?data: [^\n]*+\n\n)++")
_LF_DATA = re.compile(r"(?:event: [^\n]*+\n)?data: ([^\n]*+)\n\n")
_OFTEN = 3
"""How often a shape comes before it gets an expression, which costs as much as some 100 events."""
_TEMPLATES = 8
"""How many expressions are kept, and tried for an event."""


class _Shape(NamedTuple):
    """Where the strings of an event stand, in order."""

    channels: tuple[Channel, ...]
    trails: tuple[Channel, ...]


class _Row(NamedTuple):
    """The strings of an event."""

    shape: _Shape
    strings: tuple[str, ...]


class _EventReader:
    """Reads the strings of events, quickly where they are like those before."""

    def __init__(self) -> None:
        self._templates: list[tuple[re.Pattern[str], _Shape]] = []
        self._seen: dict[str, int] = {}

    def read(self, text: str) -> _Row:
        """Return the strings of an event, which is given without its last line feed."""
        for place, (pattern, shape) in enumerate(self._templates):
            match = pattern.fullmatch(text)
            if match is not None:
                if place:
                    self._templates.insert(0, self._templates.pop(place))
                return _Row(shape, match.groups())
        line = f"{text}\n"
        places = string_places(line, 0, len(line), is_stream=True)
        shape = _Shape(
            tuple([each.channel for each in places]), tuple([each.trail for each in places])
        )
        is_broken = not places or places[-1].end >= len(text)
        # Where an event has several strings of a text, columns would have another order.
        if not is_broken and len({*shape.trails}) == len(places):
            self._learn(text, places, shape)
        return _Row(shape, tuple([line[each.start : each.end] for each in places]))

    def _learn(self, text: str, places: list[StringPlace], shape: _Shape) -> None:
        """Make an expression for an event that none has read, if its shape comes often."""
        source = _expression(text, places)
        if len(source) > _SHAPE_SIZE:
            return
        seen = self._seen.pop(source, 0) + 1
        if seen == _OFTEN:
            self._templates.insert(0, (re.compile(source, re.DOTALL), shape))
            del self._templates[_TEMPLATES:]
            return
        self._seen[source] = seen
        if len(self._seen) > _SHAPES:
            del self._seen[next(iter(self._seen))]


_reader = _EventReader()


def _expression(text: str, places: list[StringPlace]) -> str:
    """Return an expression for events that differ in strings that are no marks, and in numbers."""
    parts: list[str] = []
    at = 0
    for place in places:
        is_mark = place.channel[-1] in _MARKS
        content = f"({re.escape(text[place.start : place.end])})" if is_mark else _CONTENT
        parts += (_of_any_number(text[at : place.start]), content)
        at = place.end
    return "".join((*parts, _of_any_number(text[at:])))


def _of_any_number(text: str) -> str:
    """Return an expression for `text` with other numbers as members that are no marks."""
    parts: list[str] = []
    at = 0
    for match in _MEMBER.finditer(text):
        if match[1] not in _MARKS:
            parts += (re.escape(text[at : match.start(2)]), _NUMBER)
            at = match.end()
    return "".join((*parts, re.escape(text[at:])))


def joined_strings(text: str) -> Iterator[Sequence[str]]:
    """Yield the strings of a body that are joined, several each: what `Channel`s have in common.

    Those of a stream also by their trails, where these are of several channels.
    """
    events, is_stream = _events(text)
    if is_stream:
        rows = [_reader.read(event) for event in events if '"' in event]
    else:
        rows = [_row(event) for event in events]
    by_channel: dict[Channel, list[str]] = {}
    of_trail: dict[Channel, set[Channel]] = {}
    tables = [
        (shape, [*zip(*[row.strings for row in group], strict=True)])
        for shape, group in _runs(rows)
    ]
    for shape, columns in tables:
        for channel, trail, column in zip(*shape, columns, strict=True):
            by_channel.setdefault(channel, []).extend(column)
            of_trail.setdefault(trail, set()).add(channel)
    yield from (strings for strings in by_channel.values() if len(strings) > 1)
    mixed = {trail for trail, channels in of_trail.items() if len(channels) > 1}
    if is_stream and mixed:
        by_trail: dict[Channel, list[str]] = {}
        for shape, columns in tables:
            for trail, column in zip(shape.trails, columns, strict=True):
                if trail in mixed:
                    by_trail.setdefault(trail, []).extend(column)
        yield from by_trail.values()


def _runs(rows: Iterable[_Row]) -> Iterator[tuple[_Shape, list[_Row]]]:
    """Yield the events that follow on each other and were read by one expression."""
    for _, group in groupby(rows, lambda row: id(row.shape)):
        run = [*group]
        yield run[0].shape, run


def _events(text: str) -> tuple[list[str], bool]:
    """Return the data of a body's events, and whether it is a stream; see `framed`."""
    if _LF_EVENTS.fullmatch(text):
        return _LF_DATA.findall(text), True
    frame = framed(LayeredView(text))
    events = [frame.view.text[start:end].removesuffix("\n") for start, end in frame.events]
    return events, frame.is_stream


def _row(text: str) -> _Row:
    places = string_places(text, 0, len(text), is_stream=False)
    channels = tuple([each.channel for each in places])
    return _Row(_Shape(channels, channels), tuple([text[each.start : each.end] for each in places]))


class _Depth(int):
    """How deep an object is nested, in place of it."""


def has_single_strings(text: str) -> bool:
    """Return True only if `text` is a JSON object whose strings all stand at places of their own.

    Then no string is joined with another.
    """
    if not text.startswith("{"):
        return False
    try:
        return _depth(json.loads(text, object_pairs_hook=_object)) < _DEPTH_LIMIT
    except (ValueError, RecursionError):
        return False


def _object(pairs: list[tuple[str, object]]) -> _Depth:
    keys = {key for key, _ in pairs}
    if len(keys) < len(pairs) or not _INDEXES.isdisjoint(keys):
        raise ValueError
    return _Depth(1 + max([_depth(value) for _, value in pairs], default=0))


def _depth(value: object) -> int:
    if isinstance(value, _Depth):
        return value
    if isinstance(value, list) and not _NESTED.isdisjoint(map(type, value)):
        return 1 + max(map(_depth, value))
    return int(isinstance(value, list))


_NESTED = frozenset((list, _Depth))
