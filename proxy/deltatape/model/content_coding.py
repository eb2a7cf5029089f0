"""Content-codings undone as bytes arrive: gzip, deflate, zstd, br, and several in a row.

Spec: RFC 9110 section 8.4; RFC 1952 (gzip: several members are one body), RFC 1950 and 1951 (both
occur as `deflate`), RFC 8878 and 9659 (zstd: a window of at most 8 MiB), RFC 7932 (br).

Strategy. One stage per coding, the last applied first. If a stage's decoder fails, the data is
decoded again byte by byte, so that everything before the damage is kept, however the bytes were
split. The body is untrusted: output is bounded, absolutely and (from `RATIO_FLOOR` on) in relation
to the input. After a fault nothing more comes out.
"""

import re
import zlib
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import NamedTuple, Protocol

from deltatape.model.stream import AnomalyKind

OUTPUT_LIMIT = 64 * 1024 * 1024
"""Bytes of decoded output; where it would exceed them, decoding stops."""
RATIO_FLOOR = 8 * 1024 * 1024
"""Bytes of decoded output below which any ratio is taken."""
RATIO_LIMIT = 500
"""Bytes of output per byte of input; a body beyond that is a decompression bomb."""

_MEMBER_LIMIT = 1000
_CODING_LIMIT = 8
_ZSTD_WINDOW = 8 * 1024 * 1024
_ZSTD_STEP = 256
"""Bytes fed to zstd at once: a block of 4 bytes can expand to 128 KiB, and output has no limit."""
_ANY_WINDOW = 15
_GZIP = _ANY_WINDOW + 16
_JSON = re.compile(rb'[ \t\r\n]*[\[{][ \t\r\n]*["\[{]')
"""How JSON begins. Damaged data that does so was never coded."""


class DecodeFault(NamedTuple):
    """Why decoding stopped, or what is wrong with how the data ends."""

    kind: AnomalyKind
    detail: str


class _CodingError(Exception):
    """The data does not match its coding."""


class _Engine(Protocol):
    """One member of coded data."""

    def decode(self, data: bytes, room: int) -> bytes:
        """Return the output for `data`; longer than `room` if there would be more than that."""

    @property
    def rest(self) -> bytes | None:
        """The data after the end of the member; None before that."""


class _Zlib:
    """gzip, zlib, raw deflate."""

    def __init__(self, window: int) -> None:
        self._decoder = zlib.decompressobj(window)

    def decode(self, data: bytes, room: int) -> bytes:
        try:
            return self._decoder.decompress(data, room + 1)
        except zlib.error as problem:
            raise _CodingError(str(problem)) from problem

    @property
    def rest(self) -> bytes | None:
        return self._decoder.unused_data if self._decoder.eof else None


class _Deflate:
    """zlib as RFC 9110 says, or raw deflate as many servers do; the first two bytes tell."""

    def __init__(self) -> None:
        self._head = b""
        self._engine: _Zlib | None = None

    def decode(self, data: bytes, room: int) -> bytes:
        if self._engine is None:
            self._head += data
            if len(self._head) < 2:  # noqa: PLR2004 - CMF and FLG, RFC 1950 section 2.2
                return b""
            cmf, flg = self._head[:2]
            wrapped = cmf & 0x0F == zlib.DEFLATED and (cmf * 256 + flg) % 31 == 0
            self._engine = _Zlib(_ANY_WINDOW if wrapped else -_ANY_WINDOW)
            data = self._head
        return self._engine.decode(data, room)

    @property
    def rest(self) -> bytes | None:
        return None if self._engine is None else self._engine.rest


class _Zstd:
    def __init__(self) -> None:
        # Imported here: few bodies need it, and every recorder has this module.
        import zstandard  # noqa: PLC0415

        self._error = zstandard.ZstdError
        decoder = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW)
        self._decoder = decoder.decompressobj()
        self.rest: bytes | None = None

    def decode(self, data: bytes, room: int) -> bytes:
        out = bytearray()
        try:
            for start in range(0, len(data), _ZSTD_STEP):
                stop = start + _ZSTD_STEP
                out += self._decoder.decompress(data[start:stop])
                if self._decoder.eof:
                    self.rest = self._decoder.unused_data + data[stop:]
                    break
                if len(out) > room:
                    break
        except self._error as problem:
            raise _CodingError(str(problem)) from problem
        return bytes(out)


