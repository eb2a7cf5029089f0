"""Event fields that vary each time: ids of answers, times, padding, counters.

Paths are from the root of an event's JSON, array places left out: `choices.delta.content`. A second
list tells identity from content: an event that differs in nothing but these keys carries the same
delta for another call, choice or item.

Source: what the dialects send, docs/dialects.md.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from deltatape.errors import UsageError
from deltatape.wire.json_path import Wildcard, parse_path

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

ANSWER_ID = "id"
"""One of them. It is left out where it is that of the whole answer: in chunks with `choices`, in
`message-start`. Elsewhere it may be that of a call."""

IDENTITY = frozenset(
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
"""Keys, wherever they stand, that say which call, choice or item a delta is for."""

DEEPEST = 100
"""Values with more arrays and objects inside each other are compared as text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventForms:
    """The comparable forms of an event's JSON."""

    value: object
    """Without what is ignored."""
    whole: str
    """`value` as canonical text."""
    nameless: str
    """The same without identity."""
    ignored: Mapping[str, str]
    """What was left out: canonical text by path."""


class FieldFilter:
    """Removes fields from events.

    Args:
        paths: of what is not compared, as in `VOLATILE` or as `parse_path` takes them. Which place
            of an array is meant does not count.

    Raises:
        UsageError: a path is none.
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
            if ANSWER_ID in self._paths and _is_answer(value) and ANSWER_ID in value:
                ignored[ANSWER_ID] = canonical(value[ANSWER_ID])
                kept = {key: each for key, each in kept.items() if key != ANSWER_ID}
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
            if path in self._paths and path != ANSWER_ID:
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


def _is_answer(value: Mapping[str, object]) -> bool:
    return "choices" in value or value.get("type") == "message-start"


def _nameless(value: object) -> object:
    if isinstance(value, dict):
        return {key: _nameless(each) for key, each in value.items() if key not in IDENTITY}
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
                if key in IDENTITY:
                    yield f"{path}{key}", canonical(inner)
            pending += [(f"{path}{key}.", inner) for key, inner in each.items()]
        elif isinstance(each, list):
            pending += [(path, inner) for inner in each]
