"""Where in an answer a fault occurs: parse `at=`, and find event numbers and offsets.

What an event contributed to the reply tells its phase. Of the events that fit, one is chosen at
random, and one of its bytes where a fault may occur inside an event. Phases are strict:
`in-arguments` means that some arguments are still to come, `before-end` that all else has arrived.

All offsets are those of the plain body.
"""

import enum
import re
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property

from deltatape.diagnose.rebuild import Analysis, analyse
from deltatape.dialects import UNKNOWN
from deltatape.errors import UsageError
from deltatape.model.exchange import Exchange
from deltatape.mutate import MutationChoices
from deltatape.rules.event_contribution import ENDS, ContributionKind, EventContribution, brought
from deltatape.rules.progress import SilencePhase
from deltatape.vary.shape import event_end

_TEXTS = frozenset(
    {
        ContributionKind.TEXT,
        ContributionKind.REASONING,
        ContributionKind.REFUSAL,
        ContributionKind.UNKNOWN,
    }
)


# `at=` names an event, a byte, a time, or a phase as in D001: `before-first`, `in-text`,
# `in-arguments`, `after-call`, `before-end`.

_NUMBERED = re.compile(r"(event|byte):([0-9]{1,15})")
_DURATION = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(ms|s|m)")
_PHASES = {name: phase for phase in SilencePhase for name in (phase.value, phase.partition("-")[2])}
"""Also by their last word: `text`, `arguments`."""
_UNITS = {"ms": 1_000_000, "s": 1_000_000_000, "m": 60_000_000_000}


class PlaceKind(enum.Enum):
    """Kinds of places."""

    MIDDLE = "middle"
    """The middle event; the middle byte where there are no events."""
    EVENT = "event"
    """Before the event of this number, from 0."""
    BYTE = "byte"
    """After this many bytes of the plain body."""
    TIME = "time"
    """At the first byte that arrives this many nanoseconds after the request."""
    PHASE = "phase"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerPosition:
    """A place in an answer, as `at=` names it."""

    kind: PlaceKind = PlaceKind.MIDDLE
    number: int = 0
    phase: SilencePhase | None = None


MIDDLE = AnswerPosition()


def parse_where(text: str) -> AnswerPosition:
    """Parse `event:N`, `byte:N`, a time such as `1.5s`, or a phase: `in-arguments`, or `arguments`.

    Raises:
        UsageError: none of these.
    """
    if text in _PHASES:
        return AnswerPosition(kind=PlaceKind.PHASE, phase=_PHASES[text])
    match = _NUMBERED.fullmatch(text)
    if match:
        return AnswerPosition(kind=PlaceKind(match[1]), number=int(match[2]))
    if _DURATION.fullmatch(text):
        return AnswerPosition(kind=PlaceKind.TIME, number=parse_duration(text))
    raise UsageError(
        f"at={text!r}: invalid position; use event:N, byte:N, a time such as 1.5s, or a phase:"
        f" {', '.join(SilencePhase)}"
    )


def parse_duration(text: str) -> int:
    """Parse `500ms`, `1.5s` or `2m`; return nanoseconds.

    Raises:
        UsageError: none of these.
    """
    match = _DURATION.fullmatch(text)
    if match is None:
        raise UsageError(f"{text!r}: invalid duration; use 500ms, 30s or 2m")
    return round(float(match[1]) * _UNITS[match[2]])


