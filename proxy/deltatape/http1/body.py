"""Finds the ends of message bodies and their chunks (RFC 9112 sections 6 and 7.1).

Written here and not left to httptools, because the player needs the offsets of chunk ends and a
proxy that splices bytes needs the offset of the message's end, and httptools has neither. One
`feed` per socket read; nothing is copied where a read holds no framing.
"""

import enum
import re
from functools import lru_cache
from typing import NamedTuple, Protocol

from deltatape.http1.head import BadMessageError, Fields
from deltatape.model.exchange import Framing

MAX_LINE_BYTES = 16 * 1024
MAX_TRAILER_BYTES = 64 * 1024
_MAX_SIZE_DIGITS = 16
_SHORT_LINE = 10
_HEX = re.compile(rb"[0-9A-Fa-f]{1,8}")
_TOKEN = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_NOT_IN_VALUE = re.compile(rb"[\x00\r\n]")
_CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
_STRICT_SIZE = re.compile(
    rb"[0-9A-Fa-f]+(?:;%b(?:=(?:%b|\"(?:[\t\x20\x21\x23-\x5b\x5d-\x7e\x80-\xff]|\\[\t\x20-\x7e\x80-\xff])*\"))?)*"
    % (_TOKEN.pattern, _TOKEN.pattern)
)
"""A chunk size with its extensions, without the white space of RFC 9112's BWS."""

_NEVER_TRAILERS = frozenset(
    (
        *(b"transfer-encoding", b"content-length", b"host", b"connection", b"trailer", b"te"),
        *(b"upgrade", b"keep-alive", b"expect", b"max-forwards", b"cache-control", b"range"),
        *(b"authorization", b"proxy-authorization", b"cookie", b"set-cookie", b"content-type"),
        *(b"content-encoding", b"content-range"),
    )
)
"""Fields for framing, routing, authentication and the like (RFC 9110 section 6.5.1). In a request
they could change how the upstream reads it."""


class BodyScan(NamedTuple):
    """The body content of one socket read.

    `data` is the body without framing, `ends` the offsets in it at which HTTP chunks end (None
    when the body is not chunked), `used` how many bytes of the read are valid and the message's.
    """

    data: bytes
    ends: tuple[int, ...] | None
    used: int


class MessageBody(Protocol):
    """Finds the end of one message body."""

    done: bool
    problem: str
    """What is wrong with the framing of what follows the last `used`; "" while it is in order."""
    trailers: Fields

    def feed(self, raw: bytes) -> BodyScan:
        """Scan the next bytes of the connection; those after `used` belong to the next message."""


def body_of(framing: Framing, length: int) -> MessageBody:
    """Return a scanner for a body; `length` counts for `LENGTH` only."""
    if framing is Framing.CHUNKED:
        return ChunkedBody()
    if framing is Framing.CLOSE:
        return CloseBody()
    return LengthBody(length if framing is Framing.LENGTH else 0)


class LengthBody:
    """A body of known length."""

    def __init__(self, length: int) -> None:
        self._left = length
        self.done = length == 0
        self.problem = ""
        self.trailers: Fields = ()

    def feed(self, raw: bytes) -> BodyScan:
        data = raw if len(raw) <= self._left else raw[: self._left]
        self._left -= len(data)
        self.done = self._left == 0
        return BodyScan(data, None, len(data))


class CloseBody:
    """A body that ends with the connection; `broken` if the framing failed."""

    def __init__(self, *, broken: bool = False) -> None:
        self.broken = broken
        self.done = False
        self.problem = ""
        self.trailers: Fields = ()

    def feed(self, raw: bytes) -> BodyScan:
        return BodyScan(raw, None, len(raw))


class _State(enum.Enum):
    SIZE = enum.auto()
    DATA = enum.auto()
    DATA_END = enum.auto()
    TRAILERS = enum.auto()


