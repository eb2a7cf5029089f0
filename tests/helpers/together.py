"""Exchanges of several files on one tape, in memory, as they come out of it again."""

from collections.abc import Iterator, Sequence

from deltatape.model.exchange import EndReason, Exchange, Source
from deltatape.tape import encode
from deltatape.tape.assemble import assemble
from deltatape.tape.decode import decode_header, decode_record
from deltatape.tape.mask import Masker
from deltatape.tape.record import Header
from deltatape.tape.tap import ExchangeTap

_S = 1_000_000_000
_READ = 1000
"""Bytes of a read."""


def taped_together(exchanges: Sequence[Exchange], tape: str = "x.tape") -> Iterator[Exchange]:
    """`exchanges` as a gateway would have taped them, one every ten seconds."""
    header = Header(
        id="01JD3ZQ8T0000000000000PAIR",
        tool="deltatape 0.1.0",
        recorded_at="2026-11-21T20:36:01.000000000Z",
        source=Source.GATEWAY,
    )
    lines = [encode.header_line(header)]

    def put(_: int, line: bytes) -> None:
        lines.append(line)

    masker = Masker(b"k" * 32)
    for number, exchange in enumerate(exchanges, 1):
        _tape(ExchangeTap(number, put, masker), number * 10 * _S, number, exchange)
    records = [(place, decode_record(line)) for place, line in enumerate(lines[1:], 2)]
    return assemble(records, tape=tape, header=decode_header(lines[0]))


def _tape(tap: ExchangeTap, at: int, number: int, exchange: Exchange) -> None:
    request, response = exchange.request, exchange.response
    assert response
    tap.request(
        at,
        id=f"{number:026}",
        method=request.method,
        target=request.target_bytes,
        upstream=request.upstream,
        http=request.http,
        headers=request.headers,
    )
    tap.request_body(at, request.body)
    tap.request_end(at)
    tap.response(
        at,
        status=response.status,
        reason=response.reason,
        http=response.http,
        framing=response.framing,
        headers=response.headers,
    )
    body = exchange.body
    for start in range(0, len(body), _READ):
        at += 1000
        tap.read(at, body[start : start + _READ], None)
    tap.end(at, EndReason.COMPLETE)
