"""The events of a response, and the exchange with fewer or changed ones.

Invariant: the result is consistent. Events keep their framing and the spelling of unchanged parts,
messages get new checksums, and the head and the end have the new size.
"""

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import TypeAlias

from deltatape.diagnose.decode import media_type
from deltatape.model.exchange import EndReason, Exchange, Framing, Read
from deltatape.mutate import MutableEvent, MutableExchange
from deltatape.wire.aws_eventstream import is_message
from deltatape.wire.json_edit import drop, put, source_at
from deltatape.wire.json_value import parse

Path: TypeAlias = tuple[str | int, ...]
"""Keys and indexes from the outside in."""
Place: TypeAlias = tuple[int, Path]
"""A value: in which event, by its place from 0, and where there."""
Span: TypeAlias = tuple[int, int]


class EditableBody:
    """The response body of an exchange as events.

    Attributes:
        texts: the data of each event.
        values: the same as JSON values; None if it is not JSON.
    """

    def __init__(self, exchange: Exchange, draft: MutableExchange) -> None:
        self.exchange = exchange
        self.texts = tuple(unit.text for unit in draft.units)
        self.values = tuple(unit.value for unit in draft.units)
        self.types = tuple(unit.type for unit in draft.units)
        self._units = draft.units

    @classmethod
    def of(cls, exchange: Exchange) -> "EditableBody | None":
        """Return the body of `exchange`; None if there is none that could be rewritten."""
        draft = _draft(exchange)
        return None if draft is None else cls(exchange, draft)

    def with_events(self, kept: Collection[int]) -> Exchange:
        """Return the exchange with these events alone."""
        stay = frozenset(kept)

        def change(draft: MutableExchange) -> None:
            for place, unit in enumerate(draft.units):
                unit.removed = place not in stay

        return self._changed(change)

    def with_texts(self, texts: Mapping[int, str], without: Collection[int] = ()) -> Exchange:
        """Return the exchange with some events changed and some removed."""
        gone = frozenset(without)

        def change(draft: MutableExchange) -> None:
            for place, unit in enumerate(draft.units):
                unit.text = texts.get(place, unit.text)
                unit.removed = place in gone

        return self._changed(change)

    def without_values(self, places: Iterable[Place]) -> Exchange:
        """Return the exchange without these members and elements."""
        texts: dict[int, str] = {}
        # From behind: a removed element moves those after it.
        for event, path in sorted(places, key=lambda p: from_behind(p[1]), reverse=True):
            texts[event] = drop(texts.get(event, self.texts[event]), path)
        return self.with_texts(texts)

    def without_paths(self, paths: Iterable[Path]) -> Exchange:
        """Return the exchange without the values at these paths in any event."""
        paths = tuple(paths)
        return self.without_values(
            (event, path) for event in range(len(self.texts)) for path in paths
        )

    def with_source(self, places: Iterable[Place], source: str) -> Exchange:
        """Return the exchange with another JSON source at these places."""
        texts: dict[int, str] = {}
        for event, path in places:
            texts[event] = put(texts.get(event, self.texts[event]), path, source)
        return self.with_texts(texts)

    def source(self, place: Place) -> str:
        """Return the JSON source of a value."""
        event, path = place
        return source_at(self.texts[event], path)

    def lines_between(self) -> tuple[Span, ...]:
        """Return the lines that belong to no event; () where they belong to the framing."""
        body = self.exchange.body
        if is_message(body) or body.lstrip().startswith(b"["):
            return ()
        ends = [0, *(end for unit in self._units for end in _span(unit)), len(body)]
        gaps = [*pairwise(ends)][::2]
        return tuple(line for start, end in gaps for line in _lines(body, start, end))

    def without_bytes(self, spans: Iterable[Span]) -> Exchange:
        """Return the exchange without these bytes, which belong to no event."""

        def change(draft: MutableExchange) -> None:
            for start, end in spans:
                draft.edit(start, end, b"")

        return self._changed(change)

    @property
    def ends(self) -> tuple[int, ...]:
        """Return where events end in the body."""
        return tuple(_span(unit)[1] for unit in self._units)

    def _changed(self, change: Callable[[MutableExchange], None]) -> Exchange:
        draft = _draft(self.exchange)
        assert draft is not None
        change(draft)
        changed = draft.result() or self.exchange
        if not is_complete(changed):
            # A body that ended early was announced to be longer, and still is.
            changed = replace(changed, response=self.exchange.response)
        return changed


def is_complete(exchange: Exchange) -> bool:
    """Return whether the body is complete."""
    return exchange.end is None or exchange.end.reason is EndReason.COMPLETE


def with_reads(exchange: Exchange, reads: tuple[Read, ...]) -> Exchange:
    """Return `exchange` with other reads, and chunks and an ending that fit."""
    response, end = exchange.response, exchange.end
    chunked = response is not None and response.framing is Framing.CHUNKED
    fitting = tuple(
        read._replace(boundaries=(len(read.data),) if chunked else None) for read in reads
    )
    body = b"".join(read.data for read in reads)
    if end is not None:
        end = replace(end, bytes=len(body), sha256=hashlib.sha256(body).hexdigest())
    if response is not None and is_complete(exchange):
        headers = tuple(
            (name, b"%d" % len(body) if name.lower() == b"content-length" else value)
            for name, value in response.headers
        )
        response = replace(response, headers=headers)
    return replace(exchange, reads=fitting, end=end, response=response)


def _draft(exchange: Exchange) -> MutableExchange | None:
    draft = MutableExchange.of(exchange)
    if draft is not None and exchange.response is not None:
        body = exchange.body
        if "json" in media_type(exchange.response.headers) and _is_document(body):
            draft.units = [MutableEvent(0, body, (0, len(body)), "")]
    return draft


def _is_document(body: bytes) -> bool:
    """Return whether a body is one JSON object, on any number of lines."""
    return body.lstrip().startswith(b"{") and not parse(body.decode(errors="replace")).error


def from_behind(path: Path) -> tuple[tuple[bool, int, str], ...]:
    """Order paths so that later elements come later."""
    return tuple((True, 0, s) if isinstance(s, str) else (False, s, "") for s in path)


def _span(unit: MutableEvent) -> Span:
    start = unit.start or 0
    return start, start + len(unit.raw)


def _lines(body: bytes, start: int, end: int) -> Iterator[Span]:
    for line in body[start:end].splitlines(keepends=True):
        yield start, start + len(line)
        start += len(line)


def event_count(exchanges: Iterable[Exchange]) -> int:
    """Return how many events of the exchanges could be rewritten."""
    return sum(len(body.texts) for body in map(EditableBody.of, exchanges) if body is not None)
