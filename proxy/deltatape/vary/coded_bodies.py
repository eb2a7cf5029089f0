"""Decode and encode bodies under a content-coding.

Whoever looks for events or changes them needs the plain body; the client is to get the coded one.
Coding anew flushes the coder after every read, so that each read still brings what it brought; the
coded bytes are others than those of the server, what they decode to is the same.

Spec: RFC 9110 section 8.4; RFC 1952 (gzip), RFC 1950 (deflate), RFC 8878 (zstd), RFC 7932 (br).
"""

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

import zstandard

from deltatape.model.exchange import EndReason, Exchange, HeaderValue, Read, header
from deltatape.vary.shape import is_chunked, refitted
from deltatape.wire.content_coding import ContentDecoder, parse_codings

_CODING = b"content-encoding"
_GZIP = 31
_LEVEL = 6


def plain(exchange: Exchange) -> Exchange | None:
    """Return `exchange` without the content-codings of its response; itself if it has none.

    None: they cannot be undone whole, so that nobody can say what the body is. Reads that complete
    nothing of the body are left out.
    """
    codings = _codings(exchange)
    if not codings:
        return exchange
    decoder = ContentDecoder(codings)
    pieces = [(read, decoder.feed(read.data)) for read in exchange.reads]
    decoder.end()
    if decoder.fault is not None:
        return None
    chunked = is_chunked(exchange)
    reads = tuple(
        Read(t_ns=read.t_ns, data=data, boundaries=(len(data),) if chunked else None, line=None)
        for read, data in pieces
        if data
    )
    return refitted(_recoded(exchange, None), reads)


def coded(exchange: Exchange, codings: Sequence[str]) -> Exchange | None:
    """Return a plain exchange under `codings`, in the order of their application.

    None: one of them needs what is not installed. A body that is cut lacks the end of its coding.
    """
    if not codings:
        return exchange
    end = exchange.end
    if not all(name in CODERS for name in codings):
        return None
    try:
        coders = [CODERS[name]() for name in codings]
    except ImportError:
        return None
    whole = end is None or end.reason is EndReason.COMPLETE
    chunked = is_chunked(exchange)
    reads = []
    for number, read in enumerate(exchange.reads, 1):
        data = read.data
        for coder in coders:
            data = coder.feed(data)
        if whole and number == len(exchange.reads):
            data += _finished(coders)
        reads.append(
            Read(t_ns=read.t_ns, data=data, boundaries=(len(data),) if chunked else None, line=None)
        )
    return refitted(_recoded(exchange, ", ".join(codings).encode()), tuple(reads))


def recoded(exchange: Exchange, like: Exchange) -> Exchange | None:
    """Return a plain exchange under the codings of `like`; see `coded`."""
    return coded(exchange, _codings(like))


def _codings(exchange: Exchange) -> tuple[str, ...]:
    headers = exchange.response.headers if exchange.response else ()
    return parse_codings(header(headers, "content-encoding")) if exchange.reads else ()


def _recoded(exchange: Exchange, value: bytes | None) -> Exchange:
    """Return `exchange` with this `content-encoding`; without the field if it is None."""
    response = exchange.response
    if response is None:
        return exchange
    headers = [pair for pair in response.headers if pair[0].lower() != _CODING]
    if value is not None:
        pair: tuple[bytes, HeaderValue] = (b"Content-Encoding", value)
        headers.append(pair)
    return replace(exchange, response=replace(response, headers=tuple(headers)))


class _Coder(Protocol):
    """Encodes one body."""

    def feed(self, data: bytes) -> bytes:
        """Return the coded bytes of `data`, flushed."""

    def finish(self) -> bytes:
        """Return the end of the coded data."""


class _Zlib:
    """gzip, or zlib, which is the meaning of `deflate`."""

    def __init__(self, window: int) -> None:
        self._coder = zlib.compressobj(_LEVEL, zlib.DEFLATED, window)

    def feed(self, data: bytes) -> bytes:
        return self._coder.compress(data) + self._coder.flush(zlib.Z_SYNC_FLUSH)

    def finish(self) -> bytes:
        return self._coder.flush()


class _Zstd:
    def __init__(self) -> None:
        self._coder = zstandard.ZstdCompressor().compressobj()

    def feed(self, data: bytes) -> bytes:
        return self._coder.compress(data) + self._coder.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)

    def finish(self) -> bytes:
        return self._coder.flush()


class _Brotli:
    def __init__(self) -> None:
        # Imported here: an extra, of which most tapes have no need.
        import brotli  # type: ignore[import-untyped]  # noqa: PLC0415

        self._coder = brotli.Compressor()

    def feed(self, data: bytes) -> bytes:
        return bytes(self._coder.process(data) + self._coder.flush())

    def finish(self) -> bytes:
        return bytes(self._coder.finish())


CODERS: Mapping[str, Callable[[], _Coder]] = {
    "gzip": lambda: _Zlib(_GZIP),
    "deflate": lambda: _Zlib(zlib.MAX_WBITS),
    "zstd": _Zstd,
    "br": _Brotli,
}
"""By coding, what begins a body under it."""


def _finished(coders: Sequence[_Coder]) -> bytes:
    """Return the end of the data through all coders in order."""
    data = b""
    for coder in coders:
        data = (coder.feed(data) if data else b"") + coder.finish()
    return data
