"""A fast path for events that repeat the previous event's form with other text.

Most events of most answers have the same members with the same values around a piece of text, and
perhaps padding or a sequence number. Parsing each of them is most of the work of rebuilding a
reply; comparing the bytes around the text with those of the previous event costs a fraction of it.

Strategy: after an event that did nothing but append the text of one member, the reducer calls
`learn`, which splits the event's data before and after that text (`_Form`). The split is
unambiguous: the data is an object that contains the member's name once, and has no backslash by
which the name could be spelled otherwise. The following events with the same bytes around their
text are appended at once. The first other event goes through the reducer and discards the form,
since it may change what a text means.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple, TypeAlias

from deltatape.dialects._json import Frame
from deltatape.model.stream import Event
from deltatape.wire.json_value import scan_string

TextDelta: TypeAlias = tuple[str, Event]
"""A piece of text, and the event that brought it."""
AppendTexts: TypeAlias = Callable[[Sequence[TextDelta]], object]
"""Appends pieces of text."""

_ASIDE = re.compile('"(obfuscation|p|created_at)":"')
"""The start of a member of the event that no client reads: padding, which hides the length of
the text, and the time."""
_COUNTER = '"sequence_number":'
_LONGEST = 4096
"""Longer events, in characters, do not use the fast path: they are not deltas."""
_TRIES = 4
"""After this many failed events, the fast path is given up."""
_BRACKETS = "}]"


class _Learned(NamedTuple):
    """The form of the last event, as `learn` stored it."""

    event: Event
    frame: Frame
    append: AppendTexts
    name: str
    number: object


class DeltaFastPath:
    """Recognises and applies events of the same form as the one before.

    Attributes:
        learned: the form of the previous event; None if it is not known: then do not call `run`.
    """

    def __init__(self) -> None:
        self.learned: _Learned | None = None
        self._number: int | None = None
        self._tries = _TRIES

    @property
    def learns(self) -> bool:
        """Whether `learn` is worth calling: not if an answer's events differ each time."""
        return self._tries > 0

    def learn(
        self, event: Event, frame: Frame, append: AppendTexts, name: str, number: object = None
    ) -> None:
        """Store the form of an event that did nothing but append text.

        Args:
            event: the event, no exception.
            frame: the object that its data is.
            append: appends the texts of such events.
            name: the name of the member that is the text, a string.
            number: the `sequence_number` of the event, if the next one has to follow on it.
        """
        if self._tries and len(event.data) <= _LONGEST:
            self._tries -= 1
            self.learned = _Learned(event, frame, append, name, number)

    def run(self, before: Event, events: Iterator[Event]) -> Event | None:
        """Apply events of the same form as `before`; return the first other one, or None."""
        learned, self.learned = self.learned, None
        event = next(events, None)
        if event is None or learned is None or learned.event is not before:
            return event
        form = _form_of(learned)
        if form is None:
            return event
        texts: list[TextDelta] = []
        event = form.take(chain((event,), events), texts)
        if texts:
            learned.append(texts)
            self._tries, self._number = _TRIES, form.number
        return event

    def take_number(self) -> int | None:
        """Return the number of the last applied event; None if none since the last call."""
        number, self._number = self._number, None
        return number


class _NoFastPath(DeltaFastPath):
    """For reducers without a fast path: they share one."""

    def learn(self, *_: object, **__: object) -> None:
        """Nothing."""


NO_FAST_PATH = _NoFastPath()


class _Form:
    """The common form of repeated events.

    Attributes:
        number: the number of the last applied event; None if events have no numbers.
    """

    def __init__(self, event: Event, frame: Frame, head: str, tail: str) -> None:
        self.number: int | None = None
        self._type = event.type
        self._counter = (0, "", "")
        """The index of the piece that holds the number, and the text before and after it there."""
        bare = tail.replace(" ", "")
        self._spaced = not bare.strip(_BRACKETS)
        """Whether only brackets follow the text, so that spaces behind it say nothing."""
        self._pieces = [head, "", bare if self._spaced else tail]
        """The source before and after the text; with a second string that changes, the source
        before, between and after the two."""
        self._second = False
        """Whether the text is the second string."""
        aside = _ASIDE.search(tail) or _ASIDE.search(head)
        if aside is None or not _is_direct_member(frame, aside[1], head + tail):
            return
        around, end = aside.string, aside.end()
        pieces = [around[:end], around[around.index('"', end) + 1 :]]
        self._second = around is head
        self._pieces = [*pieces, self._pieces[2]] if self._second else [head, *pieces]

    def counts(self, number: int) -> bool:
        """Expect consecutive numbers after `number`; return whether their position is certain."""
        found = None
        for place, piece in enumerate(self._pieces):
            before, mark, rest = piece.partition(_COUNTER)
            if mark:
                bare = rest.removeprefix(" ")
                space, digits = rest[: len(rest) - len(bare)], str(number)
                if found or _COUNTER in bare or not bare.startswith(digits):
                    return False
                found = (place, before + mark + space, bare.removeprefix(digits))
        if found is not None:
            self._counter, self.number = found, number
        return found is not None

    def take(self, events: Iterator[Event], texts: list[TextDelta]) -> Event | None:
        """Collect the text of events of this form in `texts`; return the first other event.

        Hot path: nearly every event passes here, hence one loop.
        """
        kind, spaced, pieces, number = self._type, self._spaced, self._pieces, self.number
        second = self._second
        place, before, behind = self._counter
        head, middle, last = pieces
        for event in events:
            if number is not None:
                number += 1
                pieces[place] = f"{before}{number}{behind}"
                head, middle, last = pieces
            data = event.data
            if not data.startswith(head) or event.type != kind or event.exception:
                return event
            try:
                text, end = scan_string(data, len(head))
                if middle:
                    if not data.startswith(middle, end):
                        return event
                    other, end = scan_string(data, end + len(middle))
                    text = other if second else text
            except ValueError:  # a string without an end
                return event
            if data[end:] != last and not (spaced and data[end:].replace(" ", "") == last):
                return event
            texts.append((text, event))
            self.number = number
        return None


def _form_of(learned: _Learned) -> _Form | None:
    """Return the stored form, if it is unambiguous."""
    cut = _cut(learned.event.data, learned.name)
    form = cut and _Form(learned.event, learned.frame, *cut)
    if form and type(learned.number) is int and not form.counts(learned.number):
        return None
    return form


def _is_direct_member(frame: Frame, name: str, around: str) -> bool:
    """Check that the only string `name` in `around` is a direct member of `frame`."""
    return isinstance(frame.get(name), str) and around.count(f'"{name}"') == 1


def _cut(data: str, name: str) -> tuple[str, str] | None:
    """Return the text before and after the member `name`; None if it is ambiguous."""
    quoted = f'"{name}"'
    before, mark, rest = data.partition(f"{quoted}:")
    head = f'{before}{mark} "' if rest.startswith(" ") else f'{before}{mark}"'
    if not mark or not data.startswith(head):
        return None
    tail = data[scan_string(data, len(head))[1] :]
    if quoted in before or quoted in tail or "\\" in before or "\\" in tail:
        return None
    return head, tail
