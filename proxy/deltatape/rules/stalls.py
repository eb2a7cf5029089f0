"""Times without data or progress: stalls, silence after tool results, slow clients."""

from collections.abc import Collection, Iterator
from typing import NamedTuple

from deltatape.model.exchange import EndReason
from deltatape.model.finding import Blame, Confidence, Excluded, Severity
from deltatape.model.reply import CallKind
from deltatape.model.stream import Format, Place, Span
from deltatape.printable import count
from deltatape.rules.context import NS, Claim, RuleContext, label
from deltatape.rules.progress import (
    NOT_WATCHED,
    Silence,
    SilencePhase,
    lags,
    not_watched,
    silence_after_result,
    silences,
)
from deltatape.rules.rule import exchange_rule

ALIVE = (
    Excluded("the recorder was held up", "keep-alives passed through it during this time"),
    Excluded("the connection was broken", "keep-alives came over it during this time"),
)
"""Why the sender of keep-alives causes the silence between them."""
_KEEP_ALIVE, _EMPTY = "keep-alive comment", "empty event"
_QUIET = 0.7
"""Signs of life prove something if they came within the silence, not at its edges."""
_THEN = {
    EndReason.COMPLETE: "the response ended",
    EndReason.UPSTREAM_CLOSED: "the upstream closed the connection",
    EndReason.UPSTREAM_RESET: "the connection was reset",
    EndReason.CLIENT_CLOSED: "the client disconnected",
    EndReason.TIMEOUT: "the recorder timed out",
    EndReason.REFUSED: "the connection failed",
    EndReason.STOPPED: "the recorder was stopped",
}


@exchange_rule("D001", "stall", Severity.WARNING)
def stall(context: RuleContext) -> Iterator[Claim]:
    """Report a long time without progress."""
    for silence in _stalls(context):
        blame, confidence = _stall_blame(context, silence)
        yield Claim(
            message=_stall_message(context, silence),
            hint=_stall_hint(context, silence),
            blame=blame,
            confidence=confidence,
            severity=_stall_severity(context, silence),
            at=silence.after,
            evidence=silence.after.data if silence.after else "",
            excluded=ALIVE if confidence is Confidence.PROVEN else (),
        )


def _stalls(context: RuleContext) -> Iterator[Silence]:
    for silence, code in _silences(context, int(context.settings.stall_s * NS)):
        if code == STALL:
            yield silence


STALL, AFTER_RESULT = "D001", "D004"
SILENCE_NS = NS
"""A silence that a person notices."""


class DeadZone(NamedTuple):
    """A silence, and the code of the finding that reports it; None: none does."""

    silence: Silence
    code: str | None


def dead_zones(context: RuleContext, reported: Collection[str]) -> Iterator[DeadZone]:
    """Yield the silences of a stream that a person notices or a finding reports, in order.

    Args:
        context: the context of the stream.
        reported: the codes of the findings on its exchange.
    """
    settings = context.settings
    least_ns = int(min(settings.stall_s, settings.after_result_s) * NS)
    for silence, code in _silences(context, min(SILENCE_NS, least_ns)):
        yield DeadZone(silence, code if code in reported else None)


def _silences(context: RuleContext, least_ns: int) -> Iterator[DeadZone]:
    """Yield the silences that last so long, with the codes of the rules about them."""
    timed = context.exchange.timed
    after_result = silence_after_result(context)
    for silence in silences(context, least_ns):
        stalls = silence.end_ns - silence.start_ns >= int(context.settings.stall_s * NS)
        if silence == after_result:
            yield DeadZone(silence, AFTER_RESULT)
        elif timed and stalls and not _is_awaited(context, silence):
            yield DeadZone(silence, STALL)
        else:
            yield DeadZone(silence, None)


_HINTS = {
    SilencePhase.BEFORE_FIRST: (
        "a long prompt, a reasoning model or a queue; show the user that the app is waiting"
    ),
    SilencePhase.IN_TEXT: (
        "in the client, set a timeout on progress instead of bytes, and offer to ask again"
    ),
    SilencePhase.IN_ARGUMENTS: (
        "request fine-grained streaming of arguments, or allow for such pauses in timeouts"
    ),
    SilencePhase.AFTER_CALL: (
        "the call was complete: a client may run it as soon as the finish reason is there"
    ),
    SilencePhase.BEFORE_END: (
        "stop reading at the terminal event instead of waiting for the end of the body"
    ),
}


def _stall_hint(context: RuleContext, silence: Silence) -> str:
    if not _is_known(silence, context.settings.stall_s):
        return NOT_WATCHED
    if context.reply.from_app and silence.phase is SilencePhase.AFTER_CALL:
        return (
            "the tool is slow or hangs: show the page that it is running, and set a timeout for it"
        )
    if _runs_tool(silence):
        return "a tool that the provider runs takes its time; show the user that the app is waiting"
    return _HINTS[silence.phase]


