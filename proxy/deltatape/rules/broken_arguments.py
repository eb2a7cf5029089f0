"""Arguments that are not JSON: malformed, cut off, or followed by extra data."""

from collections.abc import Iterator
from dataclasses import dataclass

from deltatape.model.exchange import EndReason
from deltatape.model.finding import Blame, Confidence, Excluded, Severity
from deltatape.model.reply import CallKind, CallStatus, Choice, Fragment, TextCall, ToolCall
from deltatape.printable import count, excerpt
from deltatape.rules._fragment_analysis import (
    HINT,
    FragmentTrace,
    concerned,
    excluded_by,
    gap_of,
    told,
    trace_of,
)
from deltatape.rules._notation import QUOTES, notation_of
from deltatape.rules.context import Claim, RuleContext, about_call, label
from deltatape.rules.finish import FinishMeaning, finish_of
from deltatape.rules.rule import exchange_rule
from deltatape.rules.text_calls import in_answer, where
from deltatape.wire.json_scan import JsonScanner, scan
from deltatape.wire.json_value import parse, reads_alike


@exchange_rule(
    "T002",
    "malformed-arguments",
    Severity.ERROR,
)
def malformed_arguments(context: RuleContext) -> Iterator[Claim]:
    """Report arguments that are neither JSON nor the beginning of it."""
    for _, call in context.calls():
        if call.status is CallStatus.MALFORMED:
            yield about_call(context, call, _not_json(context, call))
        elif call.status is CallStatus.COMPLETE and call.kind is not CallKind.CUSTOM:
            if reads_alike(call.arguments):
                continue
            scanner = scan(call.arguments)
            if scanner.duplicate_keys or scanner.lone_surrogate:
                yield about_call(context, call, _ambiguous(context, call, scanner))
    for written in in_answer(context):
        if written.call.status is CallStatus.MALFORMED:
            yield about_call(context, written.call, _malformed_in_text(written))


