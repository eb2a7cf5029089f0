"""Decode a body in any pieces."""

from collections.abc import Sequence
from typing import NamedTuple

from deltatape.model.stream import Anomaly, Comment, Event
from deltatape.wire.framer import Decoder


class Framed(NamedTuple):
    """The result of a decoder for a body."""

    events: list[Event]
    comments: list[Comment]
    anomalies: list[Anomaly]
    pending: Event | None

    def data(self) -> list[str]:
        """The data of the events."""
        return [event.data for event in self.events]

    def kinds(self) -> list[str]:
        """The kinds of the anomalies."""
        return [each.kind.value for each in self.anomalies]


def framed(decoder: Decoder, pieces: Sequence[bytes]) -> Framed:
    """The result of `decoder` for `pieces`, all with the same time."""
    events = [event for piece in pieces for event in decoder.feed(piece, 0, None)]
    pending = decoder.end()
    tail = [decoder.tail] if decoder.tail else []
    return Framed([*events, *tail], decoder.comments, decoder.anomalies, pending)


def noted(body: bytes, found: Framed) -> list[tuple[str, bytes]]:
    """Kind of every anomaly and the bytes it points at."""
    return [(each.kind.value, body[slice(*each.place.span)]) for each in found.anomalies]
