"""Histories as correct clients rewrite them, and as recorders miss parts of them.

Every transformation takes the turns of a conversation and gives those that a tape would hold then.
None of them changes what the first request after an answer repeats of that answer's calls.
"""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from hypothesis import strategies as st

from helpers.scripted import Call, Message, Turn, result, user

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
    history: list[Message] = [user("What is the weather?")]
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
    end = Message(role="assistant", text="That is all.")
    return [*turns, Turn(history=tuple(history), answer=end, id=f"{name}-end", previous=previous)]


@st.composite
def _answers(draw: st.DrawFn, name: str) -> Message:
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
    return Message(role="assistant", text=text, calls=calls)


def trimmed(turns: Turns, rng: random.Random) -> list[Turn]:
    """Drop the oldest messages from some request on."""
    first = rng.randrange(len(turns))
    return [
        turn if place < first else replace(turn, history=_trimmed(turn.history, rng))
        for place, turn in enumerate(turns)
    ]


def _trimmed(history: tuple[Message, ...], rng: random.Random) -> tuple[Message, ...]:
    places = [place for place, message in enumerate(history) if message.role == "assistant"]
    return history[rng.randint(0, places[-1] if places else 0) :]


def summarised(turns: Turns, rng: random.Random) -> list[Turn]:
    """Replace the oldest messages by a summary."""
    short = trimmed(turns, rng)
    summary = user("Summary: we spoke of the weather, and tools were called.")
    return [
        one if one.history == whole.history else replace(one, history=(summary, *one.history))
        for one, whole in zip(short, turns, strict=True)
    ]


def reordered(turns: Turns, rng: random.Random) -> list[Turn]:
    """Reorder calls and results, and keep that order from then on."""
    seed = rng.random()
    return [replace(turn, history=tuple(_reordered(turn.history, seed))) for turn in turns]


def _reordered(history: Sequence[Message], seed: float) -> Iterator[Message]:
    results: list[Message] = []
    for message in history:
        if message.answers:
            results.append(message)
            continue
        yield from _shuffled(results, seed)
        results = []
        yield replace(message, calls=tuple(_shuffled(message.calls, seed)))
    yield from _shuffled(results, seed)


def _shuffled(values: Sequence[T], seed: float) -> list[T]:
    found = list(values)
    random.Random(seed).shuffle(found)
    return found


def edited(turns: Turns, rng: random.Random) -> list[Turn]:
    """Change texts from some request on, but not that of the last answer."""
    first, seed = rng.randrange(len(turns)), rng.random()
    return [
        turn if place < first else replace(turn, history=_edited(turn.history, seed))
        for place, turn in enumerate(turns)
    ]


def _edited(history: Sequence[Message], seed: float) -> tuple[Message, ...]:
    rng, last = random.Random(seed), _last_answer(history)
    return tuple(
        replace(message, text=f"({message.text})")
        if rng.random() < 0.5 and place < last
        else message
        for place, message in enumerate(history)
    )


def _last_answer(history: Sequence[Message]) -> int:
    places = [place for place, message in enumerate(history) if message.role == "assistant"]
    return places[-1] if places else len(history)


def compacted(turns: Turns, _: random.Random) -> list[Turn]:
    """Empty the arguments of calls and the texts of results, except those of the last answer."""
    return [replace(turn, history=_compacted(turn.history)) for turn in turns]


def _compacted(history: Sequence[Message]) -> tuple[Message, ...]:
    last = _last_answer(history)
    return tuple(
        _bare(message) if place < last else message for place, message in enumerate(history)
    )


def _bare(message: Message) -> Message:
    if message.answers:
        return replace(message, text="[cleared]")
    return replace(message, calls=tuple(replace(call, arguments={}) for call in message.calls))


def redacted(turns: Turns, rng: random.Random) -> list[Turn]:
    """Mask texts and arguments, in the application or in the recorder."""
    mask = rng.choice(["********", "[REDACTED]", "<redacted>", "*same*"])
    return [
        replace(turn, history=tuple(_masked(message, mask) for message in turn.history))
        for turn in turns
    ]


def _masked(message: Message, mask: str) -> Message:
    text = message.text.replace("weather", _mask("weather", mask)).replace("done", mask)
    calls = tuple(replace(call, arguments=_masked_values(call, mask)) for call in message.calls)
    return replace(message, text=text, calls=calls)


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
    """Send a request twice, and continue from one of the answers."""
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
    """Branch off from an earlier question, and later continue the main branch."""
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
    """Interleave another conversation that begins with the same question."""
    others = list(_of_another(turns))
    found: list[Turn] = []
    ours = list(turns)
    while ours or others:
        found.append((ours if not others or (ours and rng.random() < 0.5) else others).pop(0))
    return found


def _of_another(turns: Turns) -> Iterator[Turn]:
    """The same conversation under other ids and with other arguments."""
    for turn in turns:
        previous = f"x{turn.previous}" if turn.previous else None
        other = _with_calls(
            turn, lambda call: replace(call, id=f"x{call.id}", arguments={"else": call.id})
        )
        yield replace(other, id=f"x{turn.id}", previous=previous)


def _with_calls(turn: Turn, change: Callable[[Call], Call]) -> Turn:
    return replace(
        turn,
        history=tuple(_with_calls_of(message, change) for message in turn.history),
        answer=_with_calls_of(turn.answer, change),
    )


def _with_calls_of(message: Message, change: Callable[[Call], Call]) -> Message:
    answers = change(message.answers) if message.answers else None
    return replace(message, calls=tuple(map(change, message.calls)), answers=answers)


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


def dropped(history: Sequence[Message], call: Call) -> tuple[Message, ...]:
    """The history of a client that lost `call`: it has no result for it either."""
    return tuple(
        replace(message, calls=tuple(one for one in message.calls if one.id != call.id))
        for message in history
        if message.answers is None or message.answers.id != call.id
    )


def emptied(history: Sequence[Message], call: Call) -> tuple[Message, ...]:
    """The history of a client that lost the arguments of `call`."""
    return _with_other(history, replace(call, arguments=None), call.id)


def renamed(history: Sequence[Message], call: Call) -> tuple[Message, ...]:
    """The history of a client that appended the id of `call` to itself."""
    return _with_other(history, replace(call, id=call.id * 2), call.id)


def _with_other(history: Sequence[Message], other: Call, call_id: str) -> tuple[Message, ...]:
    return tuple(
        _with_calls_of(message, lambda call: other if call.id == call_id else call)
        for message in history
    )


def renumbered(turns: Turns) -> list[Turn]:
    """The same from a server that numbers the calls of each answer from 0."""
    ids = {
        call.id: f"call_{place}" for turn in turns for place, call in enumerate(turn.answer.calls)
    }
    return [_with_calls(turn, lambda call: replace(call, id=ids[call.id])) for turn in turns]
