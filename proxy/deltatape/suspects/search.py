"""The search for client algorithms that reproduce what an application did.

First the presets and every single mistake. Only if none fits, pairs with at least one mistake that
has an effect alone, then triples with at least two. The number of steps is bounded. A point is
dropped if its mistakes include all mistakes of another point that fits. Nothing is tried if the
application repeats what no client can make of the stream (`reach.py`).
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
from deltatape.suspects.parsers import is_quoted_in
from deltatape.suspects.presets import PRESETS
from deltatape.suspects.simulation import ClientRunner
from deltatape.wire.json_value import canonical, parse

WORK_LIMIT = 400_000
"""The step budget for presets and single mistakes, and the same again for pairs and triples."""
POINTS_LIMIT = 8_000
_NEAR = 3
"""How many suspects are reported if none fits exactly."""
_FAR = 10
"""How much worse than the best one a reported suspect may be."""
_SHOWN = 60
"""How much of a name or of arguments a description shows, in characters."""
_EQUAL = 4
"""The score of two equal calls."""
_ARGUMENTS = 2
"""The share of equal arguments in it."""
_LITTLE = 0.5
"""A likeness that tells nothing."""
_NO_REASON = 20
"""The cost of assuming that calls are ignored, unless the stream follows another one."""

_Point = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class _Candidate:
    client: ClientModel
    outcome: ClientResult
    preset: Preset | None
    rank: tuple[int, int, int, int, int, int]
    """Smaller is better: misfit of calls and error, cost, whether it is not a preset, mistakes,
    calls that are equal only as JSON, place in the search."""
    exact: bool
    near: float = 0.0


@dataclass(slots=True)
class _Search:
    runner: ClientRunner
    symptom: Symptom
    tells: bool
    """Whether the repeated calls are known and tell that something went wrong."""
    options: Sequence[tuple[str, str]] = ()
    """The mistakes that can occur with this stream, alone or with others."""
    found: list[_Candidate] = field(default_factory=list)
    active: list[tuple[str, str]] = field(default_factory=list)
    """Options that change something by themselves."""
    points: int = 0

    def try_presets(self) -> None:
        for place, preset in enumerate(PRESETS):
            for client in self.runner.clients_of(preset):
                if self.runner.spent < WORK_LIMIT:
                    self._try(client, preset, place)

    def try_singles(self) -> None:
        base = self.runner.documented()
        for one in self.options:
            if self.runner.spent >= WORK_LIMIT:
                break
            outcome = self._try(client_of(one))
            if outcome != base:
                self.active.append(one)

    def try_points(self, points: Iterable[_Point]) -> None:
        start = self.runner.spent
        for point in points:
            if self.runner.spent - start > WORK_LIMIT or self.points > POINTS_LIMIT:
                return
            self.points += 1
            self._try(client_of(*point))

    def _try(
        self, client: ClientModel, preset: Preset | None = None, place: int = 0
    ) -> ClientResult:
        """Rate `client` and its variants; return what it gets from the stream."""
        outcome = self._rate(client, preset, place)
        for variant in self.runner.variants(client):
            self._rate(variant, preset, place)
        return outcome

    def _rate(self, client: ClientModel, preset: Preset | None, place: int) -> ClientResult:
        outcome = self.runner.outcome(client)
        by_calls = self._fits_calls(outcome)
        by_error = self._fits_error(client, outcome, by_calls=by_calls)
        exact = by_calls or by_error
        near = 0.0 if exact else self._near(outcome)
        if exact or near:
            fit = 2 * (self.tells and not by_calls) + (not by_error)
            pairs = zip(outcome.calls, self.symptom.calls or (), strict=False)
            respelt = sum(one.arguments != other.arguments for one, other in pairs)
            count = len(mistakes_of(client))
            rank = (fit, self._cost(client, preset), preset is None, count, respelt, place)
            self.found.append(_Candidate(client, outcome, preset, rank, exact, near))
        return outcome

    def _cost(self, client: ClientModel, preset: Preset | None) -> int:
        mistakes = mistakes_of(client)
        cost = cost_of(client)
        if preset is not None:
            cost = max(USUAL, *(MISTAKES[one.axis, one.value].cost for one in mistakes))
        reason = client.calls == CORRECT.calls or self.runner.stream.follow_up
        return cost + (0 if reason else _NO_REASON)

    def _fits_calls(self, outcome: ClientResult) -> bool:
        repeated, stream = self.symptom.calls, self.runner.stream
        if repeated is None or not self.tells or self.runner.is_documented(outcome.calls):
            return False
        written = (*outcome.calls, *stream.text_calls)
        return any(equal(made, repeated, self.runner.ids) for made in (outcome.calls, written))

    def _fits_error(self, client: ClientModel, outcome: ClientResult, *, by_calls: bool) -> bool:
        """Check whether a client throws the app's error, and repeats nothing or what arrived."""
        if self.symptom.calls and self.tells and not by_calls:
            return False
        thrown = self.runner.errors(client, outcome) if self.symptom.errors else ()
        return any(is_quoted_in(one, text) for text in self.symptom.errors for one in thrown)

    def _near(self, outcome: ClientResult) -> float:
        """Rate how much closer a client is to the app than the documented client."""
        repeated, ids = self.symptom.calls, self.runner.ids
        if not repeated:
            return 0.0
        base = likeness(self.runner.documented().calls, repeated, ids)
        mine = likeness(outcome.calls, repeated, ids)
        return mine if mine > max(base, _LITTLE) else 0.0


