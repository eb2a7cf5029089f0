"""Shared parts of request readers: JSON, texts in parts, tools, digests."""

import hashlib
import json
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Generic, NamedTuple, TypeVar, cast

from deltatape.dialects._json import (
    Element,
    Elements,
    JsonSource,
    MemberValue,
    WholeString,
    as_array,
    as_object,
    get_array,
    get_object,
    get_str,
    objects_in,
)
from deltatape.model.reply import Thought
from deltatape.model.request_summary import Message, RepeatedCall, ToolSpec
from deltatape.wire.json_value import parse, read_object

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


class JsonRequestBody(NamedTuple):
    """A request body that is a JSON object, with its source."""

    value: Mapping[str, object]
    source: JsonSource


def read_body(body: bytes) -> JsonRequestBody | None:
    """Parse the JSON object `body`; return None if it is not one."""
    text = body.decode(errors="replace")
    value = read_object(text) or as_object(parse(text).value)
    return None if value is None else JsonRequestBody(value, WholeString(text))


def objects_at(
    holder: Mapping[str, object], key: str, source: JsonSource
) -> Iterator[tuple[Mapping[str, object], JsonSource]]:
    """Yield the objects in the array at `key`, each with its source."""
    elements = Elements(MemberValue(source, key))
    for place, value in enumerate(map(as_object, get_array(holder, key))):
        if value is not None:
            yield value, Element(elements, place)


def content_text(content: object) -> str:
    """Return the visible text of a message's content: a string, or text parts."""
    if isinstance(content, str):
        return content
    return "".join(get_str(part, "text") or "" for part in objects_in(as_array(content) or ()))


def tool_spec(spec: Mapping[str, object], schema: str = "parameters") -> ToolSpec | None:
    """Return the tool that `spec` describes, with the schema under `schema`; None if unnamed."""
    name = get_str(spec, "name")
    return None if name is None else ToolSpec(name=name, parameters=get_object(spec, schema))


def tool_specs(entries: Iterable[object], schema: str = "parameters") -> tuple[ToolSpec, ...]:
    """Return the tools that the objects in `entries` describe. See `tool_spec`."""
    found = (tool_spec(entry, schema) for entry in objects_in(entries))
    return tuple(tool for tool in found if tool is not None)


def make_message(
    role: str,
    text: str,
    digested: object,
    *,
    calls: Iterable[RepeatedCall] = (),
    call_id: str | None = None,
    thoughts: Iterable[Thought] = (),
) -> Message:
    """Return a message of the history, with the digest of `digested`."""
    digest = message_digest(digested)
    return Message(
        role=role,
        text=text,
        calls=tuple(calls),
        call_id=call_id,
        digest=digest,
        thoughts=tuple(thoughts),
    )


def message_digest(message: object) -> str:
    """Return a hash of a message as canonical JSON."""
    return hashlib.sha256(_ENCODER.encode(message).encode()).hexdigest()


def exact(holder: Mapping[str, object], field: str, source: JsonSource) -> str:
    """Return the arguments in `field` as the application wrote them; "" if there are none.

    A string's text, else the exact source of the value; `source` locates `holder`.
    """
    value = holder.get(field)
    return value if isinstance(value, str) else source_of(holder, field, source)


def source_of(holder: Mapping[str, object], field: str, source: JsonSource) -> str:
    """Return the exact source of the value in `field`, also of a string; "" if there is none.

    `holder` stands at `source`.
    """
    return "" if holder.get(field) is None else MemberValue(source, field).text


# Reuses parsed history: requests of one conversation repeat most of their bodies.
#
# An application that talks to a model sends the whole history again with every request, and a bit
# more. Reading each body again costs time and memory by the square of the conversation's length;
# so the last few large bodies are cached, with the parsed elements of their histories. A run of
# elements of a new body that equals a part of a cached one, byte for byte, is cut out before
# parsing, and the cached elements are put back in its place.
#
# It changes no result, only time: a run is cut out only where it begins and ends between elements
# of the very array that a parser would find. The parsed form of an element must depend on
# nothing else. Histories that are cut short at their beginning, and first messages that differ from
# request to request, share the rest.


SMALL = 8_192
"""Smaller bodies, and runs, are not worth the search, in bytes."""
_BODIES = 8
"""How many conversations are distinguished at once."""
_BYTES = 16 << 20
"""The size of all cached bodies."""
_FIRST = 4
"""How many elements at the start of a history may differ: instructions, context, the time."""
_BLANK = " \t\n\r"
_DECODER = json.JSONDecoder(parse_int=str)
_BROKEN = (ValueError, IndexError, RecursionError)

T = TypeVar("T")
Object = Mapping[str, object]
ReadElement = Callable[[Object, JsonSource], Iterable[T]]
"""Reads an element of the history into entries; `source` locates it in the body."""


