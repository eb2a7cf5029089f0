"""How messages name the calls of a conversation, and what they are held against."""

import re
from typing import NamedTuple

from deltatape.model.digest import DeliveredCall, Digest, ReadBack
from deltatape.model.finding import Blame, ComparedPlace, Confidence, Excluded, Severity
from deltatape.model.request_summary import RepeatedCall
from deltatape.model.turn import DeliveredCallRef
from deltatape.printable import excerpt

_HANDOFF = re.compile(r"transfer|hand_?-?off|delegat|escalat|switch|route", re.IGNORECASE)
"""Names of calls that give a conversation to another agent."""


class ClaimGrade(NamedTuple):
    """What a difference between a delivered call and the repeated one amounts to.

    `says` is a clause for the message, or empty. Without `blame` it is a fact.
    """

    says: str
    hint: str
    confidence: Confidence
    excluded: tuple[Excluded, ...] = ()
    severity: Severity = Severity.ERROR
    blame: Blame | None = Blame.APP


def was_delivered(read_back: ReadBack, call: DeliveredCall) -> bool:
    """Whether the client had been sent all of `call` when the request that repeats it left.

    Nothing may be held against a request of what came after it, or of what the recorder lost.
    """
    reply, later = read_back.reply, read_back.later
    if reply.lossy:
        return False
    if reply.tape != later.tape or later.t_ns is None or call.t_ns is None:
        return True
    return call.t_ns <= later.t_ns


def called(read_back: ReadBack, call: DeliveredCall) -> str:
    """How a message names a call of the reply: `call 0 (get_weather, c1) of #1`."""
    return called_in(DeliveredCallRef(call=call, reply=read_back.reply))


def called_in(delivered: DeliveredCallRef) -> str:
    """The same for a call and its reply."""
    call = delivered.call
    named = names(call.name, call.id)
    return f"call {call.index}{f' ({named})' if named else ''} of #{delivered.reply.exchange}"


def hands_over(reply: Digest) -> bool:
    """Whether a call of the reply looks as if it gave the conversation to another agent."""
    return any(_HANDOFF.search(call.name or "") for call in reply.calls)


def names(*each: str | None) -> str:
    """Names and ids in a message, those that there are."""
    return ", ".join(excerpt(name, 60) for name in each if name)


def against(
    delivered: DeliveredCallRef, later: Digest, heard: RepeatedCall | None = None
) -> ComparedPlace:
    """The place of a delivered call, and of what the request `later` has in its place."""
    call, reply = delivered.call, delivered.reply
    asked = (span for repeated, span in later.asked_at if repeated is heard)
    return ComparedPlace(
        tape=reply.tape,
        exchange=reply.exchange,
        line=call.line,
        span=call.span,
        asked=next(asked, None),
        evidence=excerpt(call.arguments or "(no argument bytes)"),
    )


def against_request(digest: Digest, evidence: str) -> ComparedPlace:
    """The place of a request, or of a failed attempt."""
    return _against(digest, digest.line, evidence)


def against_reply(reply: Digest) -> ComparedPlace:
    """The place of the end of a reply; what it said is the evidence."""
    return _against(reply, reply.end_line, reply.content)


def _against(digest: Digest, line: int | None, evidence: str) -> ComparedPlace:
    return ComparedPlace(
        tape=digest.tape,
        exchange=digest.exchange,
        line=line,
        span=None,
        asked=None,
        evidence=excerpt(evidence),
    )
