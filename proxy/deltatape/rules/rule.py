"""A rule: a decorated function from what it examines to claims.

The decorator registers it under its code and says the rest: name, usual severity, and whether it
judges an ending. Its documentation is the page `docs/CODE.md` beside this file. This module turns
claims into findings, for all rules, and reports rules that raise (`ask`).
"""

import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, NamedTuple, TypeVar

from deltatape.model.digest import Digest, ReadBack, Unanswered
from deltatape.model.finding import Confidence, Excluded, Finding, Severity, at_most
from deltatape.model.rule_settings import Settings
from deltatape.model.turn import Turn
from deltatape.printable import excerpt
from deltatape.rules.context import Claim, RuleContext, observed

MAX_MESSAGE = 600
"""Longest message of a finding, in characters."""
_GROUPS = "WSTADCX"
"""In the order of reports: the wire, the stream, the calls, the application's own events, dead
zones, the conversation, deltatape itself."""

Seen = TypeVar("Seen")
"""What a rule checks."""
Check = Callable[[Seen], Iterable[Claim]]


class Subject(StrEnum):
    """A part that not every exchange has."""

    CALLS = "calls"
    """Tool calls, also those in the text of an answer."""
    OBSERVATIONS = "observations"
    """What the dialect noticed."""
    ANOMALIES = "anomalies"
    """Defects of the framing."""
    APP_EVENTS = "app events"
    """Events of an application's own endpoint."""


