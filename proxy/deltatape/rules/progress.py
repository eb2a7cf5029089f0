"""The progress of an answer: events that contribute, and the times between them.

Keep-alives are no progress, although they reset a client's read timeout. A time in which the
recorder itself wrote nothing does not count as silence: it was not watched.
"""

import enum
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import NamedTuple

from deltatape.model.exchange import Exchange
from deltatape.model.reply import CallStatus, ToolCall
from deltatape.model.stream import Event
from deltatape.rules.context import NS, RuleContext
from deltatape.rules.event_contribution import ENDS, ContributionKind, EventContribution
from deltatape.rules.loss import unwatched_ns

_WHOLE = frozenset({CallStatus.COMPLETE, CallStatus.EMPTY_OK})


class SilencePhase(enum.StrEnum):
    """The part of an answer in which a silence lies."""

    BEFORE_FIRST = "before-first"
    IN_TEXT = "in-text"
    IN_ARGUMENTS = "in-arguments"
    AFTER_CALL = "after-call"
    BEFORE_END = "before-end"


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence:
    """A time without progress. `after` is the last event that contributed something.

    `idle_events` and `comments` came in between, and for `quiet_ns` at most nothing at all; `open`
    says that it lasted until the end of the exchange or of the watching. During `unwatched_ns` of
    it the recorder wrote no record.
    """

    phase: SilencePhase
    start_ns: int
    end_ns: int
    after: Event | None
    call: ToolCall | None
    idle_events: int
    comments: int
    quiet_ns: int
    unwatched_ns: int
    open: bool

    @property
    def watched_ns(self) -> int:
        """Return how much of it was watched, in nanoseconds."""
        return self.end_ns - self.start_ns - self.unwatched_ns


def silences(context: RuleContext, least_ns: int) -> Iterator[Silence]:
    """Yield the times without progress of at least `least_ns`, in order.

    The first begins when the request had left.
    """
    exchange = context.exchange
    start_ns = exchange.sent.t_ns if exchange.sent else exchange.request.t_ns
    last_ns = watched_until(exchange)
    if last_ns - start_ns < least_ns:
        return
    after: Event | None = None
    idle: list[int] = []
    brought = context.brought
    for event in context.stream.events:
        if event.number not in brought:
            idle.append(event.t_ns)
            continue
        if event.t_ns - start_ns >= least_ns:
            yield _silence(context, start_ns, event.t_ns, after, idle)
        after, start_ns, idle = event, event.t_ns, []
    if last_ns - start_ns >= least_ns:
        yield _silence(context, start_ns, last_ns, after, idle, last=True)


def silence_after_result(context: RuleContext) -> Silence | None:
    """Return the unbroken silence after a request with tool results, which D004 reports."""
    history, exchange = context.request.history, context.exchange
    if not exchange.timed or not history or history[-1].call_id is None:
        return None
    for silence in silences(context, int(context.settings.after_result_s * NS)):
        if silence.open and silence.phase is SilencePhase.BEFORE_FIRST:
            return silence
    return None


def not_watched(silence: Silence) -> str:
    """Return a clause about a silence that was not watched all the time; "" if it was."""
    if not silence.unwatched_ns:
        return ""
    return f", and the recorder wrote nothing for {silence.unwatched_ns / NS:.1f} s of it"


NOT_WATCHED = (
    "the recorder wrote nothing during this time, so it may have been paused or waiting"
    " for its disk: find out why, and record again"
)
"""The hint where most of a silence was not watched."""


def watched_until(exchange: Exchange) -> int:
    """Return the last moment for which the tape has information on this exchange.

    Any record shows that the recorder watched, those of other exchanges, too.
    """
    if exchange.end:
        return exchange.end.t_ns
    known = [exchange.request.t_ns, *exchange.idle_ns, *(read.t_ns for read in exchange.reads)]
    known += [piece.t_ns for piece in exchange.frames[-1:]]
    known += [exchange.stopped_ns] if exchange.stopped_ns is not None else []
    known += [exchange.watch.until_ns] if exchange.watch else []
    return max(known)


