"""Decode and encode bodies under a content-coding.

Events are found and changed in the plain body; the client gets the coded one. The encoder is
flushed after every read, so that each read decodes to the same bytes as before; the coded bytes
differ from the server's.

Spec: RFC 9110 section 8.4; RFC 1952 (gzip), RFC 1950 (deflate), RFC 8878 (zstd), RFC 7932 (br).
"""

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import zstandard

from deltatape.model.content_coding import decoded
from deltatape.model.exchange import EndReason, Exchange, HeaderValue, Read, content_codings
from deltatape.vary.shape import is_chunked, refitted

_CODING = b"content-encoding"
_GZIP = 31
_LEVEL = 6


def plain(exchange: Exchange) -> Exchange | None:
    """Return `exchange` without the content-codings of its response; itself if it has none.

    None: they cannot be undone completely. Reads that decode to nothing are left out.
    """
    codings = _codings(exchange)
    if not codings:
        return exchange
    pieces, fault = decoded((read.data for read in exchange.reads), codings, exchange.hidden)
    if fault is not None:
        return None
    chunked = is_chunked(exchange)
    reads = tuple(
        Read(t_ns=read.t_ns, data=data, boundaries=(len(data),) if chunked else None, line=None)
        for read, data in zip(exchange.reads, pieces, strict=True)
        if data
    )
    return refitted(_with_coding(exchange, None), reads)


def coded(exchange: Exchange, codings: Sequence[str]) -> Exchange | None:
    """Return a plain exchange under `codings`, in the order of their application.

    None if one of them needs a missing package. A cut body lacks the end of its coding.
    """
    if not codings:
        return exchange
    end = exchange.end
    if not all(name in _ENCODERS for name in codings):
        return None
    try:
        encoders = [_ENCODERS[name]() for name in codings]
    except ImportError:
        return None
    complete = end is None or end.reason is EndReason.COMPLETE
    chunked = is_chunked(exchange)
    reads = []
    for number, read in enumerate(exchange.reads, 1):
        data = read.data
        for encoder in encoders:
            data = encoder.feed(data)
        if complete and number == len(exchange.reads):
            data += _finish(encoders)
        reads.append(
            Read(t_ns=read.t_ns, data=data, boundaries=(len(data),) if chunked else None, line=None)
        )
    return refitted(_with_coding(exchange, ", ".join(codings).encode()), tuple(reads))


def recoded(exchange: Exchange, like: Exchange) -> Exchange | None:
    """Return a plain exchange under the codings of `like`; see `coded`."""
    return coded(exchange, _codings(like))


def _codings(exchange: Exchange) -> tuple[str, ...]:
    headers = exchange.response.headers if exchange.response else ()
    return content_codings(headers) if exchange.reads else ()


def _with_coding(exchange: Exchange, value: bytes | None) -> Exchange:
    """Return `exchange` with this `content-encoding`; without the field if it is None."""
    response = exchange.response
    if response is None:
        return exchange
    headers = [pair for pair in response.headers if pair[0].lower() != _CODING]
    if value is not None:
        pair: tuple[bytes, HeaderValue] = (b"Content-Encoding", value)
        headers.append(pair)
    return replace(exchange, response=replace(response, headers=tuple(headers)))


@dataclass(frozen=True, slots=True)
class _Encoder:
    """Encodes one body, flushed after each piece."""

    compress: Callable[[bytes], bytes]
    flush: Callable[[], bytes]
    finish: Callable[[], bytes]

    def feed(self, data: bytes) -> bytes:
        """Return the coded bytes of `data`."""
        return self.compress(data) + self.flush()


def _zlib_encoder(window: int) -> _Encoder:
    """Return an encoder for gzip, or for zlib, which is the meaning of `deflate`."""
    coder = zlib.compressobj(_LEVEL, zlib.DEFLATED, window)
    return _Encoder(coder.compress, partial(coder.flush, zlib.Z_SYNC_FLUSH), coder.flush)


def _zstd_encoder() -> _Encoder:
    coder = zstandard.ZstdCompressor().compressobj()
    flush = partial(coder.flush, zstandard.COMPRESSOBJ_FLUSH_BLOCK)
    return _Encoder(coder.compress, flush, coder.flush)


def _brotli_encoder() -> _Encoder:
    # Imported here: an extra that most tapes do not need.
    import brotli  # type: ignore[import-untyped]  # noqa: PLC0415

    coder = brotli.Compressor()
    return _Encoder(coder.process, coder.flush, coder.finish)


_ENCODERS: Mapping[str, Callable[[], _Encoder]] = {
    "gzip": partial(_zlib_encoder, _GZIP),
    "deflate": partial(_zlib_encoder, zlib.MAX_WBITS),
    "zstd": _zstd_encoder,
    "br": _brotli_encoder,
}


def _finish(encoders: Sequence[_Encoder]) -> bytes:
    """Return the end of the data through all encoders in order."""
    data = b""
    for encoder in encoders:
        data = (encoder.feed(data) if data else b"") + encoder.finish()
    return data
