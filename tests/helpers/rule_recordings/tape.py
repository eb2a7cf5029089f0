"""Tapes of scripted exchanges, as a gateway would have recorded them.

Everything is fixed, ids and times included: the same code makes the same bytes.

Source: recordings/README.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from deltatape.model.exchange import EndReason, Framing, Headers, Source, Tap
from deltatape.tape import encode
from deltatape.tape.mask import Masker
from deltatape.tape.record import Header
from deltatape.tape.tap import ExchangeTap, TapeTap
from helpers.sample_streams import SSE, json_text

MS = 1_000_000
S = 1_000 * MS
HOST = "https://api.openai.com"
PATH = "/v1/chat/completions"

Json = dict[str, object]
TimedRead = tuple[float, bytes]
"""Seconds since the request came, and bytes of one read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedExchange:
    """One exchange.

    Args:
        reads: the response's body; those without times come every `interval_s`.
        request: the request's JSON body.
        at_s: when the request came, in seconds since the tape began; None: two seconds after that
            of the exchange before.
        end_s: when the exchange ended, in seconds since its request; None: with the last read.
        delivered: when the client had taken so many bytes, in seconds since the request.
        content_type: of the response; "" for none.
        lost: the reads, counted from 0, that the recorder could not write.
        held_up: whether the recorder wrote no idle records either.
        stop_s: when the recorder stopped, if this is the last exchange; 0: right after it.
    """

    reads: Sequence[bytes | TimedRead]
    request: Json = field(default_factory=lambda: {"model": "m", "stream": True, "messages": []})
    host: str = HOST
    target: str = PATH
    content_type: str = SSE
    headers: tuple[tuple[str, str], ...] = ()
    status: int = 200
    reason: EndReason = EndReason.COMPLETE
    tap: Tap = Tap.PROVIDER
    at_s: float | None = None
    end_s: float | None = None
    delivered: tuple[tuple[float, int], ...] = ()
    lost: frozenset[int] = frozenset()
    held_up: bool = False
    stop_s: float = 0.0
    interval_s: float = 0.02


def tape_of(exchanges: ScriptedExchange | Sequence[ScriptedExchange], number: int) -> bytes:
    """The whole tape.

    Args:
        exchanges: in the order of their requests, none before the end of the one before it.
        number: makes the tape's ids its own.
    """
    if isinstance(exchanges, ScriptedExchange):
        exchanges = [exchanges]
    header = Header(
        id=f"01KAWT5C8000000000FA{number:06}",
        tool="deltatape 0.1.0",
        recorded_at="2026-11-22T05:30:00.000000000Z",
        source=Source.GATEWAY,
    )
    lines = [encode.header_line(header)]
    writer = _LossyWriter(lines)
    masker = Masker(b"k" * 32)
    tape = TapeTap(writer.put, masker)
    tape.note(0, "an invented exchange, made by scripts/tape-rules")
    end_ns = 0
    for place, exchange in enumerate(exchanges, 1):
        tap = ExchangeTap(place, writer.put, masker)
        at_s = 2.0 * (place - 1) if exchange.at_s is None else exchange.at_s
        start_ns = _ns(at_s) + MS
        _write_heads(tap, exchange, start_ns, f"01KAWT5C9000000000FE{number * 10 + place:06}")
        end_ns = _write_body(tap, writer, exchange, start_ns)
    tape.stop(max(end_ns + 9 * MS, _ns(exchanges[-1].stop_s)), "interrupted", None)
    return b"".join(lines)


class _LossyWriter:
    """Writes lines, except while `lose` is set."""

    def __init__(self, lines: list[bytes]) -> None:
        self.lose = False
        self._lines = lines
        self._lost = [0, 0]

    def put(self, _: int, line: bytes) -> None:
        """See `TapeWriter.put`."""
        if self.lose:
            self._lost = [self._lost[0] + 1, self._lost[1] + len(line)]
        else:
            self._lines.append(line)

    def losses(self) -> dict[str, object]:
        """See `LossCounter.of`; the count starts anew."""
        (records, size), self._lost = self._lost, [0, 0]
        if not records:
            return {}
        return {"lost_records": records, "lost_bytes": size, "error": "No space left on device"}


def _ns(seconds: float) -> int:
    return round(seconds * 1000) * MS


def _write_heads(
    tap: ExchangeTap, exchange: ScriptedExchange, start_ns: int, exchange_id: str
) -> None:
    body = json_text(exchange.request).encode()
    tap.request(
        start_ns,
        id=exchange_id,
        method="POST",
        target=exchange.target.encode(),
        upstream=exchange.host,
        http="1.1",
        headers=_encoded(
            ("Host", exchange.host.partition("://")[2]),
            ("Content-Type", "application/json"),
            ("Content-Length", str(len(body))),
        ),
        tap=exchange.tap,
    )
    tap.request_body(start_ns, body)
    tap.request_end(start_ns)
    tap.sent(start_ns + MS, connect_ns=0, tls_ns=0, reused=True)
    media = (("Content-Type", exchange.content_type),) if exchange.content_type else ()
    tap.response(
        start_ns + 5 * MS,
        status=exchange.status,
        reason=b"OK" if exchange.status == 200 else b"",
        http="1.1",
        framing=Framing.CHUNKED,
        headers=_encoded(*media, ("Transfer-Encoding", "chunked"), *exchange.headers),
    )


def _write_idle(tap: ExchangeTap, exchange: ScriptedExchange, last_ns: int, until_ns: int) -> None:
    """Write every 5 s of a silence that the recorder still watches."""
    if not exchange.held_up:
        for at_ns in range(last_ns + 5 * S, until_ns, 5 * S):
            tap.idle(at_ns)


def _write_body(
    tap: ExchangeTap, writer: _LossyWriter, exchange: ScriptedExchange, start_ns: int
) -> int:
    """Write the response's body and its end; return when that was."""
    last_ns = start_ns + 5 * MS
    deliveries = [(start_ns + _ns(at_s), size) for at_s, size in exchange.delivered]
    for place, read in enumerate(exchange.reads, 1):
        at_s, data = read if isinstance(read, tuple) else (exchange.interval_s * place, read)
        at_ns = max(last_ns, start_ns + _ns(at_s))
        _write_idle(tap, exchange, last_ns, at_ns)
        last_ns = at_ns
        while deliveries and deliveries[0][0] < last_ns:
            tap.delivered(*deliveries.pop(0))
        writer.lose = place - 1 in exchange.lost
        tap.read(last_ns, data, (len(data),))
        writer.lose = False
    for at_ns, size in deliveries:
        last_ns = max(last_ns, at_ns)
        tap.delivered(last_ns, size)
    end_ns = max(last_ns + MS, start_ns + _ns(exchange.end_s or 0.0))
    _write_idle(tap, exchange, last_ns, end_ns)
    tap.end(end_ns, exchange.reason, recorder=writer.losses())
    return end_ns


def _encoded(*fields: tuple[str, str]) -> Headers:
    return tuple((name.encode(), value.encode()) for name, value in fields)
