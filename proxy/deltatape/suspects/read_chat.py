"""Chat completions, Mistral's included, as steps."""

from collections.abc import Iterable, Iterator

from deltatape.model.stream import Event
from deltatape.suspects.members import Object, member, number, objects, text_of, word
from deltatape.suspects.steps import Entry, Finish, Odd, Phase, Step
from deltatape.wire.json_value import read_object

_SENTINEL = "[DONE]"


def chat_steps(events: Iterable[Event], choice: int, *, indexed: bool) -> Iterator[Step]:
    """The steps of one choice, up to `[DONE]`.

    Args:
        events: of the stream.
        choice: its index.
        indexed: whether the dialect promises an index per call; else calls are counted.
    """
    counter = None if indexed else _Counter()
    for event in events:
        if event.data.strip() == _SENTINEL:
            return
        chunk = read_object(event.data)
        if chunk is None:
            continue
        found = [
            one
            for at, one in objects(chunk, "choices")
            if (at if number(one, "index") is None else number(one, "index")) == choice
        ]
        if not found and not chunk.get("choices"):
            yield Odd(event.number, "choices")
        for one in found:
            yield from _choice_steps(one, event.number, counter)


class _Counter:
    """Counts calls where entries need no index: whoever has a name begins one."""

    def __init__(self) -> None:
        self._last = -1

    def place(self, entry: Entry) -> Entry:
        if entry.name or self._last < 0:
            self._last += 1
        return entry._replace(index=self._last)


def _choice_steps(choice: Object, event: int, counter: _Counter | None) -> Iterator[Step]:
    delta = choice.get("delta")
    whole = isinstance(choice.get("message"), dict) and not isinstance(delta, dict)
    if not isinstance(delta, dict) and not whole:
        yield Odd(event, "delta")
    reason = choice.get("finish_reason")
    body = member(choice, "message" if whole else "delta")
    for entry in _entries(body, event, Phase.WHOLE if whole else Phase.DELTA):
        placed = entry if counter is None or whole else counter.place(entry)
        yield placed._replace(finished=bool(reason))
    if reason is not None:
        yield Finish(event, str(reason))


def _entries(body: Object, event: int, phase: Phase) -> Iterator[Entry]:
    for at, value in objects(body, "tool_calls"):
        custom = not member(value, "function") and bool(member(value, "custom"))
        kind, field = ("custom", "input") if custom else ("function", "arguments")
        identifier = word(value, "id")
        yield _read(member(value, kind), field)._replace(
            event=event,
            phase=phase,
            at=at,
            index=number(value, "index"),
            id=None if identifier == "null" else identifier,
            kind=kind,
        )
    if isinstance(body.get("function_call"), dict):
        legacy = _read(member(body, "function_call"), "arguments")
        yield legacy._replace(event=event, phase=phase, index=-1, kind="legacy")


def _read(function: Object, field: str) -> Entry:
    value = function.get(field)
    bare = value is not None and not isinstance(value, str)
    text = text_of(value) if bare else word(function, field)
    return Entry(0, Phase.DELTA, name=word(function, "name"), text=text, bare=bare)
