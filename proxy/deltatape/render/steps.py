"""`show --steps`: a reply event by event, as the reference and suspects build it.

As text, the first suspect is shown beside the reference, event by event; as JSON, all of them.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from deltatape.model.stepping import (
    BuildStep,
    CallChange,
    SteppedClient,
    Stepping,
    StepUnit,
    built_calls,
)
from deltatape.printable import count, excerpt
from deltatape.render.json_document import VERSION, inert_line
from deltatape.render.lines import (
    BOLD,
    DIM,
    GOOD,
    LEAST,
    WIDTH,
    Cell,
    Line,
    StyledText,
    line,
    table,
    wrapped,
)
from deltatape.render.numbers import NO_TIMES, seconds, since_request
from deltatape.render.show import fragments_without_secrets
from deltatape.secret_text.search import each_without_secrets

_DIFFERS = "red"
_SAME = StyledText("the same", DIM)
_NAMED = 5
"""Suspects that are named beside the first."""
_END = "end"


# `show --steps --format json`.
#
# The keys of the JSON are a contract: they are added to, never renamed. docs/steps.schema.json says
# what each means.


def steps_json(stepping: Stepping) -> str:
    """`show --steps --format json`: one step per line.

    A secret in arguments is hidden, also where it comes piece by piece.
    """
    head = "".join(f' "{key}": {inert_line(value)},\n' for key, value in _head(stepping).items())
    suspects = ",".join(f"\n  {_suspect_text(each)}" for each in stepping.suspects)
    reference = _rows(stepping.reference, StepUnit.EVENT)
    return (
        f'{{\n "version": {VERSION},\n{head} "reference": {{"steps": {reference}}},\n'
        f' "suspects": [{suspects}]\n}}\n'
    )


def steps_object(stepping: Stepping) -> dict[str, object]:
    """Return what `steps_json` writes; secrets are hidden in arguments that come piece by piece."""
    reference = list(_json_steps(stepping.reference, StepUnit.EVENT))
    return {
        **_head(stepping),
        "reference": {"steps": reference},
        "suspects": [
            {**_suspect_head(each), "steps": list(_json_steps(each.steps, each.unit))}
            for each in stepping.suspects
        ],
    }


def _rows(steps: Sequence[BuildStep], unit: StepUnit) -> str:
    rows = ",\n".join(f"   {inert_line(row)}" for row in _json_steps(steps, unit))
    return f"[\n{rows}\n  ]"


def _head(stepping: Stepping) -> dict[str, object]:
    return {
        "tape": stepping.tape,
        "exchange": stepping.exchange,
        "stream": stepping.stream,
        "choice": stepping.choice,
    }


def _suspect_head(client: SteppedClient) -> dict[str, object]:
    return {
        "name": client.name,
        "says": client.says,
        "fix": client.fix,
        "exact": client.exact,
        "unit": client.unit,
    }


def _suspect_text(client: SteppedClient) -> str:
    head = inert_line(_suspect_head(client)).removesuffix("}")
    return f'{head}, "steps": {_rows(client.steps, client.unit)}}}'


def _json_steps(steps: Sequence[BuildStep], unit: StepUnit) -> Iterator[dict[str, object]]:
    """Yield steps with what changed, and no more."""
    shown: dict[int, tuple[str | None, str | None, int]] = {}
    for step, changes in zip(steps, _without_secrets(steps), strict=True):
        calls = []
        for change in changes:
            before = shown.get(change.call)
            length = change.kept + len(change.added)
            shown[change.call] = (change.id, change.name, length)
            call: dict[str, object] = {"call": change.call}
            if before is None or before[0] != change.id:
                call["id"] = change.id
            if before is None or before[1] != change.name:
                call["name"] = change.name
            if before is None or change.added or change.kept != before[2]:
                call["arguments"] = {"from": change.kept, "add": change.added}
            calls.append(call)
        yield {
            unit.value: step.at,
            "t_ns": step.t_ns,
            "calls": calls,
            **({"dropped": list(step.dropped)} if step.dropped else {}),
            **({} if step.text_length is None else {"text_length": step.text_length}),
            **({"errors": list(step.errors)} if step.errors else {}),
            "note": step.note,
        }


class _Piece(NamedTuple):
    """A change of a call's arguments: the step, and the place in that."""

    step: int
    place: int
    added: str


def _without_secrets(steps: Sequence[BuildStep]) -> list[list[CallChange]]:
    """Return the changes of each step without secrets: not even those that come in pieces."""
    found = [list(step.changes) for step in steps]
    grown: list[list[_Piece]] = []
    growing: dict[int, list[_Piece]] = {}
    for number, step in enumerate(steps):
        for place, change in enumerate(step.changes):
            if not change.kept or change.call not in growing:
                growing[change.call] = []
                grown.append(growing[change.call])
            growing[change.call].append(_Piece(number, place, change.added))
    wholes = ["".join(piece.added for piece in pieces) for pieces in grown]
    for pieces, whole, shown in zip(grown, wholes, each_without_secrets(wholes), strict=True):
        if shown != whole:
            _hide(pieces, whole, found)
    return found


def _hide(pieces: Sequence[_Piece], whole: str, found: list[list[CallChange]]) -> None:
    """Overwrite the secrets in arguments that came piece by piece."""
    shown = fragments_without_secrets(whole, ((piece.step, piece.added) for piece in pieces))
    for piece, part in zip(pieces, shown, strict=True):
        change = found[piece.step][piece.place]
        found[piece.step][piece.place] = change._replace(kept=part.range[0], added=part.text)


# As text: a row per event, the reference beside the first suspect.