class _Brotli:
    def __init__(self) -> None:
        # Imported here: an extra that most tapes do not need.
        import brotli  # type: ignore[import-untyped]  # noqa: PLC0415

        self._error = brotli.error
        self._decoder = brotli.Decompressor()
        self.rest: bytes | None = None

    def decode(self, data: bytes, room: int) -> bytes:
        try:
            out: bytes = self._decoder.process(data, output_buffer_limit=room + 1)
        except self._error as problem:
            raise _CodingError(str(problem)) from problem
        if self._decoder.is_finished():
            self.rest = b""
        return out


class _Coding(NamedTuple):
    """How to begin a member, and the bytes that begin another one after it."""

    begin: Callable[[], _Engine]
    magic: bytes | None


_CODINGS = {
    "gzip": _Coding(lambda: _Zlib(_GZIP), b"\x1f\x8b"),
    "deflate": _Coding(_Deflate, None),
    "zstd": _Coding(_Zstd, b"\x28\xb5\x2f\xfd"),
    "br": _Coding(_Brotli, None),
}
_ALIASES = {"x-gzip": "gzip"}


def parse_codings(value: bytes | None) -> tuple[str, ...]:
    """Return the codings in a `Content-Encoding` field, in the order in which they were applied."""
    names = (value or b"").decode("ascii", "replace").lower().split(",")
    stripped = (name.strip() for name in names)
    return tuple(_ALIASES.get(name, name) for name in stripped if name not in ("", "identity"))


class _Stage:
    """Undoes one coding."""

    def __init__(self, name: str, limit: int, *, salvage: bool) -> None:
        self._name = name
        self._limit = limit
        self._salvages = salvage
        self._coding = _CODINGS[name]
        self._engine = self._coding.begin()
        self._members = 1
        self._between = b""
        self._seen: list[bytes] = []
        self._produced = 0
        self._consumed = 0
        self.fault: DecodeFault | None = None

    def feed(self, data: bytes) -> bytes:
        """Return the output for `data`; b"" after a fault."""
        if self.fault is not None or not data:
            return b""
        if self._salvages:
            self._seen.append(data)
        try:
            out = self._decode(data)
        except _CodingError as problem:
            out = self._salvage()
            self._produced += len(out)
            self.fault = self._bad(f"the {self._name} data is damaged: {problem}")
        return out

    def end(self) -> None:
        """Report data that stops short of its end."""
        if self.fault is None and self._consumed and self._engine.rest is None:
            self.fault = self._bad(f"the {self._name} data is cut: its end is missing")
        elif self.fault is None and self._between:
            self.fault = self._trailing(self._between)

    def _decode(self, data: bytes) -> bytes:
        """Return the output of one member after the other."""
        self._consumed += len(data)
        allowed = min(self._limit, max(RATIO_FLOOR, RATIO_LIMIT * self._consumed))
        room = allowed - self._produced
        out = bytearray()
        while data and self.fault is None:
            rest = self._engine.rest
            if rest is None:
                out += self._engine.decode(data, room - len(out))
                if len(out) > room:
                    detail = f"more than {allowed} bytes of decoded data"
                    self.fault = DecodeFault(AnomalyKind.TOO_LARGE, detail)
                data = self._engine.rest or b""
            else:
                data = self._next_member(data)
        self._produced += len(out[:room])
        return bytes(out[:room])

    def _next_member(self, data: bytes) -> bytes:
        """Return what of `data`, which follows a member, belongs to the next one, now begun."""
        data = self._between + data
        magic = self._coding.magic
        if magic is None or not data.startswith(magic[: len(data)]):
            self.fault = self._trailing(data)
            return b""
        if len(data) < len(magic):
            self._between = data
            return b""
        self._between = b""
        self._members += 1
        if self._members > _MEMBER_LIMIT:
            detail = f"more than {_MEMBER_LIMIT} members of {self._name} data"
            self.fault = DecodeFault(AnomalyKind.TOO_LARGE, detail)
            return b""
        self._engine = self._coding.begin()
        return data

    def _salvage(self) -> bytes:
        """Return the output before the damage that `_decode` has just met and lost."""
        again = _Stage(self._name, self._limit, salvage=False)
        out = bytearray()
        try:
            for data in self._seen:
                for at in range(len(data)):
                    out += again._decode(data[at : at + 1])
        except _CodingError:
            pass
        return bytes(out[self._produced :])

    def _trailing(self, data: bytes) -> DecodeFault:
        shown = data[:8].hex(" ")
        return self._bad(f"data after the end of the {self._name} data, beginning {shown}")

    def _bad(self, detail: str) -> DecodeFault:
        return DecodeFault(AnomalyKind.BAD_CONTENT_CODING, detail)