class ChunkedBody:
    """A chunked body. A line split by reads is kept until complete.

    Args:
        strict: whether it is a request's, whose framing upstream must not read differently: chunk
            sizes, extensions and trailers that llhttp refuses are invalid, and so are trailers for
            framing, routing or authentication. Clients accept more of a response.
    """

    def __init__(self, *, strict: bool = False) -> None:
        self._strict = strict
        self._state = _State.SIZE
        self._left = 0
        self._line = b""
        self._trailer_bytes = 0
        self.done = False
        self.problem = ""
        self.trailers: Fields = ()

    def feed(self, raw: bytes) -> BodyScan:
        size = len(raw)
        in_order = self._state is _State.SIZE and not self._line
        if in_order:
            # Most reads of a stream are one whole chunk.
            start = raw.find(b"\r\n", 0, _SHORT_LINE) + 2
            length = size - start - 2
            if (
                start > 1
                and length > 0
                and _short_size(raw[: start - 2]) == length
                and raw.endswith(b"\r\n")
            ):
                return BodyScan(raw[start:-2], (length,), size)
        pieces: list[bytes] = []
        ends: list[int] = []
        at = got = 0
        if in_order:
            # Nearly all others are of whole chunks; what else there is comes after them.
            while (start := raw.find(b"\r\n", at, at + _SHORT_LINE) + 2) > 1:
                end = start + _short_size(raw[at : start - 2])
                if end == start or raw[end : end + 2] != b"\r\n":
                    break
                pieces.append(raw[start:end])
                got += end - start
                ends.append(got)
                at = end + 2
        while at < size and not self.done and not self.problem:
            if self._state is _State.DATA:
                piece = raw[at : at + self._left]
                at += len(piece)
                got += len(piece)
                self._left -= len(piece)
                pieces.append(piece)
                if self._left == 0:
                    ends.append(got)
                    self._state = _State.DATA_END
                continue
            newline = raw.find(b"\n", at)
            stop = size if newline < 0 else newline + 1
            if self._feed_line(raw[at:stop], complete=newline >= 0):
                at = stop
        return BodyScan(pieces[0] if len(pieces) == 1 else b"".join(pieces), tuple(ends), at)

    @property
    def pending(self) -> bytes:
        """The incomplete framing of earlier reads: of a line, or of the last chunk."""
        return b"0\r\n" + self._line if self.in_last_chunk else self._line

    @property
    def in_last_chunk(self) -> bool:
        """Whether the size of the last chunk was read, but not its end."""
        return self._state is _State.TRAILERS and not self.done

    def _feed_line(self, piece: bytes, *, complete: bool) -> bool:
        """Check part of a framing line; set `problem` if it is invalid."""
        line = self._line + piece
        if not complete and len(line) > MAX_LINE_BYTES:
            self.problem = f"a framing line is longer than {MAX_LINE_BYTES} bytes"
            return False
        try:
            if complete:
                self._parse_line(line)
        except BadMessageError as error:
            self.problem = str(error)
            return False
        self._line = b"" if complete else line
        return True

    def _parse_line(self, line: bytes) -> None:
        if not line.endswith(b"\r\n"):
            raise BadMessageError(f"a framing line ends without CRLF: {line[:40]!r}")
        line = line[:-2]
        if self._state is _State.SIZE:
            self._left = _chunk_size(line, strict=self._strict)
            self._state = _State.DATA if self._left else _State.TRAILERS
        elif self._state is _State.DATA_END:
            if line:
                raise BadMessageError(f"a chunk is longer than its size says: {line[:40]!r}")
            self._state = _State.SIZE
        elif line:
            self._parse_trailer(line)
        else:
            self.done = True

    def _parse_trailer(self, line: bytes) -> None:
        self._trailer_bytes += len(line)
        name, colon, value = line.partition(b":")
        unfit = _CONTROL if self._strict else _NOT_IN_VALUE
        valid = colon and _TOKEN.fullmatch(name) and not unfit.search(value)
        if not valid or self._trailer_bytes > MAX_TRAILER_BYTES:
            raise BadMessageError(f"not a trailer field: {line[:40]!r}")
        if self._strict and name.lower() in _NEVER_TRAILERS:
            raise BadMessageError(f"a field that may not be a trailer: {line[:40]!r}")
        self.trailers += ((name, value.strip(b" \t")),)


def _chunk_size(line: bytes, *, strict: bool) -> int:
    digits = line.partition(b";")[0].rstrip(b" \t")
    valid = 0 < len(digits) <= _MAX_SIZE_DIGITS and not digits.strip(b"0123456789abcdefABCDEF")
    if not valid or (strict and not _STRICT_SIZE.fullmatch(line)):
        raise BadMessageError(f"not a chunk size: {line[:40]!r}")
    return int(digits, 16)


@lru_cache(maxsize=1024)
def _short_size(digits: bytes) -> int:
    """Return the size of a chunk without extensions; 0 if it is anything else, or the last one."""
    return int(digits, 16) if _HEX.fullmatch(digits) else 0


def write_chunk(data: bytes) -> bytes:
    """Return `data` as one chunk."""
    return b"%x\r\n%b\r\n" % (len(data), data)


# What the end of a connection tells a client about the body before it.


def fin_completes(framing: Framing | None, *, bare: bool) -> bool:
    """Check whether a FIN would make a cut body look complete, so that RST is needed.

    `framing` None: no head was sent; `bare`: a chunked body goes out without its chunks.
    """
    return framing is Framing.CLOSE or (framing is Framing.CHUNKED and bare)
