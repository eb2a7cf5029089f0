"""The bodies of a tape as they are put together from its records, and what is secret in them.

A body is the request's or the response's of an exchange, or all lines of one stream of the
recorded program. Its secrets are searched in the whole, since a record may begin anywhere in them.

A body with a content-coding cannot be changed byte by byte: it is decoded, searched, and
overwritten as a whole if it holds anything.
"""

import bisect
import enum
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from deltatape.model.exchange import Headers, MaskedSpan, header
from deltatape.redact.eventstream import Checked, check, unfold
from deltatape.redact.framing import framed
from deltatape.redact.layers import Edit, View, apply
from deltatape.redact.search import Secret, secrets
from deltatape.wire.content_coding import ContentDecoder, parse_codings


class Side(enum.StrEnum):
    """Whose bytes."""

    REQUEST = "request body"
    RESPONSE = "response body"
    STDOUT = "stdout"
    STDERR = "stderr"
    OUTPUT = "output"


class Coded(enum.Enum):
    """What a content-coding hides."""

    NO = enum.auto()
    READ = enum.auto()
    """It was decoded as far as it goes."""
    UNREADABLE = enum.auto()
    """Nobody knows what is in it."""


class Piece(NamedTuple):
    """What a record holds of a body."""

    line: int
    start: int
    size: int


@dataclass(slots=True, kw_only=True)
class Body:
    """A body and the records that it stands on."""

    exchange: int
    side: Side
    codings: tuple[str, ...] = ()
    pieces: list[Piece] = field(default_factory=list)
    data: bytearray = field(default_factory=bytearray)
    masked: list[tuple[int, int]] = field(default_factory=list)
    """What the tape itself says was overwritten."""

    def add(self, line: int, data: bytes, masked: Iterable[MaskedSpan] = ()) -> None:
        """The next record; the line of a log takes its line feed with it."""
        at = len(self.data)
        self.masked += ((at + start, at + end) for start, end, _ in masked)
        self.pieces.append(Piece(line, len(self.data), len(data)))
        self.data += data
        if self.side in (Side.STDOUT, Side.STDERR, Side.OUTPUT):
            self.data += b"\n"

    def at(self, offset: int) -> Piece:
        """The record that holds the byte at `offset`."""
        return self.pieces[bisect.bisect_right(self.pieces, offset, key=lambda p: p.start) - 1]

    def cut(self, start: int, end: int) -> Iterator[tuple[Piece, int, int]]:
        """The records that hold `[start, end)`, each with the part of it that it holds."""
        place = bisect.bisect_right(self.pieces, start, key=lambda piece: piece.start) - 1
        for piece in map(self.pieces.__getitem__, range(place, len(self.pieces))):
            if piece.start >= end:
                return
            first, last = max(start, piece.start), min(end, piece.start + piece.size)
            if first < last:
                yield piece, first - piece.start, last - piece.start


class Looked(NamedTuple):
    """What was found in a body; where `coded` is READ, in the decoded one."""

    coded: Coded
    secrets: tuple[Secret, ...]
    detail: str = ""
    """Why nobody can read it."""


def codings_of(headers: Headers) -> tuple[str, ...]:
    """The content-codings that a head names."""
    return parse_codings(header(headers, "content-encoding"))


def mend(body: Body) -> Checked:
    """The checksums of a body; those that masking had broken are mended in it."""
    if body.side is not Side.RESPONSE or body.codings:
        return Checked((), ())
    found = check(bytes(body.data), body.masked)
    apply(body.data, found.mends)
    return found


def look(body: Body) -> Looked:
    """Search a body, decoded if it is coded."""
    data = bytes(body.data)
    if not body.codings:
        return Looked(Coded.NO, secrets(data))
    decoder = ContentDecoder(body.codings)
    plain = decoder.feed(data)
    decoder.end()
    fault = decoder.fault
    if fault is None or plain:
        return Looked(Coded.READ, secrets(plain), fault.detail if fault else "")
    if framed(View(data.decode("latin-1"))).events or unfold(data):
        # What was imported from a file has lost its coding while the head still names it.
        return Looked(Coded.NO, secrets(data))
    return Looked(Coded.UNREADABLE, (), fault.detail)


def blanked(body: Body) -> tuple[Edit, ...]:
    """The change that overwrites all of a body."""
    return (Edit(0, "*" * len(body.data)),)


def by_line(body: Body, edits: Iterable[Edit]) -> Iterator[tuple[int, Edit]]:
    """Changes of a body as changes of its records: the line of each."""
    for edit in edits:
        for piece, start, end in body.cut(edit.start, edit.end):
            offset = piece.start + start - edit.start
            yield piece.line, Edit(start, edit.text[offset : offset + end - start])