def find(runner: ClientRunner, symptom: Symptom, limit: int) -> tuple[Suspect, ...]:
    """Return the suspects of `symptom`, best first; see `suspects_of`."""
    if _is_explained(runner, symptom):
        return ()
    tells = symptom.calls is not None and not _is_reference(symptom, runner)
    if tells and symptom.calls and _is_out_of_reach(runner, symptom.calls):
        return ()
    options = [one for one in MISTAKES if runner.applies(client_of(one))]
    search = _Search(runner, symptom, tells, options)
    search.try_presets()
    search.try_singles()
    for points in (_pairs, _triples):
        if not any(one.exact for one in search.found):
            search.try_points(points(search.active, options))
    chosen = _minimal([one for one in search.found if one.exact])
    if not chosen:
        nearest = sorted(search.found, key=lambda one: (-one.near, one.rank))
        chosen = nearest[:_NEAR]
    return tuple(_suspect(runner, one, symptom) for one in chosen[:limit])


def _is_explained(runner: ClientRunner, symptom: Symptom) -> bool:
    """Check whether a client without mistakes does the same."""
    if symptom.calls is not None and not _is_reference(symptom, runner):
        return False
    if not symptom.errors:
        return True
    own = tuple(runner.own_errors())
    return any(is_quoted_in(one, text) for text in symptom.errors for one in own)


def _is_reference(symptom: Symptom, runner: ClientRunner) -> bool:
    """Check whether the app repeats what a client without mistakes gets."""
    repeated = symptom.calls or ()
    return any(equal(calls, repeated, runner.ids) for calls in runner.references)


def _is_out_of_reach(runner: ClientRunner, repeated: Sequence[RepeatedCall]) -> bool:
    """Check whether no client comes nearer to `repeated` than the documented one."""
    reach, ids = runner.reach, runner.ids
    best = sum(
        _EQUAL
        - (not reach.has_name(call.name))
        - _ARGUMENTS * (not reach.has_arguments(call.arguments))
        for call in repeated
    )
    base = likeness(runner.documented().calls, repeated, ids)
    return best / (_EQUAL * len(repeated)) <= max(base, _LITTLE)


def _pairs(
    active: Sequence[tuple[str, str]], options: Sequence[tuple[str, str]]
) -> Iterator[_Point]:
    seen = set()
    for one in active:
        for other in options:
            pair = frozenset((one, other))
            if one[0] != other[0] and pair not in seen:
                seen.add(pair)
                yield (one, other)


def _triples(
    active: Sequence[tuple[str, str]], options: Sequence[tuple[str, str]]
) -> Iterator[_Point]:
    for place, one in enumerate(active):
        for other in active[place + 1 :]:
            if one[0] == other[0]:
                continue
            for third in options:
                if third[0] not in (one[0], other[0]):
                    yield (one, other, third)


def _minimal(found: Sequence[_Candidate]) -> list[_Candidate]:
    """Drop candidates that add mistakes to another one, and combinations equal to presets."""
    ordered = sorted(found, key=lambda one: one.rank)
    if any(one.preset for one in ordered[:1]):
        ordered = [one for one in ordered if one.preset]
    chosen: list[_Candidate] = []
    for one in ordered:
        mine = frozenset(mistakes_of(one.client))
        adds = any(frozenset(mistakes_of(each.client)) <= mine for each in chosen)
        again = one.preset is not None and any(each.preset is one.preset for each in chosen)
        far = chosen and one.rank[:2] > (chosen[0].rank[0], chosen[0].rank[1] + _FAR)
        if not (adds or again or far):
            chosen.append(one)
    return chosen


