"""Names for the calls of a conversation in messages, and the places they are compared with."""

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from deltatape.model.digest import DeliveredCall, Digest, ReadBack
from deltatape.model.finding import Blame, ComparedPlace, Confidence, Excluded, Severity
from deltatape.model.request_summary import RepeatedCall
from deltatape.model.stream import Span
from deltatape.printable import excerpt

_HANDOFF = re.compile(r"transfer|hand_?-?off|delegat|escalat|switch|route", re.IGNORECASE)
"""Names of calls that give a conversation to another agent."""
_LOOKS_UP = re.compile(
    r"(?:\A|__|[./:-])(?i:get|list|read|search|find|fetch|look|lookup|query|show|describe|check)"
    r"(?:\b|_|(?=[A-Z]))"
)
"""Names of tools that change nothing."""


class ClaimGrade(NamedTuple):
    """How serious a difference between a delivered call and the repeated one is.

    `clause` is for the message, and may be empty. Without `blame` it is a fact.
    """

    clause: str
    hint: str
    confidence: Confidence
    excluded: tuple[Excluded, ...] = ()
    severity: Severity = Severity.ERROR
    blame: Blame | None = Blame.APP


def looks_up(call: DeliveredCall) -> bool:
    """Return whether the tool changes nothing, as its name says: to repeat a call is of no use.

    Of several such calls none replaces another, and hardly one is denied alone.
    """
    return _LOOKS_UP.search(call.name or "") is not None


def was_delivered(read_back: ReadBack, call: DeliveredCall) -> bool:
    """Return whether the client had all of `call` before it sent the request that repeats it.

    A request cannot repeat what came after it, or what the recorder lost.
    """
    reply, later = read_back.reply, read_back.later
    if reply.lossy:
        return False
    if reply.tape != later.tape or later.t_ns is None or call.t_ns is None:
        return True
    return call.t_ns <= later.t_ns


def call_label(call: DeliveredCall, reply: Digest) -> str:
    """Name a call of a reply in a message: `call 0 (get_weather, c1) of #1`."""
    named = names(call.name, call.id)
    return f"call {call.index}{f' ({named})' if named else ''} of #{reply.exchange}"


def hands_over(reply: Digest) -> bool:
    """Return whether a call of the reply seems to hand the conversation to another agent."""
    return any(_HANDOFF.search(call.name or "") for call in reply.calls)


def names(*names: str | None) -> str:
    """Join the names and ids that are not empty, for a message."""
    return ", ".join(excerpt(name, 60) for name in names if name)


def first_names(every: Sequence[str | None]) -> str:
    """Join the first three names for a message, and count the others: `a, b, c and 2 more`."""
    more = f" and {len(every) - 3} more" if len(every) > 3 else ""  # noqa: PLR2004 - as above
    return names(*every[:3]) + more


def tools_of(calls: Sequence[DeliveredCall]) -> str:
    """Name the tools that `calls` call, for a message."""
    known = [call.name for call in calls]
    return first_names(known) if any(known[:3]) else "a tool without a name"


class RequestSpans:
    """The positions of repeated calls' arguments in the body of a request: see `asked_at`."""

    def __init__(self, later: Digest) -> None:
        self._asked_at = later.asked_at

    @cached_property
    def _by_identity(self) -> Mapping[int, Span]:
        return {id(repeated): span for repeated, span in reversed(self._asked_at)}

    def of(self, repetition: RepeatedCall | None) -> Span | None:
        """Return the position of a call, if known."""
        return self._by_identity.get(id(repetition))


def against(call: DeliveredCall, reply: Digest, request_span: Span | None = None) -> ComparedPlace:
    """Return the place of a delivered call, and what a later request has instead of it."""
    return ComparedPlace(
        tape=reply.tape,
        exchange=reply.exchange,
        line=call.line,
        span=call.span,
        request_span=request_span,
        evidence=excerpt(call.arguments or "(no arguments)"),
    )


def against_request(digest: Digest, evidence: str) -> ComparedPlace:
    """Return the place of a request, or of a failed attempt."""
    return _against(digest, digest.line, evidence)


def against_reply(reply: Digest) -> ComparedPlace:
    """Return the place of the end of a reply, with its text as evidence."""
    return _against(reply, reply.end_line, reply.content)


def _against(digest: Digest, line: int | None, evidence: str) -> ComparedPlace:
    return ComparedPlace(
        tape=digest.tape,
        exchange=digest.exchange,
        line=line,
        span=None,
        request_span=None,
        evidence=excerpt(evidence),
    )
