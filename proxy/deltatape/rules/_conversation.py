"""What a rule about a conversation is, and how it makes a finding.

It looks at one read-back, a reply and the later request that repeats it; at a reply that no request
repeats, and the silence after it; or at a turn, a request and its reply with what the conversation
before them tells.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from deltatape.model.asked import RepeatedCall
from deltatape.model.digest import Digest, ReadBack, SaidCall, Unanswered
from deltatape.model.finding import Against, Blame, Confidence, Excluded, Finding, Severity, at_most
from deltatape.model.turn import Delivered, Turn
from deltatape.rules._base import MAX_MESSAGE, Documented, escaped
from deltatape.rules.evidence import excerpt
from deltatape.rules.settings import Settings

_HANDOFF = re.compile(r"transfer|hand_?-?off|delegat|escalat|switch|route", re.IGNORECASE)
"""Names of calls that give a conversation to another agent."""


class ConversationRule(Documented, Protocol):
    """A rule about what the application made of a reply."""

    def check(self, read_back: ReadBack) -> Iterator[Finding]:
        """Every difference of its kind, in the order of the calls. Never raises on wire data."""


class SilenceRule(Documented, Protocol):
    """A rule about a reply that was not answered."""

    def check(self, silence: Unanswered, settings: Settings) -> Iterator[Finding]:
        """What the silence amounts to. Never raises on wire data."""


class TurnRule(Documented, Protocol):
    """A rule about an exchange in its conversation."""

    def check(self, turn: Turn, settings: Settings) -> Iterator[Finding]:
        """What the exchange is the first to show. Never raises on wire data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AppClaim:
    """A finding without what the rule and the read-back already say. Nothing is escaped yet."""

    message: str
    hint: str
    evidence: str
    severity: Severity
    said: SaidCall
    """The delivered call that it is about."""
    heard: RepeatedCall | None = None
    """What the request has in its place."""
    confidence: Confidence | None = None
    """None: as sure as the read-back is."""
    blame: Blame | None = Blame.APP
    excluded: tuple[Excluded, ...] = ()


class Grade(NamedTuple):
    """What a difference between a delivered call and the repeated one amounts to.

    `says` is a clause for the message, or empty. Without `blame` it is a fact.
    """

    says: str
    hint: str
    confidence: Confidence
    excluded: tuple[Excluded, ...] = ()
    severity: Severity = Severity.ERROR
    blame: Blame | None = Blame.APP


def app_finding(rule: Documented, read_back: ReadBack, claim: AppClaim) -> Finding:
    """A finding about what became of a reply, placed at the request that repeats it."""
    later = read_back.later
    delivered = Delivered(call=claim.said, reply=read_back.reply)
    whole = TurnClaim(
        message=claim.message,
        hint=claim.hint,
        blame=claim.blame,
        confidence=claim.confidence or read_back.confidence,
        severity=claim.severity,
        evidence=claim.evidence,
        against=against(delivered, later, claim.heard),
        excluded=claim.excluded,
    )
    return _at_request(rule, later, whole)


def was_delivered(read_back: ReadBack, call: SaidCall) -> bool:
    """Whether the client had been sent all of `call` when the request that repeats it left.

    Nothing may be held against a request of what came after it, or of what the recorder lost.
    """
    reply, later = read_back.reply, read_back.later
    if reply.lossy:
        return False
    if reply.tape != later.tape or later.t_ns is None or call.t_ns is None:
        return True
    return call.t_ns <= later.t_ns


def called(read_back: ReadBack, call: SaidCall) -> str:
    """How a message names a call of the reply: `call 0 (get_weather, c1) of #1`."""
    return called_in(Delivered(call=call, reply=read_back.reply))


def called_in(delivered: Delivered) -> str:
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


def against(delivered: Delivered, later: Digest, heard: RepeatedCall | None = None) -> Against:
    """The place of a delivered call, and of what the request `later` has in its place."""
    call, reply = delivered.call, delivered.reply
    asked = (span for repeated, span in later.asked_at if repeated is heard)
    return Against(
        tape=reply.tape,
        exchange=reply.exchange,
        line=call.line,
        span=call.span,
        asked=next(asked, None),
        evidence=excerpt(call.arguments or "(no argument bytes)"),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnClaim:
    """A finding without what the rule and the turn already say. Nothing is escaped yet."""

    message: str
    hint: str
    blame: Blame | None
    confidence: Confidence
    severity: Severity
    evidence: str = ""
    against: Against | None = None
    excluded: tuple[Excluded, ...] = ()


def turn_finding(rule: Documented, turn: Turn, claim: TurnClaim) -> Finding:
    """A finding about an exchange in its conversation, placed at its request."""
    return _at_request(rule, turn.digest, claim)


def _at_request(rule: Documented, digest: Digest, claim: TurnClaim) -> Finding:
    return Finding(
        code=rule.code,
        name=rule.name,
        severity=at_most(claim.severity, claim.blame, claim.confidence),
        blame=claim.blame,
        confidence=claim.confidence,
        message=excerpt(claim.message, MAX_MESSAGE),
        hint=claim.hint,
        tape=digest.tape,
        line=digest.line,
        exchange=digest.exchange,
        event=None,
        span=None,
        t_ns=digest.t_ns,
        evidence=excerpt(claim.evidence),
        against=claim.against,
        excluded=escaped(claim.excluded),
    )
