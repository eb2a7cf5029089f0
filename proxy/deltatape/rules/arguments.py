"""Arguments that are complete, but not what the tool accepts."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from deltatape.model.finding import Blame, Confidence, Severity
from deltatape.model.reply import CallStatus, ToolCall
from deltatape.model.request_summary import ToolSpec
from deltatape.printable import excerpt
from deltatape.rules._fragment_analysis import HINT, fits, gap_of_member, trace_of
from deltatape.rules.context import Claim, RuleContext, about_call, label, observed
from deltatape.rules.rule import Subject, exchange_rule
from deltatape.wire.json_value import parse


@exchange_rule(
    "T001", "empty-arguments", Severity.ERROR, at_end=True, about_missing=True, about=Subject.CALLS
)
def empty_arguments(context: RuleContext) -> Iterator[Claim]:
    """Report a call with empty arguments whose tool requires some."""
    for _, call in context.calls():
        if call.status is CallStatus.EMPTY_SUSPECT and not context.reply.from_app:
            yield about_call(context, call, _empty(context, call))


def _empty(context: RuleContext, call: ToolCall) -> Claim:
    needed = required(context.request.tool(call.name))
    if not needed:
        return Claim(
            message=(
                f"{label(call)} has empty arguments; the tool's schema is not on the"
                " tape, so it is unknown whether they are required"
            ),
            hint=(
                "record the request too; in the client, treat empty arguments as {} only"
                " if the tool requires none"
            ),
            blame=None,
            confidence=Confidence.POSSIBLE,
            severity=Severity.WARNING,
        )
    return Claim(
        message=f"{label(call)} has empty arguments, but its tool requires {', '.join(needed)}",
        hint=(
            "send the same request without streaming: if the arguments arrive, the"
            " server's streaming parser loses them"
        ),
        blame=Blame.UPSTREAM,
        confidence=context.seen,
    )


def required(tool: ToolSpec | None) -> tuple[str, ...]:
    """Return the parameters that `tool` requires by its schema."""
    names = tool.parameters.get("required") if tool and tool.parameters else None
    return tuple(name for name in names if isinstance(name, str)) if isinstance(names, list) else ()


_WHAT = {
    CallStatus.NOT_OBJECT: "are JSON, but not an object",
    CallStatus.DOUBLE_ENCODED: "are encoded twice: a JSON string that contains the object",
}


@exchange_rule(
    "T006",
    "arguments-not-an-object",
    Severity.ERROR,
)
def arguments_not_an_object(context: RuleContext) -> Iterator[Claim]:
    """Report arguments that are JSON, but not a string that holds an object."""
    hint = "the server must send the arguments as one JSON object in a string"
    yield from observed(context, "T006", hint)
    known = {(seen.choice, seen.call) for seen in context.observed("T006")}
    for choice, call in context.calls():
        what = _WHAT.get(call.status)
        reported = (choice.index, call.index) in known or context.reply.from_app
        if what is None or reported:
            continue
        yield about_call(
            context,
            call,
            Claim(
                message=f"the arguments of {label(call)} {what}",
                hint=hint,
                blame=Blame.UPSTREAM,
                confidence=context.seen,
            ),
        )


if TYPE_CHECKING:
    from deltatape.rules._schema import SchemaResult
_BREAKS = frozenset({"required", "type", "enum", "const"})
_REQUIRED = re.compile(r"'([^']+)' is a required property")
_EITHER = (
    "return the violation as the tool result, so that the model can correct the call; to"
    " find out whether a fragment was lost, record on both sides of the gateway, or where"
    " events are numbered"
)


@exchange_rule("T008", "arguments-violate-schema", Severity.ERROR, about=Subject.CALLS)
def arguments_violate_schema(context: RuleContext) -> Iterator[Claim]:
    """Report arguments that the tool's own schema does not allow."""
    partly_checked: set[str] = set()
    for _, call in context.calls():
        tool = context.request.tool(call.name)
        if call.status is not CallStatus.COMPLETE or tool is None or tool.parameters is None:
            continue
        from deltatape.rules._schema import validate_text  # noqa: PLC0415 - takes long, and few tapes need it

        outcome = validate_text(tool.parameters, call.arguments, context.settings)
        if not outcome.violations and (not outcome.unchecked or tool.name in partly_checked):
            continue
        if outcome.unchecked:
            partly_checked.add(tool.name)
        claim = _violation(call, outcome)
        spoilt = _changed_after_model(context, call, tool) if outcome.violations else None
        if spoilt is not None:
            claim = replace(
                claim,
                message=f"{claim.message}; {spoilt}",
                hint=HINT,
                blame=Blame.UPSTREAM,
            )
        elif outcome.violations and (lost := _missing_part(context, call, tool, outcome)):
            claim = replace(
                claim,
                message=f"{claim.message}; {lost}",
                hint=_EITHER,
                blame=None,
                confidence=Confidence.POSSIBLE,
            )
        yield about_call(context, call, claim)


def _changed_after_model(context: RuleContext, call: ToolCall, tool: ToolSpec) -> str | None:
    """Return the evidence that the model's arguments fitted and were changed later."""
    joined = "".join(fragment.text for fragment in call.fragments)
    if joined != call.arguments:
        whole = isinstance(parse(joined).value, dict)
        good = whole and fits(joined, tool, context.settings) is True
        return "the joined deltas fit it" if good else None
    trace = trace_of(call.fragments, context.stream.events, tool, context.settings)
    return trace.description if trace and trace.fits else None


