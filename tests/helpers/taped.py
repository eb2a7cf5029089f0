"""Exchanges as a gateway would have taped them, in a few words."""

import hashlib
import json
from collections.abc import Sequence
from itertools import pairwise

from deltatape.model.exchange import (
    End,
    EndReason,
    Exchange,
    Framing,
    Headers,
    Read,
    Request,
    ResponseHead,
    Source,
)

MS = 1_000_000
IDLE_MS = 5_000
"""How often a recorder notes that it is watching."""


def taped(
    reads: Sequence[tuple[int, bytes]] = ((10, b"data: 1\n\n"),),
    *,
    body: object = None,
    target: bytes = b"/v1/chat/completions",
    method: str = "POST",
    framing: Framing | None = Framing.CHUNKED,
    boundaries: Sequence[tuple[int, ...] | None] = (),
    reason: EndReason | None = EndReason.COMPLETE,
    end_ms: int | None = None,
    number: int = 1,
    headers: Headers = ((b"Content-Type", b"text/event-stream"),),
    detail: str = "",
    trailers: Headers = (),
    upstream: str = "https://api.openai.com",
    informational: tuple[ResponseHead, ...] = (),
) -> Exchange:
    """An exchange: `reads` are (milliseconds, bytes); `framing` None means no response came.

    `boundaries` per read; by default each read ends exactly one chunk.
    """
    chunked = framing is Framing.CHUNKED
    if chunked and not any(name.lower() == b"transfer-encoding" for name, _ in headers):
        headers = (*headers, (b"Transfer-Encoding", b"chunked"))
    if not boundaries:
        boundaries = [(len(piece),) for _, piece in reads]
    data = b"".join(piece for _, piece in reads)
    last_ms = end_ms if end_ms is not None else (reads[-1][0] if reads else 5)
    return Exchange(
        tape="x.tape",
        number=number,
        id=f"{number:026}",
        source=Source.GATEWAY,
        recorded_at="2026-11-21T20:36:01.000000000Z",
        request=Request(
            method=method,
            target=(target,),
            upstream=upstream,
            http="1.1",
            headers=(),
            body=body if isinstance(body, bytes) else json.dumps(body or {}).encode(),
            t_ns=0,
            t_end_ns=0,
            line=None,
        ),
        informational=informational,
        response=ResponseHead(
            status=200,
            reason=b"OK",
            http="1.1",
            framing=framing,
            headers=headers,
            t_ns=5 * MS,
            line=None,
        )
        if framing
        else None,
        reads=tuple(
            Read(t_ns=ms * MS, data=piece, boundaries=ends if chunked else None, line=None)
            for (ms, piece), ends in zip(reads, boundaries, strict=True)
        ),
        trailers=trailers,
        idle_ns=idle_times(*(ms for ms, _ in reads), last_ms),
        end=End(
            t_ns=last_ms * MS,
            reason=reason,
            bytes=len(data),
            sha256=hashlib.sha256(data).hexdigest(),
            detail=detail,
            recorder={},
            line=None,
        )
        if reason
        else None,
    )


def idle_times(*marks_ms: int) -> tuple[int, ...]:
    """When a running recorder writes `idle` in the silences between `marks_ms`, in ns."""
    known = sorted({0, *marks_ms})
    return tuple(
        ms * MS
        for sooner, later in pairwise(known)
        for ms in range(sooner + IDLE_MS, later, IDLE_MS)
    )
