"""WebSocket: frames out of bytes as they come, and bytes out of frames again; messages.

Spec: RFC 6455 sections 5 and 7.4; RFC 7692 (permessage-deflate).

Strategy: peer misbehaviour is data. Whatever bytes come, `FrameSplitter` returns pieces from which
the same bytes can be made again, however they were cut; what RFC 6455 forbids is told by
`MessageReader` and stops nothing. Only where nobody can know where the next
frame begins, after an impossible length, what follows is raw. The payload of data frames is
returned as it comes; control frames, which are short, are returned whole.
"""

import zlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from deltatape.model.websocket import (
    BINARY,
    CLOSE,
    CONTINUATION,
    PING,
    PONG,
    RSV1,
    TEXT,
    FrameHead,
    FramePiece,
    Message,
    Side,
    Violation,
)

MAX_LENGTH = 2**63 - 1
"""The longest payload: the most significant bit of a length of 8 bytes must be 0."""
MAX_CONTROL = 125
"""The longest payload of a control frame, and the longest length that one byte holds."""
_SHORT, _LONG = 126, 127
"""In the place of a length: it follows in 2 or in 8 bytes."""
_TWO_BYTES = 1 << 16
_KEY = 4
_OPCODES = frozenset((CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG))


def is_control(opcode: int) -> bool:
    """Return whether a frame may come between the fragments of a message."""
    return opcode >= CLOSE


class SplitPiece(NamedTuple):
    """What some bytes contributed to one frame; the fields are those of `FramePiece`."""

    opcode: int
    head: FrameHead | None
    at: int
    data: bytes
    more: bool = False
    raw: bool = False


class FrameSplitter:
    """Finds the frames in the bytes that one side sent."""

    __slots__ = ("_at", "_head", "_left", "_pending", "_raw")

    def __init__(self) -> None:
        self._pending = b""  # a head without payload, or an incomplete control frame
        self._head: FrameHead | None = None  # of the frame that has begun
        self._at = self._left = 0  # in its payload
        self._raw = False

    def feed(self, raw: bytes) -> list[SplitPiece]:
        """Return what the next bytes bring, in order."""
        if self._raw:
            return [_raw(raw)] if raw else []
        found: list[SplitPiece] = []
        data = self._pending + raw if self._pending else raw
        at, size = 0, len(data)
        while at < size:
            if self._head is not None and self._left:
                payload = data[at : at + self._left]
                at += len(payload)
                found.append(self._piece(self._head, payload))
                continue
            parsed = parse_head(data, at)
            if parsed is None:
                break
            head, start = parsed
            if head.length > MAX_LENGTH:
                self._raw = True
                found.append(_raw(data[at:]))
                at = size
                break
            needed = head.length if is_control(head.opcode) and head.length <= MAX_CONTROL else 1
            if size - start < min(needed, head.length):
                break
            payload = data[start : start + head.length]
            at = start + len(payload)
            self._head, self._at, self._left = head, 0, head.length
            found.append(self._piece(head, payload))
        self._pending = data[at:] if at < size else b""
        return found

    def end(self) -> list[SplitPiece]:
        """Return the rest when the connection ends: an incomplete frame, if any."""
        data, self._pending = self._pending, b""
        if not data:
            return []
        parsed = parse_head(data, 0)
        if parsed is None:
            return [_raw(data)]
        head, start = parsed
        return [SplitPiece(head.opcode, head, 0, apply_mask(data[start:], head.mask), more=True)]

    def _piece(self, head: FrameHead, payload: bytes) -> SplitPiece:
        at = self._at
        self._at += len(payload)
        self._left -= len(payload)
        plain = apply_mask(payload, head.mask, at)
        return SplitPiece(head.opcode, None if at else head, at, plain, more=self._left > 0)


def _raw(data: bytes) -> SplitPiece:
    return SplitPiece(CONTINUATION, None, 0, data, raw=True)


def parse_head(data: bytes, at: int) -> tuple[FrameHead, int] | None:
    """Return the head that begins at `at`, and where its payload begins; None if incomplete."""
    if len(data) < at + 2:
        return None
    first, second = data[at], data[at + 1]
    length, wide = second & 0x7F, 0
    start = at + 2
    if length >= _SHORT:
        wide = 2 if length == _SHORT else 8
        start += wide
        if len(data) < start:
            return None
        length = int.from_bytes(data[start - wide : start], "big")
    mask = b""
    if second & 0x80:
        start += _KEY
        if len(data) < start:
            return None
        mask = data[start - _KEY : start]
    needed = _length_bytes(length)
    head = FrameHead(
        opcode=first & 0x0F,
        length=length,
        fin=first & 0x80 != 0,
        rsv=first >> 4 & 7,
        mask=mask,
        wide=wide if wide != needed else 0,
    )
    return head, start


