"""The tape as far as it is shrunk: takes what is smaller, sound, and fails in the same way.

Strategy: a candidate has to be smaller in a fixed order (exchanges, bytes of bodies, bytes of
heads), so that the search ends. It must have no finding that the exchange had not at the
beginning: a smaller stream that breaks the protocol would show another mistake than the one that
is looked for, even where the program says the same. That costs no run. What is left is judged by
a run.

Source: the order and the passes, "Test-case reduction via test-case generation: insights from the
Hypothesis reducer" (MacIver, Donaldson, ECOOP 2020).
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeAlias

from deltatape.diagnose.check import check_analysis
from deltatape.diagnose.rebuild import analyse
from deltatape.model.exchange import Exchange, Headers, HeaderValue
from deltatape.model.finding import Severity

Exchanges: TypeAlias = tuple[Exchange, ...]
Judge: TypeAlias = Callable[[Exchanges], Exchanges | None]
"""The exchanges as they are to be kept if these fail in the same way: with the requests that were
made of them, without those that nobody asked for; None if they do not."""

_OF_TIME = "D"
"""How the codes of findings about time begin: times are not kept."""


class UsedUpError(Exception):
    """No more may be asked."""


class Search:
    """A tape on its way to the smallest one.

    Attributes:
        exchanges: of the smallest tape so far; their numbers stay those of the beginning.
        sound: whether no finding may come that was not there.
    """

    def __init__(self, exchanges: Exchanges, judge: Judge, *, sound: bool = True) -> None:
        """Args: exchanges: fail as is wanted; no two have the same number."""
        self.exchanges = exchanges
        self.sound = sound
        self._judge = judge
        self._complaints = {one.number: complaints(one) for one in exchanges}

    @property
    def numbers(self) -> tuple[int, ...]:
        """The numbers of the exchanges that are left."""
        return tuple(one.number for one in self.exchanges)

    def get(self, number: int) -> Exchange | None:
        """The exchange of this number, if it is left."""
        return next((one for one in self.exchanges if one.number == number), None)

    def offer(self, exchanges: Exchanges, *, smaller: bool = True) -> bool:
        """Whether these are taken.

        Args:
            exchanges: instead of those that there are.
            smaller: whether they have to be smaller; else other ones are enough.

        Raises:
            UsedUpError: no more runs are left.
        """
        if exchanges == self.exchanges or (smaller and size(exchanges) >= size(self.exchanges)):
            return False
        known = {id(one) for one in self.exchanges}
        changed = [one for one in exchanges if id(one) not in known]
        if self.sound and not all(map(self._is_sound, changed)):
            return False
        kept = self._judge(exchanges)
        if kept is None:
            return False
        self.exchanges = kept
        return True

    def offer_one(self, exchange: Exchange, *, smaller: bool = True) -> bool:
        """The same with another response for the exchange of this number.

        Its request is that of the exchange which is there now.
        """
        return self.offer(
            tuple(
                replace(exchange, request=one.request) if one.number == exchange.number else one
                for one in self.exchanges
            ),
            smaller=smaller,
        )

    def offer_only(self, numbers: Iterable[int]) -> bool:
        """The same with the exchanges of these numbers alone."""
        stay = frozenset(numbers)
        return self.offer(tuple(one for one in self.exchanges if one.number in stay))

    def _is_sound(self, exchange: Exchange) -> bool:
        return complaints(exchange) <= self._complaints[exchange.number]


def complaints(exchange: Exchange) -> frozenset[str]:
    """What can be said against an exchange, as codes of findings; the dialect that it is in."""
    analysis = analyse(exchange)
    codes = {
        finding.code
        for finding in check_analysis(analysis)
        if finding.severity is not Severity.INFO and not finding.code.startswith(_OF_TIME)
    }
    return frozenset({*codes, f"in {analysis.reply.dialect}"})


def size(exchanges: Exchanges) -> tuple[int, int, int, tuple[bytes, ...]]:
    """What is smaller comes first in the order of these."""
    bodies = tuple(one.body for one in exchanges)
    return len(exchanges), sum(map(len, bodies)), sum(map(_around, exchanges)), bodies


def _around(exchange: Exchange) -> int:
    """How much there is beside the body of a response."""
    response = exchange.response
    heads = (response, *exchange.informational) if response else exchange.informational
    fields = sum(_weight(head.headers) for head in heads)
    beside = len(exchange.notes) + len(exchange.idle_ns) + len(exchange.delivered)
    return fields + _weight(exchange.trailers) + len(heads) + beside


def _weight(headers: Headers) -> int:
    return sum(len(name) + _length(value) + 1 for name, value in headers)


def _length(value: HeaderValue) -> int:
    return len(value) if isinstance(value, bytes) else value.length
