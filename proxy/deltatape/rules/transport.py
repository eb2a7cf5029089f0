"""Responses that were cut off, or arrived all at once."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from deltatape.model.exchange import INVALID_HEAD, EndReason, Exchange, header
from deltatape.model.finding import Blame, Confidence, Excluded, Severity
from deltatape.model.reply import CallStatus
from deltatape.model.stream import Place, Span
from deltatape.printable import count
from deltatape.rules.context import NS, Claim, RuleContext, label
from deltatape.rules.framing import is_torn
from deltatape.rules.loss import is_exhausted, is_recorder_timeout, is_refusal, unwatched_ns
from deltatape.rules.rule import exchange_rule

LEFT = "the client closed the connection"
DISCONNECTED = "the client disconnected"
GAVE_UP = f"{DISCONNECTED} after"
"""How the message begins if the client disconnected after a silence."""
TIMED_OUT = "equal to its read timeout"
"""The clause if the client's own head names a timeout that has expired."""
STALLED = "(the upstream stalled)"
"""The remark if the silence was so long that the client's timeout is not to blame."""
NOT_SENT = "before the request was sent upstream"
"""The clause if the request had not been forwarded yet."""
_NOTICED_NS = 1 * NS
"""A shorter silence is not why a client disconnects."""
_TIMEOUTS = ("x-stainless-read-timeout", "x-stainless-timeout")
"""Header fields with the timeout of the SDKs of OpenAI, Anthropic and others, in seconds."""
_EARLY, _LATE = 0.1, 0.5
"""How much earlier or later than its timeout a client may disconnect, in seconds."""


@exchange_rule("W006", "stream-cut", Severity.ERROR, at_end=True)
def stream_cut(context: RuleContext) -> Iterator[Claim]:
    """Report a connection that ended before the response was complete."""
    if not context.exchange.cut:
        return
    end = context.exchange.end
    if end is not None and end.reason is EndReason.CLIENT_CLOSED:
        if not _lost_nothing(context):
            yield _disconnect_claim(context)
        return
    ending = _ending(context.exchange)
    detail = f" ({end.detail})" if end and end.detail else ""
    confidence = _confidence(context, ending)
    yield Claim(
        message=f"{ending.what}{detail}{_place_of_end(context)}",
        hint=ending.hint,
        blame=ending.blame,
        confidence=confidence,
        severity=_severity(context, ending),
        place=_last_place(context),
        evidence=_tail(context),
        excluded=_TRIED if ending.blame and confidence is Confidence.PROVEN else (),
    )


@dataclass(frozen=True, slots=True)
class _Ending:
    """The meaning of an end reason for blame."""

    what: str
    hint: str
    blame: Blame | None


_TRIED = (
    Excluded(
        "the client disconnected first",
        ("it was still connected when the other side closed the connection"),
    ),
    Excluded(
        "the recorder cut it, or lost the rest",
        "the recorder was not stopped, could connect, and wrote everything that it read",
    ),
)
_CLOSED_HINT = (
    "check idle timeouts and restarts of servers and proxies between here and the provider"
)
_ABRUPT_HINT = (
    "check restarts and crashes of servers and proxies between here and the provider, and how long"
    " they let a response take; the connection was not idle"
)
_ENDINGS = {
    EndReason.UPSTREAM_CLOSED: _Ending(
        "the upstream closed the connection before the response was complete",
        _CLOSED_HINT,
        Blame.TRANSPORT,
    ),
    EndReason.UPSTREAM_RESET: _Ending(
        "the connection to the upstream was reset", _CLOSED_HINT, Blame.TRANSPORT
    ),
    EndReason.TIMEOUT: _Ending(
        "the recorder timed out waiting for the upstream",
        "nothing came from the upstream: check the network and the provider's status",
        Blame.TRANSPORT,
    ),
    EndReason.REFUSED: _Ending(
        "the recorder could not connect to the upstream",
        "check the upstream's address, DNS, the proxy settings and the certificate",
        Blame.TRANSPORT,
    ),
    EndReason.STOPPED: _Ending(
        "the recorder was stopped during the response",
        "the tape does not show what came afterwards: record again and let it finish",
        None,
    ),
    None: _Ending(
        "the tape ends: the recorder was killed or crashed before this response had ended",
        "the tape does not show what came afterwards: record again",
        None,
    ),
}
_UNSEEN = _Ending(
    (
        "the tape ends before the end of this response, although the recorder kept running: it"
        " could not write any more"
    ),
    (
        "the tape does not show what came afterwards; the recorder printed the reason when it"
        " ran: record again"
    ),
    None,
)
_EXHAUSTED = _Ending(
    "the recorder could not connect: its machine had no file descriptors, memory or ports left",
    "raise the limit (ulimit -n) for the recorder, or close what uses so many connections",
    None,
)
_NOT_TAKEN = _Ending(
    "the recorder rejected the head of the response, and ended the exchange itself",
    "other recorders may accept such a head: record with --via mitm, and report it with the tape",
    None,
)
_INVALID_HEAD = _Ending(
    (
        "the response head is not valid HTTP/1: the recorder passed its bytes on as they came, and"
        " cannot tell where the response ends"
    ),
    "write a valid head at the server or gateway: clients differ in what they make of this one",
    None,
)
_TIMED_OUT = _Ending(
    "the recorder's own timeout expired",
    "give mitmproxy a longer tcp_timeout; finding D001 reports why nothing came",
    None,
)