def steps_lines(stepping: Stepping, width: int = WIDTH) -> list[Line]:
    """Format how the reply is built, with the first suspect beside the reference."""
    timed = all(step.t_ns is not None for step in stepping.reference)
    lines = [line(StyledText(since_request(stepping.start_ns) if timed else NO_TIMES, DIM))]
    if stepping.stream != stepping.exchange:
        what = f"this is the response of #{stepping.stream}, which the app read"
        lines += wrapped(what, 0, DIM, width)
    reference = _hidden(stepping.reference)
    head: list[Cell] = [StyledText(name, BOLD) for name in ("event", "seconds", "reference")]
    if not stepping.suspects:
        found = _by_event(stepping, reference, ())
        rows = [head, *(row[:3] for row in found)]
        return [*lines, *table(rows, right=(0, 1), width=width, give={2: LEAST})]
    first = stepping.suspects[0]
    beside = _by_read if first.unit is StepUnit.READ else _by_event
    head.append(StyledText(first.name, BOLD))
    rows = [head, *beside(stepping, reference, _hidden(first.steps))]
    lines += table(rows, right=(0, 1), width=width, give={2: LEAST, 3: LEAST})
    return [*lines, *_outcomes(stepping, first, width)]


def _hidden(steps: Sequence[BuildStep]) -> list[BuildStep]:
    return [
        step._replace(changes=tuple(changes))
        for step, changes in zip(steps, _without_secrets(steps), strict=True)
    ]


def _by_event(
    stepping: Stepping, reference: Sequence[BuildStep], other: Sequence[BuildStep]
) -> Iterator[list[Cell]]:
    """Yield a row for each event that changes one of the two; one for several in a row of text."""
    mine, theirs = ({step.at: step for step in steps} for steps in (reference, other))
    events = sorted(at for at in {*mine, *theirs} if at is not None)
    texts: list[BuildStep] = []
    for at in (*events, None):
        one, two = mine.get(at), theirs.get(at)
        if at is not None and one is not None and two is None and not one.changes:
            texts.append(one)
            continue
        if texts:
            yield _text_row(texts, stepping)
            texts = []
        told = "" if one is None else _told(one)
        yield [*_place(one or theirs[at], stepping), told, _compared(one, two)]


def _text_row(steps: Sequence[BuildStep], stepping: Stepping) -> list[Cell]:
    """Return a row for events that only add to the text."""
    at, time = _place(steps[0], stepping)
    if len(steps) == 1:
        return [at, time, steps[0].note, ""]
    return [f"{at}-{steps[-1].at}", time, f"{steps[0].note}: {count(len(steps), 'event')}", ""]


def _by_read(
    stepping: Stepping, reference: Sequence[BuildStep], other: Sequence[BuildStep]
) -> Iterator[list[Cell]]:
    """Yield a row for each event that changes the reference, and for each read of the other."""
    *events, end = reference
    *reads, last = other
    rows = [(step.t_ns or 0, step, False) for step in events]
    rows += [(step.t_ns or 0, step, True) for step in reads]
    for _, step, is_read in sorted(rows, key=lambda row: (row[0], row[2])):
        place, time = _place(step, stepping)
        if is_read:
            yield [f"read {place}", time, "", _compared(None, step)]
        else:
            yield [place, time, _told(step), ""]
    yield [*_place(end, stepping), _told(end), _compared(end, last)]


def _place(step: BuildStep, stepping: Stepping) -> tuple[Cell, Cell]:
    time = "-" if step.t_ns is None else seconds(step.t_ns - stepping.start_ns)
    return (_END if step.at is None else str(step.at)), time


def _told(step: BuildStep) -> str:
    """Describe a step, with what it adds; not escaped."""
    added = [change.added for change in step.changes if change.added]
    return f"{step.note}: {excerpt(' | '.join(added))}" if added else step.note


def _compared(reference: BuildStep | None, other: BuildStep | None) -> Cell:
    """Describe what the other client did where the reference did that."""
    if other is None:
        is_missed = reference is not None and reference.changes
        return StyledText("nothing", _DIFFERS) if is_missed else ""
    if reference is not None and _does_the_same(reference, other):
        return _told(other) if other.at is None else _SAME
    return StyledText(_told(other), _DIFFERS)


def _does_the_same(reference: BuildStep, other: BuildStep) -> bool:
    """Check whether both add the same to the same calls."""
    pairs = [
        [(each.call, each.added, not each.kept and (each.id, each.name)) for each in step.changes]
        for step in (reference, other)
    ]
    return pairs[0] == pairs[1] and not other.dropped


def _outcomes(stepping: Stepping, first: SteppedClient, width: int) -> Iterator[Line]:
    """Yield what both end up with, and the other suspects."""
    yield line(StyledText("in the end", DIM))
    rows: list[list[Cell]] = []
    for name, steps in (("reference", stepping.reference), (first.name, first.steps)):
        calls = [
            f"{call.name or 'no name'} ({call.id or 'no id'}) {call.arguments or '(no arguments)'}"
            for call in built_calls(steps)
        ]
        errors = [f"error: {error}" for error in steps[-1].errors[:1]]
        style = GOOD if steps is stepping.reference else _DIFFERS
        told = (*calls, *errors) or ("no call",)
        rows += ([StyledText(name, BOLD), StyledText(excerpt(text), style)] for text in told)
    yield from table(rows, 2, width=width, give={1: LEAST, 0: LEAST})
    about = f"{first.name}: it {first.says}"
    if first.exact is None:
        about = f"nothing speaks against the app; {first.name} would go wrong here: it {first.says}"
    yield from wrapped(about, 0, width=width)
    others = [each.name for each in stepping.suspects[1:]]
    if others:
        rest = len(others) - _NAMED
        more = f" and {rest} more" if rest > 0 else ""
        named = f"likewise: {', '.join(others[:_NAMED])}{more}; --format json has their steps"
        yield from wrapped(named, 0, DIM, width)
