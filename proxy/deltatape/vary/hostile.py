"""Hostile: answers that fail in every phase, in every way in which connections and providers do.

What rebuilds to the same reply all the same, such as one whose finish reason had come before the
cut, is no failure that anybody has to notice: there is no place for it then.
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
    "end": "The answer ends {}, as if it were whole.",
    "stall": "The answer falls silent {}, and the connection stays.",
    "error-event": "An error comes {}, and nothing behind it.",
}
_PHASES = {
    SilencePhase.BEFORE_FIRST: "before the first event",
    SilencePhase.IN_TEXT: "in the text",
    SilencePhase.IN_ARGUMENTS: "in the arguments of a call",
    SilencePhase.AFTER_CALL: "behind a whole call",
    SilencePhase.BEFORE_END: "when all but the finish reason has come",
}
_STATUSES = {
    "status=429,retry-after=1": ("status-429", "The provider asks to come back in a second."),
    "status=500": ("status-500", "The provider fails with a server error."),
    "status=529": ("status-529", "The provider is overloaded."),
    "status=502,html": ("status-502", "A gateway answers with a page that says 502."),
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