class History(NamedTuple, Generic[T]):
    """A request with its history; `body` may lack what an earlier request had, too."""

    body: JsonRequestBody
    entries: tuple[T, ...]
    """The parsed elements of the array."""


class _Spans(NamedTuple):
    """The positions of an array's elements in a body."""

    starts: Sequence[int]
    ends: Sequence[int]


class _ParsedBody:
    """A parsed body. The positions of its elements are computed on demand."""

    def __init__(self, body: bytes, path: Sequence[str], read: ReadElement[object]) -> None:
        self.body = body
        self.path = path
        self.read = read
        self.made: tuple[tuple[object, ...], ...] = ()

    @cached_property
    def spans(self) -> _Spans:
        """The positions of its elements."""
        return _spans_in(self.body, self.path)


class _Run(NamedTuple):
    """A run of `length` elements of `known` from number `first`, repeated in a body.

    In the body they follow on `place` other elements; `rest` is where the next one begins.
    """

    known: _ParsedBody
    first: int
    length: int
    place: int
    start: int
    end: int
    rest: int


_memory: tuple[_ParsedBody, ...] = ()
"""The last bodies, the latest first: replaced as a whole, for threads."""


def read_history(body: bytes, path: Sequence[str], read: ReadElement[T]) -> History[T] | None:
    """Parse a request, and apply `read` to each object in the array at `path`.

    Args:
        body: the body of the request.
        path: the keys that lead to the array; there may be none.
        read: looks at nothing but the element; the same function for the same kind of request.

    Returns:
        None if `body` is not a JSON object.
    """
    known = _ParsedBody(body, path, read)
    run = None
    if len(body) >= SMALL:
        run = _longest(known, [earlier for earlier in _memory if earlier.read is read])
    found = _read_rest(known, run) if run else None
    if found is None:
        found = read_body(body)
        if found is None:
            return None
        known.made = tuple(_read_elements(found, path, read))
    if len(body) >= SMALL and known.made:
        _remember(known, run)
    return History(found, cast("tuple[T, ...]", tuple(chain.from_iterable(known.made))))


def _read_rest(known: _ParsedBody, run: _Run) -> JsonRequestBody | None:
    """Parse the body without the run, and insert the run; None if it must be parsed as a whole."""
    body = known.body[: run.start] + known.body[run.rest :]
    rest = read_body(body)
    if rest is None:
        return None
    spans = _spans_in(body, known.path)
    if run.place >= len(spans.starts) or spans.starts[run.place] != run.start:
        return None
    new = tuple(_read_elements(rest, known.path, known.read))
    last = run.first + run.length
    known.made = (*new[: run.place], *run.known.made[run.first : last], *new[run.place :])
    known.spans = _joined(spans, run)
    return rest


def _read_elements(
    body: JsonRequestBody, path: Sequence[str], read: ReadElement[object]
) -> Iterator[tuple[object, ...]]:
    """Yield the entries of each element; none for elements that are not objects."""
    holder, source = body
    for key in path[:-1]:
        holder, source = as_object(holder.get(key)) or {}, MemberValue(source, key)
    elements = Elements(MemberValue(source, path[-1]))
    for place, value in enumerate(map(as_object, as_array(holder.get(path[-1])) or ())):
        yield () if value is None else tuple(read(value, Element(elements, place)))


def _joined(rest: _Spans, run: _Run) -> _Spans:
    """Return the positions of all elements: those in `rest`, and those of the run between them."""
    place, cut = run.place, run.rest - run.start
    moved = run.start - run.known.spans.starts[run.first]
    last = run.first + run.length

    def join(new: Sequence[int], old: Sequence[int]) -> Sequence[int]:
        again = [at + moved for at in old[run.first : last]] if moved else old[run.first : last]
        return [*new[:place], *again, *(at + cut for at in new[place:])]

    known = run.known.spans
    return _Spans(join(rest.starts, known.starts), join(rest.ends, known.ends))


def _longest(new: _ParsedBody, known: Sequence[_ParsedBody]) -> _Run | None:
    """Return the longest run that `new` shares with a known body; None if all are short."""
    alike = [earlier for earlier in known if earlier.path == new.path]
    if not alike:
        return None
    body, text = new.body, new.body.decode("latin-1")
    try:
        first = _spans(text, _array(text, new.path, first=True), _FIRST)
    except _BROKEN:
        return None
    runs = [run for known in alike for run in _runs(text, body, known, first)]
    return _longest_of(runs) or _longest_of(_shifted(text, body, alike[0], first))


