"""Bodies that end too early: as announced, which nobody but the server does, or broken."""

from deltatape.model.exchange import EndReason
from deltatape.mutate._chance import Chance
from deltatape.mutate._draft import Draft

_ENDINGS = (None, EndReason.UPSTREAM_CLOSED, EndReason.UPSTREAM_RESET)


def cut_before(draft: Draft, place: int, chance: Chance) -> None:
    """Ends the body in front of the unit number `place`, which is not the first."""
    draft.cut_after(draft.units[place - 1], reason=_ENDINGS[chance.choose(len(_ENDINGS))])
