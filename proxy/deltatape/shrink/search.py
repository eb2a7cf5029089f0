"""The search: accepts candidates that are smaller, valid, and fail in the same way.

Strategy: a candidate has to be smaller in a fixed order (exchanges, bytes of bodies, bytes of
heads), so that the search ends. It must have no finding that the original exchange does not have: a
smaller stream that breaks the protocol would show another mistake, even if the program prints the
same. Only candidates that pass these checks cost a run.

Source: the order and the passes, "Test-case reduction via test-case generation: insights from the
Hypothesis reducer" (MacIver, Donaldson, ECOOP 2020).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeAlias, TypeVar

from deltatape.diagnose.check import check_analysis
from deltatape.diagnose.rebuild import analyse
from deltatape.model.exchange import Exchange, Headers, HeaderValue
from deltatape.model.finding import Severity
from deltatape.shrink.body import EditableBody

Exchanges: TypeAlias = tuple[Exchange, ...]
Judge: TypeAlias = Callable[[Exchanges], Exchanges | None]
"""The exchanges as they are to be kept if these fail in the same way: with the requests that were
made of them, without those that were never requested; None if they do not."""
_OF_TIME = "D"
"""How the codes of findings about time begin: times are not kept."""


class BudgetExhaustedError(Exception):
    """No runs are left."""


class ShrinkSearch:
    """A tape on its way to the smallest one.

    Attributes:
        exchanges: the smallest tape so far; exchanges keep their original numbers.
        sound: whether candidates must not have new findings.
    """

    def __init__(self, exchanges: Exchanges, judge: Judge, *, sound: bool = True) -> None:
        """Args: exchanges: these fail; no two have the same number."""
        self.exchanges = exchanges
        self.sound = sound
        self._judge = judge
        self._defects = {one.number: defects(one) for one in exchanges}

    @property
    def numbers(self) -> tuple[int, ...]:
        """Return the numbers of the exchanges that are left."""
        return tuple(one.number for one in self.exchanges)

    def get(self, number: int) -> Exchange | None:
        """Return the exchange of this number, if it is left."""
        return next((one for one in self.exchanges if one.number == number), None)

    def body(self, number: int) -> EditableBody | None:
        """Return the response body of this exchange, if it is left and has events to change."""
        exchange = self.get(number)
        return EditableBody.of(exchange) if exchange is not None else None

    def offer(self, exchanges: Exchanges, *, smaller: bool = True) -> bool:
        """Offer these exchanges; return whether they are accepted.

        Args:
            exchanges: the candidate.
            smaller: whether it must be smaller than the present tape; else it must only differ.

        Raises:
            BudgetExhaustedError: no more runs are left.
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
        """Offer another response for the exchange of this number.

        The request of the present exchange is kept.
        """
        return self.offer(
            tuple(
                replace(exchange, request=one.request) if one.number == exchange.number else one
                for one in self.exchanges
            ),
            smaller=smaller,
        )

    def offer_only(self, numbers: Iterable[int]) -> bool:
        """Offer the exchanges of these numbers alone."""
        stay = frozenset(numbers)
        return self.offer(tuple(one for one in self.exchanges if one.number in stay))

    def _is_sound(self, exchange: Exchange) -> bool:
        return defects(exchange) <= self._defects[exchange.number]


def defects(exchange: Exchange) -> frozenset[str]:
    """Return an exchange's finding codes and its dialect."""
    analysis = analyse(exchange)
    codes = {
        finding.code
        for finding in check_analysis(analysis)
        if finding.severity is not Severity.INFO and not finding.code.startswith(_OF_TIME)
    }
    return frozenset({*codes, f"in {analysis.reply.dialect}"})


def size(exchanges: Exchanges) -> tuple[int, int, int, tuple[bytes, ...]]:
    """Return a key that sorts smaller exchanges first."""
    bodies = tuple(one.body for one in exchanges)
    return len(exchanges), sum(map(len, bodies)), sum(map(_around, exchanges)), bodies


def _around(exchange: Exchange) -> int:
    """Return the size of an exchange apart from its response body."""
    response = exchange.response
    heads = (response, *exchange.informational) if response else exchange.informational
    fields = sum(_weight(head.headers) for head in heads)
    beside = len(exchange.notes) + len(exchange.idle_ns) + len(exchange.delivered)
    return fields + _weight(exchange.trailers) + len(heads) + beside


def _weight(headers: Headers) -> int:
    return sum(len(name) + _length(value) + 1 for name, value in headers)


def _length(value: HeaderValue) -> int:
    return len(value) if isinstance(value, bytes) else value.length


# The fewest items with which something still holds, found with few questions.
#
# Strategy: from the end, leave out as many items at once as can be. A block that cannot go as a
# whole is bisected, so that an item that is needed costs about two logarithms of the distance to
# the next one; a row of items that are all needed costs one question each. The size of the next
# block follows from the last gap. Rounds are made until one leaves nothing out, since what was
# needed may not be any more.
#
# Where leaving out less can fail and leaving out more hold, the result depends on the order of the
# questions, which depends on the answers alone: same answers, same result.
#
# Source: adaptive deletion and `find_integer` of D. MacIver, "Improving Hypothesis's shrinker"; for
# what it improves on: Zeller and Hildebrandt, "Simplifying and isolating failure-inducing input"
# (2002).

T = TypeVar("T")


def fewest(items: Sequence[T], holds: Callable[[Sequence[T]], bool]) -> Sequence[T]:
    """Return a subset of `items`, in order, from which no single item can be removed.

    Args:
        items: any number, also none.
        holds: whether some of them, in order, are enough; never called with all of them.
    """
    while True:
        kept = _round(items, holds)
        if len(kept) == len(items):
            return kept
        items = kept


def patient(holds: Callable[[Sequence[T]], bool], most: int) -> Callable[[Sequence[T]], bool]:
    """Stop asking `holds` after `most` refusals in a row."""
    refused = 0

    def asked(kept: Sequence[T]) -> bool:
        nonlocal refused
        if refused == most:
            return False
        found = holds(kept)
        refused = 0 if found else refused + 1
        return found

    return asked


def largest(limit: int, holds: Callable[[int], bool], guess: int) -> int:
    """Return a number up to `limit` that holds while the next one does not; 0 holds.

    Args:
        limit: the largest that makes sense.
        holds: called with numbers of 1 to `limit`.
        guess: tried first, then doubled as long as it holds.
    """
    found, above = 0, limit + 1
    step = min(max(guess, 1), limit)
    while step < above:
        if holds(step):
            found, step = step, min(2 * step, limit)
            if found == limit:
                return limit
        else:
            above = step
    while above - found > 1:
        middle = (found + above) // 2
        if holds(middle):
            found = middle
        else:
            above = middle
    return found


def _round(items: Sequence[T], holds: Callable[[Sequence[T]], bool]) -> Sequence[T]:
    kept = items
    end = guess = len(items)
    while end > 0:

        def without(size: int, kept: Sequence[T] = kept, end: int = end) -> bool:
            return holds([*kept[: end - size], *kept[end:]])

        size = largest(end, without, guess)
        kept = [*kept[: end - size], *kept[end:]]
        guess = max(1, 2 * size)
        end -= size + 1  # the next one is needed
    return kept