def _longest_of(runs: Iterable[_Run]) -> _Run | None:
    longest = max(runs, key=lambda run: run.end - run.start, default=None)
    return longest if longest and longest.end - longest.start >= SMALL else None


def _runs(text: str, body: bytes, known: _ParsedBody, first: _Spans) -> Iterator[_Run]:
    """Yield runs that begin with one of the `first` elements at the same position in both."""
    starts, ends = known.spans
    for place, (start, end) in enumerate(zip(*first, strict=True)):
        if place < len(starts) and known.body[starts[place] : ends[place]] == body[start:end]:
            run = _run(text, body, _Run(known, place, 0, place, start, end, end))
            if run is not None:
                yield run
                if run.end - run.start >= SMALL:
                    return


def _shifted(text: str, body: bytes, known: _ParsedBody, first: _Spans) -> Iterator[_Run]:
    """Yield the run that begins with the second or only element, wherever `known` has it."""
    starts, _ = known.spans
    if not first.starts:
        return
    place = min(1, len(first.starts) - 1)
    start, end = first.starts[place], first.ends[place]
    found = known.body.find(body[start:end])
    at = bisect_left(starts, found) if found >= 0 else len(starts)
    if at < len(starts) and starts[at] == found:
        run = _run(text, body, _Run(known, at, 0, place, start, end, end))
        if run is not None:
            yield run


def _run(text: str, body: bytes, begun: _Run) -> _Run | None:
    """Extend the run that begins like `begun` as far as possible."""
    known, first, start = begun.known, begun.first, begun.start
    starts, ends = known.spans
    view = memoryview(known.body)

    def is_shared(count: int) -> bool:
        return body.startswith(view[starts[first] : ends[first + count - 1]], start)

    count = _most(is_shared, len(starts) - first)
    while count > 0:
        end = start + ends[first + count - 1] - starts[first]
        comma = _skip(text, end)
        if text.startswith(",", comma):
            return begun._replace(length=count, end=end, rest=_skip(text, comma + 1))
        count -= 1
    return None


def _most(test: Callable[[int], bool], limit: int) -> int:
    """Return the greatest count up to `limit` that passes; `test` is monotonic.

    Mostly that is the limit, or a little less.
    """
    high, step = limit, 1
    while high > 0 and not test(high):
        limit, high, step = high - 1, high - step, 2 * step
    low, high = max(high, 0), limit
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if test(middle) else (low, middle - 1)
    return low


def _remember(known: _ParsedBody, run: _Run | None) -> None:
    """Remember a body in place of the one that it mostly repeats."""
    global _memory  # noqa: PLW0603 - as a cache of functools: no result depends on it
    old = run.known if run and 2 * run.length >= len(run.known.made) else None
    kept: list[_ParsedBody] = [known]
    size = len(known.body)
    for earlier in _memory:
        size += len(earlier.body)
        if earlier is not old and len(kept) < _BODIES and size <= _BYTES:
            kept.append(earlier)
    if len(known.body) <= _BYTES:
        _memory = tuple(kept)


def _spans_in(body: bytes, path: Sequence[str]) -> _Spans:
    """Return the positions of the elements of the array at `path`."""
    text = body.decode("latin-1")
    try:
        return _spans(text, _array(text, path, first=False), len(text))
    except _BROKEN:  # another parser
        return _Spans((), ())


def _spans(text: str, at: int, most: int) -> _Spans:
    starts: list[int] = []
    ends: list[int] = []
    at = _skip(text, at + 1)
    while text[at] != "]" and len(starts) < most:
        starts.append(at)
        at = _DECODER.raw_decode(text, at)[1]
        ends.append(at)
        at = _skip(text, at)
        if text[at] == ",":
            at = _skip(text, at + 1)
    return _Spans(starts, ends)


def _array(text: str, path: Sequence[str], *, first: bool) -> int:
    """Return the start of the array at `path`; the last of equal keys counts, unless `first`."""
    at = _skip(text, 0)
    for key in path:
        at = _member(text, at, key, first=first)
    if text[at] != "[":
        raise ValueError(text[at])
    return at


def _member(text: str, at: int, wanted: str, *, first: bool) -> int:
    if text[at] != "{":
        raise ValueError(text[at])
    found = -1
    at = _skip(text, at + 1)
    while text.startswith('"', at):
        key, at = _DECODER.raw_decode(text, at)
        at = _skip(text, _skip(text, at) + 1)
        if key == wanted:
            found = at
            if first:
                break
        at = _skip(text, _skip(text, _DECODER.raw_decode(text, at)[1]) + 1)
    if found < 0:
        raise ValueError(wanted)
    return found


def _skip(text: str, at: int) -> int:
    """Return the offset after the blanks at `at`."""
    while text[at : at + 1] in _BLANK and at < len(text):
        at += 1
    return at
