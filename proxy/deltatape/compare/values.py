"""The values that a comparison of two exchanges consists of."""

import enum
from dataclasses import dataclass

from deltatape.diagnose.rebuild import Analysis
from deltatape.match.difference import JsonDifference
from deltatape.model.reply import ToolCall


class ChangeKind(enum.StrEnum):
    """What happened to events on the way from left to right."""

    EQUAL = "equal"
    DROPPED = "dropped"
    INSERTED = "inserted"
    ALTERED = "altered"
    REINDEXED = "re-indexed"
    """The same delta under another index or id."""
    MERGED = "merged"
    """Several events are one, which brings the same."""
    SPLIT = "split"
    """One event is several, which bring the same together."""
    RECUT = "re-cut"
    """Several events are several others, which bring the same together."""
    MOVED = "moved"
    """The same event is at another position."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventChange:
    """A change of neighbouring events; equal ones are included, too.

    `left` and `right` are numbers of events; one of them is empty where events are missing on that
    side. Of an EQUAL change both are as long, and event by event the same.
    """

    kind: ChangeKind
    left: tuple[int, ...]
    right: tuple[int, ...]
    differences: tuple[JsonDifference, ...] = ()
    """Where the JSON of the two differs, left as `recorded`. For events cut in another way, only
    the choice or call that they name."""
    part: str = ""
    """The part of the content that is compared: `text`, `call 0`, `call 0 arguments`, `finish`."""


class SpacingDifference(enum.StrEnum):
    """What differs between events with the same content."""

    FORMAT = "format"
    """The body is framed in another way: server-sent events, lines, an array."""
    EVENT_LINE = "event-line"
    """The name of the event, where its data names its type as well."""
    ID_LINE = "id-line"
    RETRY_LINE = "retry-line"
    LINE_ENDS = "line-ends"
    """CR LF against LF."""
    JSON = "json"
    """Spaces, escapes or the order of keys in the JSON."""
    FIELDS = "fields"
    """Anything else between the fields: spaces, several data lines, unknown fields."""
    COMMENTS = "comments"
    """Comments, such as keep-alives."""
    PENDING = "pending"
    """The last event, if the blank line that would dispatch it is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FramingDifference:
    """A difference of framing alone, over all events with the same content."""

    what: SpacingDifference
    count: int
    """Events that differ so; 1 for what is about the body as a whole."""
    left: str
    """How it is on the left, where it is seen first."""
    right: str
    event: tuple[int, int] | None
    """The first such events, left and right."""


class CallDamage(enum.StrEnum):
    """What happened to a call."""

    LOST = "lost"
    ADDED = "added"
    ARGUMENTS = "arguments"
    """Its arguments differ; spelling does not count where both are JSON."""
    IDENTITY = "identity"
    """Its name or id differs, or its index is also another call's."""


class ContextPart(enum.StrEnum):
    """Parts of an exchange around the answer."""

    REQUEST = "request"
    """Its path and its body; of another dialect only the model."""
    HEADERS = "headers"
    """Header fields of the response."""
    MODEL = "model"
    USAGE = "usage"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextDifference:
    """A difference around the answers, which does not make them unequal."""

    part: ContextPart
    difference: JsonDifference


@dataclass(frozen=True, slots=True, kw_only=True)
class CallChange:
    """A call that differs between both sides."""

    damage: CallDamage
    choice: int
    left: ToolCall | None
    right: ToolCall | None
    differences: tuple[JsonDifference, ...]
    cause: EventChange | None
    """The first change of events that concerns the call; None: no event does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two exchanges, event by event and call by call."""

    left: Analysis
    right: Analysis
    by_event: bool
    """Whether events were compared; else their contents, since the dialects differ."""
    changes: tuple[EventChange, ...]
    """In the order of the left side; an event only on the right is at its place there."""
    framing: tuple[FramingDifference, ...]
    volatile: tuple[tuple[str, int], ...]
    """Ignored fields that differ, and in how many events."""
    reply: tuple[JsonDifference, ...]
    """Where the rebuilt replies differ, their calls aside: `text`, `finish reason`."""
    calls: tuple[CallChange, ...]
    context: tuple[ContextDifference, ...] = ()
    """What differs around the answers. Every gateway adds headers and renames models, so this
    makes nobody unequal."""

    @property
    def damaged(self) -> tuple[CallChange, ...]:
        """Return the calls of the left side that arrived changed; added ones are not among them."""
        return tuple(call for call in self.calls if call.damage is not CallDamage.ADDED)

    @property
    def equal(self) -> bool:
        """Return whether nothing differs but what is ignored."""
        changed = any(change.kind is not ChangeKind.EQUAL for change in self.changes)
        return not (changed or self.framing or self.reply or self.calls)