class ContentDecoder:
    """Undoes the content-codings of one body.

    Args:
        codings: as `parse_codings` returns them.
        limit: bytes of output of each coding.
        salvage: also return the output before the damage within one `feed`; all input is kept for
            that.
    """

    def __init__(
        self, codings: Sequence[str], *, limit: int = OUTPUT_LIMIT, salvage: bool = True
    ) -> None:
        self.fault: DecodeFault | None = None
        """The first thing that went wrong; what was decoded before it is good."""
        self._stages: list[_Stage] = []
        if len(codings) > _CODING_LIMIT:
            self._refuse(f"{len(codings)} codings on top of each other")
            return
        for name in reversed(codings):
            if name not in _CODINGS:
                self._refuse(f"unknown coding {name[:80]!r}; known are {', '.join(_CODINGS)}")
                return
            try:
                self._stages.append(_Stage(name, limit, salvage=salvage))
            except ImportError:
                self._refuse("the coding br needs the extra: pip install deltatape[compression]")
                return

    def feed(self, data: bytes) -> bytes:
        """Return the decoded bytes for the next bytes of the body."""
        if self.fault is not None:
            return b""
        for stage in self._stages:
            data = stage.feed(data)
            self.fault = self.fault or stage.fault
        return data

    def end(self) -> None:
        """Report that the body has ended: data that stops short of its end becomes a fault."""
        for stage in self._stages:
            if self.fault is None:
                stage.end()
                self.fault = stage.fault

    def _refuse(self, detail: str) -> None:
        self.fault = DecodeFault(AnomalyKind.BAD_CONTENT_CODING, detail)


def decoded(
    pieces: Iterable[bytes], codings: Sequence[str], hidden: Iterable[tuple[int, int, str]] = ()
) -> tuple[list[bytes], DecodeFault | None]:
    """Return what each piece of a body adds to the decoded one, and the decoder's fault.

    Args:
        pieces: the pieces of the body, in order.
        codings: as `parse_codings` returns them.
        hidden: spans of the decoded body to replace by asterisks.
    """
    decoder = ContentDecoder(codings)
    plain = [decoder.feed(piece) for piece in pieces]
    decoder.end()
    spans = tuple(hidden)
    if not spans:
        return plain, decoder.fault
    body = bytearray().join(plain)
    for start, end, _ in spans:
        body[start:end] = b"*" * len(body[start:end])
    ends = list(accumulate(map(len, plain)))
    return [bytes(body[end - len(piece) : end]) for piece, end in zip(plain, ends, strict=True)], (
        decoder.fault
    )


class DecodedBody(NamedTuple):
    """A whole body, decoded as far as possible."""

    data: bytes
    fault: DecodeFault | None


def decode_body(
    body: bytes, codings: Sequence[str], hidden: Iterable[tuple[int, int, str]] = ()
) -> DecodedBody:
    """Return a whole body decoded; unchanged if nothing can be decoded, or if it is plain JSON.

    Args: see `decoded`.
    """
    if not codings:
        return DecodedBody(body, None)
    (data,), fault = decoded((body,), codings, hidden)
    if fault is not None and (not data or _JSON.match(body)):
        data = body
    return DecodedBody(data, fault)
