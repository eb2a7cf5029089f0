"""Learn from two recordings of one run what differs from run to run.

Strategy: the second recording is requested from the first, as a replay would do. What misses is
paired with the nearest request that is left; options are derived from all pairs at once
(`suggest`), and it is tried again with them, since requests pair better then. In the end, options
without which as many requests match are left out: each one makes a replay less strict.

A model does not answer twice the same, but a replay repeats the answers of the tape. So what both
requests took over from their answers is no reason for an option, and no sentence is left out.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from deltatape.match.difference import ValuePair
from deltatape.match.request import MatchQuery, NoMatch, RecordedMatch, RequestMatcher
from deltatape.match.suggest import suggested
from deltatape.model.exchange import Exchange


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedRules:
    """What two recordings tell.

    Attributes:
        options: for `--volatile`: those that were known, and those without which fewer match.
        matched: how many requests of the second recording match the first one with them.
        alike: how many of those match several requests that only these options make equal.
        missed: those that do not match, each with the reason.
    """

    options: tuple[str, ...]
    matched: int
    alike: int
    missed: tuple[tuple[Exchange, NoMatch], ...]


def learned(
    recorded: Sequence[Exchange],
    again: Sequence[Exchange],
    known: Sequence[str] = (),
    hide: Callable[[str], str] = str,
) -> LearnedRules:
    """Return what must be volatile for the requests of `again` to match those of `recorded`.

    Args:
        recorded: what would be played.
        again: the exchanges of another recording of the same run.
        known: what is volatile anyway.
        hide: overwrites secrets in text; no option contains any.

    Raises:
        UsageError: `known` is invalid.
    """
    options = known = tuple(dict.fromkeys(known))
    delivered = [b"".join(each.content for each in every) for every in (recorded, again)]
    while True:
        found, pairs = _replayed(recorded, again, options, hide)
        own = (pair for pair in pairs if not _are_delivered(pair, delivered))
        more = dict.fromkeys((*options, *suggested(own, hide, prose=False)))
        if len(more) == len(options):
            return _without_useless(found, known, recorded, again, hide)
        options = tuple(more)


def _without_useless(
    rules: LearnedRules,
    known: tuple[str, ...],
    recorded: Sequence[Exchange],
    again: Sequence[Exchange],
    hide: Callable[[str], str],
) -> LearnedRules:
    """Leave out options that let no request match, the last ones first; all of `known` stay."""
    for option in reversed(rules.options[len(known) :]):
        others = tuple(each for each in rules.options if each != option)
        without, _ = _replayed(recorded, again, others, hide)
        if without.matched >= rules.matched:
            rules = without
    return rules


def _replayed(
    recorded: Sequence[Exchange],
    again: Sequence[Exchange],
    options: tuple[str, ...],
    hide: Callable[[str], str],
) -> tuple[LearnedRules, list[ValuePair]]:
    """Request `again` from `recorded`; return also where requests differ."""
    matcher = RequestMatcher(recorded, options, hide=hide)
    missed: list[tuple[Exchange, NoMatch]] = []
    pairs: list[ValuePair] = []
    matched = alike = 0
    for exchange in again:
        request = exchange.request
        asking = MatchQuery(
            method=request.method, target=request.target_bytes, body=request.content
        )
        found = matcher.match(asking)
        if isinstance(found, RecordedMatch):
            matched += 1
            alike += bool(found.alike)
            matcher.play(found.position, spent=True)
            continue
        missed.append((exchange, found))
        if found.nearest is not None and found.differences:
            pairs += matcher.pairs_at(asking, found.nearest)
            matcher.play(found.nearest, spent=True)
    rules = LearnedRules(options=options, matched=matched, alike=alike, missed=tuple(missed))
    return rules, pairs


def _are_delivered(pair: ValuePair, delivered: Sequence[bytes]) -> bool:
    """Return whether both values come from answers, as the ids of calls do."""
    return all(
        isinstance(value, str) and value.encode(errors="replace") in bodies
        for value, bodies in zip((pair.recorded, pair.received), delivered, strict=True)
    )
