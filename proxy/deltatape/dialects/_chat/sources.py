"""Where the calls of an event stand in its text, for those whose arguments are no string.

Hardly any event has such, so events are passed on as they are, and an event's text is taken apart
only when somebody asks; a hostile one makes us ask thousands of times, so it is done once for all.
"""

from typing import TypeAlias

from deltatape.dialects._source import Element, Elements, Member, Source, Whole
from deltatape.model.stream import Event

DELTA = "delta"
MESSAGE = "message"

BodyPlace: TypeAlias = tuple[int, str]
"""Where a body stands in an event: its choice's place in `choices`, and `DELTA` or `MESSAGE`."""


class Sources:
    """The source text of values in the events of one stream. What is asked for has to exist."""

    def __init__(self) -> None:
        self._event: Event | None = None
        self._choices = Elements(Whole(""))
        self._place: BodyPlace | None = None
        self._calls = self._choices

    def body(self, event: Event, place: BodyPlace) -> Source:
        """A delta or a message."""
        if event is not self._event:
            self._event = event
            self._choices = Elements(Member(Whole(event.data), "choices"))
            self._place = None
        choice, key = place
        return Member(Element(self._choices, choice), key)

    def call(self, event: Event, place: BodyPlace, position: int) -> Source:
        """The element number `position` of the `tool_calls` of a delta or a message."""
        body = self.body(event, place)
        if place != self._place:
            self._place = place
            self._calls = Elements(Member(body, "tool_calls"))
        return Element(self._calls, position)
