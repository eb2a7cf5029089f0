"""How answers end: in good order, or without their dialect's signal, and whose fault that is."""

from collections.abc import Iterator

from deltatape.model.exchange import EndReason, Framing
from deltatape.model.finding import Blame, Confidence, Excluded, Finding, Severity
from deltatape.model.reply import Choice
from deltatape.rules._base import Claim, Documented, RuleContext, finding
from deltatape.rules._framing import STREAMS, is_undecoded
from deltatape.rules.finish import Finish, finish_of

_UPSTREAM_ENDED = frozenset(
    {EndReason.COMPLETE, EndReason.UPSTREAM_CLOSED, EndReason.UPSTREAM_RESET, EndReason.TIMEOUT}
)


def unended(rule: Documented, context: RuleContext, hint: str) -> Iterator[Finding]:
    """The finding of `rule` that the terminal signal never came, if so.

    None if an error came in its place, if it was the client or the recorder that stopped, and if
    not all of the body could be decoded.
    """
    reply, exchange = context.reply, context.exchange
    if reply.terminated or reply.error is not None or not context.successful:
        return
    if not context.recognised or context.stream.format not in STREAMS:
        return
    if is_undecoded(context.stream):
        return
    if exchange.timed and (not exchange.end or exchange.end.reason not in _UPSTREAM_ENDED):
        return
    finished = any(choice.finish_reason_raw for choice in reply.choices)
    last = context.stream.events[-1] if context.stream.events else None
    blame, confidence = _blame(context, finished=finished)
    # A pasted stream easily loses its end: the signal may be in the event that is not whole.
    lost = not exchange.timed and context.stream.pending is not None
    reason = " (there was a finish reason, so the answer itself is whole)" if finished else ""
    yield finding(
        rule,
        context,
        Claim(
            message=f"the stream ended without {reply.terminator}{reason}",
            hint=hint,
            blame=blame,
            confidence=confidence,
            severity=Severity.WARNING if finished or lost else Severity.ERROR,
            event=last.number if last else None,
            place=last.place if last else None,
            evidence=last.data if last else "",
            excluded=_TRIED if confidence is Confidence.PROVEN else (),
        ),
    )


def ended_well(context: RuleContext, choice: Choice) -> bool:
    """Whether the answer came to its regular end: it was not cut, limited, filtered or refused."""
    reply = context.reply
    if not context.successful or context.exchange.cut or reply.error is not None:
        return False
    return reply.terminated and not choice.refusal and finish_of(choice) is Finish.STOP


_TRIED = (
    Excluded("the connection broke", "HTTP says that the body ended as it was announced"),
    Excluded("the client or the recorder stopped reading", "the body was read to its end"),
    Excluded("the recorder lost the event", "it wrote as many bytes of the body as it read"),
    Excluded("a gateway that never sends the last event", "there is no finish reason either"),
)


def _blame(context: RuleContext, *, finished: bool) -> tuple[Blame | None, Confidence]:
    """An HTTP message that ended as announced leaves only those who wrote it.

    Some gateways never send the last event; who has the finish reason has the whole answer.
    """
    exchange = context.exchange
    if not exchange.timed or exchange.response is None:
        return None, Confidence.POSSIBLE
    if exchange.cut:
        return Blame.TRANSPORT, Confidence.LIKELY
    if exchange.response.framing is Framing.CLOSE:
        return None, Confidence.POSSIBLE  # a broken connection looks the same
    return Blame.UPSTREAM, Confidence.LIKELY if finished else Confidence.PROVEN
