"""All variations: harmless ones, and hostile ones that every client has to notice.

The player's tempo must be `RECORDED`: convert an exchange with `at_tempo` first, otherwise the time
that a variation adds is scaled, too.
"""

from deltatape.diagnose.rebuild import rebuild
from deltatape.model.exchange import Exchange
from deltatape.mutate import MutationChoices
from deltatape.rules.progress import SilencePhase
from deltatape.vary._base import Variation, reply_content
from deltatape.vary.deltas import DELTAS
from deltatape.vary.fault import parse_fault
from deltatape.vary.reads import CUTTINGS
from deltatape.vary.spelling import SPELLINGS
from deltatape.vary.transport import TRANSPORT

__all__ = ["HARMLESS", "HOSTILE", "VARIATIONS", "Variation"]

HARMLESS: tuple[Variation, ...] = (*CUTTINGS, *SPELLINGS, *DELTAS, *TRANSPORT)
"""Variations with the same content: the outcome must not change."""

# Hostile variations: responses that fail in each phase, as connections and providers fail. Where a
# failure leaves the rebuilt reply unchanged, as a cut after the finish reason does, a client need
# not notice it, so the variation has no place.

_ENDS = {
    "cut": "The connection is closed {}.",
    "reset": "The connection is reset {}.",
    "end": "The response ends {}, as if it were complete.",
    "stall": "The response stops {}, and the connection stays open.",
    "error-event": "The response ends with an error event {}.",
}
_PHASES = {
    SilencePhase.BEFORE_FIRST: "before the first event",
    SilencePhase.IN_TEXT: "inside the text",
    SilencePhase.IN_ARGUMENTS: "inside the arguments of a call",
    SilencePhase.AFTER_CALL: "after a complete call",
    SilencePhase.BEFORE_END: "just before the finish reason",
}
_STATUSES = {
    "status=429,retry-after=1": ("status-429", "The provider returns 429 with `retry-after: 1`."),
    "status=500": ("status-500", "The provider returns 500, a server error."),
    "status=529": ("status-529", "The provider returns 529, overloaded."),
    "status=502,html": ("status-502", "A gateway returns 502 with an HTML page."),
}


def _hostile(name: str, text: str, summary: str) -> Variation:
    fault = parse_fault(text)

    def make(exchange: Exchange, chance: MutationChoices) -> Exchange | None:
        failed = fault.applied(exchange, chance)
        if failed is None or reply_content(rebuild(failed)) == reply_content(rebuild(exchange)):
            return None
        return failed

    return Variation(name=name, harmless=False, summary=summary, make=make)


HOSTILE: tuple[Variation, ...] = (
    *(
        _hostile(f"{kind}-{phase}", f"{kind},at={phase}", summary.format(where))
        for kind, summary in _ENDS.items()
        for phase, where in _PHASES.items()
    ),
    *(
        _hostile(f"corrupt-{phase}", f"corrupt,at={phase}", f"A byte is damaged {_PHASES[phase]}.")
        for phase in (SilencePhase.IN_TEXT, SilencePhase.IN_ARGUMENTS)
    ),
    *(_hostile(name, fault, summary) for fault, (name, summary) in _STATUSES.items()),
)
"""Failures: the app must report an error."""
VARIATIONS: tuple[Variation, ...] = (*HARMLESS, *HOSTILE)