def _is_awaited(context: RuleContext, silence: Silence) -> bool:
    """Return whether no stream was requested, and the complete answer came after the silence."""
    if silence.open or context.request.stream or not context.request.known:
        return False
    short = silence.end_ns - silence.start_ns < context.settings.stall_error_s * NS
    return short and context.stream.format is Format.JSON


def _may_be_work(context: RuleContext, silence: Silence) -> bool:
    """Return whether a healthy provider may be silent so long.

    A model thinks or waits in a queue before its first event; a tool that the provider runs takes
    its time. A client that leaves before the first event may not have wanted to wait for that.
    """
    if silence.open:
        end = context.exchange.end
        left = end is not None and end.reason is EndReason.CLIENT_CLOSED
        return left and silence.phase is SilencePhase.BEFORE_FIRST
    waits = silence.phase is SilencePhase.BEFORE_FIRST or _runs_tool(silence)
    return waits and context.reply.terminated


def _runs_tool(silence: Silence) -> bool:
    return silence.call is not None and silence.call.kind in (CallKind.SERVER, CallKind.MCP)


def _stall_message(context: RuleContext, silence: Silence) -> str:
    seconds = (silence.end_ns - silence.start_ns) / NS
    where = f" of {label(silence.call)}" if silence.call else ""
    signs = _signs_of_life((silence.comments, _KEEP_ALIVE), (silence.idle_events, _EMPTY))
    noise = f", with {' and '.join(signs)} in between" if signs else ""
    then = _after_silence(context, silence)
    unseen = not_watched(silence)
    return f"no progress for {seconds:.1f} s ({silence.phase}{where}){noise}{unseen}; {then}"


def _after_silence(context: RuleContext, silence: Silence) -> str:
    if not silence.open:
        return "then data came again"
    if context.exchange.open:
        return "the exchange is still going on"
    end = context.exchange.end
    return f"then {_THEN[end.reason]}" if end else "then the tape ends"


def _stall_severity(context: RuleContext, silence: Silence) -> Severity:
    """Return an error if the answer stopped for good, or for longer than common timeouts."""
    if not _is_known(silence, context.settings.stall_s):
        return Severity.INFO
    if _may_be_work(context, silence):
        return Severity.WARNING
    long = silence.watched_ns >= context.settings.stall_error_s * NS
    if silence.open and not context.reply.terminated:
        return Severity.ERROR
    return (
        Severity.ERROR
        if long and silence.phase is not SilencePhase.BEFORE_END
        else Severity.WARNING
    )


def _stall_blame(context: RuleContext, silence: Silence) -> tuple[Blame | None, Confidence]:
    """Decide whose stall it is: keep-alives prove a live connection, a client may block reading.

    None if it may be nobody's.
    """
    if not _is_known(silence, context.settings.stall_s):
        return None, Confidence.POSSIBLE
    half = (silence.end_ns - silence.start_ns) / 2
    for lag in lags(context.exchange):
        shared = min(lag.end_ns, silence.end_ns) - max(lag.start_ns, silence.start_ns)
        if shared >= half:
            return Blame.APP, Confidence.LIKELY
    if _may_be_work(context, silence):
        return None, Confidence.POSSIBLE
    if silence.quiet_ns <= _QUIET * (silence.end_ns - silence.start_ns):
        return Blame.UPSTREAM, Confidence.LIKELY if silence.unwatched_ns else Confidence.PROVEN
    if context.exchange.end is None and silence.open and not context.exchange.open:
        return None, Confidence.POSSIBLE
    return Blame.UPSTREAM, Confidence.LIKELY


def _is_known(silence: Silence, least_s: float) -> bool:
    """Return whether the recorder observed enough of the silence."""
    return silence.watched_ns >= least_s * NS


_MS = 1_000_000


@exchange_rule("D004", "silence-after-tool-result", Severity.ERROR)
def silence_after_tool_result(context: RuleContext) -> Iterator[Claim]:
    """Report tool results that the application sent and that got no answer."""
    silence = silence_after_result(context)
    if silence is None:
        return
    blame, confidence = _result_blame(context, silence)
    yield Claim(
        message=_result_message(context, silence),
        hint=_result_hint(context, silence),
        blame=blame,
        confidence=confidence,
        severity=None if _is_known(silence, context.settings.after_result_s) else Severity.INFO,
        place=Place(span=Span(0, 0), t_ns=silence.start_ns, line=context.exchange.request.line),
        excluded=ALIVE if confidence is Confidence.PROVEN else (),
    )


