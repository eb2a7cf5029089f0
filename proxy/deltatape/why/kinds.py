"""What the events of a reply bring, told in a few words for runs of events of the same kind."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from deltatape.model.reply import Reply, ToolCall
from deltatape.model.stream import Event
from deltatape.rules.progress import brings, finishes
from deltatape.rules.words import count
from deltatape.wire.json_value import parse

_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Kind:
    """What events have in common; neighbours of equal kind are told as one."""

    name: str
    detail: str = ""


_TEXT = Kind("text")
_ARGUMENTS = Kind("arguments")
_NOTHING = Kind("nothing new")


class Kinds:
    """Tells the events of one reply."""

    def __init__(self, reply: Reply) -> None:
        self._opened: dict[int, ToolCall] = {}
        self._arguments: dict[int, dict[int, int]] = {}
        """By event: by call, the number of characters."""
        for choice in reply.choices:
            for call in choice.tool_calls:
                self._opened.setdefault(call.start_event, call)
                for each in call.fragments:
                    here = self._arguments.setdefault(each.event, {})
                    here[call.index] = here.get(call.index, 0) + len(each.text)

    def of_all(self, events: Sequence[Event]) -> Iterator[tuple[Kind, Event]]:
        """Each event with its kind; an empty one among text or arguments goes with them."""
        before = _NOTHING
        for event in events:
            kind = self._of(event)
            if kind == _NOTHING and before in (_TEXT, _ARGUMENTS):
                kind = before
            yield kind, event
            before = kind

    def _of(self, event: Event) -> Kind:
        characters = self._arguments.get(event.number, {})
        opened = self._opened.get(event.number)
        if opened:
            identity = f"{opened.name or 'no name'} ({opened.id or 'no id'})"
            size = sum(characters.values())
            shown = f", with {size} characters of arguments" if size else ""
            return Kind("open", f"call {opened.index} opens: {identity}{shown}")
        if characters:
            return _ARGUMENTS
        value = parse(event.data).value
        if not isinstance(value, Mapping):
            return Kind("sentinel", event.data[:_SHOWN])
        if word := finishes(value):
            return Kind("finish", f"ends: {word[:_SHOWN]}")
        return _TEXT if brings(value) else _NOTHING

    def tell(self, kind: Kind, run: Sequence[Event]) -> str:
        """One phrase for a run of events of the same kind."""
        if kind.detail:
            return kind.detail
        events = count(len(run), "event")
        if kind != _ARGUMENTS:
            return f"{kind.name}: {events}"
        calls = sorted({index for event in run for index in self._arguments.get(event.number, {})})
        names = " and ".join(f"call {index}" for index in calls)
        mixed = ", interleaved" if len(calls) > 1 else ""
        return f"{names} arguments{mixed}: {events}"