def _not_json(context: RuleContext, call: ToolCall) -> Claim:
    scanner = scan(call.arguments)
    cause = _explained(context, call)
    return Claim(
        message=f"the arguments of {label(call)} are not JSON ({scanner.problem}"
        f" at character {scanner.position}): {cause.what}",
        hint=cause.hint,
        blame=cause.blame,
        confidence=cause.confidence,
        evidence=call.arguments[max(0, scanner.position - 100) :],
        excluded=cause.excluded,
        event=cause.fragment.event if cause.fragment else None,
        place=cause.fragment.place if cause.fragment else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cause:
    """Why arguments are broken, as far as the fragments show."""

    what: str
    hint: str = (
        "return the parse error as the tool result; never run the call with guessed arguments"
    )
    blame: Blame = Blame.UPSTREAM
    confidence: Confidence = Confidence.LIKELY
    excluded: tuple[Excluded, ...] = ()
    fragment: Fragment | None = None
    """Where it shows, if that is one fragment."""


def _explained(context: RuleContext, call: ToolCall) -> _Cause:
    """Return the best explanation of broken arguments."""
    joined = "".join(fragment.text for fragment in call.fragments)
    if joined != call.arguments and isinstance(parse(joined).value, dict):
        return _Cause(
            what="the deltas are complete JSON, but the event that ends the call is not",
            hint="in the client, take the arguments of this call from the deltas",
            confidence=context.seen,
            excluded=(
                Excluded(
                    "the model wrote it this way",
                    ("the deltas, which the model wrote, are valid JSON"),
                ),
                Excluded(
                    "the app caused it", "these bytes were recorded before any client read them"
                ),
            ),
        )
    tool = context.request.tool(call.name)
    trace = trace_of(call.fragments, context.stream.events, tool, context.settings)
    if trace is not None:
        return _cause_in(trace, context, call)
    notation = notation_of(call.arguments)
    # An unescaped quote alone may also come of a lost fragment.
    if notation is None or notation.habits == {QUOTES}:
        gap = gap_of(call.fragments)
        if gap is not None:
            return _cause_in(gap, context, call)
    if notation is not None:
        return _Cause(
            what=f"they are {notation.name}, a typical mistake of models", blame=Blame.MODEL
        )
    return _Cause(
        what=(
            "no lost, duplicated or reordered fragment explains it: the model wrote it"
            " this way, or the server's parser corrupted it"
        )
    )


def _cause_in(trace: FragmentTrace, context: RuleContext, call: ToolCall) -> _Cause:
    return _Cause(
        what=told(trace, call.fragments),
        hint=HINT,
        confidence=context.seen if trace.proof else Confidence.LIKELY,
        excluded=excluded_by(trace),
        fragment=concerned(trace, call.fragments),
    )


def _malformed_in_text(written: TextCall) -> Claim:
    scanner = scan(written.call.arguments)
    return Claim(
        message=f"the arguments of {where(written)} are not JSON: {scanner.problem}"
        f" at character {scanner.position}",
        hint="return the parse error as the tool result, so that the model writes the call again",
        blame=Blame.MODEL,
        confidence=Confidence.LIKELY,
        evidence=written.call.arguments[max(0, scanner.position - 100) :],
    )


def _ambiguous(context: RuleContext, call: ToolCall, scanner: JsonScanner) -> Claim:
    keys = scanner.duplicate_keys
    what = (
        f"the key {keys[0]!r} appears twice" if keys else "half of a surrogate pair is in a string"
    )
    return Claim(
        message=f"parsers may read the arguments of {label(call)} differently: {what}",
        hint="parse them strictly and return the problem as the tool result",
        blame=Blame.UPSTREAM,
        confidence=context.seen,
        severity=Severity.WARNING,
    )


@exchange_rule("T003", "truncated-arguments", Severity.ERROR, at_end=True)
def truncated_arguments(context: RuleContext) -> Iterator[Claim]:
    """Report arguments that end too early."""
    for choice, call in context.calls():
        if call.status is not CallStatus.TRUNCATED:
            continue
        trace = _trace(context, choice, call)
        if trace is not None:
            yield about_call(context, call, _damaged(context, call, trace))
            continue
        why, blame, confidence = _what_ended(context, choice)
        yield about_call(
            context,
            call,
            Claim(
                message=f"{_extent(call)}: {why}",
                hint=_HINT if why in _NOBODY else f"{_HINT}; {_SHOW}",
                blame=blame,
                confidence=confidence,
                severity=Severity.INFO if why in _NOBODY else Severity.ERROR,
            ),
        )


_HINT = "do not run the call, and do not complete partial JSON"
_SHOW = "send the request again; if it happens again, show the provider this tape"


def _trace(context: RuleContext, choice: Choice, call: ToolCall) -> FragmentTrace | None:
    """Return the damage to the fragments, where nothing else says what ended the call."""
    ended = choice.finish_reason_raw is not None and context.reply.error is None
    if not ended or finish_of(choice) in {FinishMeaning.LENGTH, FinishMeaning.FILTER}:
        return None
    tool = context.request.tool(call.name)
    return trace_of(call.fragments, context.stream.events, tool, context.settings)


def _damaged(context: RuleContext, call: ToolCall, trace: FragmentTrace) -> Claim:
    """Report arguments that only look cut: a piece in their middle is doubled, moved or missing."""
    return Claim(
        message=f"{_extent(call)} and are incomplete: {told(trace, call.fragments)}",
        hint=HINT,
        blame=Blame.UPSTREAM,
        confidence=context.seen if trace.proof else Confidence.LIKELY,
        excluded=excluded_by(trace),
        event=concerned(trace, call.fragments).event,
        place=concerned(trace, call.fragments).place,
    )


_UNSEEN = "the recorder stopped before the call was complete"
_LEFT = "the client closed the connection"
_NOBODY = frozenset({_UNSEEN, _LEFT})
"""What ends a call by nobody's fault: who did not want the rest does not run it either."""


def _extent(call: ToolCall) -> str:
    if not call.fragments:
        return f"{label(call)} has no arguments"
    pieces = count(len(call.fragments), "fragment")
    return f"the arguments of {label(call)} end after {len(call.arguments)} characters in {pieces}"


def _what_ended(context: RuleContext, choice: Choice) -> tuple[str, Blame | None, Confidence]:
    """Return what ended the call, who ended it, and how sure that is."""
    end = finish_of(choice)
    if end in {FinishMeaning.LENGTH, FinishMeaning.FILTER}:
        word = repr(choice.finish_reason_raw)
        return f"the provider cut the reply (finish reason {word})", None, Confidence.PROVEN
    if context.reply.error is not None:
        return "upstream sent an error", Blame.UPSTREAM, context.seen
    if choice.finish_reason_raw is not None:
        return "the reply nevertheless ended normally", Blame.UPSTREAM, context.seen
    if not context.exchange.cut:
        blame = Blame.UPSTREAM if context.exchange.timed else None
        return "the stream ended without a finish reason", blame, Confidence.LIKELY
    ended = context.exchange.end
    if ended is None or ended.reason is EndReason.STOPPED:
        return _UNSEEN, None, Confidence.POSSIBLE
    if ended.reason is EndReason.CLIENT_CLOSED:
        return _LEFT, None, Confidence.PROVEN
    return "the connection broke", Blame.TRANSPORT, Confidence.LIKELY


@exchange_rule("T016", "data-after-arguments", Severity.ERROR)
def data_after_arguments(context: RuleContext) -> Iterator[Claim]:
    """Report content after the end of the arguments."""
    for _, call in context.calls():
        if call.status is not CallStatus.EXTRA_DATA:
            continue
        yield about_call(context, call, _more_after_end(context, call))
    for written in in_answer(context):
        if written.junk:
            yield about_call(context, written.call, _more_in_text(written))


def _more_after_end(context: RuleContext, call: ToolCall) -> Claim:
    scanner = scan(call.arguments)
    more = call.arguments[scanner.extra or 0 :]
    tool = context.request.tool(call.name)
    trace = trace_of(call.fragments, context.stream.events, tool, context.settings)
    cause = f": {told(trace, call.fragments)}" if trace else ""
    return Claim(
        message=(
            f"extra data after the arguments of {label(call)}: they are complete after"
            f" {scanner.end} characters, then {excerpt(more, 40)!r} follows{cause}"
        ),
        hint=HINT if trace else "return the parse error as the tool result; the server needs a fix",
        blame=Blame.UPSTREAM,
        confidence=context.seen if trace and trace.proof else Confidence.LIKELY,
        evidence=call.arguments[max(0, (scanner.extra or 0) - 100) :],
        excluded=excluded_by(trace) if trace else (),
        event=concerned(trace, call.fragments).event if trace else None,
        place=concerned(trace, call.fragments).place if trace else None,
    )


def _more_in_text(written: TextCall) -> Claim:
    return Claim(
        message=(
            f"extra data in {where(written)}: its JSON is complete, then"
            f" {excerpt(written.junk, 40)!r} follows before the closing tag"
        ),
        hint="return the parse error as the tool result, so that the model writes the call again",
        blame=Blame.MODEL,
        confidence=Confidence.LIKELY,
        evidence=written.call.arguments_raw[-100:],
    )
