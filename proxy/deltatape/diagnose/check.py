"""The rules over one exchange."""

from dataclasses import replace
from functools import lru_cache

from deltatape.diagnose.as_taped import as_taped, first_the_loss
from deltatape.diagnose.rebuild import Analysis, analyse
from deltatape.model.exchange import Exchange, Tap
from deltatape.model.finding import Blame, Finding
from deltatape.rules import (
    INTERNAL_ERROR,
    OF_THE_END,
    RECORDER_LOSS,
    RULES,
    Rule,
    RuleContext,
)
from deltatape.rules.guard import guarded_each
from deltatape.rules.settings import DEFAULTS, Settings
from deltatape.rules.subject import is_about, subjects_of

_REMEMBERED = 1024
"""Sets of subjects; exchanges of an application have the same few."""


def check(exchange: Exchange, settings: Settings = DEFAULTS) -> tuple[Finding, ...]:
    """What is wrong with `exchange`, the worst first, but before it what the tape lacks (X002).

    Sorted by severity, then in the order of `RULES`, then in wire order. Never raises: a rule that
    does is reported as X001.
    """
    return check_analysis(analyse(exchange, settings.app), settings)


def check_analysis(analysis: Analysis, settings: Settings = DEFAULTS) -> tuple[Finding, ...]:
    """As `check`, for an exchange that has been analysed already."""
    context = RuleContext(
        exchange=analysis.exchange,
        stream=analysis.stream,
        asked=analysis.asked,
        reply=analysis.reply,
        settings=settings,
    )
    exchange = analysis.exchange
    rules = (RECORDER_LOSS, *_rules_about(subjects_of(context), ended=not exchange.open))

    def failed(rule: Rule, error: Exception) -> Finding:
        return INTERNAL_ERROR.report(rule, exchange.tape, exchange.number, error)

    found = as_taped(guarded_each(rules, lambda rule: rule.check(context), failed), exchange)
    if exchange.tap is Tap.APP or analysis.reply.from_app:
        found = [replace(finding, blame=_behind(finding.blame)) for finding in found]
    return first_the_loss(found)


@lru_cache(maxsize=_REMEMBERED)
def _rules_about(subjects: frozenset[str], *, ended: bool) -> tuple[Rule, ...]:
    """Those of `RULES` that may have something to report, in their order."""
    return tuple(
        rule
        for rule in RULES
        if (ended or rule.code not in OF_THE_END) and is_about(rule.code, subjects)
    )


def _behind(blame: Blame | None) -> Blame | None:
    """Whose fault it is in front of the application's own endpoint, or in a stream that it wrote.

    There the application is the upstream, and the client somebody of whom nothing is known.
    """
    if blame is Blame.TRANSPORT:
        return blame
    return None if blame in (None, Blame.APP) else Blame.APP
