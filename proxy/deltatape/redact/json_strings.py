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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from deltatape.secret_text.escaped_text import LayeredView, plain
from deltatape.secret_text.prefilter import may_hold_secret
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


# The texts in which a body has its secrets, without their places.
#
# Strategy: events of a stream have few shapes. Once a shape has come several times, a regular
# expression that is made of it reads the strings of all such events of a body at once; numbers that
# are no marks may differ. All else of them is the same in every event, and was searched before; no
# secret begins there and ends in a string, see `_is_neutral`.

_CONTENT = r'([^"\\\n]*+(?:\\[^\n][^"\\\n]*+)*+)'
_NUMBER = "-?[0-9][0-9.eE+-]{0,18}+"
"""Not long enough to be encoded text."""
_MEMBER = re.compile(rf'"((?:[^"\\]|\\.)*+)"\s*:\s*({_NUMBER})(?=[,}}])', re.DOTALL)
_LF_EVENT = re.compile(r"\n(?:event: [^\n]*+\n)?data: ([^\n]*+)\n")
"""With the line feed that ends the event before it, without its own."""
_OFTEN = 3
"""How often a shape comes before it gets an expression, which costs as much as some 100 events."""
_TEMPLATES = 8
"""How many expressions are kept, and tried for an event."""
_CHANNELS = 4096
"""How many channels are numbered before all is forgotten."""
_PROBES = ("x1x2x3x4x5x6x7x8", "Basic x1x2x3x4x5x6x7x8", "authorization", "api_key")
"""With what a string completes a secret that begins or ends outside of it."""
_LONG_NUMBER = r'"\1":12345678901234567890'
_BETWEEN = '","'


class BodyTexts(NamedTuple):
    """The texts of a body."""

    alone: list[str] | None
    """What is in the body as it stands, without what was searched before; None: all of it."""
    joined: list[Sequence[str]]
    """Strings that make a text together, several each: what `Channel`s have in common. In a stream
    also what trails have in common, where these are of several channels."""


class _Shape(NamedTuple):
    """Where the strings of an event stand, in order."""

    channels: tuple[object, ...]
    trails: tuple[object, ...]


class _Rows(NamedTuple):
    """The strings of events that follow on each other, place by place."""

    shape: _Shape
    columns: Sequence[Sequence[str]]


class _Template(NamedTuple):
    """Reads all events of a shape."""

    pattern: re.Pattern[str]
    shape: _Shape

    def read(self, text: str) -> list[str | _Rows]:
        """Return the strings of its events, and what is between those; [] if that is no events.

        Args:
            text: events, of which the first is of this shape.
        """
        parts = self.pattern.split(text)
        width = self.pattern.groups + 1
        rests = parts[::width]
        columns = [parts[place::width] for place in range(1, width)]
        found: list[str | _Rows] = []
        first = 0
        for at in [at for at, rest in enumerate(rests) if rest]:
            if rests[at][-1] != "\n":
                return []  # the second lines of other events are like those of these
            found.append(_Rows(self.shape, [column[first:at] for column in columns]))
            found.append(rests[at])
            first = at
        if first < len(rests) - 1:
            found.append(_Rows(self.shape, [column[first:] for column in columns]))
        return found


class _EventReader:
    """Reads the strings of streams, quickly where events are like those before."""

    def __init__(self) -> None:
        self._templates: list[_Template] = []
        self._seen: dict[str, int] = {}
        self._numbers: dict[Channel, int] = {}

    def read(self, text: str) -> tuple[list[_Rows], list[str]] | None:
        """Return the strings of a stream, and what is to be searched of it; None: it is none.

        Args:
            text: its events, each as `_LF_EVENT` has it.
        """
        if len(self._numbers) > _CHANNELS:
            self._numbers.clear()
            self._templates.clear()
        found: list[_Rows] = []
        alone: list[str] = []
        todo: list[str | _Rows] = [text]
        splits = True
        while todo:
            part = todo.pop()
            if isinstance(part, _Rows):
                found.append(part)
                alone += [_BETWEEN.join(dict.fromkeys(column)) for column in part.columns]
                continue
            at = 0
            while at < len(part):
                template, match = self._at(part, at)
                if match is None:
                    return None
                if template is None:
                    alone.append(match[0])
                    if '"' in match[1]:
                        self._read_one(match, found)
                elif splits and template.pattern.match(part, match.end()):
                    pieces = template.read(part[at:])
                    splits = pieces != []
                    if splits:
                        todo += reversed(pieces)
                        break
                    continue
                else:
                    found.append(_Rows(template.shape, [*zip(match.groups(), strict=True)]))
                    alone += match.groups()
                at = match.end()
        return found, alone

    def _at(self, text: str, at: int) -> tuple[_Template | None, re.Match[str] | None]:
        """Return the event at a place, and what reads it."""
        for template in self._templates:
            match = template.pattern.match(text, at)
            if match is not None:
                return template, match
        return None, _LF_EVENT.match(text, at)

    def _read_one(self, event: re.Match[str], found: list[_Rows]) -> None:
        """Read an event that no expression reads."""
        line = f"{event[1]}\n"
        places = string_places(line, 0, len(line), is_stream=True)
        numbers = self._numbers
        shape = _Shape(
            tuple([numbers.setdefault(each.channel, len(numbers)) for each in places]),
            tuple([numbers.setdefault((None, *each.trail), len(numbers)) for each in places]),
        )
        found.append(_Rows(shape, [(line[each.start : each.end],) for each in places]))
        # Where an event has several strings of a text, columns would have another order.
        if len({*shape.trails}) == len(places) > 0:
            self._learn(event, places, shape)

    def _learn(self, event: re.Match[str], places: list[StringPlace], shape: _Shape) -> None:
        """Make an expression for an event that none has read, if its shape comes often."""
        block, at = event[0], event.start(1) - event.start()
        fixed = [""]
        source: list[str] = []
        end = 0
        for each in places:
            before, string = block[end : at + each.start], block[at + each.start : at + each.end]
            end = at + each.end
            is_mark = each.channel[-1] in _MARKS
            source += (_of_any_number(before), f"({re.escape(string)})" if is_mark else _CONTENT)
            fixed[-1] += before + string * is_mark
            fixed += [""] * (not is_mark)
        fixed[-1] += block[end:]
        expression = "".join((*source, _of_any_number(block[end:])))
        if len(expression) > _SHAPE_SIZE:
            return
        seen = self._seen.pop(expression, 0) + 1
        if seen == _OFTEN and _is_neutral(event[1], fixed):
            self._templates.insert(0, _Template(re.compile(expression), shape))
            del self._templates[_TEMPLATES:]
            return
        self._seen[expression] = seen
        if len(self._seen) > _SHAPES:
            del self._seen[next(iter(self._seen))]


