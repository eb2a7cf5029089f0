"""Find the JSON in a body, and the strings in it with their paths, also in broken text.

Looser than the decoders of streams: everything that a client might take for data counts. A body is
JSON as a whole, or its lines are, or the data of its events. The binary messages of Amazon are text
only when they have been unfolded, see `eventstream`.

One tolerant scan for strings and brackets finds the strings. Truncated bodies and bodies with
several values are scanned as far as they go. Nothing is unescaped.

The fragments of one text are at the same path of consecutive events. Such
strings have equal keys: `channel` consists of the path and of the indexes that dialects put next to
a fragment (`index`, `output_index`, ..., anywhere in the object), `trail` of the object keys alone,
for streams with wrong or missing indexes.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from deltatape.secret_text.escaped_text import LayeredView, plain
from deltatape.wire.json_value import parse

_JSON_START = re.compile(r"(?:\xef\xbb\xbf)?[ \t\r\n]*[\[{]")
_ARRAY_START = re.compile(r"(?:\xef\xbb\xbf)?[ \t\r\n]*\[[ \t\r\n]*\{")
_VALUE_LINE = re.compile(r"(?:\xef\xbb\xbf)?[ \t]*([\[{][^\n]*[\]}])[ \t\r]*\n?")
_LINE = re.compile(r"([^\r\n]*+)(?:\r\n|\r|\n|\Z)")
_LINE_END = re.compile(r"\r\n|\r|\n")
_DATA = re.compile(r"(?:\xef\xbb\xbf)?data:? ?")
_USUAL = "data: "


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


def event_data(text: str) -> tuple[list[str], bool]:
    """Return the texts of the events of `framed`, and whether it is a stream."""
    if _JSON_START.match(text):
        frame = framed(LayeredView(text))
        return [text[start:end] for start, end in frame.events], frame.is_stream
    events: list[list[str]] = [[]]
    for line in _LINE_END.split(text) if "\r" in text else text.split("\n"):
        if line.startswith(_USUAL):
            events[-1].append(line[len(_USUAL) :])
        elif not line and events[-1]:
            events.append([])
        elif data := _DATA.match(line):
            events[-1].append(line[data.end() :])
    return ["\n".join((*event, "")) for event in events if event], True


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
INDEXES = frozenset(
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
MARKS = INDEXES | {"type", "role"}
_MARK_LIMIT = 64
DEPTH_LIMIT = 32
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
    return tuple(sorted(mark for mark in node.marks.items() if mark[0] in INDEXES))


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
        if self._depth <= DEPTH_LIMIT:
            key = self._top.child_key() if self._top else ""
            self._top = Node(parent=self._top, key=key, is_array=is_array, start=start)

    def _close(self, end: int) -> Leaf | None:
        closed = self._top
        self._depth = max(self._depth - 1, 0)
        if closed is None or self._depth >= DEPTH_LIMIT:
            return None
        self._top = closed.parent
        if closed.parent is None or closed.key not in self._whole:
            return None
        return Leaf(closed.parent, closed.key, closed.start, end, whole=True)

    def _mark(self, value: str) -> None:
        if self._top is not None and self._top.pending in MARKS:
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


def string_places(text: str, start: int, end: int, *, is_stream: bool) -> list[StringPlace]:
    """Return the string values between `start` and `end`, in order."""
    if not is_stream:
        found = leaves(text, start, end)
        return [StringPlace(leaf.channel, leaf.trail, leaf.start, leaf.end) for leaf in found]
    places: list[StringPlace] = []
    beginnings: dict[Node, tuple[Channel, Channel]] = {}
    for leaf in [*leaves(text, start, end)]:  # an index may follow what it is about
        if leaf.node not in beginnings:
            beginnings[leaf.node] = leaf.channel[:-1], leaf.trail[:-1]
        channel, trail = beginnings[leaf.node]
        name = leaf.key if isinstance(leaf.key, str) else ""
        places.append(StringPlace((*channel, leaf.key), (*trail, name), leaf.start, leaf.end))
    return places
