"""The search for client algorithms that reproduce what an application did.

First the presets and every single mistake; only if none of them fits, pairs, then triples, of which
at least one, or two, change anything by themselves. The time is bounded by the steps that are
walked. A point whose mistakes are those of another one that fits, and more, adds nothing new.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from deltatape.model.request_summary import RepeatedCall
from deltatape.model.suspect import ClientReading, Suspect, Symptom
from deltatape.suspects.accumulate import ClientResult
from deltatape.suspects.client import CORRECT, ClientModel, Preset, client_of, cost_of, mistakes_of
from deltatape.suspects.documentation import preset_fix
from deltatape.suspects.mistakes import MISTAKES, USUAL
from deltatape.suspects.parsers import stands_in
from deltatape.suspects.presets import PRESETS
from deltatape.suspects.simulation import Bench
from deltatape.wire.json_value import canonical, parse

WORK_LIMIT = 400_000
"""What presets and single mistakes may cost, in steps; and again what pairs and triples may."""
POINTS_LIMIT = 8_000
_NEAR = 3
"""How many suspects are reported if none fits exactly."""
_FAR = 10
"""How much worse than the best further reported suspects may be."""
_SHOWN = 60
"""Characters of a name or of arguments in a description."""
_EQUAL = 4
"""What two equal calls score."""
_NO_REASON = 20
"""What it costs to say that calls are ignored in a stream that is no second one."""

_Point = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class _Found:
    client: ClientModel
    outcome: ClientResult
    preset: Preset | None
    rank: tuple[int, int, int, int, int, int]
    """Smaller is better: whether calls and error fit, cost, whether it is no preset, how many
    mistakes it makes, arguments that are only spelt otherwise, its place."""
    exact: bool
    near: float = 0.0


@dataclass(slots=True)
class _Search:
    bench: Bench
    symptom: Symptom
    tells: bool
    """Whether the repeated calls are known and tell that something went wrong."""
    found: list[_Found] = field(default_factory=list)
    active: list[tuple[str, str]] = field(default_factory=list)
    points: int = 0

    def try_presets(self) -> None:
        for place, preset in enumerate(PRESETS):
            for client in self.bench.known(preset):
                if self.bench.spent < WORK_LIMIT:
                    self._try(client, preset, place)

    def try_singles(self) -> None:
        base = self.bench.documented()
        for one in _ALL:
            client = client_of(one)
            if self.bench.spent >= WORK_LIMIT or not self.bench.applies(client):
                continue
            outcome = self._try(client, None, 0)
            if outcome != base:
                self.active.append(one)

    def try_points(self, points: Iterable[_Point]) -> None:
        start = self.bench.spent
        for point in points:
            if self.bench.spent - start > WORK_LIMIT or self.points > POINTS_LIMIT:
                return
            client = client_of(*point)
            if self.bench.applies(client):
                self.points += 1
                self._try(client, None, 0)

    def _try(self, client: ClientModel, preset: Preset | None, place: int) -> ClientResult:
        outcome = self._try_one(client, preset, place)
        for reading in self.bench.readings(client):
            self._try_one(reading, preset, place)
        return outcome

    def _try_one(self, client: ClientModel, preset: Preset | None, place: int) -> ClientResult:
        outcome = self.bench.outcome(client)
        by_calls = self._fits_calls(outcome)
        by_error = self._fits_error(client, outcome)
        exact = by_calls or by_error
        near = 0.0 if exact else self._near(outcome)
        if exact or near:
            fit = 2 * (self.tells and not by_calls) + (not by_error)
            cost, spelt = self._cost(client, preset), self._spelt_otherwise(outcome)
            count = len(mistakes_of(client))
            rank = (fit, cost, preset is None, count, spelt, place)
            self.found.append(_Found(client, outcome, preset, rank, exact, near))
        return outcome

    def _cost(self, client: ClientModel, preset: Preset | None) -> int:
        mistakes = mistakes_of(client)
        cost = cost_of(client)
        if preset is not None:
            cost = max(USUAL, *(MISTAKES[one.axis, one.value].cost for one in mistakes))
        reason = client.calls == CORRECT.calls or self.bench.stream.follow_up
        return cost + (0 if reason else _NO_REASON)

    def _spelt_otherwise(self, outcome: ClientResult) -> int:
        """Count calls whose arguments differ from the repeated ones only in spelling."""
        pairs = zip(outcome.calls, self.symptom.calls or (), strict=False)
        return sum(one.arguments != other.arguments for one, other in pairs)

    def _fits_calls(self, outcome: ClientResult) -> bool:
        repeated, stream = self.symptom.calls, self.bench.stream
        if repeated is None or not self.tells or self.bench.is_documented(outcome.calls):
            return False
        written = (*outcome.calls, *stream.text_calls)
        return any(equal(made, repeated, self.bench.ids) for made in (outcome.calls, written))

    def _fits_error(self, client: ClientModel, outcome: ClientResult) -> bool:
        """Check whether a client throws the app's error, and repeats nothing or what arrived."""
        symptom = self.symptom
        if symptom.calls and self.tells:
            return self._fits_calls(outcome) and self._throws(client, outcome)
        return bool(symptom.errors) and self._throws(client, outcome)

    def _throws(self, client: ClientModel, outcome: ClientResult) -> bool:
        thrown = self.bench.errors(client, outcome)
        return any(stands_in(one, text) for text in self.symptom.errors for one in thrown)

    def _near(self, outcome: ClientResult) -> float:
        """Rate how much closer a client is to the app than the documented client."""
        repeated, ids = self.symptom.calls, self.bench.ids
        if not repeated:
            return 0.0
        base = likeness(self.bench.documented().calls, repeated, ids)
        mine = likeness(outcome.calls, repeated, ids)
        return mine if mine > max(base, 0.5) else 0.0