_reader = _EventReader()


def _is_neutral(data: str, fixed: Sequence[str]) -> bool:
    r"""Return True only if no secret is in what events repeat, or partly in that.

    The patterns of `secret_text` whose matches may have quotation marks in them are those that
    begin with a name. Between two strings JSON has a comma, a bracket or a name: only the `\W`
    between `authorization` and `basic` matches such.

    Args:
        data: of such an event.
        fixed: the event without its strings, in pieces.
    """
    if parse(data).error is not None or any(mark in part for part in fixed for mark in "\\%&"):
        return False
    if not all(re.search(r"\w", part) for part in fixed[1:-1]):
        return False
    texts = [_MEMBER.sub(_LONG_NUMBER, probe.join(fixed)) for probe in ("", *_PROBES)]
    return not may_hold_secret("\n".join(texts).encode("latin-1"))


def _of_any_number(text: str) -> str:
    """Return an expression for `text` with other numbers as members that are no marks."""
    parts: list[str] = []
    at = 0
    for match in _MEMBER.finditer(text):
        if match[1] not in _MARKS:
            parts += (re.escape(text[at : match.start(2)]), _NUMBER)
            at = match.end()
    return "".join((*parts, re.escape(text[at:])))


def body_texts(text: str) -> BodyTexts:
    """Return texts of which one has a secret if the body `text` has any."""
    if text.endswith("\n\n") and text.startswith(("data: ", "event: ")):
        read = _reader.read(f"\n{text[:-1]}")
        if read is not None:
            return BodyTexts(read[1], _joined(read[0], is_stream=True))
    if '"' not in text or has_single_strings(text):
        return BodyTexts(None, [])
    frame = framed(LayeredView(text))
    events = [frame.view.text[start:end].removesuffix("\n") for start, end in frame.events]
    read = None
    if frame.is_stream and not any("\n" in event for event in events):
        read = _reader.read("".join([f"\ndata: {event}\n" for event in events]))
    rows = read[0] if read else [_row(event, is_stream=frame.is_stream) for event in events]
    return BodyTexts(None, _joined(rows, is_stream=frame.is_stream))


def _joined(tables: Sequence[_Rows], *, is_stream: bool) -> list[Sequence[str]]:
    by_channel: dict[object, list[str]] = {}
    of_trail: dict[object, set[object]] = {}
    for shape, columns in tables:
        for channel, trail, column in zip(*shape, columns, strict=True):
            by_channel.setdefault(channel, []).extend(column)
            of_trail.setdefault(trail, set()).add(channel)
    found: list[Sequence[str]] = [each for each in by_channel.values() if len(each) > 1]
    mixed = {trail for trail, channels in of_trail.items() if len(channels) > 1}
    if is_stream and mixed:
        by_trail: dict[object, list[str]] = {}
        for shape, columns in tables:
            for trail, column in zip(shape.trails, columns, strict=True):
                if trail in mixed:
                    by_trail.setdefault(trail, []).extend(column)
        found += by_trail.values()
    return found


def _row(text: str, *, is_stream: bool) -> _Rows:
    places = string_places(text, 0, len(text), is_stream=is_stream)
    shape = _Shape(tuple([each.channel for each in places]), tuple([each.trail for each in places]))
    return _Rows(shape, [(text[each.start : each.end],) for each in places])


_VALUES = re.compile(
    r'("[^"\\\n]*+(?:\\[^\n][^"\\\n]*+)*+"\s*+:)|"[^"\\\n]*+(?:\\[^\n][^"\\\n]*+)*+"'
    r"|-?[0-9][0-9.eE+-]*+"
)
"""The names of members, in a group, strings and numbers of a JSON text."""


def has_single_strings(text: str) -> bool:
    """Return True only if `text` is a JSON object whose strings all stand at places of their own.

    Then no string is joined with another. Of one shape, all have or none has.
    """
    if not text.startswith("{"):
        return False
    if len(text) > _SHAPE_SIZE:
        return _has_own_places(text)
    parts = _VALUES.split(text)
    return _has_single_strings("".join(['""' if part is None else part for part in parts]))


@lru_cache(_SHAPES)
def _has_single_strings(shape: str) -> bool:
    if _has_own_places(shape):
        return True
    channels = [each.channel for each in _places(shape, 0, len(shape), is_stream=False)]
    return parse(shape).error is None and len({*channels}) == len(channels)


def _has_own_places(text: str) -> bool:
    """Return whether no object has a name twice, or an index."""
    try:
        return _depth(json.loads(text, object_pairs_hook=_object)) < _DEPTH_LIMIT
    except (ValueError, RecursionError):
        return False


class _Depth(int):
    """How deep an object is nested, in place of it."""


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
