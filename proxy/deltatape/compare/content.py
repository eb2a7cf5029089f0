"""What two streams of different dialects bring, side by side: a gateway that translates.

How many events bring a text means nothing there, nor does their JSON. For each call, for text,
reasoning and refusal all pieces are put together; what differs is told with the events that carry
the place where the difference begins.

What dialects cannot say alike is not compared: reasoning, which many translations drop on purpose,
only where both sides have some; the words for the end of a reply by what they mean, and only where
both have one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from deltatape.compare.calls import (
    argument_differences,
    calls_of,
    choices_of,
    identity_differences,
    named,
    pairs_of,
)
from deltatape.compare.values import Change, Kind
from deltatape.model.reply import NOT_OURS, Channel, Choice, Reply, ToolCall
from deltatape.rules.finish import Finish, finish_of

_FINISH = "finish"


@dataclass(frozen=True, slots=True)
class _Text:
    """A text, and which event brought which part of it."""

    text: str
    pieces: tuple[tuple[int, int], ...]
    """Where each piece ends in the text, and the event that brought it."""

    def event_at(self, offset: int) -> tuple[int, ...]:
        """The event that brought the character there; the last one behind the end."""
        for end, event in self.pieces:
            if offset < end:
                return (event,)
        return (self.pieces[-1][1],) if self.pieces else ()


def content_changes(left: Reply, right: Reply) -> tuple[Change, ...]:
    """What became of what the left side brings; by choice: text, calls, the end."""
    found: list[Change] = []
    for _, one, other in choices_of(left, right):
        for channel in Channel:
            here, there = _said(one, channel), _said(other, channel)
            if channel is Channel.TEXT or (here.text and there.text):
                found.append(_texts(channel.value, here, there))
        for ours, theirs in pairs_of(calls_of(one), calls_of(other)):
            found += _calls(ours, theirs)
        found += _ends(one, other)
    return tuple(found)


def _said(choice: Choice | None, channel: Channel) -> _Text:
    pieces = [piece for piece in choice.pieces if piece.channel is channel] if choice else []
    return _put_together([(piece.text, piece.event) for piece in pieces])


def _arguments(call: ToolCall) -> _Text:
    return _put_together([(piece.text, piece.event) for piece in call.fragments])


def _put_together(pieces: Sequence[tuple[str, int]]) -> _Text:
    ends: list[tuple[int, int]] = []
    at = 0
    for text, event in pieces:
        at += len(text)
        ends.append((at, event))
    return _Text("".join(text for text, _ in pieces), tuple(ends))


def _first_difference(one: str, other: str) -> int:
    pairs = zip(one, other, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _texts(name: str, one: _Text, other: _Text) -> Change:
    """What became of a text; the events are those of the first difference, or all."""
    if one.text == other.text:
        return Change(kind=Kind.EQUAL, left=_events(one), right=_events(other), part=name)
    at = _first_difference(one.text, other.text)
    kind = Kind.ALTERED
    if not one.text or not other.text:
        kind = Kind.INSERTED if other.text else Kind.DROPPED
    return Change(
        kind=kind,
        left=one.event_at(at),
        right=other.event_at(at),
        differences=named(name, one.text, other.text),
        part=name,
    )


def _events(text: _Text) -> tuple[int, ...]:
    return tuple(dict.fromkeys(event for _, event in text.pieces))


def call_part(call: ToolCall) -> str:
    """What the part of the content is called that a call is."""
    return f"{'server ' if call.kind in NOT_OURS else ''}call {call.index}"


def arguments_part(call: ToolCall) -> str:
    """The same for its arguments."""
    return f"{call_part(call)} arguments"


def _calls(one: ToolCall | None, other: ToolCall | None) -> Iterator[Change]:
    """What became of a call: of its identity, then of its arguments."""
    if one is not None and other is not None:
        found = identity_differences(one, other, alike=False)
        yield Change(
            kind=Kind.ALTERED if found else Kind.EQUAL,
            left=(one.start_event,),
            right=(other.start_event,),
            differences=found,
            part=call_part(one),
        )
        yield _arguments_change(one, other)
        return
    call = one or other
    assert call is not None
    events = tuple(dict.fromkeys((call.start_event, *_events(_arguments(call)))))
    yield Change(
        kind=Kind.INSERTED if one is None else Kind.DROPPED,
        left=() if one is None else events,
        right=events if one is None else (),
        part=call_part(call),
    )


def _arguments_change(one: ToolCall, other: ToolCall) -> Change:
    """What became of arguments. How JSON is spelt is not compared: some dialects send objects."""
    ours, theirs = _arguments(one), _arguments(other)
    differences = argument_differences(one, other)
    at = _first_difference(ours.text, theirs.text)
    return Change(
        kind=Kind.ALTERED if differences else Kind.EQUAL,
        left=ours.event_at(at) if differences else _events(ours),
        right=theirs.event_at(at) if differences else _events(theirs),
        differences=differences,
        part=arguments_part(one),
    )


def _ends(one: Choice | None, other: Choice | None) -> Iterator[Change]:
    """What became of the reason to finish, by its meaning; nothing where one side names none."""
    if one is None or other is None or not one.finishes or not other.finishes:
        return
    found = named(_FINISH, _meaning(one), _meaning(other))
    yield Change(
        kind=Kind.ALTERED if found else Kind.EQUAL,
        left=(one.finishes[-1][0],),
        right=(other.finishes[-1][0],),
        differences=found,
        part=_FINISH,
    )


def _meaning(choice: Choice) -> str:
    """The meaning of a finish reason; several dialects have no word of their own for calls."""
    meaning = finish_of(choice)
    if meaning is Finish.TOOLS and choice.tool_calls:
        meaning = Finish.STOP
    return str(choice.finish_reason_raw) if meaning is Finish.OTHER else meaning.name.lower()