_ALL: Sequence[tuple[str, str]] = tuple(MISTAKES)


def find(bench: Bench, symptom: Symptom, limit: int) -> tuple[Suspect, ...]:
    """Return the suspects of `symptom`, best first; see `suspects_of`."""
    if _is_explained(bench, symptom):
        return ()
    tells = symptom.calls is not None and not _is_reference(symptom, bench)
    search = _Search(bench, symptom, tells)
    search.try_presets()
    search.try_singles()
    for points in (_pairs, _triples):
        if not any(one.exact for one in search.found):
            search.try_points(points(search.active))
    chosen = _minimal([one for one in search.found if one.exact])
    if not chosen:
        nearest = sorted(search.found, key=lambda one: (-one.near, one.rank))
        chosen = nearest[:_NEAR]
    return tuple(_suspect(bench, one, symptom) for one in chosen[:limit])


def _is_explained(bench: Bench, symptom: Symptom) -> bool:
    """Check whether a client without mistakes does the same."""
    if symptom.calls is not None and not _is_reference(symptom, bench):
        return False
    if not symptom.errors:
        return True
    own = tuple(bench.own_errors())
    return any(stands_in(one, text) for text in symptom.errors for one in own)


def _is_reference(symptom: Symptom, bench: Bench) -> bool:
    """Check whether the app repeats what a client without mistakes gets."""
    repeated = symptom.calls or ()
    return any(equal(calls, repeated, bench.ids) for calls in bench.references)


def _pairs(active: Sequence[tuple[str, str]]) -> Iterator[_Point]:
    seen = set()
    for one in active:
        for other in _ALL:
            pair = frozenset((one, other))
            if one[0] != other[0] and pair not in seen:
                seen.add(pair)
                yield (one, other)


def _triples(active: Sequence[tuple[str, str]]) -> Iterator[_Point]:
    for place, one in enumerate(active):
        for other in active[place + 1 :]:
            if one[0] == other[0]:
                continue
            for third in _ALL:
                if third[0] not in (one[0], other[0]):
                    yield (one, other, third)


def _minimal(found: Sequence[_Found]) -> list[_Found]:
    """Drop candidates that add mistakes to another one, and combinations equal to presets."""
    ordered = sorted(found, key=lambda one: one.rank)
    if any(one.preset for one in ordered[:1]):
        ordered = [one for one in ordered if one.preset]
    chosen: list[_Found] = []
    for one in ordered:
        mine = frozenset(mistakes_of(one.client))
        adds = any(frozenset(mistakes_of(each.client)) <= mine for each in chosen)
        again = one.preset is not None and any(each.preset is one.preset for each in chosen)
        far = chosen and one.rank[:2] > (chosen[0].rank[0], chosen[0].rank[1] + _FAR)
        if not (adds or again or far):
            chosen.append(one)
    return chosen


def _suspect(bench: Bench, found: _Found, symptom: Symptom) -> Suspect:
    mistakes = mistakes_of(found.client)
    name = ",".join(f"{one.axis}={one.value}" for one in mistakes)
    return Suspect(
        name=found.preset.name if found.preset else name,
        says=describe(bench, found.client, found.outcome, symptom.errors),
        fix=preset_fix(found.preset) if found.preset else fix_of(found.client),
        mistakes=mistakes,
        exact=found.exact,
        made=bench.made(found.client, found.outcome),
        source=found.preset.references[0] if found.preset else "",
    )


def describe(
    bench: Bench, client: ClientModel, outcome: ClientResult, errors: Sequence[str] = ()
) -> str:
    """Describe what `client` does with the stream, as a clause after "it".

    Args:
        bench: of the stream.
        client: with at least one mistake.
        outcome: what it makes of the stream.
        errors: what the application reported; the thrown one among them is shown.
    """
    *most, last = [one.says for one in mistakes_of(client)]
    does = f"{', '.join(most)} and {last}" if most else last
    thrown = bench.errors(client, outcome)
    seen = next((one for one in thrown for text in errors if stands_in(one, text)), None)
    if seen is None and (not thrown or outcome.calls != bench.stream.calls):
        made = difference(bench.stream.calls, outcome.calls)
        return f"{does}; {made}"
    return f'{does}; it throws "{seen or thrown[0]}"'