class FindingPlace(NamedTuple):
    """The exchange that findings are about, and their place if their claims have none."""

    tape: str
    exchange: int
    line: int | None = None
    t_ns: int | None = None
    timed: bool = True
    """Whether the times of places mean anything."""
    reported: bool = False
    """Whether a program reported the exchange: no side is blamed for what that may have done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule(Generic[Seen]):
    """A rule, and how its claims become findings."""

    code: str
    name: str
    severity: Severity
    """The severity of the usual case; a claim may be milder or graver."""
    check: Check[Seen]
    """Every defect of its kind, in wire order. Never raises on wire data."""
    where: Callable[[Seen], FindingPlace]
    at_end: bool = False
    """Whether it judges an ending: such a rule does not run while an exchange is in progress."""
    survives_loss: bool = False
    """Whether its findings hold although the recorder lost some of the exchange."""
    about_missing: bool = False
    """Whether it reports missing parts, for which nobody is blamed if the client left early."""
    about: Subject | None = None
    """Without this in the exchange it finds nothing, so it need not be asked."""

    def findings(self, seen: Seen) -> Iterator[Finding]:
        """Yield the findings of its claims about `seen`, in their order."""
        return (self.finding(claim, seen) for claim in self.check(seen))

    def finding(self, claim: Claim, seen: Seen) -> Finding:
        """Turn `claim` about `seen` into a finding."""
        where, at = self.where(seen), claim.at
        place = at.place if at else claim.place
        line, t_ns = where.line, where.t_ns
        if place is not None:
            line, t_ns = place.line, place.t_ns if where.timed else None
        elif claim.printed_ns is not None:
            line, t_ns = None, claim.printed_ns
        blame = None if where.reported else claim.blame
        confidence = Confidence.POSSIBLE if where.reported else claim.confidence
        return Finding(
            code=self.code,
            name=self.name,
            severity=at_most(claim.severity or self.severity, blame, confidence),
            blame=blame,
            confidence=confidence,
            message=excerpt(claim.message, MAX_MESSAGE),
            hint=claim.hint,
            tape=where.tape,
            line=line,
            exchange=where.exchange,
            event=at.number if at else claim.event,
            span=place.span if place else None,
            t_ns=t_ns,
            evidence=excerpt(claim.evidence),
            against=claim.against,
            excluded=tuple(
                Excluded(excerpt(one.explanation), excerpt(one.because)) for one in claim.excluded
            ),
        )


class RuleKind(Generic[Seen]):
    """The rules that examine the same kind of value."""

    def __init__(self, where: Callable[[Seen], FindingPlace]) -> None:
        self._where = where
        self._rules: dict[str, Rule[Seen]] = {}

    def rule(
        self,
        code: str,
        name: str,
        severity: Severity,
        *,
        at_end: bool = False,
        survives_loss: bool = False,
        about_missing: bool = False,
        about: Subject | None = None,
    ) -> Callable[[Check[Seen]], Check[Seen]]:
        """Return a decorator that makes a function a rule.

        Args:
            code: a letter for its group, and a number.
            name: what users may write in place of the code.
            severity: the usual severity.
            at_end: whether it judges the end of a response.
            survives_loss: whether its findings hold although some of the exchange was lost.
            about_missing: whether it reports that something never came.
            about: without what in the exchange it finds nothing, if there is such a thing.

        Raises:
            ValueError: the code is taken, or its letter is not a group's.
        """
        if code in self._rules:
            raise ValueError(f"the code {code} of {name!r} is that of {self._rules[code].name!r}")
        if code[0] not in _GROUPS:
            raise ValueError(f"the code {code} of {name!r} begins with none of {_GROUPS}")

        def register(check: Check[Seen]) -> Check[Seen]:
            self._rules[code] = Rule(
                code=code,
                name=name,
                severity=severity,
                check=check,
                where=self._where,
                at_end=at_end,
                survives_loss=survives_loss,
                about_missing=about_missing,
                about=about,
            )
            return check

        return register

    @property
    def rules(self) -> tuple[Rule[Seen], ...]:
        """Return all rules, in the order of reports."""
        return tuple(sorted(self._rules.values(), key=order))


def order(rule: Rule[Seen]) -> tuple[int, str]:
    """Return the sort key of a rule in reports, from its code."""
    return _GROUPS.index(rule.code[0]), rule.code


class SeenTurn(NamedTuple):
    """An exchange in its conversation."""

    turn: Turn
    settings: Settings


class SeenSilence(NamedTuple):
    """A reply with calls, and the silence after it."""

    silence: Unanswered
    settings: Settings


def _at_request(digest: Digest) -> FindingPlace:
    return FindingPlace(
        digest.tape, digest.exchange, digest.line, digest.t_ns, reported=digest.reported
    )


def _at_end(reply: Digest) -> FindingPlace:
    return FindingPlace(
        reply.tape, reply.exchange, reply.end_line, reply.end_ns, reported=reply.reported
    )


EXCHANGES = RuleKind[RuleContext](
    lambda seen: FindingPlace(
        seen.exchange.tape,
        seen.exchange.number,
        timed=seen.exchange.timed,
        reported=seen.exchange.reported,
    )
)
"""Rules about one exchange."""
READ_BACKS = RuleKind[ReadBack](lambda seen: _at_request(seen.later))
"""Rules that compare a reply with the request that repeats it."""
TURNS = RuleKind[SeenTurn](lambda seen: _at_request(seen.turn.digest))
"""Rules about an exchange in its conversation."""
SILENCES = RuleKind[SeenSilence](lambda seen: _at_end(seen.silence.reply))
"""Rules about a reply that no later request repeats or answers."""

exchange_rule = EXCHANGES.rule
read_back_rule = READ_BACKS.rule
measured_turn_rule = TURNS.rule
silence_rule = SILENCES.rule


def turn_rule(code: str, name: str, severity: Severity) -> Callable[[Check[Turn]], Check[Turn]]:
    """Return the decorator of `measured_turn_rule`, for a function of the turn alone."""

    def register(check: Check[Turn]) -> Check[Turn]:
        TURNS.rule(code, name, severity)(lambda seen: check(seen.turn))
        return check

    return register


def observed_rule(
    code: str,
    name: str,
    severity: Severity,
    hint: str,
    *,
    at_end: bool = False,
    about_missing: bool = False,
) -> None:
    """Register a rule that reports what the dialects observe under its code, and nothing else."""
    register = EXCHANGES.rule(
        code,
        name,
        severity,
        at_end=at_end,
        about_missing=about_missing,
        about=Subject.OBSERVATIONS,
    )
    register(lambda context: observed(context, code, hint))


class RuleFailure(NamedTuple):
    """A rule that raised, and its input."""

    code: str
    error: Exception
    where: FindingPlace


FAILURES = RuleKind[RuleFailure](lambda seen: FindingPlace(seen.where.tape, seen.where.exchange))
"""Rules about rules that failed."""


@FAILURES.rule("X001", "internal-error", Severity.ERROR, survives_loss=True)
def internal_error(failure: RuleFailure) -> Iterator[Claim]:
    """Report a rule that failed, with the innermost frames as evidence."""
    error = failure.error
    frames = traceback.extract_tb(error.__traceback__)[-3:]
    yield Claim(
        message=excerpt(f"the rule {failure.code} failed: {type(error).__name__}: {error}"),
        hint=(
            "this is a bug in deltatape: report it with the tape, if you may share the"
            " recorded data"
        ),
        blame=None,
        confidence=Confidence.PROVEN,
        evidence=" < ".join(f"{frame.name}:{frame.lineno}" for frame in reversed(frames)),
    )


def ask(rules: Iterable[Rule[Seen]], seen: Seen) -> list[Finding]:
    """Return what `rules` find in `seen`; a rule that raises contributes an internal error."""
    found: list[Finding] = []
    for rule in rules:
        try:
            for claim in rule.check(seen):
                found.append(rule.finding(claim, seen))  # noqa: PERF401 - an error keeps them
        except Exception as error:  # noqa: BLE001 - the guard of the rules
            failure = RuleFailure(rule.code, error, rule.where(seen))
            for each in FAILURES.rules:
                found.extend(each.findings(failure))
    return found
