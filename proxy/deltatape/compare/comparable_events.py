"""Events in a comparable form: without ignored fields and framing.

Some fields differ each time: ids of answers, times, padding, counters. They are listed by path from
the root of an event's JSON, without array indices: `choices.delta.content`. Amazon wraps the events
of some models as base64 in a message; the inner event is compared. The event type of the framing
counts only where the data names no type: elsewhere a missing `event:` line changes no content.

Source of the lists: what the dialects send, docs/dialects.md.
"""

import base64
import binascii
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from deltatape.diagnose.rebuild import Analysis
from deltatape.dialects import UNKNOWN
from deltatape.errors import UsageError
from deltatape.model.reply import ToolCall
from deltatape.model.stream import Event, Format
from deltatape.rules.event_contribution import ContributionKind, EventContribution, brought
from deltatape.wire.json_path import Wildcard, parse_path
from deltatape.wire.json_value import parse, read_object

VOLATILE = (
    "id",
    "created",
    "created_at",
    "event_id",
    "interaction.created",
    "interaction.id",
    "interaction.updated",
    "interaction_id",
    "load_duration",
    "message.id",
    "messageId",
    "metrics.latencyMs",
    "obfuscation",
    "p",
    "prompt_eval_duration",
    "eval_duration",
    "response.completed_at",
    "response.created_at",
    "response.id",
    "responseId",
    "sequence_number",
    "system_fingerprint",
    "total_duration",
)
"""Fields that are not compared by default."""

_ANSWER_ID = "id"
"""Ignored only where it is that of the answer: in chunks with `choices`, in `message-start`.

Elsewhere it may be that of a call.
"""

_IDENTITY = frozenset(
    {
        "call_id",
        "contentBlockIndex",
        "content_index",
        "id",
        "index",
        "item_id",
        "output_index",
        "summary_index",
        "toolCallId",
        "toolUseId",
        "tool_call_id",
    }
)
"""Keys that say which call, choice or item a delta is for.

An event that differs in nothing else carries the same delta for another one.
"""

DEEPEST = 100
"""Values nested deeper than this are compared as text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventForms:
    """The comparable forms of an event's JSON."""

    value: object
    """The JSON without ignored fields."""
    whole: str
    """`value` as canonical text."""
    nameless: str
    """The same without identity."""
    ignored: Mapping[str, str]
    """Canonical text of the ignored fields, by path."""


class FieldFilter:
    """Removes fields from events.

    Args:
        paths: fields to ignore, as in `VOLATILE` or as `parse_path` takes them. Array indices
            are dropped.

    Raises:
        UsageError: a path is invalid.
    """

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = frozenset(map(_from_root, paths))
        self._first = frozenset(path.partition(".")[0] for path in self._paths)

    def forms(self, value: object) -> EventForms:
        """Return the forms of an event's JSON."""
        ignored: dict[str, str] = {}
        kept = value
        if isinstance(value, dict) and not self._first.isdisjoint(value):
            kept = self._kept(value, "", ignored)
            is_answer = "choices" in value or value.get("type") == "message-start"
            if _ANSWER_ID in self._paths and is_answer and _ANSWER_ID in value:
                ignored[_ANSWER_ID] = canonical(value[_ANSWER_ID])
                kept = {key: each for key, each in kept.items() if key != _ANSWER_ID}
        return EventForms(
            value=kept,
            whole=canonical(kept),
            nameless=canonical(_nameless(kept)),
            ignored=ignored,
        )

    def _kept(
        self, value: Mapping[str, object], front: str, ignored: dict[str, str]
    ) -> dict[str, object]:
        found: dict[str, object] = {}
        for key, each in value.items():
            path = f"{front}{key}"
            if path in self._paths and path != _ANSWER_ID:
                ignored[path] = canonical(each)
            else:
                found[key] = self._inner(each, f"{path}.", ignored)
        return found

    def _inner(self, value: object, front: str, ignored: dict[str, str]) -> object:
        if front.removesuffix(".").partition(".")[0] not in self._first:
            return value
        if isinstance(value, dict):
            return self._kept(value, front, ignored)
        if isinstance(value, list):
            return [self._inner(each, front, ignored) for each in value]
        return value


def _from_root(text: str) -> str:
    """Return a path without array indices."""
    steps = parse_path(text)
    if Wildcard.DEEP in steps:
        raise UsageError(
            f"--volatile {text!r}: invalid path; give it from the root of an event, without `..`"
        )
    return ".".join(step for step in steps if isinstance(step, str) and not step.isdigit())


