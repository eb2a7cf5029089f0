"""When to send which bytes: a recorded exchange as a timetable.

Times count from the moment the request was whole, as they did on the tape. The bytes are those
the wire carried: the body as it was read, with the HTTP chunks put back where they ended.
"""

import enum
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from deltatape.errors import UsageError
from deltatape.model.exchange import EndReason, Exchange, Framing

_SLOWEST = 0.001
_FASTEST = 1_000_000.0


class Ending(enum.Enum):
    """What becomes of the connection after the last step."""

    COMPLETE = "complete"
    CLOSE = "close"
    """FIN where the body is not whole."""
    RESET = "reset"
    HOLD = "hold"
    """The tape does not say how the provider would have gone on: wait, then cut."""
    ANSWER = "answer"
    """The gateway answered in place of an upstream that could not be reached."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Bytes to send, due `due_ns` after the request was whole."""

    due_ns: int
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Timetable:
    """What to send and when; `end_ns` is when the ending is due."""

    steps: tuple[Step, ...]
    ending: Ending
    end_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Tempo:
    """How recorded time passes: `factor` 2.0 is twice as fast, 0.0 without any waiting.

    `idle_cap_ns` shortens each wait that is longer.
    """

    factor: float = 1.0
    idle_cap_ns: int | None = None

    def waits(self, instants: Iterator[int]) -> Iterator[int]:
        """Recorded instants (ascending) as instants to play them at."""
        last = 0
        now = 0
        for instant in instants:
            wait = max(instant - last, 0)
            last = max(instant, last)
            if self.idle_cap_ns is not None:
                wait = min(wait, self.idle_cap_ns)
            now += 0 if self.factor == 0 else round(wait / self.factor)
            yield now


RECORDED = Tempo()
"""As time passed on the tape."""


def parse_speed(text: str) -> float:
    """`recorded`, `instant` or `Nx` as a factor.

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
            f"--speed {text!r}: not a speed; recorded, instant, or a factor such as 2x or 0.5x is"
        )
    return float(match[1])


def timetable(
    exchange: Exchange,
    tempo: Tempo,
    *,
    head: bytes,
    chunked: bool,
    informational: Sequence[tuple[int, bytes]] = (),
) -> Timetable:
    """The timetable of one exchange.

    Args:
        exchange: the recorded exchange.
        tempo: how time passes.
        head: the response head to send, b"" when none was recorded.
        chunked: whether the client can take HTTP chunks (one of HTTP/1.0 gets the body bare).
        informational: 1xx heads to send before, with their times on the tape.
    """
    start = exchange.request.t_end_ns or exchange.request.t_ns
    response = exchange.response
    chunked = chunked and response is not None and response.framing is Framing.CHUNKED
    pieces = list(_wire(exchange) if chunked else (read.data for read in exchange.reads))
    instants = [read.t_ns for read in exchange.reads]
    if response is not None:
        pieces.insert(0, head)
        instants.insert(0, response.t_ns)
    pieces[:0] = [data for _, data in informational]
    instants[:0] = [instant for instant, _ in informational]
    ending = _ending(exchange)
    if ending is Ending.COMPLETE and chunked:
        pieces.append(_terminator(exchange))
        instants.append(_end_instant(exchange))
    instants.append(_end_instant(exchange))
    due = list(tempo.waits(instant - start for instant in instants))
    steps = tuple(
        Step(due_ns=when, data=data) for when, data in zip(due, pieces, strict=False) if data
    )
    return Timetable(steps=steps, ending=ending, end_ns=due[-1])


def _terminator(exchange: Exchange) -> bytes:
    """The last chunk and the trailers."""
    kept = ((name, value) for name, value in exchange.trailers if isinstance(value, bytes))
    return b"0\r\n%b\r\n" % b"".join(b"%b: %b\r\n" % pair for pair in kept)


def _end_instant(exchange: Exchange) -> int:
    if exchange.end is not None:
        return exchange.end.t_ns
    return exchange.reads[-1].t_ns if exchange.reads else exchange.request.t_ns


def _ending(exchange: Exchange) -> Ending:
    if exchange.end is None:
        return Ending.HOLD if exchange.timed else Ending.COMPLETE
    reason = exchange.end.reason
    if reason is EndReason.COMPLETE:
        taped = sum(len(read.data) for read in exchange.reads)
        # What was lost in taping cannot be played, and its absence must not look like the end.
        return Ending.COMPLETE if taped == exchange.end.bytes else Ending.HOLD
    if reason is EndReason.UPSTREAM_RESET:
        return Ending.RESET
    if reason is EndReason.UPSTREAM_CLOSED:
        return Ending.CLOSE
    unanswered = exchange.response is None
    if unanswered and reason in (EndReason.REFUSED, EndReason.TIMEOUT):
        return Ending.ANSWER
    return Ending.HOLD


def _wire(exchange: Exchange) -> Iterator[bytes]:
    """Each read with its chunk framing.

    An unfinished last chunk announces a byte too many, so that its cut is seen.
    """
    total = sum(len(read.data) for read in exchange.reads)
    ends = list(_chunk_ends(exchange))
    if not ends or ends[-1] != total:
        finished = exchange.end is not None and exchange.end.reason is EndReason.COMPLETE
        ends.append(total if finished else total + 1)
    at, chunk = 0, 0
    for read in exchange.reads:
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


def _chunk_ends(exchange: Exchange) -> Iterator[int]:
    """Offsets in the whole body at which chunks end, ascending, each once, none at 0."""
    start = last = 0
    for read in exchange.reads:
        ends = (len(read.data),) if read.boundaries is None else read.boundaries
        for end in ends:
            if last < start + end <= start + len(read.data):
                last = start + end
                yield last
        start += len(read.data)