class AnswerPositions:
    """Finds the places of one answer.

    Args:
        exchange: plain, or without a body.
        chance: chooses among the events that fit.
    """

    def __init__(self, exchange: Exchange, chance: MutationChoices) -> None:
        self._exchange = exchange
        self._chance = chance

    @cached_property
    def analysis(self) -> Analysis:
        """Return the analysis of the answer."""
        return analyse(self._exchange)

    @cached_property
    def spans(self) -> Sequence[tuple[int, int]]:
        """Return the span of each event, with its complete line end."""
        body = self._exchange.body
        spans = (event.place.span for event in self.analysis.stream.events)
        return [(start, event_end(body, end)) for start, end in spans]

    def choose(self, number: int) -> int:
        """Choose a number below `number`."""
        return self._chance.choose(number)

    def event(self, where: AnswerPosition) -> int | None:
        """Return the number of the event at a place; None if there is none."""
        if where.phase is not None:
            return self._choose_from(list(self._of_phase(where.phase)))
        size = len(self.spans)
        if where.kind is PlaceKind.EVENT:
            return where.number if where.number < size else None
        if where.kind is PlaceKind.MIDDLE:
            return size // 2 if size else None
        offset = self._byte(where)
        if offset is None:
            return None
        return next((number for number, span in enumerate(self.spans) if offset < span[1]), None)

    def border(self, where: AnswerPosition) -> int | None:
        """Return the offset of a place before an event or after the last one."""
        if where.phase is SilencePhase.BEFORE_FIRST:
            return 0
        if where.kind is PlaceKind.EVENT and where.number == len(self.spans) > 0:
            return self.spans[-1][1]
        number = self.event(where)
        if number is None:
            return None
        after = where.phase in (
            SilencePhase.IN_TEXT,
            SilencePhase.IN_ARGUMENTS,
        ) and not self._is_last(number)
        return self.spans[number][1 if after else 0]

    def offset(self, where: AnswerPosition) -> int | None:
        """Return the offset of a place; within text and arguments it may be inside an event."""
        if where.kind in (PlaceKind.BYTE, PlaceKind.TIME):
            return self._byte(where)
        if where.kind is PlaceKind.MIDDLE and len(self.spans) <= 1:
            return len(self._exchange.body) // 2 or None
        if where.phase not in (SilencePhase.IN_TEXT, SilencePhase.IN_ARGUMENTS):
            return self.border(where)
        number = self.event(where)
        if number is None:
            return None
        start, end = self.spans[number]
        if not self._is_last(number) and self.choose(2):
            return end
        return start + 1 + self.choose(max(end - start - 1, 1))

    def _byte(self, where: AnswerPosition) -> int | None:
        """Return the offset of a byte, or of the first that arrived at a time."""
        if where.kind is PlaceKind.BYTE:
            return where.number if where.number <= len(self._exchange.body) else None
        request = self._exchange.request
        due_ns = (request.t_end_ns or request.t_ns) + where.number
        start = 0
        for read in self._exchange.reads:
            if read.t_ns >= due_ns:
                return start
            start += len(read.data)
        return None

    def _is_last(self, number: int) -> bool:
        """Return whether an event is complete without the next: it ends its call or all."""
        contributions = self._contributions.get(number, ())
        calls = [each.call for each in contributions if each.call is not None]
        ends_call = any(call.fragments and call.fragments[-1].event == number for call in calls)
        return ends_call or number == len(self.spans) - 1

    @cached_property
    def _contributions(self) -> Mapping[int, tuple[EventContribution, ...]]:
        analysis = self.analysis
        known = analysis.reply.dialect != UNKNOWN
        return brought(analysis.reply, analysis.stream, known=known)

    def _of_phase(self, phase: SilencePhase) -> Iterator[int]:
        """Yield the events of a phase; `border` says whether the place is after or before them."""
        if phase is SilencePhase.BEFORE_FIRST:
            yield from range(len(self.spans))[:1]
        elif phase is SilencePhase.IN_TEXT:
            yield from self._bringing(_TEXTS)
        elif phase is SilencePhase.IN_ARGUMENTS:
            yield from self._bringing({ContributionKind.ARGUMENTS})
        elif phase is SilencePhase.AFTER_CALL:
            yield from self._after_calls()
        else:
            yield from self._first_of_end()

    def _bringing(self, wanted: AbstractSet[ContributionKind]) -> Iterator[int]:
        for number, contributions in sorted(self._contributions.items()):
            if any(each.what in wanted for each in contributions):
                yield number

    def _after_calls(self) -> Iterator[int]:
        """Yield the event after each call's last one, if that ends only the call."""
        for choice in self.analysis.reply.choices:
            for call in choice.tool_calls:
                last = call.fragments[-1].event if call.fragments else call.start_event
                ends = any(each.what in ENDS for each in self._contributions.get(last, ()))
                if not ends and last + 1 < len(self.spans):
                    yield last + 1

    def _first_of_end(self) -> Iterator[int]:
        """Yield the event that begins the end, if it contains nothing else."""
        content = [
            number
            for number, contributions in self._contributions.items()
            if any(each.what not in ENDS for each in contributions)
        ]
        after = max(content, default=-1)
        ends = [number for number in sorted(self._contributions) if number > after]
        yield from ends[:1]

    def _choose_from(self, found: Sequence[int]) -> int | None:
        return found[self.choose(len(found))] if found else None
