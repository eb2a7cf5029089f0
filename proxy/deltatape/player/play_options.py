"""Options of a player, and its report."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from deltatape.match.request import MatchLevel, MatchQuery, NoMatch
from deltatape.match.schedule import RECORDED, ReplayTempo
from deltatape.model.exchange import Exchange
from deltatape.model.finding import Finding
from deltatape.model.rule_settings import DEFAULTS, Settings
from deltatape.model.tape_summary import LogEntry

if TYPE_CHECKING:
    from deltatape.run_check import RunMistake


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedExchange:
    """An exchange as it is to be played this time.

    Attributes:
        exchange: what is played instead of the recorded one.
        spent: whether the recorded one counts as played; False after a fault that ends the
            response, so that a retry gets the recorded response.
        note: the changes, for its line in the report: `fault status=429`.
    """

    exchange: Exchange
    spent: bool = True
    note: str = ""


class UnusedFault(NamedTuple):
    """A requested fault that changed nothing, and therefore proves nothing.

    Attributes:
        fault: the text of the option.
        why: the reason, a clause.
    """

    fault: str
    why: str


Stage: TypeAlias = Callable[[int, Exchange], StagedExchange]
"""Returns what to play, from the position and the recorded exchange; called once per request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReadBack:
    """How to read a run back; see `run_check.RunCheck`."""

    elsewhere: tuple[Exchange, ...] = ()
    """Recorded exchanges at the application's own endpoint."""
    settings: Settings = DEFAULTS
    ignored: tuple[str, ...] = ()
    """Codes or prefixes of codes to ignore."""
    logs: Mapping[str, Sequence[LogEntry]] = field(default_factory=dict)
    """By tape, what the application printed while it was recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayOptions:
    """How to play tapes."""

    tempo: ReplayTempo = RECORDED
    hold_s: float = 30.0
    """How long to stay silent after a recording that stopped before the provider did."""
    repeat: bool = False
    """Whether an exchange plays again when all equal ones were played."""
    volatile: tuple[str, ...] = ()
    """What may differ in request bodies; see `match.volatile`."""
    stage: Stage | None = None
    unused_faults: Callable[[], Sequence[UnusedFault]] = tuple
    """Faults that the stage has not applied so far."""
    secrets: tuple[bytes, ...] = ()
    """Credentials of the application, to be hidden in reports."""
    bodies: bool = False
    """Whether the report includes the bodies of requests, which may be long."""
    read_back: RunReadBack | None = None
    """None: the run is not read back, and only requests on the tape are accepted. `repeat` has the
    same effect: repeated responses do not form one conversation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedRequest:
    """A request that was answered."""

    query: MatchQuery
    """Its body is empty unless `PlayOptions.bodies` is set."""
    exchange: Exchange
    """The recorded one."""
    level: MatchLevel
    note: str = ""
    codes: tuple[str, ...] = ()
    """Defects of the recorded request that this one corrects."""
    alike: tuple[Exchange, ...] = ()
    """Others that could have answered: see `RecordedMatch.alike`."""

    @property
    def matched(self) -> str:
        """Describe in words how it was matched."""
        codes = f" ({', '.join(self.codes)})" if self.codes else ""
        return f"{self.level.words}{codes}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MissedRequest:
    """A request that was not answered, with the message that it got."""

    query: MatchQuery
    """See `PlayedRequest`."""
    miss: NoMatch
    nearest: Exchange | None
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectedRequest:
    """A correct request where the tape's is wrong, so that the tape has no answer for it."""

    query: MatchQuery
    """See `PlayedRequest`."""
    codes: tuple[str, ...]
    """What is wrong on the tape."""
    message: str
    """The message that it got."""


RequestOutcome: TypeAlias = PlayedRequest | MissedRequest | CorrectedRequest
"""The result of one request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayReport:
    """The requests in order, and the exchanges that were not played."""

    played: tuple[PlayedRequest, ...] = ()
    missed: tuple[MissedRequest, ...] = ()
    unplayed: tuple[Exchange, ...] = ()
    ended: tuple[CorrectedRequest, ...] = ()
    left_behind: tuple[Exchange, ...] = ()
    """Not played, and not missing: they follow a mistake that was not repeated."""
    mistakes: "tuple[RunMistake, ...]" = ()
    """What the application did wrong in the run."""
    unseen: tuple[Finding, ...] = ()
    """Defects at the application's own endpoint, which the player does not see."""
    accused: bool = True
    """Whether the tape accuses the application of anything that a run can show."""

    @property
    def failures(self) -> "tuple[RunMistake, ...]":
        """Return the mistakes that count."""
        return tuple(each for each in self.mistakes if each.fails)

    @property
    def whole(self) -> bool:
        """Return whether every request matched, nothing is left over, and there was no mistake."""
        return not self.missed and not self.unplayed and not self.failures
