"""What to send on a WebSocket, and after which message of the client.

A tape has the messages of both sides in order. What the server sent before the client's first
message is sent at once; what it sent after the client's nth message, once that message comes again.
Messages are matched like request bodies.

Frames are sent as recorded, byte by byte. Where the tape has only the text of a compressed message,
because a credential was masked in it, the message is sent in stored blocks: later messages, which
may refer to it, can still be decompressed. A client that has not agreed to compression gets
uncompressed messages. Pongs are left out: the player answers pings itself.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from deltatape.model.exchange import EndReason, Exchange
from deltatape.model.websocket import CLOSE, PONG, RSV1, FrameHead, FramePiece, Side
from deltatape.wire.websocket import (
    Deflate,
    MessageReader,
    encode_head,
    is_control,
    negotiated_deflate,
    stored,
)

_EXTENSIONS = b"sec-websocket-extensions"


class SocketStep(NamedTuple):
    """Bytes to send, and when they came on the tape."""

    t_ns: int
    data: bytes
    closes: bool = False
    """Whether it is of a close frame."""


@dataclass(slots=True)
class SocketAnswer:
    """What follows a message of the client, or the handshake."""

    asked_ns: int
    steps: list[SocketStep] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class SocketScript:
    """How a recorded WebSocket goes."""

    asked: tuple[Exchange, ...]
    """The client's messages, each as the body of a request."""
    answers: tuple[SocketAnswer, ...]
    """One more than those: the first one follows the handshake."""
    closing: bytes
    """The server's close frame that answers the client's; empty if there is none."""
    deflate: Deflate | None
    """How the messages are compressed."""
    ending: EndReason | None
    """How the connection ended; None: unknown."""


def script_of(exchange: Exchange, *, compressed: bool) -> SocketScript:
    """Return how a recorded WebSocket goes.

    Args:
        exchange: the recorded one.
        compressed: whether the client agrees to the compression that was recorded.
    """
    deflate = agreed_deflate(exchange)
    reader = MessageReader(compressed=deflate is not None)
    head_ns = exchange.response.t_ns if exchange.response else exchange.request.t_ns
    answers: list[SocketAnswer] = [SocketAnswer(head_ns)]
    asked: list[Exchange] = []
    closing, leaving = b"", False
    pieces = [piece for piece in exchange.frames if piece.side is Side.SERVER]
    server = iter([*_sent(pieces, negotiated=deflate is not None, compressed=compressed)])
    for piece in exchange.frames:
        if piece.side is Side.SERVER:
            data = next(server)
            if piece.opcode == CLOSE and leaving:
                closing += data
            elif data:
                closes = piece.opcode == CLOSE and not piece.raw
                answers[-1].steps.append(SocketStep(piece.t_ns, data, closes))
            continue
        message = reader.add(piece)
        if message is None:
            continue
        leaving |= message.opcode == CLOSE
        if not is_control(message.opcode):
            request = replace(exchange.request, body=message.data, masked=message.masked)
            asked.append(replace(exchange, number=len(asked) + 1, request=request, frames=()))
            answers.append(SocketAnswer(message.t_end_ns))
    return SocketScript(
        asked=tuple(asked),
        answers=tuple(answers),
        closing=closing,
        deflate=deflate if compressed else None,
        ending=exchange.end.reason if exchange.end is not None else None,
    )


def agreed_deflate(exchange: Exchange) -> Deflate | None:
    """Return how the messages of a recorded WebSocket are compressed; None if they are not."""
    fields = exchange.response.headers if exchange.response else ()
    values = (value for name, value in fields if name.lower() == _EXTENSIONS)
    return negotiated_deflate(value for value in values if isinstance(value, bytes))


def _sent(pieces: Sequence[FramePiece], *, negotiated: bool, compressed: bool) -> Iterator[bytes]:
    """Yield the bytes to send for each piece of the server; none for what a later one brings."""
    inexact = _inexact(pieces, negotiated=negotiated, compressed=compressed)
    plain: list[bytes] = []
    opcode = 0
    for place, piece in enumerate(pieces):
        if piece.opcode == PONG and not piece.raw:
            yield b""
        elif place not in inexact:
            yield _as_it_was(piece)
        else:
            if not plain:
                opcode = piece.opcode
            plain.append(piece.data)
            if not inexact[place]:
                yield b""
                continue
            data = b"".join(plain)
            plain.clear()
            payload = stored(data) if compressed else data
            rsv = RSV1 if compressed else 0
            yield encode_head(FrameHead(opcode, len(payload), rsv=rsv)) + payload


def _inexact(
    pieces: Sequence[FramePiece], *, negotiated: bool, compressed: bool
) -> dict[int, bool]:
    """Return which pieces are of messages that cannot be sent as they were; True: the last ones."""
    found: dict[int, bool] = {}
    message: list[int] = []
    coded = exact = fin = True
    for place, piece in enumerate(pieces):
        if piece.raw or is_control(piece.opcode):
            continue
        if piece.head is not None:
            fin = piece.head.fin
            if not message:
                coded, exact = negotiated and piece.head.rsv & RSV1 != 0, compressed
        message.append(place)
        exact &= piece.wire is not None
        if fin and not piece.more:
            if coded and not exact:
                found |= dict.fromkeys(message, False)
                found[place] = True
            message = []
    return found


def _as_it_was(piece: FramePiece) -> bytes:
    data = piece.data if piece.wire is None else piece.wire
    return data if piece.head is None else encode_head(piece.head) + data
