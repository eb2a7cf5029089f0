"""Events in a comparable form: without ignored fields and framing.

Amazon wraps the events of some models as base64 in a message: what is in it is compared. The type
that framing gives an event belongs to what it says only where its data does not tell a type of its
own: elsewhere a missing `event:` line changes nothing that is said.
"""

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from deltatape.compare.volatile import DEEPEST, EventForms, FieldFilter, is_deep
from deltatape.diagnose.rebuild import Analysis
from deltatape.dialects import UNKNOWN
from deltatape.model.reply import ToolCall
from deltatape.model.stream import Event, Format
from deltatape.rules.event_contribution import ContributionKind, EventContribution, brought
from deltatape.wire.json_value import parse, read_object

DELTAS = frozenset(
    {
        ContributionKind.TEXT,
        ContributionKind.REASONING,
        ContributionKind.REFUSAL,
        ContributionKind.ARGUMENTS,
    }
)
"""What comes in pieces, whose borders mean nothing."""
_TYPES = ("type", "object", "event_type")
"""Keys under which data names its type."""


class EventToken(NamedTuple):
    """A contribution of an event: its kind, its owner, and the text; a part of it for deltas."""

    what: ContributionKind
    owner: tuple[int, int] | None
    """Choice and index of the call, for what belongs to a call."""
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparableEvent:
    """An event to be compared. Equal `key`s: same content; equal `loose`: same but for the ids."""

    event: Event
    forms: EventForms | None
    """None: its data is not JSON."""
    tokens: tuple[EventToken, ...]
    key: str
    loose: str
    slot: str
    """Equal for events of one sort that bring things of one sort: one may be the other, altered."""
    sort: str
    """Equal for events of one sort, whatever they bring."""


def units_of(analysis: Analysis, ignoring: FieldFilter) -> tuple[ComparableEvent, ...]:
    """Return the events of an exchange, without one that the end of the body left undispatched."""
    things = things_of(analysis)
    owners = owners_of(analysis)
    wrapped = analysis.stream.format is Format.EVENTSTREAM
    return tuple(
        _unit(event, things.get(event.number, ()), owners, ignoring, wrapped=wrapped)
        for event in analysis.stream.events
    )


def things_of(analysis: Analysis) -> Mapping[int, tuple[EventContribution, ...]]:
    """Map event numbers of an exchange to their contributions."""
    reply = analysis.reply
    return brought(reply, analysis.stream, known=reply.dialect != UNKNOWN)


def owners_of(analysis: Analysis) -> Mapping[int, tuple[int, int]]:
    """Map identities of call objects to their choice and place."""
    return {
        id(call): (choice.index, place)
        for choice in analysis.reply.choices
        for place, call in enumerate((*choice.tool_calls, *choice.server_calls))
    }


def token_of(thing: EventContribution, owners: Mapping[int, tuple[int, int]]) -> EventToken:
    """Return an event's contribution without the object of its call."""
    owner = None if thing.call is None else owners.get(id(thing.call))
    return EventToken(thing.what, owner, _told(thing.what, thing.text, thing.call))


def _told(what: ContributionKind, text: str, call: ToolCall | None) -> str:
    if what is ContributionKind.OPEN and call is not None:
        return f"{call.name or ''} ({call.id or ''})"
    return "" if what is ContributionKind.END else text


def value_of(event: Event, *, wrapped: bool) -> tuple[bool, object]:
    """Return whether an event's data is JSON, and its value, unwrapped if it is wrapped.

    JSON that is too deep is none here: what compares values goes through them by recursion.
    """
    parsed = parse(event.data)
    if parsed.error is not None or _is_too_deep(event.data, parsed.value):
        return False, None
    inner = parsed.value.get("bytes") if wrapped and isinstance(parsed.value, dict) else None
    if isinstance(inner, str):
        try:
            value = read_object(base64.b64decode(inner, validate=True).decode())
        except (binascii.Error, UnicodeDecodeError):
            value = None
        if value is not None and not is_deep(value):
            return True, value
    return True, parsed.value


def _is_too_deep(text: str, value: object) -> bool:
    return text.count("{") + text.count("[") > DEEPEST and is_deep(value)


def _unit(
    event: Event,
    things: Sequence[EventContribution],
    owners: Mapping[int, tuple[int, int]],
    ignoring: FieldFilter,
    *,
    wrapped: bool,
) -> ComparableEvent:
    is_json, value = value_of(event, wrapped=wrapped)
    tokens = tuple(token_of(thing, owners) for thing in things)
    said = "" if _tells_type(value) else event.type
    forms = ignoring.forms(value) if is_json else None
    sort = " ".join([said, *_sort(value)])
    brings = dict.fromkeys(f"{token.what}{token.owner or ''}" for token in tokens)
    return ComparableEvent(
        event=event,
        forms=forms,
        tokens=tokens,
        key=f"{said} {forms.whole if forms else event.data}",
        loose=f"{said} {forms.nameless if forms else event.data}",
        slot=" ".join([sort, *brings]),
        sort=sort,
    )


def _tells_type(value: object) -> bool:
    return isinstance(value, dict) and any(isinstance(value.get(key), str) for key in _TYPES)


def _sort(value: object) -> list[str]:
    """Return the type that data names; else its keys, or its JSON type."""
    if not isinstance(value, dict):
        return [type(value).__name__]
    told = [str(value[key]) for key in _TYPES if key in value]
    return told or sorted(value)
