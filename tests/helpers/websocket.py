"""Frames of WebSockets as bytes, and bytes out of pieces of frames."""

import zlib
from collections.abc import Iterable, Sequence

from deltatape.model.exchange import EndReason, Exchange, Framing, Headers
from deltatape.model.websocket import (
    BINARY,
    CLOSE,
    PING,
    PONG,
    TEXT,
    FrameHead,
    FramePiece,
    Message,
    Side,
)
from deltatape.tape.assemble import assemble
from deltatape.tape.decode import decode_record
from deltatape.tape.encode import header_line, payload_record
from deltatape.tape.payload import Stop
from deltatape.tape.tap import ExchangeTap
from deltatape.wire.websocket import (
    FrameSplitter,
    MessageReader,
    SplitPiece,
    apply_mask,
    encode_head,
)
from helpers.tapes import HEADER, taped

KEY = bytes.fromhex("37fa213d")
"""Of the masked frames; that of the examples in RFC 6455 section 5.7."""

HANDSHAKE = (
    b"GET %b HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n%b\r\n"
)
SWITCHED = (
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n%b\r\n"
)
"""The handshake of RFC 6455 section 1.2; with further fields."""
DEFLATE = b"Sec-WebSocket-Extensions: permessage-deflate\r\n"


def frame(
    opcode: int,
    data: bytes = b"",
    *,
    fin: bool = True,
    rsv: int = 0,
    mask: bytes = b"",
    wide: int = 0,
) -> bytes:
    """A whole frame."""
    head = FrameHead(opcode, len(data), fin, rsv, mask, wide)
    return encode_head(head) + apply_mask(data, mask)


def text(data: str, *, mask: bytes = b"", fin: bool = True) -> bytes:
    """A text in one frame."""
    return frame(TEXT, data.encode(), mask=mask, fin=fin)


def binary(data: bytes, *, mask: bytes = b"") -> bytes:
    """Binary data in one frame."""
    return frame(BINARY, data, mask=mask)


def ping(data: bytes = b"", *, mask: bytes = b"") -> bytes:
    """A ping."""
    return frame(PING, data, mask=mask)


def pong(data: bytes = b"", *, mask: bytes = b"") -> bytes:
    """A pong."""
    return frame(PONG, data, mask=mask)


def close(code: int | None = 1000, reason: str = "", *, mask: bytes = b"") -> bytes:
    """A close frame."""
    data = b"" if code is None else code.to_bytes(2, "big") + reason.encode()
    return frame(CLOSE, data, mask=mask)


class Deflater:
    """Compresses messages, each with reference to those before."""

    def __init__(self) -> None:
        self._encoder = zlib.compressobj(wbits=-zlib.MAX_WBITS)

    def payload(self, data: bytes) -> bytes:
        """The payload of a message."""
        coded = self._encoder.compress(data) + self._encoder.flush(zlib.Z_SYNC_FLUSH)
        return coded.removesuffix(b"\0\0\xff\xff")

    def frame(self, data: bytes, *, opcode: int = TEXT, mask: bytes = b"") -> bytes:
        """A message in one frame."""
        return frame(opcode, self.payload(data), rsv=4, mask=mask)


def split(pieces: Iterable[bytes]) -> list[SplitPiece]:
    """What a splitter returns for bytes in pieces."""
    splitter = FrameSplitter()
    return [found for piece in pieces for found in splitter.feed(piece)] + splitter.end()


def joined(pieces: Iterable[SplitPiece]) -> list[SplitPiece]:
    """The same without the cuts by reads: every frame in one piece."""
    found: list[SplitPiece] = []
    for piece in pieces:
        last = found[-1] if found else None
        goes_on = last is not None and (last.more if not piece.raw else last.raw)
        if last is not None and piece.head is None and goes_on:
            found[-1] = last._replace(data=last.data + piece.data, more=piece.more)
        else:
            found.append(piece)
    return found


def rebuilt(pieces: Iterable[SplitPiece | FramePiece]) -> bytes:
    """The bytes that one side sent."""
    sent, key, at = b"", b"", 0
    for piece in pieces:
        wire = getattr(piece, "wire", None)
        data = piece.data if wire is None else wire
        if piece.raw:
            sent += data
            continue
        if piece.head is not None:
            sent += encode_head(piece.head)
            key, at = piece.head.mask, 0
        sent += apply_mask(data, key, at)
        at += len(data)
    return sent


def messages(
    pieces: Sequence[SplitPiece], side: Side = Side.SERVER, *, compressed: bool = False
) -> tuple[list[Message], list[str]]:
    """The messages in pieces of one side, and what is forbidden in them."""
    reader = MessageReader(compressed=compressed)
    found = []
    for opcode, head, at, data, more, raw in pieces:
        message = reader.add(FramePiece(0, side, opcode, head, at, data, more=more, raw=raw))
        if message is not None:
            found.append(message)
    return [*found, *reader.end()], [each.detail for each in reader.violations]


def upgraded(tap: ExchangeTap, headers: Headers = (), key: bytes = b"") -> None:
    """A handshake that succeeds, with further fields of the response, and a credential."""
    asked = ((b"Authorization", b"Bearer " + key),) if key else ()
    tap.request(
        0,
        id="01JD3ZQ8T0000000000000001A",
        method="GET",
        target=b"/v1/realtime",
        upstream="https://api.example.com",
        http="1.1",
        headers=((b"Upgrade", b"websocket"), *asked),
    )
    tap.request_end(1)
    tap.response(
        2,
        status=101,
        reason=b"Switching Protocols",
        http="1.1",
        framing=Framing.NONE,
        headers=((b"Upgrade", b"websocket"), *headers),
    )


def socket_tape(
    sent: Sequence[tuple[Side, bytes]],
    headers: Headers = (),
    reason: EndReason = EndReason.UPSTREAM_CLOSED,
) -> bytes:
    """A tape of a WebSocket on which these pieces were sent, at 10, 20, ...; nothing is masked."""

    def feed(tap: ExchangeTap) -> None:
        upgraded(tap, headers)
        for at, (side, data) in enumerate(sent, 1):
            tap.frames(10 * at, side, data)
        tap.end(10 * len(sent) + 10, reason)

    stop = payload_record(10 * len(sent) + 20, 0, Stop(reason="test", exit_code=None))
    return b"".join((header_line(HEADER), *taped(feed).all, stop))


def socket(
    *sent: tuple[Side, bytes],
    headers: Headers = (),
    reason: EndReason = EndReason.UPSTREAM_CLOSED,
) -> Exchange:
    """The exchange of `socket_tape`."""
    lines = socket_tape(sent, headers, reason).splitlines(keepends=True)[1:]
    records = [(number, decode_record(line)) for number, line in enumerate(lines, 2)]
    (exchange,) = assemble(records, tape="socket.tape", header=HEADER)
    return exchange
