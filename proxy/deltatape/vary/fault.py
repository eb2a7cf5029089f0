"""`--fault`: deliberate faults, as `KIND[=VALUE][,OPTION=VALUE]...`.

    stall[=DURATION]   nothing arrives any more, or not for this long
    drip[=DURATION]    the rest arrives in small pieces (bytes=N each), this far apart
    cut                the connection is closed before the answer is complete
    reset              the connection is reset
    end                the answer ends there as if it were complete
    error-event        an error in the form of the dialect arrives, and nothing after it
    status=CODE        an error response of the provider instead; with retry-after=SECONDS,
                       header=NAME:VALUE; with html, a gateway's error page
    drop               an event is missing
    duplicate          an event arrives twice
    reorder            an event arrives after the one that follows it
    corrupt            an event is damaged

`at=` says where, `times=N` in how many answers, `exchange=N` in which.

An event's contribution to the reply tells its phase. Of the events that fit, one is chosen at
random, and one of its bytes where a fault may occur inside an event. Phases are strict:
`in-arguments` means that some arguments are still to come, `before-end` that all else has arrived.
All offsets are those of the plain body.
"""

import enum
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate

from deltatape.diagnose.rebuild import Analysis, analyse
from deltatape.dialects import OVERLOADED, UNKNOWN
from deltatape.errors import UsageError
from deltatape.model.exchange import EndReason, Exchange, Headers, Read
from deltatape.model.stream import Format
from deltatape.mutate import MutableEvent, MutableExchange, MutationChoices, SeededChoices
from deltatape.rules.event_contribution import ENDS, ContributionKind, EventContribution, brought
from deltatape.rules.progress import SilencePhase
from deltatape.vary.coded_bodies import plain, recoded
from deltatape.vary.failures import ProviderFailure, answered, error_event
from deltatape.vary.shape import delayed, event_end, is_chunked, recut, refitted, truncated

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
"""They can be abbreviated: `text`, `arguments`."""
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
        """Return whether nothing is pending after an event: it ends its call or the answer."""
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
            yield from self._contributing_events(_TEXTS)
        elif phase is SilencePhase.IN_ARGUMENTS:
            yield from self._contributing_events({ContributionKind.ARGUMENTS})
        elif phase is SilencePhase.AFTER_CALL:
            yield from self._after_calls()
        else:
            yield from self._first_of_end()

    def _contributing_events(self, wanted: AbstractSet[ContributionKind]) -> Iterator[int]:
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


# Faults.

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_STATUS = re.compile(r"[45][0-9]{2}")
_SECONDS = re.compile(r"[0-9]{1,9}(\.[0-9]{1,3})?")
_COUNT = re.compile(r"[1-9][0-9]{0,8}")
_DRIP_BYTES = 16
_DRIP_NS = 100_000_000
_OVERLOADED = ProviderFailure(status=OVERLOADED)


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectedFault:
    """A deliberate fault.

    Attributes:
        text: as the user wrote it.
        kind: see the head of this module.
        where: where in the answer.
        times: in how many answers; None: in every one.
        exchange: the number, on its tape, of the only exchange; None: any.
        wait_ns: how long a stall lasts (None: for ever), how far apart drips are.
        size: bytes of a drip.
        failure: the error of the provider.
    """

    text: str
    kind: str
    where: AnswerPosition = MIDDLE
    times: int | None = None
    exchange: int | None = None
    wait_ns: int | None = None
    size: int = _DRIP_BYTES
    failure: ProviderFailure = _OVERLOADED

    @property
    def ends_early(self) -> bool:
        """Return whether the client gets no complete answer, so that a retry is expected."""
        return self.kind in _ENDING or (self.kind == "stall" and self.wait_ns is None)

    def at_recorded_byte(self, recorded: Exchange) -> "InjectedFault":
        """Return the fault with its time, if it has one, replaced by the byte that arrived then.

        At another speed that byte is played at another time.
        """
        bare = plain(recorded) if self.where.kind is PlaceKind.TIME else None
        if bare is None:
            return self
        offset = AnswerPositions(bare, SeededChoices(0)).offset(self.where)
        size = len(bare.body)
        # A time after the end has no byte, whatever the speed.
        number = size + 1 if offset is None else offset
        return replace(self, where=AnswerPosition(kind=PlaceKind.BYTE, number=number))

    def applied(self, exchange: Exchange, chance: MutationChoices) -> Exchange | None:
        """Return `exchange` with the fault; None if it has no place for it.

        Args:
            exchange: any.
            chance: chooses where there is a choice.
        """
        bare = plain(exchange)
        if self.kind == "status":
            positions = AnswerPositions(bare or replace(exchange, reads=()), chance)
            return answered(exchange, positions.analysis.reply.dialect, self.failure)
        if bare is None:
            return None
        failed = _EFFECTS[self.kind](self, bare, AnswerPositions(bare, chance))
        return None if failed is None else recoded(failed, exchange)