def _suspect(runner: ClientRunner, found: _Candidate, symptom: Symptom) -> Suspect:
    mistakes = mistakes_of(found.client)
    name = ",".join(f"{one.axis}={one.value}" for one in mistakes)
    return Suspect(
        name=found.preset.name if found.preset else name,
        says=describe(runner, found.client, found.outcome, symptom.errors),
        fix=preset_fix(found.preset) if found.preset else fix_of(found.client),
        mistakes=mistakes,
        exact=found.exact,
        made=runner.reading(found.client, found.outcome),
        source=found.preset.references[0] if found.preset else "",
    )


def describe(
    runner: ClientRunner, client: ClientModel, outcome: ClientResult, errors: Sequence[str] = ()
) -> str:
    """Describe how `client` reads the stream, as a clause after "it".

    Args:
        runner: the runner of the clients on the stream.
        client: with at least one mistake.
        outcome: what it makes of the stream.
        errors: what the application reported; the thrown one among them is shown.
    """
    *most, last = [one.says for one in mistakes_of(client)]
    does = f"{', '.join(most)} and {last}" if most else last
    thrown = runner.errors(client, outcome)
    seen = next((one for one in thrown for text in errors if is_quoted_in(one, text)), None)
    if seen is None and (not thrown or outcome.calls != runner.stream.calls):
        made = difference(runner.stream.calls, outcome.calls)
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
    """What it does with this stream, as a sentence after "it"; "" if it reads it correctly."""


def rows(runner: ClientRunner) -> Iterator[PresetResult]:
    """Yield a row per preset of this dialect, in order, while there is time."""
    reference, ids = runner.stream.calls, runner.stream.ids
    for preset in PRESETS:
        if runner.spent > WORK_LIMIT:
            break
        for client in runner.clients_of(preset)[:1]:
            outcome = runner.outcome(client)
            made = runner.reading(client, outcome)
            right = equal(outcome.calls, reference, ids) and not outcome.thrown
            says = "" if right else describe(runner, client, outcome)
            yield PresetResult(name=preset.name, made=made, differs=not right, says=says)


# A client's calls, compared with those that an application repeats.
#
# By order, name, id, and arguments as JSON values, as the rules over conversations compare them.
# An id that was never delivered is made up by the application.

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
    # An application without an id makes one up, but never one that was delivered.
    same_id = one.id == other.id if one.id and (other.id or ids) else other.id not in ids
    same_name = (one.name or "") == (other.name or "")
    alike = same_arguments(one.arguments, other.arguments)
    return same_id + same_name + _ARGUMENTS * alike


def same_arguments(made: str, repeated: str) -> bool:
    """Check whether two texts are equal or the same JSON; no text equals `{}`.

    Arguments that are encoded twice may be repeated decoded.
    """
    if made == repeated:
        return True
    mine = _canonical(made)
    if mine is None:
        return False
    theirs = _canonical(repeated)
    decoded_twice = mine.startswith('"') and _canonical(str(parse(made).value)) == theirs
    return mine == theirs or decoded_twice


@lru_cache(maxsize=4096)
def _canonical(text: str) -> str | None:
    return canonical(text.strip() or "{}")


def difference(wire: Sequence[RepeatedCall], made: Sequence[RepeatedCall]) -> str:
    """Describe the first difference between the stream's calls and a client's, as a clause."""
    if len(wire) != len(made):
        calls = "1 call" if len(made) == 1 else f"{len(made) or 'no'} calls"
        return f"it gets {calls} instead of {len(wire) or 'none'}"
    for place, (one, other) in enumerate(zip(wire, made, strict=True)):
        found = _one_difference(one, other)
        if found:
            return f"call {place} {found}"
    return "the calls come out right"


def _one_difference(one: RepeatedCall, other: RepeatedCall) -> str:
    if (one.name or "") != (other.name or ""):
        return f"gets {_value_text('name', other.name)} instead of {_shown(one.name)}"
    if not same_arguments(one.arguments, other.arguments):
        got = _value_text("arguments", other.arguments)
        return f"gets {got} instead of {_shown(one.arguments)}"
    if one.id and one.id != other.id:
        return f"gets {_value_text('id', other.id)} instead of {_shown(one.id)}"
    return ""


def _value_text(kind: str, text: str | None) -> str:
    return f"the {kind} {_shown(text)}" if text else f"no {kind}"


def _shown(text: str | None) -> str:
    if not text:
        return "nothing"
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."
