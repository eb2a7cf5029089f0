"""All variations: harmless ones, and hostile ones that every client has to notice.

They are made for a player whose tempo is `RECORDED`: bring an exchange to the speed that is wanted
by `tempo.at_tempo` first, or the time that a variation adds is sped up, too.
"""

from deltatape.vary._base import Variation
from deltatape.vary.deltas import DELTAS
from deltatape.vary.hostile import HOSTILE_ANSWERS, HOSTILE_ENDS, HOSTILE_EVENTS
from deltatape.vary.lines import LINES
from deltatape.vary.read_boundaries import CUTTINGS
from deltatape.vary.transport import TRANSPORT
from deltatape.vary.values import VALUES

__all__ = ["HARMLESS", "HOSTILE", "VARIATIONS", "Variation"]

HARMLESS: tuple[Variation, ...] = (*CUTTINGS, *LINES, *VALUES, *DELTAS, *TRANSPORT)
"""Those that say the same: the outcome may not change."""
HOSTILE: tuple[Variation, ...] = (*HOSTILE_ENDS, *HOSTILE_EVENTS, *HOSTILE_ANSWERS)
"""Those that fail: they have to end in an error that somebody sees."""
VARIATIONS: tuple[Variation, ...] = (*HARMLESS, *HOSTILE)
