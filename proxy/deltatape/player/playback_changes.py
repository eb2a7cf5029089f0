"""Change what is played: its speed, its reads, and faults.

Speed is applied first, so that a fault's own durations stay as given; the player's tempo must be
`RECORDED`. Random choices depend on the seed, the exchange and how often it was requested. So
parallel clients, whose order varies, get the same.
"""

from collections import Counter
from collections.abc import Sequence

from deltatape.errors import UsageError
from deltatape.match.schedule import RECORDED, ReplayTempo
from deltatape.model.exchange import Exchange
from deltatape.mutate import SeededChoices
from deltatape.player.play_options import StagedExchange, UnusedFault
from deltatape.vary.fault import InjectedFault
from deltatape.vary.reads import RECORDED as AS_READ
from deltatape.vary.reads import Cutting
from deltatape.vary.shape import at_tempo

_SPREAD = 0x9E3779B97F4A7C15
"""Odd, so that other positions and repetitions get other seeds."""


class ExchangeStaging:
    """A `Stage`.

    Args:
        faults: applied in this order; none follows one that ends the response.
        cutting: how bodies are cut into reads.
        seed: for all random choices.
        tempo: how fast recorded times pass.
    """

    def __init__(
        self,
        faults: Sequence[InjectedFault] = (),
        cutting: Cutting = AS_READ,
        seed: int = 0,
        tempo: ReplayTempo = RECORDED,
    ) -> None:
        self._faults = tuple(faults)
        self._cutting = cutting
        self._seed = seed
        self._tempo = tempo
        self._struck: Counter[int] = Counter()
        self._placeless: set[int] = set()
        self._behind: set[int] = set()
        self._asked: Counter[int] = Counter()

    def __call__(self, position: int, exchange: Exchange) -> StagedExchange:
        chance = SeededChoices(self._seed ^ (position + 1) * _SPREAD ^ self._asked[position] << 17)
        self._asked[position] += 1
        played = at_tempo(exchange, self._tempo)
        notes: list[str] = []
        spent = True
        for place, fault in enumerate(self._faults):
            if not self._is_due(place, exchange):
                continue
            if not spent:
                self._behind.add(place)
                continue
            struck = fault.at_recorded_byte(exchange).applied(played, chance)
            if struck is None:
                self._placeless.add(place)
                notes.append(f"no place for {fault.text}")
                continue
            self._struck[place] += 1
            played, spent = struck, not fault.ends_early
            notes.append(f"fault {fault.text}")
        return StagedExchange(
            exchange=self._cutting.cut(played), spent=spent, note=", ".join(notes)
        )

    def unused_faults(self) -> tuple[UnusedFault, ...]:
        """Return the faults that have changed nothing so far."""
        left = [place for place in range(len(self._faults)) if not self._struck[place]]
        return tuple(UnusedFault(self._faults[place].text, self._why(place)) for place in left)

    def _why(self, place: int) -> str:
        if not self._asked:
            return "no exchange was played"
        if place in self._placeless:
            return "no played response has the position that it names"
        if place in self._behind:
            return "an earlier fault had ended the response"
        return "the exchange that it names was not played"

    def _is_due(self, place: int, exchange: Exchange) -> bool:
        fault = self._faults[place]
        if fault.exchange not in (None, exchange.number):
            return False
        return fault.times is None or self._struck[place] < fault.times


def refuse_absent(faults: Sequence[InjectedFault], exchanges: Sequence[Exchange]) -> None:
    """Refuse a fault that names an exchange that does not exist.

    Raises:
        UsageError: there is one.
    """
    numbers = sorted({exchange.number for exchange in exchanges})
    for fault in faults:
        if fault.exchange is not None and fault.exchange not in numbers:
            known = ", ".join(map(str, numbers))
            raise UsageError(
                f"--fault {fault.text!r}: there is no exchange {fault.exchange} to play;"
                f" the tape has {known or 'none'}"
            )