def _result_hint(context: RuleContext, silence: Silence) -> str:
    if not _is_known(silence, context.settings.after_result_s):
        return NOT_WATCHED
    if context.exchange.sent is None:
        return "check the upstream's address, DNS, the proxy settings and the network"
    return (
        "send the same history again, without running the tools again; in the client, set"
        " a timeout for the first byte"
    )


def _result_blame(context: RuleContext, silence: Silence) -> tuple[Blame | None, Confidence]:
    """Decide whose silence it is: signs of life prove it, an early disconnect may be impatience."""
    exchange = context.exchange
    if not _is_known(silence, context.settings.after_result_s):
        return None, Confidence.POSSIBLE
    if exchange.sent is None and exchange.response is None:
        return Blame.TRANSPORT, Confidence.POSSIBLE
    if silence.comments or silence.idle_events:
        return Blame.UPSTREAM, Confidence.LIKELY if silence.unwatched_ns else Confidence.PROVEN
    if exchange.end is None and not exchange.open:
        return None, Confidence.POSSIBLE
    left = exchange.end is not None and exchange.end.reason is EndReason.CLIENT_CLOSED
    if left and silence.end_ns - silence.start_ns < context.settings.stall_error_s * NS:
        return Blame.APP, Confidence.POSSIBLE
    watched = any(silence.start_ns < at <= silence.end_ns for at in exchange.idle_ns)
    likely = exchange.response is not None or watched
    return Blame.UPSTREAM, Confidence.LIKELY if likely else Confidence.POSSIBLE


def _result_message(context: RuleContext, silence: Silence) -> str:
    exchange = context.exchange
    start_ns = exchange.request.t_ns
    if exchange.sent:
        gone = f"was sent upstream after {_seconds(exchange.sent.t_ns - start_ns)}"
    else:
        gone = "never left" if exchange.response is None else "left"
    status = f"status {exchange.response.status} and then " if exchange.response else ""
    watched = sum(silence.start_ns < at <= silence.end_ns for at in exchange.idle_ns)
    signs = _signs_of_life(
        (silence.comments, _KEEP_ALIVE), (silence.idle_events, _EMPTY), (watched, "idle record")
    )
    came = f" ({', '.join(signs)})" if signs else ""
    return (
        f"the request with tool results {gone}; {status}nothing came from the upstream for"
        f" {_seconds(silence.end_ns - silence.start_ns)}{came}"
        f"{not_watched(silence)}; {_client(context, silence)}"
    )


def _signs_of_life(*counts: tuple[int, str]) -> list[str]:
    """Name what came from the upstream and the recorder meanwhile."""
    return [count(number, what) for number, what in counts if number]


def _client(context: RuleContext, silence: Silence) -> str:
    """Describe what the client did, and when."""
    exchange = context.exchange
    waited = _seconds(silence.end_ns - exchange.request.t_ns)
    if exchange.end is None:
        ongoing = "and the exchange is still going on" if exchange.open else "then the tape ends"
        return f"the client had waited {waited}, {ongoing}"
    if exchange.end.reason is EndReason.CLIENT_CLOSED:
        return f"the client disconnected after {waited}"
    ended = _STILL_THERE[exchange.end.reason]
    return f"the client was still there {waited} after its request, {ended}"


_STILL_THERE = {
    EndReason.COMPLETE: "when the response ended",
    EndReason.UPSTREAM_CLOSED: "when the upstream closed the connection",
    EndReason.UPSTREAM_RESET: "when the connection was reset",
    EndReason.TIMEOUT: "when the recorder timed out",
    EndReason.REFUSED: "when the connection failed",
    EndReason.STOPPED: "when the recorder was stopped",
}


def _seconds(ns: int) -> str:
    return f"{ns / NS:.1f} s" if ns >= NS else f"{ns // _MS} ms"


@exchange_rule("D005", "slow-client", Severity.WARNING)
def slow_client(context: RuleContext) -> Iterator[Claim]:
    """Report a client that reads the answer later than it arrives."""
    found = lags(context.exchange) if context.exchange.timed else ()
    worst = max(found, key=lambda lag: lag.end_ns - lag.start_ns, default=None)
    if worst is None:
        return
    seconds = (worst.end_ns - worst.start_ns) / NS
    if seconds < context.settings.slow_client_s:
        return
    offset = worst.offset
    # What was delivered is counted as sent, spans in the body after content-coding.
    coded = len(context.stream.body) != context.exchange.body_size
    shown = 0 if coded else offset
    yield Claim(
        message=f"the client took byte {offset} of the body {seconds:.1f} s after it arrived",
        hint="check what the app does between two reads",
        blame=Blame.APP,
        confidence=Confidence.PROVEN,
        place=Place(span=Span(shown, shown), t_ns=worst.end_ns, line=worst.line),
    )
