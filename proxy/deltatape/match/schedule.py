"""When to send which bytes: a recorded exchange as a timetable.

Times count from the moment the request was complete, as they did on the tape. The bytes are those
the wire carried: the body as it was read, with the HTTP chunks put back where they ended. Each read
is a step of its own, so that a client that is quick enough gets the same reads; only the head goes
out with the first one, and the terminator with the last one, where they came together.
"""

import enum
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from deltatape.errors import UsageError
from deltatape.model.exchange import (
    BROKEN_CHUNKS,
    CUT_LAST_CHUNK,
    EndReason,
    Exchange,
    Framing,
    Read,
)

_TOGETHER_NS = 1_000_000
"""Records within this time can come from the same read of the socket."""
_LAST_SIZE = b"0\r\n"
_SLOWEST = 0.001
_FASTEST = 1_000_000.0


class ConnectionEnd(enum.Enum):
    """What happens to the connection after the last step."""

    COMPLETE = "complete"
    CLOSE = "close"
    """FIN before the body is complete."""
    RESET = "reset"
    HOLD = "hold"
    """The tape does not show how the provider continued: wait, then cut."""
    ANSWER = "answer"
    """The gateway answered in place of an upstream that could not be reached."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SendStep:
    """Bytes to send, due `due_ns` after the request was complete."""

    due_ns: int
    data: bytes
    brings_read: bool = field(default=True, compare=False)
    """Whether it contains a recorded read; if not, it is only a head or a terminator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timetable:
    """What to send and when; the connection ends as recorded at `end_ns`."""

    steps: tuple[SendStep, ...]
    ending: ConnectionEnd
    end_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayTempo:
    """How recorded time passes: `factor` 2.0 is twice as fast, 0.0 never waits.

    `idle_cap_ns` shortens each wait that is longer.
    """

    factor: float = 1.0
    idle_cap_ns: int | None = None

    def waits(self, instants: Iterable[int]) -> Iterator[int]:
        """Yield the times to play the ascending recorded times at."""
        last = 0
        now = 0
        for instant in instants:
            wait = max(instant - last, 0)
            last = max(instant, last)
            if self.idle_cap_ns is not None:
                wait = min(wait, self.idle_cap_ns)
            now += 0 if self.factor == 0 else round(wait / self.factor)
            yield now


RECORDED = ReplayTempo()
"""The recorded speed."""
INSTANT = ReplayTempo(factor=0.0)
"""Without waiting."""


def parse_speed(text: str) -> float:
    """Return the factor of `recorded`, `instant` or `Nx`.

    Raises:
        UsageError: none of these.
    """
    if text == "recorded":
        return 1.0
    if text == "instant":
        return 0.0
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)x", text)
    if match is None or not _SLOWEST <= float(match[1]) <= _FASTEST:
        raise UsageError(
            f"--speed {text!r}: invalid speed; use recorded, instant, or a factor such as 2x"
        )
    return float(match[1])


def timetable(
    exchange: Exchange,
    tempo: ReplayTempo,
    *,
    head: bytes,
    chunked: bool,
    informational: Sequence[tuple[int, bytes]] = (),
) -> Timetable:
    """Return the timetable of one exchange.

    Args:
        exchange: the recorded exchange.
        tempo: how time passes.
        head: the response head to send, b"" when none was recorded.
        chunked: whether the client understands HTTP chunks (HTTP/1.0 clients get the bare body).
        informational: 1xx heads to send before, with their times on the tape.
    """
    start = exchange.request.t_end_ns or exchange.request.t_ns
    response = exchange.response
    chunked = chunked and response is not None and response.framing is Framing.CHUNKED
    wire = _wire(exchange) if chunked else (read.data for read in exchange.reads)
    parts = [
        _Part(read.t_ns, data, brings_read=True)
        for read, data in zip(exchange.reads, wire, strict=True)
    ]
    if response is not None:
        _put_before(parts, _Part(response.t_ns, head))
    parts[:0] = [_Part(instant, data) for instant, data in informational]
    ending = _ending(exchange)
    end = _end_instant(exchange)
    if ending is ConnectionEnd.COMPLETE and chunked:
        _put_behind(parts, _Part(end, _terminator(exchange)))
    elif chunked and any(note.text.startswith(CUT_LAST_CHUNK) for note in exchange.notes):
        _put_behind(parts, _Part(end, _LAST_SIZE))
    parts = [part for part in parts if part.data]
    due = list(tempo.waits([*(part.t_ns - start for part in parts), end - start]))
    steps = tuple(
        SendStep(due_ns=when, data=part.data, brings_read=part.brings_read)
        for when, part in zip(due, parts, strict=False)
    )
    return Timetable(steps=steps, ending=ending, end_ns=due[-1])