# The effect of each fault on a plain exchange; None if the fault has no place in it.

_Effect = Callable[[InjectedFault, Exchange, AnswerPositions], Exchange | None]


def _end(reason: EndReason) -> _Effect:
    """Return the effect that ends the answer for `reason`; a complete answer is no fault."""

    def effect(fault: InjectedFault, bare: Exchange, positions: AnswerPositions) -> Exchange | None:
        offset = positions.offset(fault.where)
        if offset is None or (offset >= len(bare.body) and reason is EndReason.COMPLETE):
            return None
        return truncated(bare, offset, reason)

    return effect


def _stall(fault: InjectedFault, bare: Exchange, positions: AnswerPositions) -> Exchange | None:
    offset = positions.offset(fault.where)
    if offset is None:
        return None
    if fault.wait_ns is None:
        return truncated(bare, offset, EndReason.STOPPED)
    return delayed(bare, offset, fault.wait_ns)


def _drip(fault: InjectedFault, bare: Exchange, positions: AnswerPositions) -> Exchange | None:
    wait_ns = _DRIP_NS if fault.wait_ns is None else fault.wait_ns
    offset, size = positions.offset(fault.where), len(bare.body)
    if offset is None or offset >= size:
        return None
    read_ends = accumulate(len(read.data) for read in bare.reads)
    kept = (end for end in read_ends if end <= offset)
    pieces = recut(bare, [*kept, *range(offset, size, fault.size)])
    start, t_ns, reads = 0, 0, []
    for read in pieces.reads:
        t_ns = max(read.t_ns, t_ns + wait_ns) if start > offset else read.t_ns
        reads.append(read._replace(t_ns=t_ns))
        start += len(read.data)
    return refitted(pieces, reads)


def _send_error(
    fault: InjectedFault, bare: Exchange, positions: AnswerPositions
) -> Exchange | None:
    """Send an error event between two events, and nothing after it."""
    offset = positions.border(fault.where)
    form = positions.analysis.stream.format
    if offset is None or form in (Format.JSON, Format.OTHER):
        return None
    data = error_event(positions.analysis.reply.dialect, form, fault.failure)
    before = bare.body[:offset]
    if form is Format.JSON_ARRAY:
        opening = b"" if before.strip() else b"["
        separator = b"," if before.rstrip().endswith((b"}", b"]")) else b""
        data = opening + separator + data + b"]"
    kept = truncated(bare, offset, EndReason.COMPLETE)
    t_ns = kept.end.t_ns if kept.end else 0
    bounds = (len(data),) if is_chunked(bare) else None
    read = Read(t_ns=t_ns, data=data, boundaries=bounds, line=None)
    return refitted(kept, (*kept.reads, read), t_ns=t_ns)


def _on_event(change: Callable[[MutableExchange, MutableEvent, AnswerPositions], None]) -> _Effect:
    """Return the effect that changes the event at the place of the fault."""

    def effect(fault: InjectedFault, bare: Exchange, positions: AnswerPositions) -> Exchange | None:
        number, draft = positions.event(fault.where), MutableExchange.of(bare)
        if number is None or draft is None:
            return None
        start = positions.spans[number][0]
        unit = next((unit for unit in draft.units if unit.start == start), None)
        if unit is None:
            return None
        change(draft, unit, positions)
        return draft.result()

    return effect


@_on_event
def _drop(_draft: MutableExchange, unit: MutableEvent, _: AnswerPositions) -> None:
    unit.removed = True


@_on_event
def _duplicate(draft: MutableExchange, unit: MutableEvent, _: AnswerPositions) -> None:
    draft.add_after(unit, unit.like())


@_on_event
def _reorder(draft: MutableExchange, unit: MutableEvent, _: AnswerPositions) -> None:
    """Swap an event with the next one, if there is one."""
    following = draft.units[draft.units.index(unit) + 1 :]
    if following:
        draft.add_after(following[0], unit.like())
        unit.removed = True


@_on_event
def _corrupt(draft: MutableExchange, unit: MutableEvent, positions: AnswerPositions) -> None:
    """Replace a byte of the data by NUL: invalid JSON, wrong checksums."""
    start, end = unit.data_span
    if unit.start is not None and start < end:
        offset = unit.start + start + positions.choose(end - start)
        draft.edit(offset, offset + 1, b"\0")