def _length_bytes(length: int) -> int:
    """Return how many bytes a length needs beyond the first."""
    if length <= MAX_CONTROL:
        return 0
    return 2 if length < _TWO_BYTES else 8


def is_wide(length: int, size: int) -> bool:
    """Return whether a length can be written in `size` bytes, and in fewer."""
    return size in (2, 8) and _length_bytes(length) < size


def encode_head(head: FrameHead) -> bytes:
    """Return the head's bytes; the inverse of `parse_head`."""
    wide = head.wide or _length_bytes(head.length)
    short = {0: head.length, 2: _SHORT, 8: _LONG}[wide]
    first = (0x80 if head.fin else 0) | head.rsv << 4 | head.opcode
    second = (0x80 if head.mask else 0) | short
    extended = head.length.to_bytes(wide, "big") if wide else b""
    return bytes((first, second)) + extended + head.mask


_NO_KEY = bytes(_KEY)
"""A masking key that changes nothing."""


def whole_message_head(side: Side, opcode: int, size: int) -> FrameHead:
    """Return the head of a frame for a whole message whose original frames are unknown."""
    return FrameHead(opcode, size, mask=_NO_KEY if side is Side.CLIENT else b"")


def apply_mask(data: bytes, key: bytes, at: int = 0) -> bytes:
    """Mask or unmask `data`, which begins at offset `at` of a payload; unchanged without a key."""
    if not key or not data:
        return data
    turned = key[at & 3 :] + key[: at & 3]
    size = len(data)
    mask = (turned * (size // _KEY + 1))[:size]
    one, other = int.from_bytes(data, "little"), int.from_bytes(mask, "little")
    return (one ^ other).to_bytes(size, "little")


# Compressed messages (RFC 7692).
#
# A message is raw DEFLATE that ends with an empty stored block, whose last four bytes are not sent.
# Unless the handshake says otherwise, a message may refer to the 32 KiB before it.

_TAIL = b"\x00\x00\xff\xff"
_WINDOW = 1 << 15
STEP = 1 << 20
"""The most bytes that `MessageInflater.steps` yields at once."""
MOST_INFLATED = 2 << 20
"""How many bytes one piece of a message may become."""


_MOST_STORED = (1 << 16) - 1


def stored(data: bytes) -> bytes:
    """Return the payload of a compressed message that stores `data` uncompressed."""
    blocks = []
    for at in range(0, len(data), _MOST_STORED):
        part = data[at : at + _MOST_STORED]
        size = len(part)
        blocks += [
            b"\0",
            size.to_bytes(2, "little"),
            (size ^ _MOST_STORED).to_bytes(2, "little"),
            part,
        ]
    return b"".join((*blocks, b"\0"))


class Deflate(NamedTuple):
    """What the handshake says of compression: whether the messages of a side may refer back."""

    client_takeover: bool
    server_takeover: bool


def negotiated_deflate(extensions: Iterable[bytes]) -> Deflate | None:
    """Return how messages are compressed; None if they are not.

    Args:
        extensions: the values of `Sec-WebSocket-Extensions` in the response.
    """
    for offer in b",".join(extensions).lower().split(b","):
        name, *parameters = (part.strip() for part in offer.split(b";"))
        if name == b"permessage-deflate":
            return Deflate(
                client_takeover=b"client_no_context_takeover" not in parameters,
                server_takeover=b"server_no_context_takeover" not in parameters,
            )
    return None


class InflateError(Exception):
    """A message cannot be decompressed, or becomes too large."""


class MessageInflater:
    """Decompresses the messages of one side, as their pieces come."""

    __slots__ = ("_decoder", "_takeover", "_window")

    def __init__(self, *, takeover: bool) -> None:
        self._takeover = takeover
        self._window = b""
        self._decoder = zlib.decompressobj(-zlib.MAX_WBITS)

    def steps(self, data: bytes, *, last: bool) -> Iterator[tuple[bytes, bytes]]:
        """Decompress the next piece of a message; `last`: the message ends with it.

        Yields:
            What it becomes, in parts of at most `STEP` bytes, each with the part of `data` that was
            taken for it.

        Raises:
            InflateError: it is not DEFLATE, or becomes more than `MOST_INFLATED` bytes.
        """
        total = 0
        for plain, coded in self._decompress(data):
            total += len(plain)
            if total > MOST_INFLATED:
                raise InflateError(f"a piece becomes more than {MOST_INFLATED} bytes")
            if plain or coded:
                yield plain, coded
        if last:
            for plain, _ in self._decompress(_TAIL):
                if plain:
                    yield plain, b""
            if not self._takeover:
                self._window = b""
                self._decoder = zlib.decompressobj(-zlib.MAX_WBITS)

    def _decompress(self, rest: bytes) -> Iterator[tuple[bytes, bytes]]:
        while True:
            decoder = self._decoder
            try:
                plain = decoder.decompress(rest, STEP)
            except zlib.error as error:
                raise InflateError(str(error)) from None
            left = decoder.unused_data if decoder.eof else decoder.unconsumed_tail
            coded, rest = rest[: len(rest) - len(left)], left
            self._window = (self._window + plain)[-_WINDOW:]
            if decoder.eof:  # a block that says it is the last one of a stream: another may follow
                self._decoder = zlib.decompressobj(-zlib.MAX_WBITS, self._window)
            yield plain, coded
            if not rest and len(plain) < STEP:
                return


# Messages out of the pieces of both sides.

_CODES = {
    1000: "normal closure",
    1001: "going away",
    1002: "protocol error",
    1003: "unsupported data",
    1007: "invalid data",
    1008: "policy violation",
    1009: "message too big",
    1010: "extension missing",
    1011: "internal error",
    1012: "service restart",
    1013: "try again later",
    1014: "bad gateway",
}
"""The close codes that may be sent, as registered with IANA."""
_OWN_CODES = range(3000, 5000)
"""Close codes for libraries and applications."""
NO_CODE = 1005
"""The code shown for a close frame without one (RFC 6455 section 7.4.1)."""
NO_CLOSE_FRAME = 1006
"""The code shown where the connection ended without a close frame."""


class SocketClosure(NamedTuple):
    """What a close frame says."""

    code: int
    """`NO_CODE` if it has none."""
    reason: str

    def __str__(self) -> str:
        name = _CODES.get(self.code, "")
        code = "without a code" if self.code == NO_CODE else f"{self.code} {name}".rstrip()
        return f"{code}: {self.reason}" if self.reason else code


def read_closure(data: bytes) -> SocketClosure:
    """Read the payload of a close frame."""
    if len(data) < 2:  # noqa: PLR2004 - the size of a code
        return SocketClosure(NO_CODE, "")
    return SocketClosure(int.from_bytes(data[:2], "big"), data[2:].decode(errors="replace"))


def closure_data(code: int | None, reason: str) -> bytes | None:
    """Return the payload of the close frame that a program tells of; None if there was none."""
    if code is None or code == NO_CLOSE_FRAME or not 0 <= code < _TWO_BYTES:
        return None
    data = b"" if code == NO_CODE else code.to_bytes(2, "big")
    return data + reason.encode("utf-8", "replace")


def _closure_problem(data: bytes) -> str:
    """Return what is wrong with the payload of a close frame; "" if nothing is."""
    if not data:
        return ""
    code = int.from_bytes(data[:2], "big")
    if len(data) == 1 or not (code in _CODES or code in _OWN_CODES):
        return f"a close frame with the code {code if len(data) > 1 else 'cut in two'}"
    return "" if _is_utf8(data[2:]) else "a close frame whose reason is not UTF-8"


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


class _Begun:
    """A message that has begun."""

    __slots__ = ("compressed", "frames", "masked", "opcode", "parts", "size", "t_ns")

    def __init__(self, head: FrameHead, t_ns: int) -> None:
        self.opcode = head.opcode
        self.compressed = head.rsv & RSV1 != 0 and not is_control(head.opcode)
        self.t_ns = t_ns
        self.frames = 0
        self.parts: list[bytes] = []
        self.size = 0
        self.masked: list[tuple[int, int, str]] = []

    def add(self, piece: FramePiece) -> None:
        """Add the next piece of its data."""
        self.masked += (
            (self.size + start, self.size + end, name) for start, end, name in piece.masked
        )
        self.parts.append(piece.data)
        self.size += len(piece.data)


class _SideState:
    """What one side has sent."""

    __slots__ = ("closed", "control", "last", "message", "open")

    def __init__(self) -> None:
        self.message: _Begun | None = None
        self.control: _Begun | None = None
        self.open: tuple[_Begun, FrameHead] | None = None  # the frame whose payload goes on
        self.closed = False
        self.last: FramePiece | None = None


class MessageReader:
    """Joins the pieces of a WebSocket, in their order, to messages.

    Attributes:
        violations: what RFC 6455 forbids, in order.
    """

    def __init__(self, *, compressed: bool) -> None:
        """Args: compressed: whether permessage-deflate was negotiated."""
        self.violations: list[Violation] = []
        self._compressed = compressed
        self._sides = {side: _SideState() for side in Side}
        self._count = 0

    def add(self, piece: FramePiece) -> Message | None:
        """Read the next piece; return the message, or the control frame, that it completes."""
        state = self._sides[piece.side]
        state.last = piece
        if piece.raw:
            self._forbid(piece, "bytes that are no frame")
            return None
        if piece.head is not None:
            self._check_head(state, piece, piece.head)
            state.open = self._begin(state, piece, piece.head), piece.head
        elif state.open is None:
            return None  # what was before it is missing on the tape
        begun, head = state.open
        begun.add(piece)
        if piece.more:
            return None
        state.open = None
        if not head.fin and not is_control(head.opcode):
            return None
        if begun is state.message:
            state.message = None
        else:
            state.control = None
        message = self._message(piece, begun, complete=True)
        self._check_message(state, piece, message)
        return message

    def end(self) -> list[Message]:
        """Return the messages that the end of the connection cut, the client's first."""
        found: list[Message] = []
        for state in self._sides.values():
            found += [
                self._message(state.last, begun, complete=False)
                for begun in (state.control, state.message)
                if begun is not None and state.last is not None
            ]
        return found

    def _begin(self, state: _SideState, piece: FramePiece, head: FrameHead) -> _Begun:
        """Return the message to which a frame belongs."""
        if is_control(head.opcode):
            begun = state.control = _Begun(head, piece.t_ns)
        elif head.opcode == CONTINUATION and state.message is not None:
            begun = state.message
        else:
            begun = state.message = _Begun(head, piece.t_ns)
        begun.frames += 1
        return begun

    def _message(self, piece: FramePiece, begun: _Begun, *, complete: bool) -> Message:
        number, self._count = self._count, self._count + 1
        return Message(
            number=number,
            side=piece.side,
            opcode=begun.opcode,
            data=b"".join(begun.parts),
            t_ns=begun.t_ns,
            t_end_ns=piece.t_ns,
            line=piece.line,
            frames=begun.frames,
            compressed=begun.compressed,
            complete=complete,
            masked=tuple(begun.masked),
        )

    def _check_head(self, state: _SideState, piece: FramePiece, head: FrameHead) -> None:
        opcode = head.opcode
        first = opcode in (TEXT, BINARY)
        if state.closed:
            self._forbid(piece, "a frame after the close frame")
        if opcode not in _OPCODES:
            self._forbid(piece, f"a frame with the reserved opcode {opcode}")
        allowed = RSV1 if self._compressed and first else 0
        if head.rsv & ~allowed:
            self._forbid(piece, f"a frame with reserved bits: {head.rsv & ~allowed:03b}")
        if is_control(opcode) and not head.fin:
            self._forbid(piece, "a control frame in fragments")
        if is_control(opcode) and head.length > MAX_CONTROL:
            self._forbid(piece, f"a control frame of {head.length} bytes")
        if opcode == CONTINUATION and state.message is None:
            self._forbid(piece, "a continuation of no message")
        if first and state.message is not None:
            self._forbid(piece, "a new message within another one")
        if (piece.side is Side.CLIENT) is not bool(head.mask):
            self._forbid(piece, "a frame that is not masked" if not head.mask else "a masked frame")
        if head.wide:
            self._forbid(piece, f"a length of {head.length} in {head.wide} bytes")

    def _check_message(self, state: _SideState, piece: FramePiece, message: Message) -> None:
        if message.opcode == CLOSE:
            state.closed = True
            problem = _closure_problem(message.data)
            if problem:
                self._forbid(piece, problem)
        elif message.opcode == TEXT and not _is_utf8(message.data):
            self._forbid(piece, "a text that is not UTF-8")

    def _forbid(self, piece: FramePiece, detail: str) -> None:
        self.violations.append(Violation(piece.side, detail, piece.t_ns, piece.line))
