"""What torture needs to run a command once: the command, the tapes, and how both are treated."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Protocol

from deltatape.match.schedule import Tempo
from deltatape.model.exchange import Exchange
from deltatape.player.playing import Playing, ReadBack, Stage, Staged
from deltatape.replay.seclusion import Seclusion
from deltatape.trials.torture_judge import Manners
from deltatape.trials.torture_oracle import Oracle
from deltatape.trials.trial import ALONE, Company, Outcome, attempt
from deltatape.vary.tempo import at_tempo
from deltatape.vary.variation import Variation

AT_ONCE = Tempo(factor=0.0)
"""Nothing waits but what a variation makes wait."""
STANDARD_S = 60.0
"""How long a run with the tapes as they are may take."""
_READ_S = 0.0002
"""What a read costs at most, both sides together."""
_PATIENCE = 3.0
"""How many times as long a run gets that should have ended."""
_SLOWER = 2.0
"""By how much a run may be slower because others run beside it."""


class Filing(Protocol):
    """How a failed cell can be had again."""

    def line(self, variation: str, exchange: str, seed: int | None) -> str:
        """The command line that runs one cell alone; `exchange` is its column."""

    def keep(self, name: str, exchanges: Sequence[Exchange]) -> str:
        """Write what was played as a tape; its path, "" if none is wanted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rig:
    """What is to be run, and how."""

    command: tuple[str, ...]
    exchanges: tuple[Exchange, ...]
    """Those of the provider's side."""
    variations: tuple[Variation, ...]
    environ: Mapping[str, str]
    folder: Path
    filing: Filing
    only: frozenset[int] = frozenset()
    """Positions of the exchanges that are varied; none: all."""
    seeds: tuple[int, ...] = (1, 2, 3)
    deadline_s: float = 10.0
    """How much longer than with the tapes as they are a run may take."""
    jobs: int = 1
    volatile: tuple[str, ...] = ()
    manners: Manners = field(default_factory=Manners)
    oracle: Oracle | None = None
    seclusion: Seclusion | None = None
    """Keeps the command from asking a provider past the player; entered."""

    @property
    def company(self) -> Company:
        """What the runs have in common."""
        return ALONE if self.seclusion is None else Company(variables=self.seclusion.variables)

    @property
    def labels(self) -> tuple[str, ...]:
        """The exchanges, as the matrix calls them."""
        several = len({exchange.tape for exchange in self.exchanges}) > 1
        return tuple(
            f"{one.tape}#{one.number}" if several else f"#{one.number}" for one in self.exchanges
        )


class Runner:
    """Runs the command of a rig against its tapes."""

    def __init__(self, rig: Rig) -> None:
        self._rig = rig
        self._plain = tuple(at_tempo(exchange, AT_ONCE) for exchange in rig.exchanges)
        self.runs = 0

    def played(self, varied: Mapping[int, Exchange]) -> tuple[Exchange, ...]:
        """What is played: the varied exchanges, by position, and the others as they are."""
        return tuple(varied.get(at, exchange) for at, exchange in enumerate(self._plain))

    async def run(
        self,
        varied: Mapping[int, Exchange],
        *,
        name: str = "",
        harmless: bool = True,
        standard_s: float = STANDARD_S,
    ) -> Outcome:
        """One run; two where it should have ended and did not, as it may just have been slow.

        Args:
            varied: exchanges to play instead, by position.
            name: of the variation.
            harmless: whether they are whole. One that is not is played as it is recorded to a
                client that asks again.
            standard_s: how long the command takes with the tapes as they are.

        Raises:
            DeltatapeError: the command cannot be run.
        """
        limit_s = STANDARD_S
        if varied:
            own_s = sum(map(_takes_s, varied.values()))
            limit_s = self._rig.deadline_s + own_s + _SLOWER * standard_s
        stage = partial(_Stage, self._plain, varied, name=name, again=not harmless)
        outcome = await self._once(stage(), limit_s)
        if outcome.timed_out and harmless and varied:
            return await self._once(stage(), _PATIENCE * limit_s)
        return outcome

    async def _once(self, stage: Stage, limit_s: float) -> Outcome:
        self.runs += 1
        rig = self._rig
        playing = Playing(
            hold_s=_PATIENCE * limit_s + 1, volatile=rig.volatile, stage=stage, read_back=ReadBack()
        )
        return await attempt(
            rig.command,
            rig.exchanges,
            playing,
            rig.environ,
            rig.folder,
            limit_s,
            company=rig.company,
        )


def _takes_s(exchange: Exchange) -> float:
    """How long an exchange takes to play, and its many reads to be read one by one."""
    request, end = exchange.request, exchange.end
    begun_ns = request.t_end_ns or request.t_ns
    waits_s = (end.t_ns - begun_ns) / 1e9 if end else 0.0
    return waits_s + _READ_S * len(exchange.reads)


class _Stage:
    """See `playing.Stage`."""

    def __init__(
        self,
        plain: Sequence[Exchange],
        varied: Mapping[int, Exchange],
        *,
        name: str,
        again: bool,
    ) -> None:
        self._plain = plain
        self._varied = varied
        self._name = name
        self._again = again
        self._broken: set[int] = set()

    def __call__(self, position: int, recorded: Exchange) -> Staged:  # noqa: ARG002 - a Stage
        varied = self._varied.get(position)
        if varied is None or position in self._broken:
            return Staged(exchange=self._plain[position])
        if not self._again:
            return Staged(exchange=varied, note=self._name)
        self._broken.add(position)
        return Staged(exchange=varied, spent=False, note=self._name)
