"""Arguments that are not JSON: malformed, cut off, or followed by extra data."""

from collections.abc import Iterator
from dataclasses import replace

from deltatape.model.exchange import EndReason
from deltatape.model.finding import Blame, Confidence, Excluded, Severity
from deltatape.model.reply import CallKind, CallStatus, Choice, TextCall, ToolCall
from deltatape.printable import count, excerpt
from deltatape.rules._fragment_analysis import (
    FragmentTrace,
    gap_of,
    trace_of,
)
from deltatape.rules._notation import QUOTES, notation_of
from deltatape.rules.context import Claim, RuleContext, about_call, label
from deltatape.rules.finish import CUT_HINTS, finish_of
from deltatape.rules.rule import Subject, exchange_rule
from deltatape.rules.text_calls import in_answer, where
from deltatape.wire.json_scan import JsonScanner, scan
from deltatape.wire.json_value import parse, reads_alike


@exchange_rule("T002", "malformed-arguments", Severity.ERROR, about=Subject.CALLS)
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
    claim = _explained(context, call)
    return replace(
        claim,
        message=f"the arguments of {label(call)} are not JSON ({scanner.problem}"
        f" at character {scanner.position}): {claim.message}",
        evidence=call.arguments[max(0, scanner.position - 100) :],
    )


def _explained(context: RuleContext, call: ToolCall) -> Claim:
    """Return the best explanation of broken arguments; its message is a clause."""
    joined = "".join(fragment.text for fragment in call.fragments)
    if joined != call.arguments and isinstance(parse(joined).value, dict):
        return Claim(
            message="the deltas are complete JSON, but the event that ends the call is not",
            hint="in the client, take the arguments of this call from the deltas",
            blame=Blame.UPSTREAM,
            confidence=context.seen,
            excluded=(
                Excluded(
                    "the model wrote it this way",
                    "the deltas, which the model wrote, are valid JSON",
                ),
                Excluded(
                    "the app caused it", "these bytes were recorded before any client read them"
                ),
            ),
        )
    trace = _trace(context, call)
    notation = None if trace else notation_of(call.arguments)
    # An unescaped quote alone may also come of a lost fragment.
    if trace is None and (notation is None or notation.habits == {QUOTES}):
        trace = gap_of(call.fragments)
    if trace is not None:
        return trace.claim(context, trace.description)
    claim = Claim(
        message=(
            "no lost, duplicated or reordered fragment explains it: the model wrote it"
            " this way, or the server's parser corrupted it"
        ),
        hint=(
            "return the parse error as the tool result; never run the call with guessed arguments"
        ),
        blame=Blame.UPSTREAM,
        confidence=Confidence.LIKELY,
    )
    if notation is None:
        return claim
    typical = f"they are {notation.name}, a typical mistake of models"
    return replace(claim, message=typical, blame=Blame.MODEL)


def _trace(context: RuleContext, call: ToolCall) -> FragmentTrace | None:
    tool = context.request.tool(call.name)
    return trace_of(call.fragments, context.stream.events, tool, context.settings)


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


@exchange_rule("T003", "truncated-arguments", Severity.ERROR, at_end=True, about=Subject.CALLS)
def truncated_arguments(context: RuleContext) -> Iterator[Claim]:
    """Report arguments that end too early."""
    for choice, call in context.calls():
        if call.status is not CallStatus.TRUNCATED or choice.finish_reason_raw == _CANCELLED:
            continue
        trace = None if _is_cut(context, choice) else _trace(context, call)
        if trace is not None:
            # It only looks cut: a fragment in the middle is doubled, moved or missing.
            message = f"{_extent(call)} and are incomplete: {trace.description}"
            yield about_call(context, call, trace.claim(context, message))
            continue
        why, blame, confidence = _what_ended(context, choice)
        remedy = CUT_HINTS.get(finish_of(choice), _SHOW)
        yield about_call(
            context,
            call,
            Claim(
                message=f"{_extent(call)}: {why}",
                hint=_HINT if why in _NOBODY else f"{_HINT}; {remedy}",
                blame=blame,
                confidence=confidence,
                severity=Severity.INFO if why in _NOBODY else Severity.ERROR,
            ),
        )


_CANCELLED = "cancelled"
"""The finish reason of a response that its client, or a user who speaks, interrupted."""
_HINT = "do not run the call, and do not complete partial JSON"
_SHOW = "send the request again; if it happens again, show the provider this tape"


def _is_cut(context: RuleContext, choice: Choice) -> bool:
    """Return whether the reply itself says or shows why the call is incomplete."""
    ended = choice.finish_reason_raw is not None and context.reply.error is None
    return not ended or finish_of(choice) in CUT_HINTS


_UNSEEN = "the recorder stopped before the call was complete"
_LEFT = "the client closed the connection"
_NOBODY = frozenset({_UNSEEN, _LEFT})
"""End reasons without fault: a client that did not wait for the rest does not run the call."""


def _extent(call: ToolCall) -> str:
    if not call.fragments:
        return f"{label(call)} has no arguments"
    pieces = count(len(call.fragments), "fragment")
    return f"the arguments of {label(call)} end after {len(call.arguments)} characters in {pieces}"


def _what_ended(context: RuleContext, choice: Choice) -> tuple[str, Blame | None, Confidence]:
    """Return what ended the call, the side at fault, and how sure that is."""
    end = finish_of(choice)
    if end in CUT_HINTS:
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


@exchange_rule("T016", "data-after-arguments", Severity.ERROR, about=Subject.CALLS)
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
    extra = scanner.extra or 0
    message = (
        f"extra data after the arguments of {label(call)}: they are complete after"
        f" {scanner.end} characters, then {excerpt(call.arguments[extra:], 40)!r} follows"
    )
    evidence = call.arguments[max(0, extra - 100) :]
    trace = _trace(context, call)
    if trace is not None:
        return trace.claim(context, f"{message}: {trace.description}", evidence)
    return Claim(
        message=message,
        hint="return the parse error as the tool result; the server needs a fix",
        blame=Blame.UPSTREAM,
        confidence=Confidence.LIKELY,
        evidence=evidence,
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