def canonical(value: object) -> str:
    """Return JSON text that is equal for equal values."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def is_deep(value: object) -> bool:
    """Return whether arrays and objects are nested deeper than `DEEPEST`."""
    level = [value]
    for _ in range(DEEPEST + 1):
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not level:
            return False
    return True


def _nameless(value: object) -> object:
    if isinstance(value, dict):
        return {key: _nameless(each) for key, each in value.items() if key not in _IDENTITY}
    if isinstance(value, list):
        return [_nameless(each) for each in value]
    return value


def identities(value: object) -> Iterator[tuple[str, str]]:
    """Yield path and canonical text of each id in an event."""
    pending: list[tuple[str, object]] = [("", value)]
    while pending:
        path, each = pending.pop()
        if isinstance(each, dict):
            for key, inner in each.items():
                if key in _IDENTITY:
                    yield f"{path}{key}", canonical(inner)
            pending += [(f"{path}{key}.", inner) for key, inner in each.items()]
        elif isinstance(each, list):
            pending += [(path, inner) for inner in each]


DELTAS = frozenset(
    {
        ContributionKind.TEXT,
        ContributionKind.REASONING,
        ContributionKind.REFUSAL,
        ContributionKind.ARGUMENTS,
    }
)
"""Content that comes in pieces, whose borders mean nothing."""
_TYPES = ("type", "object", "event_type")
"""Keys under which data names its type."""


class EventToken(NamedTuple):
    """A contribution of an event: its kind, its owner, and the text; a part of it for deltas."""

    what: ContributionKind
    owner: tuple[int, int] | None
    """Choice and index of the call that it belongs to, if any."""
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparableEvent:
    """An event to compare. Equal `key`s: same content; equal `loose`: same apart from ids."""

    event: Event
    forms: EventForms | None
    """None: its data is not JSON."""
    tokens: tuple[EventToken, ...]
    key: str
    loose: str
    said: str
    """Equal for events of the same sort that contribute the same."""
    slot: str
    """Equal for events that may be altered forms of each other: same sort, same contributions."""
    sort: str
    """The type that the event names, or the keys of its JSON."""
    names_type: bool
    """Whether its data names its type, so that its event line changes nothing."""


def units_of(analysis: Analysis, ignoring: FieldFilter) -> tuple[ComparableEvent, ...]:
    """Return the events of an exchange, without a last one that the end of the body cut off."""
    contributions = contributions_of(analysis)
    owners = owners_of(analysis)
    wrapped = analysis.stream.format is Format.EVENTSTREAM
    return tuple(
        _unit(event, contributions.get(event.number, ()), owners, ignoring, wrapped=wrapped)
        for event in analysis.stream.events
    )


def contributions_of(analysis: Analysis) -> Mapping[int, tuple[EventContribution, ...]]:
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


def token_of(contribution: EventContribution, owners: Mapping[int, tuple[int, int]]) -> EventToken:
    """Return an event's contribution without the object of its call."""
    owner = None if contribution.call is None else owners.get(id(contribution.call))
    return EventToken(
        contribution.what, owner, _text_of(contribution.what, contribution.text, contribution.call)
    )


def _text_of(what: ContributionKind, text: str, call: ToolCall | None) -> str:
    if what is ContributionKind.OPEN and call is not None:
        return f"{call.name or ''} ({call.id or ''})"
    return "" if what is ContributionKind.END else text


def value_of(event: Event, *, wrapped: bool) -> tuple[bool, object]:
    """Return whether an event's data is JSON, and its value, unwrapped if it is wrapped.

    JSON nested too deep counts as text, since values are compared by recursion.
    """
    parsed = parse(event.data)
    may_be_deep = event.data.count("{") + event.data.count("[") > DEEPEST
    if parsed.error is not None or (may_be_deep and is_deep(parsed.value)):
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


def _unit(
    event: Event,
    contributions: Sequence[EventContribution],
    owners: Mapping[int, tuple[int, int]],
    ignoring: FieldFilter,
    *,
    wrapped: bool,
) -> ComparableEvent:
    is_json, value = value_of(event, wrapped=wrapped)
    tokens = tuple(token_of(contribution, owners) for contribution in contributions)
    event_type = "" if _names_type(value) else event.type
    forms = ignoring.forms(value) if is_json else None
    sort = " ".join([event_type, *_type_of_data(value)])
    kinds = dict.fromkeys(f"{token.what}{token.owner or ''}" for token in tokens)
    return ComparableEvent(
        event=event,
        forms=forms,
        tokens=tokens,
        key=f"{event_type} {forms.whole if forms else event.data}",
        loose=f"{event_type} {forms.nameless if forms else event.data}",
        said=f"{sort} {tokens}",
        slot=" ".join([sort, *kinds]),
        sort=sort,
        names_type=_names_type(value),
    )


def _names_type(value: object) -> bool:
    return isinstance(value, dict) and any(isinstance(value.get(key), str) for key in _TYPES)


def _type_of_data(value: object) -> list[str]:
    """Return the type that data names; else its keys, or its JSON type."""
    if not isinstance(value, dict):
        return [type(value).__name__]
    types = [str(value[key]) for key in _TYPES if key in value]
    return types or sorted(value)