def _missing_part(
    context: RuleContext, call: ToolCall, tool: ToolSpec, outcome: "SchemaResult"
) -> str:
    """Describe in a clause the evidence that a part of the arguments is missing, or "".

    If a parameter is missing, the model left it out or its fragment was lost. A parameter under
    another name is the model's mistake.
    """
    missing = [_REQUIRED.match(each.message) for each in outcome.violations if each.path == "$"]
    known = tool.parameters.get("properties") if tool.parameters else None
    value = parse(call.arguments).value
    named = isinstance(known, Mapping) and isinstance(value, dict) and value.keys() <= known.keys()
    if len(outcome.violations) != 1 or not missing or missing[0] is None or not named:
        return ""
    member = missing[0][1]
    trace = gap_of_member(call.fragments, member, context.stream.events)
    if trace is None:
        return ""
    one, other = (call.fragments[at] for at in (trace.start - 1, trace.start))
    return (
        "either the model left it out, or a fragment was lost between fragments"
        f" {trace.start} and {trace.end} (events {one.event} and {other.event}), where it"
        " would fit"
    )


def _violation(call: ToolCall, outcome: "SchemaResult") -> Claim:
    skipped = f" (not checked: {', '.join(outcome.unchecked)})" if outcome.unchecked else ""
    if outcome.violations:
        wrong = "; ".join(f"{each.path}: {each.message[:200]}" for each in outcome.violations)
        breaks = any(each.keyword in _BREAKS for each in outcome.violations)
        return Claim(
            message=f"the arguments of {label(call)} violate the tool's schema: {wrong}{skipped}",
            hint="return the violation as the tool result, so that the model can correct the call",
            blame=Blame.MODEL,
            confidence=Confidence.LIKELY,
            severity=Severity.ERROR if breaks else Severity.WARNING,
            evidence=call.arguments,
        )
    return Claim(
        message=f"the arguments of {label(call)} were only partly checked{skipped}",
        hint="no defect was found; the schema is too large to check, or uses unsupported features",
        blame=None,
        confidence=Confidence.POSSIBLE,
        severity=Severity.INFO,
    )


_ESCAPED = r"\\n"
"""The JSON source of a backslash and `n` in the value."""
_BREAK = re.compile(r"\\n(?:  |\\n|\\t|\Z)")
"""In a value: such a line break before an indented line, an empty line, or the end."""
_FEWEST = 2


@exchange_rule("T022", "double-escaped-arguments", Severity.WARNING, about=Subject.CALLS)
def double_escaped_arguments(context: RuleContext) -> Iterator[Claim]:
    """Report a string in the arguments whose line breaks are escaped twice."""
    for _, call in context.calls():
        if call.status is not CallStatus.COMPLETE or call.arguments.count(_ESCAPED) < _FEWEST:
            continue
        text = next(filter(_is_escaped, _strings(parse(call.arguments).value)), None)
        if text is None:
            continue
        claim = Claim(
            message=(
                f"a string in the arguments of {label(call)} contains a literal"
                f" backslash and 'n' instead of line breaks: {excerpt(text, 60)}"
            ),
            hint="ask the model again; do not unescape such strings blindly",
            blame=Blame.MODEL,
            confidence=Confidence.POSSIBLE,
            evidence=text,
        )
        yield about_call(context, call, claim)


def _is_escaped(text: str) -> bool:
    twice = text.count("\\n") >= _FEWEST
    return twice and "\n" not in text and _BREAK.search(text) is not None


def _strings(value: object) -> Iterator[str]:
    """Yield all strings in a JSON value."""
    left = [value]
    while left:
        match left.pop():
            case str(text):
                yield text
            case dict() as members:
                left += members.values()
            case list() as elements:
                left += elements
            case _:
                pass


_SHORTEST = 8
"""Shorter arguments occur in texts by coincidence."""
_LEADS_TO = re.compile(r"[\w:,;=(`]\s*\Z")
"""The end of a text that goes on with what it speaks of: `I call it with `."""


@exchange_rule("T023", "arguments-in-text", Severity.WARNING, about=Subject.CALLS)
def arguments_in_text(context: RuleContext) -> Iterator[Claim]:
    """Report arguments of a call that are also shown as text."""
    for choice, call in context.calls():
        text = call.arguments.strip()
        if call.status is not CallStatus.COMPLETE or len(text) < _SHORTEST:
            continue
        if not text.startswith("{") or text not in choice.text:
            continue
        told = _is_in_sentence(choice.text, text)
        claim = Claim(
            message=f"the text of the answer repeats the arguments of {label(call)}"
            + (", in a sentence that may be about them" if told else ""),
            hint="in the client, do not show text that repeats the arguments of a call",
            blame=Blame.UPSTREAM,
            confidence=Confidence.POSSIBLE if told else Confidence.LIKELY,
            evidence=text,
        )
        yield about_call(context, call, claim)


def _is_in_sentence(text: str, arguments: str) -> bool:
    """Return whether a sentence leads up to the first place of the arguments, or goes on there."""
    before, _, after = text.partition(arguments)
    follows = after.partition("\n")[0]
    return _LEADS_TO.search(before) is not None or re.search(r"\w", follows) is not None
