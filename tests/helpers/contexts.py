"""What a rule sees of an exchange."""

from deltatape.diagnose.rebuild import analyse
from deltatape.model.exchange import Exchange
from deltatape.rules import RuleContext
from deltatape.rules.settings import DEFAULTS


def context_of(exchange: Exchange) -> RuleContext:
    """The context of `exchange` under the default settings."""
    analysis = analyse(exchange)
    return RuleContext(
        exchange=analysis.exchange,
        stream=analysis.stream,
        asked=analysis.asked,
        reply=analysis.reply,
        settings=DEFAULTS,
    )
