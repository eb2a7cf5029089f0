"""T008: arguments that the tool's own schema does not allow."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from deltatape.model.asked import ToolSpec
from deltatape.model.finding import Blame, Confidence, Finding, Severity
from deltatape.model.reply import CallStatus, ToolCall
from deltatape.rules._base import Claim, RuleContext, about_call, label
from deltatape.rules._forensics import HINT, fits, gap_of_member, told, trace_of
from deltatape.rules._simple_schema import outcome_of
from deltatape.wire.json_value import parse

if TYPE_CHECKING:
    from deltatape.rules._schema import Outcome

_BREAKS = frozenset({"required", "type", "enum", "const"})
_REQUIRED = re.compile(r"'([^']+)' is a required property")
_EITHER = (
    "answer the call with the violation, so that the model can correct itself; to know whether a"
    " piece was lost, record on both sides of the gateway, or where events carry numbers"
)


class ArgumentsViolateSchema:
    r"""The arguments do not fit the tool's schema.

    ## What it does
    Validates the arguments of each whole call against the JSON Schema that the same request gives
    for the tool. A warning if only a limit, a pattern or an additional property is concerned.
    What the schema's own `default` says is allowed: the default as a value, null if it is null, and
    the absence of a required parameter that has one. If the arguments fit as the deltas have them,
    or without a fragment that comes twice, they were spoilt on the way, and not by the model.
    Where a required parameter is missing, and a lost piece of the stream can have held it, nobody
    is blamed: what remains of a text that lost a piece can still be JSON.
    References are looked up inside the schema only. What cannot be checked at a reasonable price (a
    pattern that may backtrack, an enormous schema, `unevaluatedProperties`) is skipped, and said as
    information, once for each tool.

    ## Why is this bad
    The call is well-formed and wrong: a parameter is missing, or a text stands where the tool
    expects a number. It fails inside the tool, far from its cause.

    ## Example
    ```
    parameters: {"type":"object","required":["city"],"properties":{"city":{"type":"string"}}}
    arguments:  {"location":"Rome"}
    ```

    ## Fix
    Answer the call with the violation, so that the model can correct itself. Strict modes of the
    providers prevent it. Look also whether the schema says what the tool needs.

    ## References
    - https://json-schema.org/draft/2020-12/json-schema-validation
    - https://platform.openai.com/docs/guides/function-calling
    """

    code: ClassVar[str] = "T008"
    name: ClassVar[str] = "arguments-violate-schema"
    severity: ClassVar[Severity] = Severity.ERROR

    def check(self, context: RuleContext) -> Iterator[Finding]:
        """See `Rule.check`."""
        told: set[str] = set()
        for _, call in context.calls():
            tool = context.asked.tool(call.name)
            if call.status is not CallStatus.COMPLETE or tool is None or tool.parameters is None:
                continue
            outcome = outcome_of(tool.parameters, call.arguments, context.settings)
            if outcome is None or (not outcome.violations and tool.name in told):
                continue
            told |= {tool.name} if outcome.unchecked else set()
            claim = _claim(call, outcome)
            spoilt = _spoilt(context, call, tool) if outcome.violations else None
            if spoilt is not None:
                claim = replace(
                    claim,
                    message=f"{claim.message}; {spoilt}",
                    hint=HINT,
                    blame=Blame.UPSTREAM,
                )
            elif outcome.violations and (lost := _lost(context, call, tool, outcome)):
                claim = replace(
                    claim,
                    message=f"{claim.message}; {lost}",
                    hint=_EITHER,
                    blame=None,
                    confidence=Confidence.POSSIBLE,
                )
            yield about_call(self, context, call, claim)


def _spoilt(context: RuleContext, call: ToolCall, tool: ToolSpec) -> str | None:
    """What says that the model wrote arguments that fit, and something changed them; None if so."""
    joined = "".join(fragment.text for fragment in call.fragments)
    if joined != call.arguments:
        whole = isinstance(parse(joined).value, dict)
        good = whole and fits(joined, tool, context.settings) is True
        return "the deltas, joined, fit it" if good else None
    trace = trace_of(call.fragments, context.stream.events, tool, context.settings)
    return told(trace, call.fragments) if trace and trace.fits else None


def _lost(context: RuleContext, call: ToolCall, tool: ToolSpec, outcome: "Outcome") -> str:
    """What says that a piece of the arguments may be missing, as a clause; "" if nothing does.

    The model left a parameter out, or the piece that held it was lost: what remains can be JSON.
    A parameter under another name is the model's.
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
        f"the model left it out, or a piece that held it was lost on the way: one fits between"
        f" fragments {trace.start} and {trace.end} (events {one.event} and {other.event})"
    )


def _claim(call: ToolCall, outcome: "Outcome") -> Claim:
    skipped = f" (not checked: {', '.join(outcome.unchecked)})" if outcome.unchecked else ""
    if outcome.violations:
        wrong = "; ".join(f"{each.path}: {each.message[:200]}" for each in outcome.violations)
        breaks = any(each.keyword in _BREAKS for each in outcome.violations)
        return Claim(
            message=f"the arguments of {label(call)} violate the tool's schema: {wrong}{skipped}",
            hint="answer the call with the violation, so that the model can correct itself",
            blame=Blame.MODEL,
            confidence=Confidence.LIKELY,
            severity=Severity.ERROR if breaks else Severity.WARNING,
            evidence=call.arguments,
        )
    return Claim(
        message=f"the arguments of {label(call)} were not checked completely{skipped}",
        hint="nothing is wrong; the schema is too costly to check, or unusual",
        blame=None,
        confidence=Confidence.POSSIBLE,
        severity=Severity.INFO,
    )
