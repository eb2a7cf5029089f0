"""Names, ids and indices that tell calls apart, and calls that come twice."""

import difflib
from collections.abc import Iterator

from deltatape.model.finding import Blame, Confidence, Excluded, Severity
from deltatape.model.reply import CallKind, CallStatus, ToolCall
from deltatape.model.turn import Turn
from deltatape.printable import count, excerpt
from deltatape.rules._call_references import against, call_label
from deltatape.rules.context import Claim, RuleContext, about_call, label, observed
from deltatape.rules.rule import (
    Subject,
    exchange_rule,
    observed_rule,
    turn_rule,
)
from deltatape.wire.json_value import canonical


@exchange_rule("T004", "missing-name", Severity.ERROR, about=Subject.CALLS)
def missing_name(context: RuleContext) -> Iterator[Claim]:
    """Report a call without a tool name."""
    for _, call in context.calls():
        nameless = call.status in {CallStatus.NO_NAME, CallStatus.ORPHAN}
        if not nameless or context.reply.from_app:
            continue
        orphan = call.status is CallStatus.ORPHAN
        what = "is a fragment of arguments that belongs to no call" if orphan else "has no name"
        yield about_call(
            context,
            call,
            Claim(
                message=f"{label(call)} {what}: the client cannot know which tool to run",
                hint="the server must send the name with the first fragment of a call",
                blame=Blame.UPSTREAM,
                confidence=context.seen,
            ),
        )


observed_rule(
    "T005",
    "missing-id",
    Severity.ERROR,
    "in the client, generate an id and use it for the call and its result",
    at_end=True,
    about_missing=True,
)


_LONGEST_NAME = 200


@exchange_rule("T007", "unknown-tool", Severity.ERROR, about=Subject.CALLS)
def unknown_tool(context: RuleContext) -> Iterator[Claim]:
    """Report a call of a tool that was not offered."""
    offered = [tool.name for tool in context.request.tools]
    if not offered or context.request.tools_elsewhere:
        return
    for _, call in context.calls():
        if not call.name or call.name in offered or call.kind is CallKind.CUSTOM:
            continue
        yield about_call(context, call, _unknown(call, call.name, offered))


def _unknown(call: ToolCall, name: str, offered: list[str]) -> Claim:
    inside = next((each for each in offered if each and each in name), None)
    near = [inside] if inside else difflib.get_close_matches(name[:_LONGEST_NAME], offered, n=1)
    meant = f"; the nearest is {excerpt(near[0], 60)}" if near else ""
    return Claim(
        message=(
            f"{label(call)} is not among the {count(len(offered), 'tool')} of the request{meant}"
        ),
        hint="return an error that lists the tools as the tool result",
        blame=Blame.UPSTREAM if inside else Blame.MODEL,
        confidence=Confidence.LIKELY,
        evidence=name,
    )


observed_rule(
    "T009",
    "repeated-name",
    Severity.ERROR,
    "in the client, keep the first name of a call and ignore repetitions",
)
observed_rule(
    "T010",
    "unstable-id",
    Severity.ERROR,
    "in the client, key fragments by index and keep the first id",
)
observed_rule(
    "T011",
    "missing-index",
    Severity.ERROR,
    "in the client, match by id; without an id, continue the last open call",
)
observed_rule(
    "T012",
    "reused-index",
    Severity.ERROR,
    "in the client, open a new call when a fragment has another id",
)
observed_rule(
    "T013",
    "index-not-zero-based",
    Severity.ERROR,
    "in the client, keep calls in a map keyed by index, not in a list",
)


@exchange_rule("T020", "duplicate-call", Severity.WARNING)
def duplicate_call(context: RuleContext) -> Iterator[Claim]:
    """Report the same call twice in one reply."""
    yield from observed(context, "T020", "run only one of them")
    for choice in context.reply.choices:
        if len(choice.tool_calls) == 1:
            continue  # The usual one, whose arguments need not be compared.
        seen: dict[tuple[str | None, str], ToolCall] = {}
        for call in choice.tool_calls:
            if call.status is not CallStatus.COMPLETE:
                continue
            first = seen.setdefault((call.name, _meaning(call)), call)
            if first is call:
                continue
            yield about_call(
                context,
                call,
                Claim(
                    message=f"{label(call)} repeats call {first.index}: same tool, same arguments",
                    hint="ask the user before running a call with side effects twice",
                    blame=Blame.MODEL,
                    confidence=Confidence.POSSIBLE,
                ),
            )


def _meaning(call: ToolCall) -> str:
    """Return the arguments in a form to compare."""
    if call.kind is CallKind.CUSTOM:
        return call.arguments
    return canonical(call.arguments) or call.arguments


observed_rule(
    "T021",
    "split-or-late-name",
    Severity.ERROR,
    "in the client, look up the tool at the end of the call",
)


@turn_rule("T026", "id-reused", Severity.WARNING)
def id_reused(turn: Turn) -> Iterator[Claim]:
    """Report a new call with the id of an earlier one."""
    reused = sorted(turn.reused, key=lambda each: each.earlier is None)
    if not reused:
        return
    first = reused[0]
    new = call_label(first.call, turn.digest)
    more = f" (and {len(reused) - 1} more ids)" if len(reused) > 1 else ""
    if first.earlier is None:
        yield Claim(
            message=f"{new} has the id of a call in the history, which no reply on the tape"
            f" delivered{more}",
            hint="give the calls in the history ids that no server generates",
            blame=None,
            confidence=Confidence.POSSIBLE,
            severity=Severity.INFO,
            evidence=first.call.id or "",
        )
        return
    old = call_label(*first.earlier)
    yield Claim(
        message=(
            f"{new} has the id of {old}{more}: a result with this id can be assigned to"
            " the wrong call"
        ),
        hint="in the client, give calls your own ids as they arrive",
        blame=Blame.UPSTREAM,
        confidence=Confidence.LIKELY,
        evidence=first.call.id or "",
        against=against(*first.earlier),
        excluded=(
            Excluded(
                "the app made up the ids in its history",
                (
                    f"the provider sent the id in #{first.earlier.reply.exchange} and again in"
                    f" #{turn.digest.exchange}"
                ),
            ),
        ),
    )
