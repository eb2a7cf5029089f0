"""Match a request with a recorded exchange, from exact to masked, never by a guess.

1. the same bytes, 2. the same JSON (key order and spacing aside), 3. the same JSON without what the
user calls volatile, 4. the same but for what was overwritten on the tape; else a miss, reported
with the nearest recorded request. Content-coding is undone before. Equal requests play in the order
in which they were recorded, tape after tape. Headers do not take part: they carry credentials,
versions and dates.

Conversations need no special treatment: each request carries, or names, what came before, so
branches and parallel clients get their own answers.

Strategy: dictionaries by place and form. The one of exact bytes is built at the start, the others
when a request first has no exact match.
"""

import enum
import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from deltatape.errors import UsageError
from deltatape.match.body import (
    NOT_JSON,
    BodyForms,
    agree,
    blanked,
    exact_form,
    fits,
    forms_of,
    json_value,
    may_be_filled,
    pieces,
)
from deltatape.match.difference import JsonDifference, ValuePair, described, differing
from deltatape.match.endpoint import (
    Place,
    asked_places,
    fits_masked,
    masked_pieces,
    recorded_places,
    shown,
)
from deltatape.match.suggest import suggested
from deltatape.match.volatile import VolatileRules
from deltatape.model.exchange import Exchange

_DESCRIBED = 1000
"""How many differences of a request a report has."""
_LISTED = 5
_SHOWN = 200
"""The longest target to show in a message, in characters."""


class MatchLevel(enum.IntEnum):
    """How a request was matched; the lowest level is the best."""

    EXACT = 0
    CANONICAL = 1
    WITHOUT_VOLATILE = 2
    MASKED = 3
    CORRECTED = 4
    """Never given by a `RequestMatcher`: see `run_check`."""

    @property
    def words(self) -> str:
        """Return the level in words: `same bytes`."""
        return _WORDS[self]


