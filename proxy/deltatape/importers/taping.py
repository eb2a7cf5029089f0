"""Write imported exchanges as a tape.

Such a tape has source `import` and no `end`: a file does not tell how the transport ended, so the
tape claims nothing about it. Its times are those of the file, else 0. It has a `stop`, because the
import itself is complete.

Format: recordings/README.md, "Imports".
"""

from collections.abc import Iterable, Sequence

from deltatape.model.exchange import Exchange
from deltatape.tape.encode import header_line
from deltatape.tape.mask import Masker
from deltatape.tape.record import Header
from deltatape.tape.tap import ExchangeTap, TapeTap
from deltatape.wire.websocket import encode_head


def tape_lines(
    exchanges: Sequence[Exchange], *, header: Header, idents: Iterable[str], masker: Masker
) -> list[bytes]:
    """Return the lines of a whole tape with these exchanges.

    Args:
        exchanges: an import, numbered from 1.
        header: the tape's header; its source is `import`.
        idents: a ULID for each exchange.
        masker: makes credentials unreadable.
    """
    lines = [header_line(header)]

    def put(_exchange: int, line: bytes) -> None:
        lines.append(line)

    for exchange, ident in zip(exchanges, idents, strict=False):
        tape_exchange(exchange, ident, ExchangeTap(exchange.number, put, masker))
    last_ns = max((_last_ns(exchange) for exchange in exchanges), default=0)
    TapeTap(put).stop(last_ns, "imported", None)
    return lines


def _last_ns(exchange: Exchange) -> int:
    head = exchange.response.t_ns if exchange.response else 0
    times = [read.t_ns for read in exchange.reads[-1:]]
    times += [piece.t_ns for piece in exchange.frames[-1:]]
    return max(exchange.request.t_ns, head, *times, 0)


def tape_exchange(exchange: Exchange, ident: str, tap: ExchangeTap) -> None:
    """Write an exchange that was not masked yet, at its own times and without an end."""
    request = exchange.request
    tap.request(
        request.t_ns,
        id=ident,
        method=request.method,
        target=request.target_bytes,
        upstream=request.upstream,
        http=request.http,
        headers=request.headers,
    )
    ended_ns = request.t_ns if request.t_end_ns is None else request.t_end_ns
    tap.request_body(ended_ns, request.body)
    tap.request_end(ended_ns)
    response = exchange.response
    if response is not None:
        tap.response(
            response.t_ns,
            status=response.status,
            reason=response.reason,
            http=response.http,
            framing=response.framing,
            headers=response.headers,
        )
    for read in exchange.reads:
        tap.read(read.t_ns, read.data, read.boundaries)
    for piece in exchange.frames:
        assert piece.head is not None  # each is a whole message
        tap.frames(piece.t_ns, piece.side, encode_head(piece.head) + piece.data)
    for note in exchange.notes:
        tap.note(_last_ns(exchange), note.text)
    tap.flush()
