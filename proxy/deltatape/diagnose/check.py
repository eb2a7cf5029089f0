"""The rules over one exchange."""

from dataclasses import replace
from functools import lru_cache

from deltatape.diagnose.as_taped import as_taped, first_the_loss
from deltatape.diagnose.rebuild import Analysis, analyse
from deltatape.model.exchange import Exchange, Tap
from deltatape.model.finding import Blame, Finding
from deltatape.rules import EXCHANGE_RULES, Rule, RuleContext, ask
from deltatape.rules.settings import DEFAULTS, Settings
from deltatape.rules.subject import subjects_of

_REMEMBERED = 1024
"""Sets of subjects; exchanges of an application have the same few."""


def check(exchange: Exchange, settings: Settings = DEFAULTS) -> tuple[Finding, ...]:
    """What is wrong with `exchange`, the worst first, but before it what the tape lacks (X002).

    Sorted by severity, then in the order of `EXCHANGE_RULES`, then in wire order. Never raises: a
    rule that does is reported as X001.
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
    rules = rules_about(subjects_of(context), ended=not exchange.open)
    found = as_taped(ask(rules, context), exchange)
    if exchange.tap is Tap.APP or analysis.reply.from_app:
        found = [replace(finding, blame=_behind(finding.blame)) for finding in found]
    return first_the_loss(found)


@lru_cache(maxsize=_REMEMBERED)
def rules_about(subjects: frozenset[str], *, ended: bool) -> tuple[Rule[RuleContext], ...]:
    """Those of `EXCHANGE_RULES` that may have something to report, in their order."""
    return tuple(
        rule for rule in EXCHANGE_RULES if (ended or not rule.at_end) and rule.is_about(subjects)
    )


def _behind(blame: Blame | None) -> Blame | None:
    """Whose fault it is in front of the application's own endpoint, or in a stream that it wrote.

    There the application is the upstream, and the client somebody of whom nothing is known.
    """
    if blame is Blame.TRANSPORT:
        return blame
    return None if blame in (None, Blame.APP) else Blame.APP
