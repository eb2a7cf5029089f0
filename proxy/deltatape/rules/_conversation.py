"""What a rule about a conversation is, and how it makes a finding.

It looks at one read-back, a reply and the later request that repeats it; or at a reply that no
request repeats, and the silence after it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from deltatape.model.digest import ReadBack, SaidCall, Unanswered
from deltatape.model.finding import Blame, Finding, Severity
from deltatape.rules._base import MAX_MESSAGE, Documented
from deltatape.rules.evidence import excerpt
from deltatape.rules.settings import Settings


class ConversationRule(Documented, Protocol):
    """A rule about what the application made of a reply."""

    def check(self, read_back: ReadBack) -> Iterator[Finding]:
        """Every difference of its kind, in the order of the calls. Never raises on wire data."""


class SilenceRule(Documented, Protocol):
    """A rule about a reply that was not answered."""

    def check(self, silence: Unanswered, settings: Settings) -> Iterator[Finding]:
        """What the silence amounts to. Never raises on wire data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AppClaim:
    """A finding without what the rule and the read-back already say. Nothing is escaped yet."""

    message: str
    hint: str
    evidence: str
    severity: Severity


def app_finding(rule: Documented, read_back: ReadBack, claim: AppClaim) -> Finding:
    """A finding that blames the application, placed at the request that repeats the reply."""
    later = read_back.later
    return Finding(
        code=rule.code,
        name=rule.name,
        severity=claim.severity,
        blame=Blame.APP,
        confidence=read_back.confidence,
        message=excerpt(claim.message, MAX_MESSAGE),
        hint=claim.hint,
        tape=later.tape,
        line=later.line,
        exchange=later.exchange,
        event=None,
        span=None,
        t_ns=later.t_ns,
        evidence=excerpt(claim.evidence),
    )


def called(read_back: ReadBack, call: SaidCall) -> str:
    """How a message names a call of the reply: `call 0 (get_weather, c1) of #1`."""
    names = ", ".join(excerpt(name, 60) for name in (call.name, call.id) if name)
    return f"call {call.index}{f' ({names})' if names else ''} of #{read_back.reply.exchange}"
