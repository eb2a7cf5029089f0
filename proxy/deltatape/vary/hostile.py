"""Hostile variations: responses that fail in each phase, as connections and providers fail.

A failure that leaves the rebuilt reply unchanged, such as a cut after the finish reason, need not
be noticed by a client, so the variation does not apply there.
"""

from deltatape.diagnose.rebuild import rebuild
from deltatape.model.exchange import Exchange
from deltatape.mutate import MutationChoices
from deltatape.rules.progress import SilencePhase
from deltatape.vary._base import Variation, said
from deltatape.vary.fault import parse_fault

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


def _varied(name: str, text: str, summary: str) -> Variation:
    fault = parse_fault(text)

    def make(exchange: Exchange, chance: MutationChoices) -> Exchange | None:
        struck = fault.applied(exchange, chance)
        if struck is None or said(rebuild(struck)) == said(rebuild(exchange)):
            return None
        return struck

    return Variation(name=name, harmless=False, summary=summary, make=make)


HOSTILE_ENDS = tuple(
    _varied(f"{kind}-{phase}", f"{kind},at={phase}", what.format(where))
    for kind, what in _ENDS.items()
    for phase, where in _PHASES.items()
)
HOSTILE_EVENTS = tuple(
    _varied(f"corrupt-{phase}", f"corrupt,at={phase}", f"A byte is damaged {_PHASES[phase]}.")
    for phase in (SilencePhase.IN_TEXT, SilencePhase.IN_ARGUMENTS)
)
HOSTILE_ANSWERS = tuple(_varied(name, text, summary) for text, (name, summary) in _STATUSES.items())