def _ending(exchange: Exchange) -> _Ending:
    """Return how the exchange ended, unless the client disconnected."""
    end = exchange.end
    if end is None:
        stopped = exchange.watch is not None and exchange.watch.stop is not None
        return _UNSEEN if stopped else _ENDINGS[None]
    if end.reason is EndReason.REFUSED and is_exhausted(end.detail):
        return _EXHAUSTED
    if is_refusal(end.detail):
        return _NOT_TAKEN
    if end.detail.startswith(INVALID_HEAD):
        return _INVALID_HEAD
    if is_recorder_timeout(end.detail):
        return _TIMED_OUT
    ending = _ENDINGS[end.reason]
    if ending.hint is _CLOSED_HINT and exchange.timed and _silence_ns(exchange) < _NOTICED_NS:
        return replace(ending, hint=_ABRUPT_HINT)
    return ending


def _half_calls(context: RuleContext) -> list[str]:
    return [label(call) for _, call in context.calls() if call.status is CallStatus.TRUNCATED]


def _place_of_end(context: RuleContext) -> str:
    """Describe where in the answer the connection ended."""
    stream = context.stream
    if context.exchange.response is None:
        return ", before any response"
    if not stream.body:
        return ", before the first byte of the body"
    if context.reply.terminated:
        return ", after the terminal event: the answer is complete"
    inside = ", in the middle of an event" if is_torn(stream) else ""
    if half := _half_calls(context):
        return f"{inside}, in the arguments of {' and '.join(half)}"
    if any(choice.finish_reason_raw for choice in context.reply.choices):
        return f"{inside}, after the finish reason"
    return f"{inside}, after {len(stream.events)} events and before the end of the answer"


def _severity(context: RuleContext, ending: _Ending) -> Severity:
    """Return a higher severity the more is missing; no error if only the recording ended."""
    if context.reply.terminated:
        return Severity.INFO
    return Severity.WARNING if ending.blame is None else Severity.ERROR


def _confidence(context: RuleContext, ending: _Ending) -> Confidence:
    """Return the confidence: between two events, provider and network failures look the same."""
    end = context.exchange.end
    if ending.blame is not Blame.TRANSPORT:
        return Confidence.PROVEN
    if end is not None and end.reason is EndReason.TIMEOUT:
        return Confidence.LIKELY
    torn = is_torn(context.stream) or context.exchange.response is None
    reset = end is not None and end.reason in {EndReason.UPSTREAM_RESET, EndReason.REFUSED}
    return Confidence.PROVEN if reset or torn else Confidence.LIKELY


def _lost_nothing(context: RuleContext) -> bool:
    """Return whether the client lost nothing by disconnecting, as after an error."""
    reply = context.reply
    if reply.terminated or reply.error is not None:  # which a status from 400 on is, too
        return True
    return bool(reply.choices) and all(choice.finish_reason_raw for choice in reply.choices)


