"""How answers end: regularly or without the dialect's signal, and with which finish reason."""

from collections.abc import Iterator
from dataclasses import replace

from deltatape.model.exchange import EndReason, Framing
from deltatape.model.finding import Blame, Confidence, Excluded, Severity
from deltatape.model.reply import CallKind, CallStatus, Choice, ToolCall
from deltatape.printable import count, excerpt
from deltatape.rules.context import Claim, RuleContext, about_call, label
from deltatape.rules.finish import CUT_HINTS, FinishMeaning, finish_of, late_calls, late_text
from deltatape.rules.framing import STREAMS, is_undecoded
from deltatape.rules.rule import (
    exchange_rule,
    observed_rule,
)

_UPSTREAM_ENDED = frozenset(
    {EndReason.COMPLETE, EndReason.UPSTREAM_CLOSED, EndReason.UPSTREAM_RESET, EndReason.TIMEOUT}
)


def unended(context: RuleContext, hint: str) -> Iterator[Claim]:
    """Report that the terminal signal never came.

    Report nothing if an error came in its place, if the client or the recorder stopped, or if part
    of the body could not be decoded.
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
    last = context.last
    blame, confidence = _unended_blame(context, finished=finished)
    # A pasted stream easily loses its end: the signal may be in the event that is not complete.
    lost = not exchange.timed and context.stream.pending is not None
    reason = " (there was a finish reason, so the answer itself is complete)" if finished else ""
    yield Claim(
        message=f"the stream ended without {reply.terminator}{reason}",
        hint=hint,
        blame=blame,
        confidence=confidence,
        severity=Severity.WARNING if finished or lost else Severity.ERROR,
        at=last,
        evidence=last.data if last else "",
        excluded=_TRIED if confidence is Confidence.PROVEN else (),
    )


def ended_well(context: RuleContext, choice: Choice) -> bool:
    """Return whether the answer ended regularly: not cut, limited, filtered or refused."""
    reply = context.reply
    if not context.successful or context.exchange.cut or reply.error is not None:
        return False
    return reply.terminated and not choice.refusal and finish_of(choice) is FinishMeaning.STOP


_TRIED = (
    Excluded("the connection broke", "by HTTP framing the body is complete"),
    Excluded("the client or the recorder stopped reading", "the body was read to its end"),
    Excluded("the recorder lost the event", "it recorded as many bytes of the body as it read"),
    Excluded("this gateway never sends the last event", "there is no finish reason either"),
)


def _unended_blame(context: RuleContext, *, finished: bool) -> tuple[Blame | None, Confidence]:
    """Grade a missing terminal signal: a complete HTTP message leaves only its writers.

    Some gateways never send the last event; a client that has the finish reason has the whole
    answer.
    """
    exchange = context.exchange
    if not exchange.timed or exchange.response is None:
        return None, Confidence.POSSIBLE
    if exchange.cut:
        return Blame.TRANSPORT, Confidence.LIKELY
    if exchange.response.framing is Framing.CLOSE:
        return None, Confidence.POSSIBLE  # a broken connection looks the same
    return Blame.UPSTREAM, Confidence.LIKELY if finished else Confidence.PROVEN


@exchange_rule("S001", "no-terminal-event", Severity.ERROR, at_end=True)
def no_terminal_event(context: RuleContext) -> Iterator[Claim]:
    """Report a stream that ends without its terminal event."""
    hint = (
        "in the client, treat a body that ends before the terminal event as an error and"
        " send the request again; if it happens again, show the provider this tape"
    )
    if not context.reply.from_app:
        yield from unended(context, hint)


_FREE_CHOICES = frozenset({None, "auto", "required"})


@exchange_rule("S002", "finish-reason-mismatch", Severity.ERROR)
def finish_reason_mismatch(context: RuleContext) -> Iterator[Claim]:
    """Report a finish reason that contradicts the calls in the answer, or is missing."""
    request = context.request
    if not context.reply.tool_word:
        return
    if request.tool_choice not in _FREE_CHOICES:
        return
    reply, is_open = context.reply, context.exchange.open
    ended = reply.terminated and reply.error is None and not is_open
    for choice in reply.choices:
        if not _count_calls(choice) or _said_tools(context, choice):
            continue
        severity = None
        if finish_of(choice) is FinishMeaning.STOP:
            said = f"the finish reason is {choice.finish_reason_raw!r}, but"
        elif ended and choice.finish_reason_raw is None:
            said, severity = (
                "no finish reason came before the terminal event, and",
                Severity.WARNING,
            )
        else:
            continue
        yield Claim(
            message=f"{said} the reply has {count(_count_calls(choice), 'tool call')}",
            severity=severity,
            hint="in the client, run the delivered calls, whatever the finish reason is",
            blame=Blame.UPSTREAM,
            confidence=context.seen,
            at=context.last,
            evidence=choice.finish_reason_raw or "",
        )


def _count_calls(choice: Choice) -> int:
    return sum(call.kind is not CallKind.LEGACY for call in choice.tool_calls)


def _said_tools(context: RuleContext, choice: Choice) -> bool:
    """Return whether an earlier finish reason was right; S004 reports the later one."""
    return any(seen.choice == choice.index for seen in context.observed("S004"))


@exchange_rule("S003", "finish-without-calls", Severity.ERROR, at_end=True)
def finish_without_calls(context: RuleContext) -> Iterator[Claim]:
    """Report a finish reason that announces calls which never came."""
    for choice in context.reply.choices:
        if choice.tool_calls or finish_of(choice) is not FinishMeaning.TOOLS:
            continue
        yield Claim(
            message=f"the finish reason is {choice.finish_reason_raw!r},"
            f" but the reply has no tool call{_if_left(context)}",
            hint=(
                "send the request again; check whether the call is in the text or the"
                " reasoning instead"
            ),
            blame=Blame.UPSTREAM,
            confidence=context.seen,
            at=context.last,
            evidence=choice.text or choice.reasoning or choice.finish_reason_raw or "",
        )


def _if_left(context: RuleContext) -> str:
    """Return a clause if the client left then: later calls are not on the tape."""
    end = context.exchange.end
    if end is None or end.reason is not EndReason.CLIENT_CLOSED:
        return ""
    return " before it; the client disconnected here, so a later one would not be on the tape"


observed_rule(
    "S004",
    "repeated-finish",
    Severity.WARNING,
    "in the client, check for calls instead of relying on the last finish reason",
)
observed_rule(
    "S008",
    "empty-final-snapshot",
    Severity.WARNING,
    "in the client, collect the items from response.output_item.done",
)


NOBODYS_FAULT = frozenset({"S009"})
"""Codes of certain causes that are no side's fault: a limit or a filter ended the answer."""
_HALF = frozenset({CallStatus.TRUNCATED, CallStatus.MALFORMED, CallStatus.EMPTY_SUSPECT})


