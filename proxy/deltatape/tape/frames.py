"""What the sides of a WebSocket send, cut into the pieces that a tape has records of.

Every read is cut at the ends of frames, so that a record is of one frame and of one read.
Compressed messages are decompressed, to be searched for credentials and to be readable on the tape;
beside the text stands what it was made of.

Format: recordings/README.md, "WebSocket".
"""

import hashlib
from collections.abc import Iterator
from typing import NamedTuple

from deltatape.model.exchange import Headers
from deltatape.model.websocket import CLOSE, CONTINUATION, RSV1, FrameHead, FramesTotal, Side
from deltatape.wire.websocket import (
    FrameSplitter,
    InflateError,
    MessageInflater,
    SplitPiece,
    is_control,
    negotiated_deflate,
)

_EXTENSIONS = b"sec-websocket-extensions"


class TapedPiece(NamedTuple):
    """The parts of a record; the first fields are those of `FramePiece`."""

    opcode: int
    head: FrameHead | None
    at: int
    data: bytes
    wire: bytes | None = None
    more: bool = False
    raw: bool = False
    control: bool = False
    """Whether it is of a frame that belongs to no message."""
    ends: bool = False
    """Whether its message ends with it."""


class SideTaping:
    """Cuts the bytes of one side into frames.

    Attributes:
        closed: whether its close frame has come.
    """

    __slots__ = ("_compressed", "_control", "_deflate", "_fin", "_inflater", "_splitter", "closed")

    def __init__(self, inflater: MessageInflater | None) -> None:
        """Args: inflater: for its messages; None: they are not compressed."""
        self._splitter = FrameSplitter()
        self._inflater = inflater
        self._deflate = inflater is not None
        self._compressed = self._control = False
        self._fin = True
        self.closed = False

    def feed(self, raw: bytes) -> Iterator[TapedPiece | str]:
        """Yield the pieces in the next bytes; a text, before one, is a note about it."""
        for piece in self._splitter.feed(raw):
            yield from self._piece(piece)

    def end(self) -> Iterator[TapedPiece | str]:
        """Yield the rest when the connection ends."""
        for piece in self._splitter.end():
            yield from self._piece(piece)

    def _piece(self, piece: SplitPiece) -> Iterator[TapedPiece | str]:
        opcode, head, at, data, more, raw = piece
        if raw:
            yield TapedPiece(opcode, None, at, data, raw=True)
            return
        if head is not None:
            self._begin(head)
            self.closed |= head.opcode == CLOSE and not more
        ends = not more and (self._fin or self._control)
        if self._control or not self._compressed:
            yield TapedPiece(opcode, head, at, data, more=more, control=self._control, ends=ends)
        else:
            yield from self._inflated(piece, ends=ends)
        if ends and not self._control:
            self._compressed = False  # what goes on with no message is none

    def _begin(self, head: FrameHead) -> None:
        self._control = is_control(head.opcode)
        if self._control:
            return
        self._fin = head.fin
        if head.opcode != CONTINUATION:
            self._compressed = self._deflate and head.rsv & RSV1 != 0

    def _inflated(self, piece: SplitPiece, *, ends: bool) -> Iterator[TapedPiece | str]:
        opcode, head, at, wire, more, _ = piece
        steps = [(b"", wire)]
        if self._inflater is not None:
            try:
                steps = [*self._inflater.steps(wire, last=ends)] or steps
            except InflateError as error:
                self._inflater = None
                yield (
                    "its compressed messages from here on are not read, and credentials in them not"
                    f" masked: {error}"
                )
        for place, (plain, part) in enumerate(steps, 1):
            last = place == len(steps)
            yield TapedPiece(
                opcode, head, at, plain, wire=part, more=more or not last, ends=ends and last
            )
            head, at = None, at + len(part)


class SocketTaping:
    """Cuts what both sides of a WebSocket send, and counts what is written of it."""

    __slots__ = ("_bytes", "_hash", "_records", "_sides")

    def __init__(self, headers: Headers) -> None:
        """Args: headers: of the response that agreed to it."""
        values = (value for name, value in headers if name.lower() == _EXTENSIONS)
        deflate = negotiated_deflate(value for value in values if isinstance(value, bytes))
        self._sides = {side: SideTaping(None) for side in Side}
        if deflate is not None:
            self._sides = {
                Side.CLIENT: SideTaping(MessageInflater(takeover=deflate.client_takeover)),
                Side.SERVER: SideTaping(MessageInflater(takeover=deflate.server_takeover)),
            }
        self._records = self._bytes = 0
        self._hash = hashlib.sha256()

    def feed(self, side: Side, raw: bytes) -> Iterator[TapedPiece | str]:
        """Yield the pieces in the next bytes of `side`; see `SideTaping.feed`."""
        return self._sides[side].feed(raw)

    def end(self, side: Side) -> Iterator[TapedPiece | str]:
        """Yield the rest of `side` when the connection ends."""
        return self._sides[side].end()

    def count(self, data: bytes) -> None:
        """Count a record that has been written."""
        self._records += 1
        self._bytes += len(data)
        self._hash.update(data)

    @property
    def closed(self) -> bool:
        """Whether both sides have sent their close frame: the connection may end then."""
        return all(side.closed for side in self._sides.values())

    @property
    def total(self) -> FramesTotal:
        """What has been written."""
        return FramesTotal(self._records, self._bytes, self._hash.hexdigest())