class _Part(NamedTuple):
    """Bytes to send, and when they came."""

    t_ns: int
    data: bytes
    brings_read: bool = False


def _put_before(parts: list[_Part], head: _Part) -> None:
    """Put a head in front, together with the first read if they came so."""
    if parts and parts[0].t_ns - head.t_ns <= _TOGETHER_NS:
        parts[0] = parts[0]._replace(t_ns=head.t_ns, data=head.data + parts[0].data)
    else:
        parts.insert(0, head)


def _put_behind(parts: list[_Part], last: _Part) -> None:
    """Put a terminator behind, together with the last read or the head if they came so."""
    if last.t_ns - parts[-1].t_ns <= _TOGETHER_NS:
        parts[-1] = parts[-1]._replace(data=parts[-1].data + last.data)
    else:
        parts.append(last)


def _terminator(exchange: Exchange) -> bytes:
    """Return the last chunk and the trailers."""
    kept = ((name, value) for name, value in exchange.trailers if isinstance(value, bytes))
    return b"%b%b\r\n" % (_LAST_SIZE, b"".join(b"%b: %b\r\n" % pair for pair in kept))


def _end_instant(exchange: Exchange) -> int:
    if exchange.end is not None:
        return exchange.end.t_ns
    return exchange.reads[-1].t_ns if exchange.reads else exchange.request.t_ns


def _ending(exchange: Exchange) -> ConnectionEnd:
    if exchange.end is None:
        return ConnectionEnd.HOLD if exchange.timed else ConnectionEnd.COMPLETE
    reason = exchange.end.reason
    if reason is EndReason.COMPLETE:
        taped = exchange.body_size
        # Bytes that the recorder lost cannot be played: do not let that look like the end.
        return ConnectionEnd.COMPLETE if taped == exchange.end.bytes else ConnectionEnd.HOLD
    if reason is EndReason.UPSTREAM_RESET:
        return ConnectionEnd.RESET
    if reason is EndReason.UPSTREAM_CLOSED:
        return ConnectionEnd.CLOSE
    unanswered = exchange.response is None
    if unanswered and reason in (EndReason.REFUSED, EndReason.TIMEOUT):
        return ConnectionEnd.ANSWER
    return ConnectionEnd.HOLD


def _wire(exchange: Exchange) -> Iterator[bytes]:
    """Yield each read with its chunk framing; broken framing stays as it came.

    An unfinished last chunk announces one byte too many, so that the client notices the cut.
    """
    broken = next((n.t_ns for n in exchange.notes if n.text.startswith(BROKEN_CHUNKS)), None)
    framed = [read for read in exchange.reads if broken is None or read.t_ns < broken]
    total = sum(len(read.data) for read in framed)
    ends = list(_chunk_ends(framed))
    if not ends or ends[-1] != total:
        finished = exchange.end is not None and exchange.end.reason is EndReason.COMPLETE
        ends.append(total if finished else total + 1)
    at, chunk = 0, 0
    for read in framed:
        out: list[bytes] = []
        taken = 0
        while taken < len(read.data):
            if at == (ends[chunk - 1] if chunk else 0):
                out.append(b"%x\r\n" % (ends[chunk] - at))
            piece = read.data[taken : taken + ends[chunk] - at]
            out.append(piece)
            taken += len(piece)
            at += len(piece)
            if at == ends[chunk]:
                out.append(b"\r\n")
                chunk += 1
        yield b"".join(out)
    yield from (read.data for read in exchange.reads[len(framed) :])


def _chunk_ends(reads: Sequence[Read]) -> Iterator[int]:
    """Yield the offsets in the whole body at which chunks end, ascending, without 0."""
    start = last = 0
    for read in reads:
        ends = (len(read.data),) if read.boundaries is None else read.boundaries
        for end in ends:
            if last < start + end <= start + len(read.data):
                last = start + end
                yield last
        start += len(read.data)
