"""Tapes of staged exchanges: what a gateway would have taped had a provider done just that.

For recordings of single defects, as short as they can be. Everything is fixed, ids and times
included: the same code makes the same bytes.

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
Timed = tuple[float, bytes]
"""Seconds since the request came, and bytes of one read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Staged:
    """One exchange.

    Args:
        reads: the response's body; without times a read comes every 20 ms.
        request: the request's JSON body.
        at_s: when the request came, in seconds since the tape began.
        end_s: when the exchange ended, in seconds since its request; None: with the last read.
        delivered: when the client had taken so many bytes, in seconds since the request.
        content_type: of the response; "" for none.
        lost: the reads, counted from 0, that the recorder could not write.
        held_up: whether the recorder wrote no idle records either.
    """

    reads: Sequence[bytes | Timed]
    request: Json = field(default_factory=lambda: {"model": "m", "stream": True, "messages": []})
    host: str = HOST
    target: str = PATH
    content_type: str = SSE
    headers: tuple[tuple[str, str], ...] = ()
    status: int = 200
    framing: Framing = Framing.CHUNKED
    reason: EndReason = EndReason.COMPLETE
    tap: Tap = Tap.PROVIDER
    at_s: float = 0.0
    end_s: float | None = None
    delivered: tuple[tuple[float, int], ...] = ()
    lost: frozenset[int] = frozenset()
    held_up: bool = False


def tape_of(
    exchanges: Sequence[Staged], number: int, *, stop_s: float = 0.0, exit_code: int | None = None
) -> bytes:
    """The whole tape.

    Args:
        exchanges: in the order of their requests, none before the end of the one before it.
        number: makes the tape's ids its own.
        stop_s: when the recorder stopped, if later than the last exchange ended.
        exit_code: of the application that had been started by the recorder, if one was.
    """
    lines = [encode.header_line(_header(number))]
    taking = _Taking(lines)
    masker = Masker(b"k" * 32)
    tape = TapeTap(taking.put, masker)
    tape.note(0, "an invented exchange, made by scripts/tape-rules")
    last_ns = 0
    for place, staged in enumerate(exchanges, 1):
        tap = ExchangeTap(place, taking.put, masker)
        last_ns = _play(tap, taking, staged, number * 10 + place)
    why = "interrupted" if exit_code is None else "child-exit"
    tape.stop(max(last_ns + 9 * MS, _ns(stop_s)), why, exit_code)
    return b"".join(lines)


class _Taking:
    """Takes lines, but those that are lost."""

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
        """See `LossCounter.of`; then it counts anew."""
        (records, size), self._lost = self._lost, [0, 0]
        if not records:
            return {}
        return {"lost_records": records, "lost_bytes": size, "error": "No space left on device"}


def _header(number: int) -> Header:
    return Header(
        id=f"01KAWT5C8000000000FA{number:06}",
        tool="deltatape 0.1.0",
        recorded_at="2026-11-22T05:30:00.000000000Z",
        source=Source.GATEWAY,
    )


def _ns(seconds: float) -> int:
    return round(seconds * 1000) * MS


def _play(tap: ExchangeTap, taking: _Taking, staged: Staged, number: int) -> int:
    """Writes the exchange; when it ended."""
    start_ns = _ns(staged.at_s) + MS
    body = json_text(staged.request).encode()
    tap.request(
        start_ns,
        id=f"01KAWT5C9000000000FE{number:06}",
        method="POST",
        target=staged.target.encode(),
        upstream=staged.host,
        http="1.1",
        headers=_encoded(
            ("Host", staged.host.partition("://")[2]),
            ("Content-Type", "application/json"),
            ("Content-Length", str(len(body))),
        ),
        tap=staged.tap,
    )
    tap.request_body(start_ns, body)
    tap.request_end(start_ns)
    tap.sent(start_ns + MS, connect_ns=0, tls_ns=0, reused=True)
    _respond(tap, staged, start_ns + 5 * MS)
    return _carry(tap, taking, staged, start_ns)


def _respond(tap: ExchangeTap, staged: Staged, t_ns: int) -> None:
    media = (("Content-Type", staged.content_type),) if staged.content_type else ()
    chunked = (("Transfer-Encoding", "chunked"),) if staged.framing is Framing.CHUNKED else ()
    tap.response(
        t_ns,
        status=staged.status,
        reason=b"OK" if staged.status == 200 else b"",
        http="1.1",
        framing=staged.framing,
        headers=_encoded(*media, *chunked, *staged.headers),
    )


def _watch(tap: ExchangeTap, staged: Staged, last_ns: int, until_ns: int) -> None:
    """Says every 5 s of a silence that the recorder still watches."""
    for at_ns in range(last_ns + 5 * S, until_ns, 5 * S):
        if not staged.held_up:
            tap.idle(at_ns)


def _carry(tap: ExchangeTap, taking: _Taking, staged: Staged, start_ns: int) -> int:
    """Writes the response's body and its end; when that was."""
    last_ns = start_ns + 5 * MS
    deliveries = [(start_ns + _ns(at_s), size) for at_s, size in staged.delivered]
    for place, read in enumerate(staged.reads, 1):
        at_s, data = read if isinstance(read, tuple) else (0.02 * place, read)
        at_ns = max(last_ns, start_ns + _ns(at_s))
        _watch(tap, staged, last_ns, at_ns)
        last_ns = at_ns
        while deliveries and deliveries[0][0] < last_ns:
            tap.delivered(*deliveries.pop(0))
        ends = (len(data),) if staged.framing is Framing.CHUNKED else None
        taking.lose = place - 1 in staged.lost
        tap.read(last_ns, data, ends)
        taking.lose = False
    for at_ns, size in deliveries:
        last_ns = max(last_ns, at_ns)
        tap.delivered(last_ns, size)
    end_ns = max(last_ns + MS, start_ns + _ns(staged.end_s or 0.0))
    _watch(tap, staged, last_ns, end_ns)
    tap.end(end_ns, staged.reason, recorder=taking.losses())
    return end_ns


def _encoded(*fields: tuple[str, str]) -> Headers:
    return tuple((name.encode(), value.encode()) for name, value in fields)
