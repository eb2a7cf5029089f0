"""What each event of a reply brings, in full: the timeline's words, event by event.

Pure. Told from the rebuilt reply where it says which event brought what: calls and their arguments;
else by the shape of the event's JSON, see `rules.progress`.
"""

from collections.abc import Iterator, Mapping

from deltatape.diagnose.rebuild import Analysis
from deltatape.model.reply import Reply
from deltatape.model.stream import Event
from deltatape.rules.progress import brought, finishes
from deltatape.wire.json_value import parse

_FIELDS = {"content": "text", "text": "text", "reasoning_content": "reasoning"}
"""Fields by another name than their own."""


def news(analysis: Analysis) -> tuple[str, ...]:
    """For each event of the stream what it brings, such as `text: 'Hel'`; not escaped."""
    calls: dict[int, list[str]] = {}
    for event, told in _of_calls(analysis.reply):
        calls.setdefault(event, []).append(told)
    return tuple(_of_event(event, calls.get(event.number, [])) for event in analysis.stream.events)


def _of_calls(reply: Reply) -> Iterator[tuple[int, str]]:
    """What events bring of calls: first that they open, then pieces of their arguments."""
    for choice in reply.choices:
        for call in choice.tool_calls:
            identity = f"{call.name or 'no name'} ({call.id or 'no id'})"
            yield call.start_event, f"call {call.index} opens: {identity}"
            for piece in call.fragments:
                yield piece.event, f"call {call.index} arguments: '{piece.text}'"


def _of_event(event: Event, calls: list[str]) -> str:
    value = parse(event.data).value
    if not isinstance(value, Mapping):
        return event.data
    told = list(calls)
    text = None if calls else brought(value)
    if text:
        told.append(f"{_FIELDS.get(text[0], text[0])}: '{text[1]}'")
    if word := finishes(value):
        told.append(f"ends: {word}")
    return "; ".join(told) or f"nothing new: {event.data}"
