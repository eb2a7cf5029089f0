"""What correct clients do to a history before they send it again, and what recorders miss of it.

Every transformation takes the turns of a conversation and gives those that a tape would hold then.
None of them changes what the first request after an answer repeats of that answer's calls.
"""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from hypothesis import strategies as st

from helpers.scripted import Call, Said, Turn, result, user

Turns = Sequence[Turn]
T = TypeVar("T")
Transformation = Callable[[Turns, random.Random], list[Turn]]
ARGUMENTS: Sequence[Mapping[str, object] | None] = (
    {"city": "Rome"},
    {"city": "Rome", "days": 3},
    {"path": "/etc/hosts", "text": "one\ntwo é"},
    {"a": [1, 2.5, None, True]},
    {},
    None,
)


@st.composite
def scripts(draw: st.DrawFn, name: str = "c") -> list[Turn]:
    """A conversation: questions, answers with up to three calls, results."""
    history: list[Said] = [user("What is the weather?")]
    turns: list[Turn] = []
    previous = None
    for number in range(draw(st.integers(2, 5))):
        answer = draw(_answers(f"{name}{number}"))
        turn = Turn(
            history=tuple(history), answer=answer, id=f"{name}-r{number}", previous=previous
        )
        turns.append(turn)
        history += [answer, *(result(call, f"{call.id} is done") for call in answer.calls)]
        if not answer.calls or draw(st.booleans()):
            history.append(user(f"And then, {number}?"))
        previous = turn.id
    end = Said(role="assistant", text="That is all.")
    return [*turns, Turn(history=tuple(history), answer=end, id=f"{name}-end", previous=previous)]


@st.composite
def _answers(draw: st.DrawFn, name: str) -> Said:
    count = draw(st.sampled_from([1, 2, 1, 3, 0]))
    calls = tuple(
        Call(
            id=f"{name}_{place}",
            name=draw(st.sampled_from(["get", "put"])),
            arguments=draw(st.sampled_from(ARGUMENTS)),
        )
        for place in range(count)
    )
    text = f"I say {name}." if not count or draw(st.booleans()) else ""
    return Said(role="assistant", text=text, calls=calls)


def trimmed(turns: Turns, rng: random.Random) -> list[Turn]:
    """From some request on, the oldest messages are left out."""
    first = rng.randrange(len(turns))
    return [
        turn if place < first else replace(turn, history=_trimmed(turn.history, rng))
        for place, turn in enumerate(turns)
    ]


def _trimmed(history: tuple[Said, ...], rng: random.Random) -> tuple[Said, ...]:
    places = [place for place, said in enumerate(history) if said.role == "assistant"]
    return history[rng.randint(0, places[-1] if places else 0) :]


def summarised(turns: Turns, rng: random.Random) -> list[Turn]:
    """The same with a summary in place of what is left out."""
    short = trimmed(turns, rng)
    return [
        one if one.history == whole.history else replace(one, history=_with_summary(one.history))
        for one, whole in zip(short, turns, strict=True)
    ]


def _with_summary(history: tuple[Said, ...]) -> tuple[Said, ...]:
    return (user("Summary: we spoke of the weather, and tools were called."), *history)


def reordered(turns: Turns, rng: random.Random) -> list[Turn]:
    """Calls and results in another order than they came in; the same order from then on."""
    seed = rng.random()
    return [replace(turn, history=tuple(_reordered(turn.history, seed))) for turn in turns]


def _reordered(history: Sequence[Said], seed: float) -> Iterator[Said]:
    results: list[Said] = []
    for said in history:
        if said.answers:
            results.append(said)
            continue
        yield from _shuffled(results, seed)
        results = []
        yield replace(said, calls=tuple(_shuffled(said.calls, seed)))
    yield from _shuffled(results, seed)


def _shuffled(values: Sequence[T], seed: float) -> list[T]:
    found = list(values)
    random.Random(seed).shuffle(found)
    return found


def edited(turns: Turns, rng: random.Random) -> list[Turn]:
    """Texts are other ones from some request on, of any message but the last answer."""
    first, seed = rng.randrange(len(turns)), rng.random()
    return [
        turn if place < first else replace(turn, history=_edited(turn.history, seed))
        for place, turn in enumerate(turns)
    ]


def _edited(history: Sequence[Said], seed: float) -> tuple[Said, ...]:
    rng, last = random.Random(seed), _last_answer(history)
    return tuple(
        replace(said, text=f"({said.text})") if rng.random() < 0.5 and place < last else said
        for place, said in enumerate(history)
    )


def _last_answer(history: Sequence[Said]) -> int:
    places = [place for place, said in enumerate(history) if said.role == "assistant"]
    return places[-1] if places else len(history)


def compacted(turns: Turns, _: random.Random) -> list[Turn]:
    """Calls of all answers but the last lose their arguments, and results their text."""
    return [replace(turn, history=_compacted(turn.history)) for turn in turns]


def _compacted(history: Sequence[Said]) -> tuple[Said, ...]:
    last = _last_answer(history)
    return tuple(_bare(said) if place < last else said for place, said in enumerate(history))


def _bare(said: Said) -> Said:
    if said.answers:
        return replace(said, text="[cleared]")
    return replace(said, calls=tuple(replace(call, arguments={}) for call in said.calls))