_WORDS = {
    MatchLevel.EXACT: "same bytes",
    MatchLevel.CANONICAL: "same JSON",
    MatchLevel.WITHOUT_VOLATILE: "same JSON except for what is volatile",
    MatchLevel.MASKED: "same except for what is masked on the tape",
    MatchLevel.CORRECTED: "differs from the recorded request only where that was wrong",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchQuery:
    """A request that waits for an answer."""

    method: str
    target: bytes
    body: bytes
    """Its content-coding undone."""
    fault: str = ""
    """Why that was not possible, or not completely; "" if it was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedMatch:
    """The recorded exchange that answers.

    Attributes:
        position: its place in the list.
        alike: positions of others that fit as well, although they were recorded with other
            requests: what differs there is volatile, so only their order decides.
    """

    position: int
    level: MatchLevel
    alike: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NoMatch:
    """No recorded exchange answers.

    `nearest` is the position of the most similar recorded request (None: nothing is recorded),
    `problem` says in one sentence why it does not answer, `differences` which JSON paths differ.
    """

    nearest: int | None
    problem: str
    differences: tuple[JsonDifference, ...]
    more: int = 0
    """How many differences are left out, where there are thousands."""
    volatile: tuple[str, ...] = ()
    """What did not count: see `VolatileRules.texts`."""
    suggested: tuple[str, ...] = ()
    """What else would have to be volatile for the nearest request to match; () if nothing helps."""


class _EqualRequests:
    """Positions of equal requests, ascending."""

    __slots__ = ("_next", "positions")

    def __init__(self) -> None:
        self.positions: list[int] = []
        self._next = 0

    def left(self, spent: set[int]) -> int | None:
        """Return the first position not in `spent`, which only ever grows."""
        positions = self.positions
        while self._next < len(positions) and positions[self._next] in spent:
            self._next += 1
        return positions[self._next] if self._next < len(positions) else None


class RequestMatcher:
    """The recorded requests of one or more tapes, and which of them are spent."""

    def __init__(
        self,
        exchanges: Iterable[Exchange],
        volatile: Sequence[str] = (),
        *,
        repeat: bool = False,
        hide: Callable[[str], str] = str,
    ) -> None:
        """Index the exchanges; none is spent.

        Args:
            exchanges: the tapes'.
            volatile: what is left out at the third level; see `VolatileRules`.
            repeat: whether spent exchanges answer again, in turn, if no other one matches.
            hide: overwrites secrets in the report of a miss.

        Raises:
            UsageError: `volatile` is invalid.
        """
        self._volatile = VolatileRules(volatile)
        self._repeat = repeat
        self._hide = hide
        self._requests = tuple(exchange.request for exchange in exchanges)
        self._places = tuple(map(recorded_places, self._requests))
        self._spent: set[int] = set()
        self._plays = [0] * len(self._requests)
        self._forms: dict[bytes, BodyForms | None] = {}
        self._values: dict[int, object] = {}
        self._index = {MatchLevel.EXACT: self._indexed(MatchLevel.EXACT)}
        self._overwritten = tuple(
            position
            for position, request in enumerate(self._requests)
            if request.content_masked or may_be_filled(request.content)
        )
        masked = ((at, masked_pieces(each)) for at, each in enumerate(self._requests))
        self._masked_paths = tuple((at, parts) for at, parts in masked if len(parts) > 1)

    def match(self, asking: MatchQuery) -> RecordedMatch | NoMatch:
        """Return the best recorded exchange that is not spent, the first of equals."""
        places = self._places_of(asking.method, asking.target)
        found = None
        if len(self._spent) < len(self._requests):
            found = self._find(places, asking.body, again=False)
        if found is None and self._repeat:
            found = self._find(places, asking.body, again=True)
        return found or self._miss(asking, places)

    def play(self, position: int, *, spent: bool) -> None:
        """Mark an exchange as playing; `spent`: it answers no other request."""
        self._plays[position] += 1
        if spent:
            self._spent.add(position)

    @property
    def spent(self) -> frozenset[int]:
        """Return the positions of exchanges that answer no more."""
        return frozenset(self._spent)

    def positions_at(self, method: str, target: bytes) -> tuple[int, ...]:
        """Return the positions of all requests to this endpoint, whatever their bodies."""
        return self._positions(self._places_of(method, target))

    # The levels.

    def _find(self, places: Sequence[Place], body: bytes, *, again: bool) -> RecordedMatch | None:
        for level, key in self._keys(body):
            found = self._first_equal(self._index_of(level), places, key, again=again)
            if found is not None:
                alike = () if again else self._alike(level, places, key, found)
                return RecordedMatch(position=found, level=level, alike=alike)
        matches = self._masked_equal(places, body, again=again)
        found = min(matches, key=self._play_order, default=None) if again else next(matches, None)
        return None if found is None else RecordedMatch(position=found, level=MatchLevel.MASKED)

    def _keys(self, body: bytes) -> Iterator[tuple[MatchLevel, bytes]]:
        yield MatchLevel.EXACT, exact_form(body)
        forms = self._forms[body] if body in self._forms else forms_of(body, self._volatile)
        if forms is not None:
            yield MatchLevel.CANONICAL, forms.canonical
            if self._volatile:
                yield MatchLevel.WITHOUT_VOLATILE, forms.reduced

    def _first_equal(
        self,
        index: dict[tuple[Place, bytes], _EqualRequests],
        places: Sequence[Place],
        key: bytes,
        *,
        again: bool,
    ) -> int | None:
        equals = [found for place in places if (found := index.get((place, key))) is not None]
        if again:
            return min(
                (at for each in equals for at in each.positions), key=self._play_order, default=None
            )
        left = [each.left(self._spent) for each in equals]
        return min((at for at in left if at is not None), default=None)

    def _alike(
        self, level: MatchLevel, places: Sequence[Place], key: bytes, found: int
    ) -> tuple[int, ...]:
        """Return what else is left at the third level of what was recorded otherwise."""
        if level is not MatchLevel.WITHOUT_VOLATILE:
            return ()
        index, known = self._index[level], self._canonical(found)
        every = {
            at for place in places if (place, key) in index for at in index[place, key].positions
        }
        return tuple(sorted(at for at in every - self._spent if self._canonical(at) != known))

    def _canonical(self, position: int) -> bytes | None:
        forms = self._forms[self._requests[position].content]
        return None if forms is None else forms.canonical

    def _play_order(self, position: int) -> tuple[int, int]:
        """Order repeated exchanges: the one played least comes first."""
        return self._plays[position], position

    def _index_of(self, level: MatchLevel) -> dict[tuple[Place, bytes], _EqualRequests]:
        if level not in self._index:
            for request in self._requests:
                if request.content not in self._forms:
                    self._forms[request.content] = forms_of(request.content, self._volatile)
            self._index[MatchLevel.CANONICAL] = self._indexed(MatchLevel.CANONICAL)
            self._index[MatchLevel.WITHOUT_VOLATILE] = self._indexed(MatchLevel.WITHOUT_VOLATILE)
        return self._index[level]

    def _indexed(self, level: MatchLevel) -> dict[tuple[Place, bytes], _EqualRequests]:
        found: dict[tuple[Place, bytes], _EqualRequests] = {}
        for position, (request, places) in enumerate(
            zip(self._requests, self._places, strict=True)
        ):
            key: bytes | None = None
            if level is MatchLevel.EXACT:
                key = exact_form(request.content)
            elif forms := self._forms[request.content]:
                key = forms.canonical if level is MatchLevel.CANONICAL else forms.reduced
            if key is not None:
                for place in places:
                    found.setdefault((place, key), _EqualRequests()).positions.append(position)
        return found

    # Masked requests.

    def _places_of(self, method: str, target: bytes) -> tuple[Place, ...]:
        places = asked_places(method, target)
        for position, parts in self._masked_paths:
            if fits_masked(places, self._requests[position], parts):
                places = (*places, *self._places[position])
        return places

    def _masked_equal(self, places: Sequence[Place], body: bytes, *, again: bool) -> Iterator[int]:
        """Yield positions whose body is equal apart from what was masked."""
        known = set(places)
        received: object = None
        for position in self._overwritten:
            if not known.isdisjoint(self._places[position]) and (
                again or position not in self._spent
            ):
                received = self._reduced(body) if received is None else received
                if self._fits_masked(position, body, received):
                    yield position

    def _fits_masked(self, position: int, body: bytes, received: object) -> bool:
        request = self._requests[position]
        if position not in self._values:
            self._values[position] = self._reduced(blanked(request.content, request.content_masked))
        recorded = self._values[position]
        if recorded is not NOT_JSON and received is not NOT_JSON:
            return agree(recorded, received) or (
                # Fillers have the shape of the text that was redacted, which marks have not.
                self._volatile.masks
                and agree(
                    self._reduced(blanked(request.content, request.content_masked), marks=False),
                    self._reduced(body, marks=False),
                )
            )
        spans = request.content_masked
        return bool(spans) and fits(pieces(request.content, spans), body)

    def _reduced(self, body: bytes, *, marks: bool = True) -> object:
        value = json_value(body)
        return value if value is NOT_JSON else self._volatile.reduced(value, marks=marks)

    # Misses.

    def _miss(self, asking: MatchQuery, places: Sequence[Place]) -> NoMatch:
        again = self._find(places, asking.body, again=True)
        if again is not None:
            return NoMatch(
                nearest=again.position,
                problem=(
                    "the matching exchange was already played, and each plays once"
                    " (--repeat plays it again)"
                ),
                differences=(),
            )
        positions = self._positions(places)
        if not positions:
            return self._miss_of_endpoint(asking)
        left = [at for at in positions if at not in self._spent] or positions
        near = likely(asking.body, [(at, self._requests[at].content) for at in left])
        found = [(at, self.pairs_at(asking, at)) for at in near]
        nearest, pairs = min(found, key=lambda pair: len(pair[1]))
        return NoMatch(
            nearest=nearest,
            problem="the nearest recorded request differs",
            differences=tuple(map(self._described, pairs[:_DESCRIBED])),
            more=max(0, len(pairs) - _DESCRIBED),
            volatile=self._volatile.texts,
            suggested=self._suggested(asking.body, nearest, pairs),
        )

    def _positions(self, places: Sequence[Place]) -> tuple[int, ...]:
        known = set(places)
        return tuple(at for at, each in enumerate(self._places) if not known.isdisjoint(each))

    def _miss_of_endpoint(self, asking: MatchQuery) -> NoMatch:
        requested = f"{asking.method} {shown(asking.target, _SHOWN, self._hide)}"
        known: dict[str, int] = {}
        for at, each in enumerate(self._requests):
            known.setdefault(f"{each.method} {shown(each.target_bytes, _SHOWN, self._hide)}", at)
        listed = ", ".join(sorted(known)[:_LISTED]) or "no request"
        return NoMatch(
            nearest=known[closest(requested, tuple(known))] if known else None,
            problem=f"the tape has no {requested}; it has {listed}",
            differences=(),
        )

    def pairs_at(self, asking: MatchQuery, position: int) -> Sequence[ValuePair]:
        """Return where a request differs from a recorded one, without what is volatile."""
        request = self._requests[position]
        received = self._reduced(asking.body)
        recorded = self._reduced(blanked(request.content, request.content_masked))
        if recorded is not NOT_JSON and received is not NOT_JSON:
            return list(differing(recorded, received))
        return [
            ValuePair(
                path=_BODY,
                recorded=_kind(request.content, recorded, request.content_fault),
                received=_kind(asking.body, received, asking.fault),
            )
        ]

    def _described(self, pair: ValuePair) -> JsonDifference:
        if pair.path != _BODY:
            return described(pair, self._hide)
        return JsonDifference(path=_BODY, recorded=str(pair.recorded), received=str(pair.received))

    def _suggested(self, body: bytes, position: int, pairs: Sequence[ValuePair]) -> tuple[str, ...]:
        """Return what else would have to be volatile, if the request matches with that."""
        if any(each.path == _BODY or each.lengths for each in pairs):
            return ()
        more, request = suggested(pairs, self._hide), self._requests[position]
        try:
            rules = VolatileRules((*self._volatile.texts, *more))
        except UsageError:  # a name that no path can spell
            return ()
        recorded = rules.reduced(json_value(blanked(request.content, request.content_masked)))
        return more if agree(recorded, rules.reduced(json_value(body))) else ()


_BODY = "(body)"
"""The path of bodies that are not JSON."""


def _kind(body: bytes, value: object, fault: str) -> str:
    if value is not NOT_JSON:
        return "JSON"
    return f"{len(body)} bytes, not JSON" + (f": {fault}" if fault else "")


# Find the nearest recorded request, so that a miss can name the differences.
#
# Strategy: the common prefix and suffix of two bodies are cheap to find, even in thousands of long
# ones. The bodies with the longest ones are compared value by value, and so is the first of
# all, which was probably expected next.

_COMPARED = 8


def likely(body: bytes, others: Sequence[tuple[int, bytes]]) -> tuple[int, ...]:
    """Return the positions to compare value by value, ascending: at most nine.

    Args:
        body: the body of the request.
        others: positions and bodies of recorded ones, >= 1, in order.
    """
    best = heapq.nlargest(_COMPARED, others, key=lambda other: _in_common(body, other[1]))
    return tuple(sorted({others[0][0], *(position for position, _ in best)}))


def closest(text: str, known: Sequence[str]) -> str:
    """Return the text in `known` that is most similar byte by byte; the first of equals."""
    matcher = SequenceMatcher(b=text, autojunk=False)

    def alike(other: str) -> float:
        matcher.set_seq1(other)
        return matcher.ratio()

    return max(known, key=alike)


def _in_common(one: bytes, other: bytes) -> int:
    """Count common bytes at the front and at the back."""
    front = _common_prefix(one, other)
    back = _common_prefix(one[front:][::-1], other[front:][::-1])
    return front + back


def _common_prefix(one: bytes, other: bytes) -> int:
    same, end = 0, min(len(one), len(other))
    while same < end:
        middle = (same + end + 1) // 2
        if one.startswith(other[same:middle], same):
            same = middle
        else:
            end = middle - 1
    return same