def _disconnect_claim(context: RuleContext) -> Claim:
    """Describe a client that disconnected in the middle of an answer."""
    end = context.exchange.end
    detail = f" ({end.detail})" if end and end.detail else ""
    hint = "if the user did not stop it, look for a timeout or an exception in the app"
    what = LEFT
    exchange = context.exchange
    silence_ns = _silence_ns(exchange)
    if silence_ns >= _NOTICED_NS:
        what = f"{GAVE_UP} {silence_ns / NS:.1f} s without data{_timeout(exchange)}"
        hint = "if the user did not stop it, give the app's client a longer timeout, and ask again"
    if exchange.sent is None and exchange.response is None:
        what = f"{what}, {NOT_SENT}"
    elif silence_ns >= context.settings.stall_s * NS and _was_watched(exchange, silence_ns):
        what = f"{what} {STALLED}"
    return Claim(
        message=f"{what}{detail}{_place_of_end(context)}",
        hint=hint,
        blame=None,
        confidence=Confidence.POSSIBLE,
        severity=Severity.INFO,
        place=_last_place(context),
        evidence=_tail(context),
    )


def _was_watched(exchange: Exchange, silence_ns: int) -> bool:
    end_ns = exchange.end.t_ns if exchange.end else 0
    return not unwatched_ns(exchange, end_ns - silence_ns, end_ns)


def _silence_ns(exchange: Exchange) -> int:
    """Return for how long nothing had arrived when the exchange ended."""
    heads = (each for each in (exchange.sent, exchange.response) if each is not None)
    known = [exchange.request.t_ns, *(each.t_ns for each in heads)]
    known += [read.t_ns for read in exchange.reads[-1:]]
    return exchange.end.t_ns - max(known) if exchange.end else 0


def _timeout(exchange: Exchange) -> str:
    """Describe the timeout in the client's head, if it had just expired; else ""."""
    headers = exchange.request.headers
    values = (header(headers, name) for name in _TIMEOUTS)
    limit_s = next((_seconds(value) for value in values if value), None)
    if limit_s is None or exchange.end is None:
        return ""
    waited = (_silence_ns(exchange), exchange.end.t_ns - exchange.request.t_ns)
    if not any(-_EARLY <= ns / NS - limit_s <= _LATE for ns in waited):
        return ""
    return f", {TIMED_OUT} ({limit_s:g} s)"


def _seconds(value: bytes) -> float | None:
    try:
        return float(value)
    except ValueError:
        return None


def _tail(context: RuleContext) -> str:
    return context.stream.body[-200:].decode("utf-8", "backslashreplace")


def _last_place(context: RuleContext) -> Place | None:
    """Return the end of the data, at the time at which the connection ended."""
    exchange, size = context.exchange, len(context.stream.body)
    last = exchange.reads[-1] if exchange.reads else None
    if exchange.end:
        return Place(span=Span(size, size), t_ns=exchange.end.t_ns, line=exchange.end.line)
    return Place(span=Span(size, size), t_ns=last.t_ns, line=last.line) if last else None


_FLUSHED = 0.5
"""How many reads for each event a buffer yields at most. A model that had to wait in a queue, and
is fast then, sends each event alone."""


@exchange_rule("W007", "buffered-burst", Severity.WARNING)
def buffered_burst(context: RuleContext) -> Iterator[Claim]:
    """Report a response that arrives all at once, after a long silence."""
    exchange, events, settings = context.exchange, context.stream.events, context.settings
    if not exchange.timed or len(events) < settings.burst_events:
        return
    asked_ns = exchange.sent.t_ns if exchange.sent else exchange.request.t_ns
    wait_ns = events[0].t_ns - asked_ns
    burst_ns = events[-1].t_ns - events[0].t_ns
    if wait_ns < settings.burst_wait_s * NS or burst_ns > settings.burst_share * wait_ns:
        return
    reads = len(exchange.reads)
    flushed = reads <= _FLUSHED * len(events)
    yield Claim(
        message=(
            f"{len(events)} events came within {burst_ns / NS:.3f} s after"
            f" {wait_ns / NS:.1f} s without data, in {count(reads, 'read')}: a"
            " proxy or server"
            + (" buffered the stream" if flushed else " may have buffered the stream")
        ),
        hint="switch off response buffering and compression on every hop of the stream",
        blame=Blame.UPSTREAM,
        confidence=Confidence.LIKELY if flushed else Confidence.POSSIBLE,
        at=events[0],
        evidence=events[0].data,
    )
