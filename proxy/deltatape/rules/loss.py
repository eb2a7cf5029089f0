"""Data that the recorder lost, and times in which it was not watching.

A full disk loses whole lines, a disk that hangs stops the recorder, a kill ends the tape. The
missing data was delivered: only the recorder is to blame.

Format: recordings/README.md, "Endings" and "What a reader must bear".
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, pairwise

from deltatape.model.exchange import EndReason, Exchange
from deltatape.model.finding import Confidence, Severity
from deltatape.model.stream import Place, Span
from deltatape.printable import count
from deltatape.rules.context import Claim, RuleContext
from deltatape.rules.rule import exchange_rule

_FIRST_NS, _NEXT_NS = 10_250_000_000, 6_000_000_000
"""While nothing comes a recorder looks every 5 s and writes `idle` if it was silent for so long:
the first one comes within 10 s, the next after 5 s each. In a longer time it did not watch."""
_REFUSED_HEAD = ("the response is not HTTP/1: ", "Cannot parse HTTP response: ")
"""How mitmproxy, and the gateway formerly, say that they refuse a head, which ends the exchange."""
_GAVE_UP = "mitmproxy gave up after "
_EXHAUSTED = (
    "Too many open files",
    "Cannot allocate memory",
    "No buffer space available",
    "Cannot assign requested address",
    "Can't assign requested address",
    "can't start new thread",
)
"""Why the machine of the recorder could not connect to anybody: strerror(3) of Linux and macOS."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """Data that is missing from an exchange."""

    records: int
    """How many records; 0: the tape does not tell."""
    body_bytes: int
    """How many bytes of the response's body."""
    of: int
    """How many the body had."""
    error: str
    """Why, in the system's words; "" if unknown."""
    answer: bool
    """Whether the answer, or what it answers, is not complete on the tape."""


def loss_of(exchange: Exchange) -> Loss | None:
    """Return what the recorder lost of `exchange`, if the tape says so."""
    if not exchange.timed:
        return None
    end = exchange.end
    nameless = not exchange.request.method
    if end is None:
        return Loss(records=0, body_bytes=0, of=0, error="", answer=True) if nameless else None
    here = exchange.body_size
    headless = exchange.response is None and end.reason is EndReason.COMPLETE
    frames = max(0, end.frames.records - len(exchange.frames)) if end.frames else 0
    if not end.recorder and end.bytes <= here and not nameless and not headless and not frames:
        return None
    return Loss(
        records=_number(end.recorder.get("lost_records")) or frames,
        body_bytes=max(0, end.bytes - here),
        of=end.bytes,
        error=str(end.recorder.get("error", "")),
        answer=end.bytes > here
        or nameless
        or frames > 0
        or (exchange.response is None and here > 0),
    )


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


def is_left(exchange: Exchange) -> bool:
    """Return whether the rest of the answer went unread: the client left, or the recorder ended."""
    if exchange.end is None:
        return exchange.cut
    return exchange.end.reason in {EndReason.CLIENT_CLOSED, EndReason.STOPPED}


def is_lossy(exchange: Exchange) -> bool:
    """Return whether the recorder lost some of the exchange or missed its end."""
    return loss_of(exchange) is not None or (exchange.end is None and exchange.cut)


def unwatched_ns(exchange: Exchange, start_ns: int, end_ns: int) -> int:
    """Return how long of a silence no record shows that the recorder was watching.

    The recorder writes `idle` for every exchange while it runs. While a hanging disk or Ctrl-Z
    stops it, it forwards nothing either.
    """
    idle = frozenset(exchange.idle_ns)
    marks = sorted(t_ns for t_ns in _marks(exchange) if start_ns < t_ns < end_ns)
    return sum(
        later - sooner
        for sooner, later in pairwise((start_ns, *marks, end_ns))
        if later - sooner > (_NEXT_NS if sooner in idle else _FIRST_NS)
    )


def _marks(exchange: Exchange) -> Iterator[int]:
    """Yield the times at which records of the exchange were written."""
    request, response, sent = exchange.request, exchange.response, exchange.sent
    heads = (each.t_ns for each in (sent, response) if each is not None)
    return chain(
        exchange.idle_ns,
        (read.t_ns for read in exchange.reads),
        (piece.t_ns for piece in exchange.frames),
        (each.t_ns for each in exchange.delivered),
        (each.t_ns for each in exchange.notes),
        (request.t_ns, request.t_end_ns or 0),
        heads,
    )


def is_refusal(detail: str) -> bool:
    """Return whether an exchange ended because the recorder refused the response head."""
    return detail.startswith(_REFUSED_HEAD)


def is_recorder_timeout(detail: str) -> bool:
    """Return whether the recorder's own timeout ended the exchange."""
    return detail.startswith(_GAVE_UP)


def is_exhausted(detail: str) -> bool:
    """Return whether the recorder's machine ran out of descriptors, memory or ports."""
    return any(each in detail for each in _EXHAUSTED)


@exchange_rule("X002", "recorder-loss", Severity.WARNING, survives_loss=True)
def recorder_loss(context: RuleContext) -> Iterator[Claim]:
    """Report data that is missing from the tape of the exchange."""
    loss, exchange = loss_of(context.exchange), context.exchange
    if loss is None:
        return
    end, size = exchange.end, len(context.stream.body)
    at_end = Place(span=Span(size, size), t_ns=end.t_ns, line=end.line) if end else None
    yield Claim(
        message=_message(loss),
        hint="free disk space, or record to a faster disk (--to FOLDER), then record again",
        blame=None,
        confidence=Confidence.PROVEN,
        place=at_end,
    )


def _message(loss: Loss) -> str:
    records = count(loss.records, "record") if loss.records else "records"
    why = f" ({loss.error})" if loss.error else ""
    lacks = f"the tape is missing {records} of this exchange{why}"
    if loss.body_bytes:
        return f"{lacks}, with {loss.body_bytes} of the {count(loss.of, 'byte')} of the answer"
    return lacks if loss.answer else f"{lacks}; all bytes of the answer were analysed"