def _silence(
    context: RuleContext,
    start_ns: int,
    end_ns: int,
    after: Event | None,
    idle: Sequence[int],
    *,
    last: bool = False,
) -> Silence:
    things = context.brought
    phase, call = _phase(things, after, _last_content(things))
    comments = [each.place.t_ns for each in context.stream.comments]
    comments = [t_ns for t_ns in comments if start_ns < t_ns <= end_ns]
    signs = sorted((start_ns, *comments, *idle, end_ns))
    return Silence(
        phase=phase,
        start_ns=start_ns,
        end_ns=end_ns,
        after=after,
        call=call,
        idle_events=len(idle),
        comments=len(comments),
        quiet_ns=max(later - sooner for sooner, later in pairwise(signs)),
        unwatched_ns=unwatched_ns(context.exchange, start_ns, end_ns),
        open=last,
    )


def _last_content(things: Mapping[int, tuple[EventContribution, ...]]) -> int:
    """Return the number of the last event that brings more than an end; -1 if there is none."""
    more = (
        number for number, brought in things.items() if any(b.what not in ENDS for b in brought)
    )
    return max(more, default=-1)


def _phase(
    things: Mapping[int, tuple[EventContribution, ...]], after: Event | None, last_content: int
) -> tuple[SilencePhase, ToolCall | None]:
    """Return the part of an answer that follows an event, and the call that it is about.

    Args:
        things: what each event brings.
        after: the last event that brought something.
        last_content: the number of the last one that brings more than an end.
    """
    if after is None:
        return SilencePhase.BEFORE_FIRST, None
    brought = things.get(after.number, ())
    # Each of several choices ends for itself, and some providers say "stop" in every event.
    if after.number >= last_content and any(one.what in ENDS for one in brought):
        return SilencePhase.BEFORE_END, None
    call = next((one.call for one in reversed(brought) if one.call), None)
    if call is None:
        ran = any(one.what is ContributionKind.RESULT for one in brought)
        return (SilencePhase.AFTER_CALL if ran else SilencePhase.IN_TEXT), None
    last = call.fragments[-1].event if call.fragments else call.start_event
    ended = after.number == last and call.status in _WHOLE
    return (SilencePhase.AFTER_CALL if ended else SilencePhase.IN_ARGUMENTS), call


class AnswerPhase(NamedTuple):
    """A part of an answer: from an event that contributes to the next, or several alike."""

    phase: SilencePhase
    start_ns: int
    end_ns: int


def phases(context: RuleContext) -> Iterator[AnswerPhase]:
    """Yield the parts of an answer, in order, without gaps: neighbours are of different phases.

    The first begins when the request had left; the last ends with the exchange.
    """
    exchange, things = context.exchange, context.brought
    last_content = _last_content(things)
    begun_ns = exchange.sent.t_ns if exchange.sent else exchange.request.t_ns
    phase = SilencePhase.BEFORE_FIRST
    for event in context.stream.events:
        if event.number in things:
            following, _ = _phase(things, event, last_content)
            if following is not phase:
                yield AnswerPhase(phase, begun_ns, event.t_ns)
                phase, begun_ns = following, event.t_ns
    yield AnswerPhase(phase, begun_ns, max(begun_ns, watched_until(exchange)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientLag:
    """A client that took byte number `offset` at `end_ns`, available since `start_ns`."""

    start_ns: int
    end_ns: int
    offset: int
    line: int | None
    """The tape line of the read that brought it."""


def lags(exchange: Exchange) -> tuple[ClientLag, ...]:
    """Return one lag per delivery record, in order."""
    if not exchange.delivered:
        return ()
    sizes = list(accumulate(len(read.data) for read in exchange.reads))
    found = []
    for each in exchange.delivered:
        at = bisect_left(sizes, max(1, each.bytes))
        if at < len(sizes):
            read = exchange.reads[at]
            lag = ClientLag(start_ns=read.t_ns, end_ns=each.t_ns, offset=each.bytes, line=read.line)
            found.append(lag)
    return tuple(found)
