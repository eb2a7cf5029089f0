"""How tapes are to be played, and what became of it: the player's terms."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from deltatape.match.request import Asking, Miss, Rung
from deltatape.match.schedule import RECORDED, Tempo
from deltatape.model.exchange import Exchange


@dataclass(frozen=True, slots=True, kw_only=True)
class Staged:
    """An exchange as it is to be played this time.

    Attributes:
        exchange: what is played instead of the recorded one.
        spent: whether the recorded one is used up by that; not by a fault that ends the answer,
            since a client that asks again shall get the answer then.
        note: what was done to it, for the line that tells of it: `fault status=429`.
    """

    exchange: Exchange
    spent: bool = True
    note: str = ""


class Unstruck(NamedTuple):
    """A fault that was asked for and struck nothing: it proves nothing.

    Attributes:
        fault: as it was written.
        why: a clause.
    """

    fault: str
    why: str


Stage: TypeAlias = Callable[[int, Exchange], Staged]
"""Makes of a recorded exchange, by its position, what is played; called once per request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Playing:
    """How tapes are to be played."""

    tempo: Tempo = RECORDED
    hold_s: float = 30.0
    """How long to stay silent where the tape does not say how the provider went on."""
    repeat: bool = False
    """Whether an exchange plays again when all equal ones were played."""
    volatile: tuple[str, ...] = ()
    """JSON paths in request bodies that may differ."""
    stage: Stage | None = None
    unstruck: Callable[[], Sequence[Unstruck]] = tuple
    """What the stage was to do and has not done so far."""
    secrets: tuple[bytes, ...] = ()
    """Credentials of the application that must not be told of its requests."""
    bodies: bool = False
    """Whether the report has the bodies of the requests that were made, which may be long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """A request that was answered."""

    asking: Asking
    """Its body is left empty but for `Playing.bodies`."""
    exchange: Exchange
    """The recorded one."""
    rung: Rung
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Missed:
    """A request that was not, with the message it got."""

    asking: Asking
    """As of `Played`."""
    miss: Miss
    nearest: Exchange | None
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What became of the requests, in their order, and of the tapes."""

    played: tuple[Played, ...] = ()
    missed: tuple[Missed, ...] = ()
    unplayed: tuple[Exchange, ...] = ()

    @property
    def whole(self) -> bool:
        """Whether nothing was missed and nothing is left over."""
        return not self.missed and not self.unplayed
