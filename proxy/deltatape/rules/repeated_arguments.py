"""Arguments that were sent more than once, and sources that disagree about them."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from operator import itemgetter

from deltatape.model.finding import Confidence, Severity
from deltatape.model.reply import CallKind, CallStatus, Observation, ToolCall
from deltatape.model.request_summary import ToolSpec
from deltatape.rules._fragment_analysis import (
    FragmentDamage,
    FragmentTrace,
    difference,
    fits,
    has_twins,
    proof_of_twin,
    runs_of,
    without,
)
from deltatape.rules.context import Claim, RuleContext, about_call, label, observed
from deltatape.rules.rule import (
    Subject,
    exchange_rule,
    observed_rule,
)
from deltatape.wire.json_value import parse

observed_rule(
    "T014",
    "repeated-arguments",
    Severity.ERROR,
    "the server has to send only what is new; do not remove overlaps blindly in the client",
)


@exchange_rule("T015", "sources-disagree", Severity.ERROR, about=Subject.OBSERVATIONS)
def sources_disagree(context: RuleContext) -> Iterator[Claim]:
    """Report a value that is sent in several places, and differs between them."""
    calls = {(choice.index, call.index): call for choice, call in context.calls()}
    found = observed(context, "T015", "only the displayed text depends on it")
    for seen, each in zip(context.observed("T015"), found, strict=False):
        call = None if seen.call is None else calls.get((seen.choice, seen.call))
        if call is None:
            yield replace(each, severity=Severity.WARNING)
        else:
            yield _usable_source(context, call, seen, each)


def _usable_source(context: RuleContext, call: ToolCall, seen: Observation, base: Claim) -> Claim:
    """Return `base`, extended by which of the sources a client can use."""
    deltas, end = (_is_good(text, call, context) for text in (call.arguments_raw, call.arguments))
    if call.arguments == call.arguments_raw:
        other = _is_good(seen.evidence, call, context)
        hint = _OTHER if other and not deltas else _DELTAS
    elif deltas and not end:
        hint = _DELTAS
    elif end and not deltas:
        hint = _END
    else:
        hint = _NEITHER if not end else _BOTH
    cause = difference(call.fragments, call.arguments) if end and call.fragments else ""
    message = f"{base.message}; {cause}" if cause else base.message
    return replace(base, hint=hint, message=message)


_END = (
    "in the client, take the arguments from the event that ends the call, not from the"
    " deltas; show the provider or gateway this tape"
)
_DELTAS = (
    "in the client, take the arguments from the joined deltas: they are JSON that the tool"
    " accepts, while those of the other event are not, or nothing confirms them; show the"
    " provider this tape"
)
_OTHER = (
    "in the client, take the arguments from this event: they are JSON that the tool"
    " accepts, the deltas are not; show the provider or gateway this tape"
)
_BOTH = (
    "the tool accepts both, and the tape does not show which was intended: by the"
    " protocol, the event that ends the call counts; show the provider or gateway this"
    " tape"
)
_NEITHER = (
    "neither source has arguments that the tool accepts: do not run the call,"
    " return an error as the tool result"
)


def _is_good(text: str, call: ToolCall, context: RuleContext) -> bool:
    """Return whether a client could run `text`: an object that the schema does not reject."""
    if call.kind is CallKind.CUSTOM:
        return True
    whole = isinstance(parse(text).value, dict)
    return whole and fits(text, context.request.tool(call.name), context.settings) is not False


observed_rule(
    "T017",
    "empty-object-prefix",
    Severity.ERROR,
    "fix the gateway; in the client, parse only when the call has ended",
)


_REPORTED_ALREADY = frozenset({"T014", "T015", "T017"})
"""Repairs that explain repeated pieces."""
_FEWEST_LETTERS = 3
_SHORTEST = 4
"""A repeated piece is reported without other evidence only if it has this many characters."""
_LITERALS = frozenset({"true", "false", "null"})
_TRIES = 64
_TEXT = itemgetter(0)
"""The text of a fragment; quicker than the attribute, as every healthy call is checked."""


@exchange_rule("T027", "repeated-delta", Severity.WARNING, about=Subject.CALLS)
def repeated_delta(context: RuleContext) -> Iterator[Claim]:
    """Report a fragment of a call's arguments that appears twice in a row."""
    for _, call in context.calls():
        if call.status is not CallStatus.COMPLETE or len(call.fragments) == 1:
            continue
        texts = [*map(_TEXT, call.fragments)]
        if has_twins(texts) and _REPORTED_ALREADY.isdisjoint(call.repairs):
            claim = _repetition(context, call, texts)
            if claim is not None:
                yield about_call(context, call, claim)


def _repetition(context: RuleContext, call: ToolCall, texts: list[str]) -> Claim | None:
    tool = context.request.tool(call.name)
    refused = fits(call.arguments, tool, context.settings) is False
    fact: FragmentTrace | None = None
    for start, end in reversed([*islice(runs_of(texts), _TRIES)]):
        if _repeats_by_nature("".join(texts[start:end])):
            continue
        found = FragmentTrace(
            damage=FragmentDamage.DOUBLED,
            fragments=call.fragments,
            start=start,
            end=end,
            fits=refused and _is_allowed(without(texts, start, end), tool, context),
            proof=proof_of_twin(call.fragments, start, end, context.stream.events),
        )
        if found.proof or found.fits:
            return _damaged(context, call, found)
        if sum(map(len, texts[start:end])) >= _SHORTEST:
            fact = fact or found
    return _doubtful(call, fact) if fact else None


def _damaged(context: RuleContext, call: ToolCall, found: FragmentTrace) -> Claim:
    schema = "; only without the repetition does the tool's schema allow them" if found.fits else ""
    message = (
        f"in the arguments of {label(call)}, {found.repetition}"
        f"{schema}{f'; {found.proof}' if found.proof else ''}"
    )
    return found.claim(context, message)


def _doubtful(call: ToolCall, found: FragmentTrace) -> Claim:
    return Claim(
        message=(
            f"in the arguments of {label(call)}, {found.repetition}; the"
            " tape does not show whether it was sent twice by mistake or the text"
            " repeats itself"
        ),
        hint=(
            "compare the value with what the tool should get; the JSON is valid and"
            " nothing else indicates a defect"
        ),
        blame=None,
        confidence=Confidence.POSSIBLE,
        severity=Severity.INFO,
        at=found.first_event,
    )


def _is_allowed(text: str, tool: ToolSpec | None, context: RuleContext) -> bool:
    """Return whether `text` is an object that the schema allows for certain."""
    return isinstance(parse(text).value, dict) and fits(text, tool, context.settings) is True


def _repeats_by_nature(text: str) -> bool:
    """Return whether data and code often repeat `text`: blanks, digits, rulers, items of a list."""
    words = "".join(character if character.isalpha() else " " for character in text).split()
    if sum(map(len, words)) < _FEWEST_LETTERS or len(set("".join(words))) == 1:
        return True
    return _LITERALS.issuperset(words)