@exchange_rule("S009", "cut-by-limit", Severity.WARNING, survives_loss=True)
def cut_by_limit(context: RuleContext) -> Iterator[Claim]:
    """Report an answer that a limit or a filter cut off."""
    for choice in context.reply.choices:
        end = finish_of(choice)
        if end in CUT_HINTS:
            yield _cut(context, choice, end)


_CUT_BY = {
    FinishMeaning.LENGTH: "the output token limit",
    FinishMeaning.FILTER: "a content filter of the provider",
}


def _cut(context: RuleContext, choice: Choice, end: FinishMeaning) -> Claim:
    reasons = [number for number, each in choice.finishes if each == choice.finish_reason_raw]
    half = [label(call) for call in choice.tool_calls if call.status in _HALF]
    what = f"in the arguments of {' and '.join(half)}" if half else "before the answer was complete"
    return Claim(
        message=f"{_CUT_BY[end]} cut the reply {what} (finish reason {choice.finish_reason_raw!r})",
        hint=f"{CUT_HINTS[end]}; do not run calls of a cut reply",
        blame=None,
        confidence=Confidence.PROVEN,
        severity=Severity.ERROR if half else Severity.WARNING,
        at=context.event(reasons[-1]) if reasons else context.last,
        evidence=choice.finish_reason_raw or "",
    )


_LOST = "a client that stops reading at the finish reason never gets it"
_ORDER = Excluded(
    "the recorder mixed up the order",
    "the tape has the bytes in the order in which they were read from the provider",
)
_HABIT = Excluded(
    "the server repeats its finish reason on every event",
    "the events before the finish reason have none",
)


@exchange_rule("S010", "call-after-finish", Severity.ERROR)
def call_after_finish(context: RuleContext) -> Iterator[Claim]:
    """Report a call or text after the finish reason."""
    if context.reply.from_app:
        return
    for choice in context.reply.choices:
        for call in late_calls(choice):
            yield about_call(context, call, _late_call(context, choice, call))
        yield from _late_text(context, choice)
    for seen in context.observed("S010"):
        claim = _late_claim(context, f"{seen.detail}; {_LOST}", seen.evidence)
        yield replace(claim, event=seen.event, place=seen.place)


def _late_text(context: RuleContext, choice: Choice) -> Iterator[Claim]:
    last = late_text(choice)
    if last is None or any(seen.event == last.event for seen in context.observed("S006")):
        return  # where the dialect has no place for it, S006 reports it
    message = f"text arrives {_after_finish(choice)}, in event {last.event}; {_LOST}"
    claim = _late_claim(context, message, last.carrier.data)
    yield replace(claim, severity=Severity.WARNING, at=last.carrier)


def _late_call(context: RuleContext, choice: Choice, call: ToolCall) -> Claim:
    opened = call.start_event > (choice.finish_event or 0)
    event = call.start_event if opened else call.fragments[-1].event
    verb = "starts" if opened else "continues"
    after = f"{verb} {_after_finish(choice)}, in event {event}"
    place = call.start if opened else call.fragments[-1].place
    return replace(
        _late_claim(context, f"{label(call)} {after}; {_LOST}", ""), event=event, place=place
    )


def _after_finish(choice: Choice) -> str:
    reason = next(word for event, word in choice.finishes if event == choice.finish_event)
    return f"after the finish reason {excerpt(reason, 40)!r} of event {choice.finish_event}"


def _late_claim(context: RuleContext, message: str, evidence: str) -> Claim:
    return Claim(
        message=message,
        hint=(
            "show the provider this tape: calls must come before the finish reason; in"
            " the client, read the stream to its end before running the calls"
        ),
        blame=Blame.UPSTREAM,
        confidence=context.seen,
        evidence=evidence,
        excluded=(_ORDER, _HABIT) if context.exchange.timed else (),
    )