def fix_of(client: ClientModel) -> str:
    """Say what to change in `client`, in at most two sentences."""
    fixes = dict.fromkeys(one.fix for one in mistakes_of(client))
    return ". ".join(fix[0].upper() + fix[1:] for fix in [*fixes][:2]) + "."


@dataclass(frozen=True, slots=True, kw_only=True)
class PresetResult:
    """The result of one preset on one stream."""

    name: str
    made: ClientReading
    differs: bool
    """Whether it makes other calls than the reference, or throws."""
    says: str
    """What it does with this stream, a sentence after "it"; "" where it comes out right."""


def rows(bench: Bench) -> tuple[PresetResult, ...]:
    """Return a row per preset of this dialect, in order, as far as time allows."""
    found = []
    reference, ids = bench.stream.calls, bench.stream.ids
    for preset in PRESETS:
        if bench.spent > WORK_LIMIT:
            break
        for client in bench.known(preset)[:1]:
            outcome = bench.outcome(client)
            made = bench.made(client, outcome)
            right = equal(outcome.calls, reference, ids) and not outcome.thrown
            says = "" if right else describe(bench, client, outcome)
            found.append(PresetResult(name=preset.name, made=made, differs=not right, says=says))
    return tuple(found)


# A client's calls, compared with those that an application repeats.
#
# By order, name, id, and arguments as JSON values, as the rules over conversations compare them.
# What never came cannot be repeated: an id where the wire had none is the application's own.

Ids = frozenset[str | None]
"""The ids that calls have on the wire; empty in dialects without."""
NO_IDS: Ids = frozenset()


def equal(
    made: Sequence[RepeatedCall], repeated: Sequence[RepeatedCall], ids: Ids = NO_IDS
) -> bool:
    """Check whether an application with the calls `made` would repeat `repeated`."""
    return len(made) == len(repeated) and all(
        _likeness(one, other, ids) == _EQUAL for one, other in zip(made, repeated, strict=True)
    )


def likeness(made: Sequence[RepeatedCall], repeated: Sequence[RepeatedCall], ids: Ids) -> float:
    """Rate how much of `repeated` is in `made`, from 0 to 1, by position."""
    if not made or not repeated:
        return float(len(made) == len(repeated))
    pairs = zip(made, repeated, strict=False)
    score = sum(_likeness(one, other, ids) for one, other in pairs)
    return score / (_EQUAL * max(len(made), len(repeated)))


def _likeness(one: RepeatedCall, other: RepeatedCall, ids: Ids) -> int:
    # Without an id of its own an application makes one up, but none that the wire has.
    same_id = one.id == other.id if one.id and (other.id or ids) else other.id not in ids
    same_name = (one.name or "") == (other.name or "")
    alike = same_arguments(one.arguments, other.arguments)
    return same_id + same_name + 2 * alike


def same_arguments(made: str, repeated: str) -> bool:
    """Check whether two texts are equal or the same JSON; no text equals `{}`.

    Arguments that are encoded twice may be repeated as what is in them.
    """
    if made == repeated:
        return True
    mine = _canonical(made)
    if mine is not None and mine.startswith('"'):
        return mine == _canonical(repeated) or _canonical(str(parse(made).value)) == _canonical(
            repeated
        )
    return mine is not None and mine == _canonical(repeated)


@lru_cache(maxsize=4096)
def _canonical(text: str) -> str | None:
    return canonical(text.strip() or "{}")


def difference(wire: Sequence[RepeatedCall], made: Sequence[RepeatedCall]) -> str:
    """Describe the first difference between the stream's calls and a client's, as a clause."""
    if len(wire) != len(made):
        calls = "call" if len(wire) == 1 else f"{len(wire)} calls"
        return f"of the {calls} in the stream it makes {len(made) or 'none'}"
    for place, (one, other) in enumerate(zip(wire, made, strict=True)):
        found = _one_difference(one, other)
        if found:
            return f"call {place} {found}"
    return "the calls come out right"


def _one_difference(one: RepeatedCall, other: RepeatedCall) -> str:
    if (one.name or "") != (other.name or ""):
        return f"gets {_what('name', other.name)} instead of {_shown(one.name)}"
    if not same_arguments(one.arguments, other.arguments):
        got = _what("arguments", other.arguments)
        return f"gets {got} instead of {_shown(one.arguments)}"
    if one.id and one.id != other.id:
        return f"gets {_what('id', other.id)} instead of {_shown(one.id)}"
    return ""


def _what(kind: str, text: str | None) -> str:
    return f"the {kind} {_shown(text)}" if text else f"no {kind}"


def _shown(text: str | None) -> str:
    if not text:
        return "nothing"
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."