_EFFECTS: Mapping[str, _Effect] = {
    "stall": _stall,
    "drip": _drip,
    "cut": _end(EndReason.UPSTREAM_CLOSED),
    "reset": _end(EndReason.UPSTREAM_RESET),
    "end": _end(EndReason.COMPLETE),
    "error-event": _send_error,
    "drop": _drop,
    "duplicate": _duplicate,
    "reorder": _reorder,
    "corrupt": _corrupt,
}
FAULTS = ("status", *_EFFECTS)
"""The kinds of faults."""
_ENDING = frozenset({"status", "cut", "reset", "end", "error-event"})
_VALUED = frozenset({"status", "stall", "drip", "error-event"})


def parse_fault(text: str) -> InjectedFault:
    """Parse `KIND[=VALUE][,OPTION=VALUE]...`.

    Raises:
        UsageError: it is none, or an option does not fit its kind.
    """
    first, *options = text.split(",")
    kind, given, value = first.partition("=")
    if kind not in FAULTS:
        raise _bad(text, f"unknown fault {kind!r}; use one of {', '.join(FAULTS)}")
    fault = InjectedFault(text=text, kind=kind)
    if given and kind not in _VALUED:
        raise _bad(text, f"{kind} takes no value")
    if given or kind == "status":
        fault = _valued(fault, value)
    names = [option.partition("=")[0] for option in options]
    for option in options:
        name, _, value = option.partition("=")
        take = OPTIONS.get(name)
        if take is None:
            raise _bad(text, f"unknown option {name!r}; use one of {', '.join(OPTIONS)}")
        if name != "header" and names.count(name) > 1:
            raise _bad(text, f"{name} is given more than once; use another --fault for the second")
        fault = take(fault, value)
    return fault


def _bad(text: str, problem: str) -> UsageError:
    return UsageError(f"--fault {text!r}: {problem}")


def _valued(fault: InjectedFault, value: str) -> InjectedFault:
    """Parse the value after the `=` of a kind."""
    if fault.kind in ("status", "error-event"):
        if not _STATUS.fullmatch(value):
            example = f"{fault.kind}=429"
            raise _bad(fault.text, f"invalid status {value!r}; use 400 to 599, as in {example}")
        return replace(fault, failure=replace(fault.failure, status=int(value)))
    return replace(fault, wait_ns=_duration(fault, value))


def _duration(fault: InjectedFault, value: str) -> int:
    try:
        return parse_duration(value)
    except UsageError as error:
        raise _bad(fault.text, str(error)) from None


def _at(fault: InjectedFault, value: str) -> InjectedFault:
    if fault.kind == "status":
        raise _bad(fault.text, "status replaces the whole response and takes no at=")
    try:
        return replace(fault, where=parse_where(value))
    except UsageError as error:
        raise _bad(fault.text, str(error)) from None


def _number(fault: InjectedFault, name: str, value: str) -> int:
    if not _COUNT.fullmatch(value):
        raise _bad(fault.text, f"{name}={value!r}: not a whole number of at least 1")
    return int(value)


def _times(fault: InjectedFault, value: str) -> InjectedFault:
    return replace(fault, times=_number(fault, "times", value))


def _exchange(fault: InjectedFault, value: str) -> InjectedFault:
    return replace(fault, exchange=_number(fault, "exchange", value))


def _bytes(fault: InjectedFault, value: str) -> InjectedFault:
    if fault.kind != "drip":
        raise _bad(fault.text, "only drip takes bytes=, the size of each piece")
    return replace(fault, size=_number(fault, "bytes", value))


def _retry_after(fault: InjectedFault, value: str) -> InjectedFault:
    if not _SECONDS.fullmatch(value):
        raise _bad(
            fault.text,
            f"retry-after={value!r}: not a number of seconds; for other values use"
            " header=retry-after:...",
        )
    return _header(fault, f"retry-after:{value}")


def _html(fault: InjectedFault, value: str) -> InjectedFault:
    if fault.kind != "status" or value:
        raise _bad(
            fault.text,
            "html takes no value and goes only with status: the error body becomes an HTML page",
        )
    return replace(fault, failure=replace(fault.failure, html=True))


def _header(fault: InjectedFault, value: str) -> InjectedFault:
    name, _, content = value.partition(":")
    if fault.kind != "status":
        raise _bad(fault.text, "only status takes header= and retry-after=")
    if not _TOKEN.fullmatch(name) or not content.isascii() or not content.isprintable():
        raise _bad(fault.text, f"header={value!r}: not a header field such as retry-after:2")
    pair = (name.encode(), content.strip().encode())
    headers: Headers = (*fault.failure.headers, pair)
    return replace(fault, failure=replace(fault.failure, headers=headers))


OPTIONS: Mapping[str, Callable[[InjectedFault, str], InjectedFault]] = {
    "at": _at,
    "times": _times,
    "exchange": _exchange,
    "bytes": _bytes,
    "retry-after": _retry_after,
    "header": _header,
    "html": _html,
}
"""The parser of each option."""
