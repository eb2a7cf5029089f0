"""What went over a WebSocket: pieces of frames as they came, and the messages that they make.

Spec: RFC 6455 section 5; RFC 7692 for compressed messages.
"""

import enum
from dataclasses import dataclass
from typing import NamedTuple

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
"""The opcodes of RFC 6455; the others are reserved."""
RSV1 = 4
"""In `FrameHead.rsv`: the message is compressed, where permessage-deflate was negotiated."""


class Side(enum.StrEnum):
    """Who sent it."""

    CLIENT = "client"
    SERVER = "server"


class FrameHead(NamedTuple):
    """The head of a frame."""

    opcode: int
    length: int
    """Bytes of the payload on the wire."""
    fin: bool = True
    """Whether the frame ends its message."""
    rsv: int = 0
    """The reserved bits: RSV1 is 4, RSV2 is 2, RSV3 is 1."""
    mask: bytes = b""
    """The masking key; empty: the payload is not masked."""
    wide: int = 0
    """In how many bytes the length is written, 2 or 8, where fewer would have done; else 0."""


class FramePiece(NamedTuple):
    """What one read brought of one frame. Pieces of the same read have the same time."""

    t_ns: int
    side: Side
    opcode: int
    """The opcode of the frame; 0 if it is `raw`."""
    head: FrameHead | None
    """None: the piece continues this side's present frame."""
    at: int
    """Where in the frame's payload, as it was on the wire, it begins."""
    data: bytes
    """Bytes of the payload, unmasked, and decompressed if the message was compressed."""
    wire: bytes | None = None
    """The compressed payload, unmasked, that `data` was decoded from; None if the message is not
    compressed, or if the payload was not kept because it holds a credential."""
    more: bool = False
    """Whether the payload continues in the next piece of this side."""
    raw: bool = False
    """Whether `data` is no frame, but what the side sent in the place of one: an incomplete head,
    or what follows an impossible length."""
    line: int | None = None
    masked: tuple[tuple[int, int, str], ...] = ()
    """The masked parts of `data`, ascending, each with the credential's hash."""


class FramesTotal(NamedTuple):
    """What the pieces of both sides are in all, as they were handed to taping."""

    records: int
    """How many pieces."""
    bytes: int
    """The bytes of their `data` in all."""
    sha256: str
    """The hash of their `data`, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message, or a control frame, in the order in which they ended."""

    number: int
    """Its number among the messages of both sides, from 0."""
    side: Side
    opcode: int
    data: bytes
    t_ns: int
    """When its first bytes came."""
    t_end_ns: int
    """When its last bytes came."""
    line: int | None
    """The line of the record that completed it."""
    frames: int
    compressed: bool
    complete: bool
    """False: the connection ended within it."""
    masked: tuple[tuple[int, int, str], ...] = ()
    """The masked parts of `data`; see `FramePiece.masked`."""


class Violation(NamedTuple):
    """Something that RFC 6455 forbids, and receivers end the connection for."""

    side: Side
    detail: str
    t_ns: int
    line: int | None


def whole_messages(program: str) -> str:
    """Return the note on a WebSocket whose frames a program does not expose."""
    return (
        f"a WebSocket, of which {program} tells whole messages, decompressed: each is one frame"
        " here; how it was fragmented and masked, and pings, are not known"
    )
