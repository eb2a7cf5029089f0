"""Exchanges as a gateway would have taped them, in a few words."""

import hashlib
import json
from collections.abc import Sequence

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


def taped(  # noqa: PLR0913 - everything has a default
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
) -> Exchange:
    """An exchange: `reads` are (milliseconds, bytes); `framing` None means no response came.

    `boundaries` per read; by default each read ends exactly one chunk.
    """
    data = b"".join(piece for _, piece in reads)
    given = list(boundaries) or [(len(piece),) for _, piece in reads]
    if framing is not Framing.CHUNKED:
        given = [None] * len(reads)
    elif not any(name.lower() == b"transfer-encoding" for name, _ in headers):
        headers = (*headers, (b"Transfer-Encoding", b"chunked"))
    last = end_ms if end_ms is not None else (reads[-1][0] if reads else 5)
    end = End(
        t_ns=last * MS,
        reason=reason or EndReason.COMPLETE,
        bytes=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
        detail=detail,
        recorder={},
        line=None,
    )
    response = ResponseHead(
        status=200,
        reason=b"OK",
        http="1.1",
        framing=framing or Framing.NONE,
        headers=headers,
        t_ns=5 * MS,
        line=None,
    )
    return Exchange(
        tape="x.tape",
        number=number,
        id=f"{number:026}",
        source=Source.GATEWAY,
        recorded_at="2026-11-21T20:36:01.000000000Z",
        request=Request(
            method=method,
            target=(target,),
            upstream="https://api.openai.com",
            http="1.1",
            headers=(),
            body=body if isinstance(body, bytes) else json.dumps(body or {}).encode(),
            t_ns=0,
            t_end_ns=0,
            line=None,
        ),
        response=response if framing else None,
        reads=tuple(
            Read(t_ns=ms * MS, data=piece, boundaries=ends, line=None)
            for (ms, piece), ends in zip(reads, given, strict=True)
        ),
        trailers=trailers,
        end=end if reason else None,
    )