def redacted(turns: Turns, rng: random.Random) -> list[Turn]:
    """Text and arguments that the application, or the recorder, hides behind a mask."""
    mask = rng.choice(["********", "[REDACTED]", "<redacted>", "*same*"])
    return [
        replace(turn, history=tuple(_masked(said, mask) for said in turn.history)) for turn in turns
    ]


def _masked(said: Said, mask: str) -> Said:
    text = said.text.replace("weather", _mask("weather", mask)).replace("done", mask)
    calls = tuple(replace(call, arguments=_masked_values(call, mask)) for call in said.calls)
    return replace(said, text=text, calls=calls)


def _masked_values(call: Call, mask: str) -> Mapping[str, object] | None:
    if call.arguments is None:
        return None
    return {
        key: _mask(value, mask) if isinstance(value, str) and len(value) > 8 else value
        for key, value in call.arguments.items()
    }


def _mask(text: str, mask: str) -> str:
    return "*" * len(text) if mask == "*same*" else mask


def retried(turns: Turns, rng: random.Random) -> list[Turn]:
    """A request comes twice, and the client goes on from one of the answers."""
    place = rng.randrange(len(turns))
    lost = _other(turns[place])
    at = place + rng.randint(0, 1)
    return [*turns[:at], lost, *turns[at:]]


def _other(turn: Turn) -> Turn:
    """The same request with another answer: other ids, other arguments."""
    calls = tuple(
        replace(call, id=f"z{call.id[::-1]}", arguments={"other": 1}) for call in turn.answer.calls
    )
    return replace(turn, answer=replace(turn.answer, text="Otherwise.", calls=calls), id="other")


def branched(turns: Turns, rng: random.Random) -> list[Turn]:
    """The user goes back to an earlier question, asks another one, and later goes on here."""
    place = rng.randrange(len(turns))
    # Another one each time: the same twice in a row is a user message that was doubled.
    history = (*turns[place].history, user(f"No, something else, {len(turns)}!"))
    branch = replace(_other(turns[place]), history=history)
    calls = branch.answer.calls
    after = (*history, branch.answer, *map(result, calls), user("Fine."))
    end = replace(turns[-1], history=after, previous="other", id="branch-end")
    at = rng.randint(place, len(turns))
    return [*turns[:at], branch, end, *turns[at:]]


def joined(turns: Turns, rng: random.Random) -> list[Turn]:
    """Another conversation that begins with the same question goes on beside this one."""
    others = list(_of_another(turns))
    found: list[Turn] = []
    ours = list(turns)
    while ours or others:
        found.append((ours if not others or (ours and rng.random() < 0.5) else others).pop(0))
    return found


def _of_another(turns: Turns) -> Iterator[Turn]:
    """The same conversation under other ids and with other arguments."""

    def call(one: Call) -> Call:
        return replace(one, id=f"x{one.id}", arguments={"else": one.id})

    def said(one: Said) -> Said:
        answers = call(one.answers) if one.answers else None
        return replace(one, calls=tuple(map(call, one.calls)), answers=answers)

    for turn in turns:
        previous = f"x{turn.previous}" if turn.previous else None
        history = tuple(map(said, turn.history))
        yield Turn(history=history, answer=said(turn.answer), id=f"x{turn.id}", previous=previous)


def begun_late(turns: Turns, rng: random.Random) -> list[Turn]:
    """The recorder missed the beginning."""
    return list(turns[rng.randrange(len(turns)) :])


KEEPING: Sequence[Transformation] = (retried, branched, joined)
"""Those that leave the histories that follow an answer as they are."""
CHANGING: Sequence[Transformation] = (
    trimmed,
    summarised,
    reordered,
    edited,
    compacted,
    redacted,
    begun_late,
)


def dropped(history: Sequence[Said], call: Call) -> tuple[Said, ...]:
    """The history of a client that lost `call`: it has no result for it either."""
    return tuple(
        replace(said, calls=tuple(one for one in said.calls if one.id != call.id))
        for said in history
        if said.answers is None or said.answers.id != call.id
    )


def emptied(history: Sequence[Said], call: Call) -> tuple[Said, ...]:
    """The history of a client that lost the arguments of `call`."""
    return tuple(_with(said, call, replace(call, arguments=None)) for said in history)


def renamed(history: Sequence[Said], call: Call) -> tuple[Said, ...]:
    """The history of a client that appended the id of `call` to itself."""
    return tuple(_with(said, call, replace(call, id=call.id + call.id)) for said in history)


def _with(said: Said, call: Call, other: Call) -> Said:
    answers = other if said.answers and said.answers.id == call.id else said.answers
    calls = tuple(other if one.id == call.id else one for one in said.calls)
    return replace(said, calls=calls, answers=answers)


def renumbered(turns: Turns) -> list[Turn]:
    """The same from a server that numbers the calls of each answer from 0."""
    ids = {
        call.id: f"call_{place}" for turn in turns for place, call in enumerate(turn.answer.calls)
    }

    def call(one: Call) -> Call:
        return replace(one, id=ids[one.id])

    def said(one: Said) -> Said:
        answers = call(one.answers) if one.answers else None
        return replace(one, calls=tuple(map(call, one.calls)), answers=answers)

    return [
        replace(turn, history=tuple(map(said, turn.history)), answer=said(turn.answer))
        for turn in turns
    ]
