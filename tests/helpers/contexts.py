"""The context of a rule, and the findings of a single rule."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TypeVar

from deltatape.diagnose.rebuild import analyse
from deltatape.model.exchange import Exchange
from deltatape.model.finding import Finding
from deltatape.model.rule_settings import DEFAULTS
from deltatape.rules import EXCHANGE_RULES, Claim, Rule, RuleContext

Seen = TypeVar("Seen")


def context_of(exchange: Exchange) -> RuleContext:
    """The context of `exchange` under the default settings."""
    analysis = analyse(exchange)
    return RuleContext(
        exchange=analysis.exchange,
        stream=analysis.stream,
        request=analysis.request,
        reply=analysis.reply,
        settings=DEFAULTS,
    )


def findings_of(code: str, context: RuleContext) -> list[Finding]:
    """The findings of the exchange rule `code` in `context`."""
    (rule,) = (rule for rule in EXCHANGE_RULES if rule.code == code)
    return list(rule.findings(context))


def failing(code: str, rules: Iterable[Rule[Seen]]) -> tuple[Rule[Seen], ...]:
    """`rules`, with the rule `code` replaced by one that raises."""
    return tuple(replace(rule, check=_fail) if rule.code == code else rule for rule in rules)


def _fail(seen: object) -> Iterator[Claim]:
    raise KeyError(type(seen))
