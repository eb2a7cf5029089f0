"""Everything that happened in an exchange, as lines on one time axis.

Neighbouring events of the same kind are one entry, so that a stream of a thousand deltas is a line;
a silence of a second or more is an entry of its own.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import NamedTuple

from deltatape.diagnose.check import context_of
from deltatape.diagnose.rebuild import Analysis
from deltatape.dialects import UNKNOWN
from deltatape.model.exchange import EndReason, Exchange, Tap
from deltatape.model.explanation import (
    AxisPhase,
    CallPlace,
    DeadZone,
    EventSource,
    TimeAxis,
    TimelineEntry,
)
from deltatape.model.finding import Finding
from deltatape.model.reply import NOT_OURS, Choice, ToolCall
from deltatape.model.request_summary import NOTHING_ASKED, RequestSummary
from deltatape.model.rule_settings import DEFAULTS, Settings
from deltatape.model.stream import Event
from deltatape.printable import count
from deltatape.rules.context import NS, RuleContext
from deltatape.rules.event_contribution import ContributionKind, EventContribution, brought
from deltatape.rules.progress import lags, phases, watched_until
from deltatape.rules.stalls import SILENCE_NS, dead_zones

_SLOW_NS = 200_000_000
"""A way to the upstream, or a lag of the client, that is worth a line."""
_OF_SILENCE = ("D001", "D004")
_PRINTED = ("C009",)
_WITHOUT_END = ("S001",)
_OF_WIRE = frozenset({EventSource.WIRE, EventSource.RECORDER})
_KNOWN = 20
"""How many characters identify a printed line."""
_OF_ENDING = ("W006",)
"""Codes of findings whose place is an entry of that kind: `_entry_of` takes them off again."""

ENDINGS = {
    EndReason.COMPLETE: "the transfer ended normally",
    EndReason.UPSTREAM_CLOSED: "the upstream closed the connection early",
    EndReason.UPSTREAM_RESET: "the connection was reset by the upstream",
    EndReason.CLIENT_CLOSED: "the client closed the connection",
    EndReason.TIMEOUT: "the recorder gave up waiting",
    EndReason.REFUSED: "no connection to the upstream",
    EndReason.STOPPED: "the recorder was stopped",
}


def ending_of(exchange: Exchange) -> str:
    """Describe how the transport ended."""
    if exchange.end:
        detail = f" ({exchange.end.detail})" if exchange.end.detail else ""
        return f"{ENDINGS[exchange.end.reason]}{detail}"
    if exchange.open:
        return "still going on when the tape was read"
    if exchange.timed:
        return "the tape breaks off here: the recorder died"
    return "how it ended was not recorded"


def timeline(
    analysis: Analysis, findings: Sequence[Finding], context: Iterable[TimelineEntry] = ()
) -> tuple[TimelineEntry, ...]:
    """Return what happened, in order, with the codes of `findings`.

    Args:
        analysis: the analysis of the exchange.
        findings: the findings on it.
        context: what happened around it; its `codes` are those of findings that have their place
            there, if they are found.
    """
    entries = sorted([*_entries(analysis), *context], key=lambda entry: entry.t_ns or 0)
    marks: dict[int, list[str]] = {}
    for finding in findings:
        place = _entry_of(finding, entries)
        if place is not None:
            marks.setdefault(place, []).append(finding.code)
    has_times = analysis.exchange.has_times
    return tuple(
        replace(
            entry,
            t_ns=entry.t_ns if has_times else None,
            codes=tuple(dict.fromkeys(marks.get(place, ()))),
        )
        for place, entry in enumerate(entries)
    )


def is_printed(finding: Finding) -> bool:
    """Check whether a finding is about a log line."""
    return finding.code in _PRINTED and finding.line is None and finding.t_ns is not None


def _entry_of(finding: Finding, entries: Sequence[TimelineEntry]) -> int | None:
    """Return the index of the entry that `finding` is about."""
    for place, entry in enumerate(entries):
        elsewhere = finding.code in _OF_SILENCE and finding.t_ns not in (None, entry.t_ns)
        if finding.code in entry.codes and not elsewhere:
            return place
    if is_printed(finding):
        then = (at for at, entry in enumerate(entries) if entry.t_ns == finding.t_ns)
        logged = [at for at in then if entries[at].source is EventSource.LOG]
        start = finding.evidence[:_KNOWN]
        return next((at for at in logged if start in entries[at].what), next(iter(logged), None))
    if finding.event is None:
        return _wire_entry_at(finding, entries)
    places = [
        place
        for place, entry in enumerate(entries)
        if entry.event is not None and entry.event <= finding.event
    ]
    return places[-1] if places else None


def _wire_entry_at(finding: Finding, entries: Sequence[TimelineEntry]) -> int | None:
    """Return the last wire entry at that time, such as an error's status line.

    Where an end is missing in a stream without events, it is the entry about the transport's end.
    """
    if finding.code in _WITHOUT_END:
        places = [place for place, entry in enumerate(entries) if entry.codes == _OF_ENDING]
    else:
        places = [
            place
            for place, entry in enumerate(entries)
            if entry.exchange == finding.exchange
            and finding.t_ns is not None
            and entry.t_ns == finding.t_ns
            and entry.source in _OF_WIRE
        ]
    return places[-1] if places else None


def _entries(analysis: Analysis) -> Iterator[TimelineEntry]:
    exchange = analysis.exchange
    number, head, sent = exchange.number, exchange.response, exchange.sent
    start_ns = exchange.request.t_ns
    asked = NOTHING_ASKED if analysis.turns else analysis.request
    yield timeline_entry(number, start_ns, EventSource.APP, _request_line(asked, exchange))
    for turn in analysis.turns:
        what = _request_line(turn.request, turn.exchange)
        yield timeline_entry(number, turn.exchange.request.t_ns, EventSource.APP, what)
    if sent and sent.t_ns - start_ns >= _SLOW_NS:
        how = f"connected in {sent.connect_ns / NS:.2f} s, TLS in {sent.tls_ns / NS:.2f} s"
        if sent.reused:
            how = "on a connection used before"
        took = f"sent upstream {(sent.t_ns - start_ns) / NS:.2f} s after it came, {how}"
        yield timeline_entry(number, sent.t_ns, EventSource.RECORDER, took)
    if head:
        reason = f" {head.reason.decode('latin-1')}" if head.reason else ""
        came = f"status {head.status}{reason}"
        yield timeline_entry(number, _head_ns(exchange), EventSource.WIRE, came)
    yield from _events(analysis, sent.t_ns if sent else start_ns)
    yield from _lag(exchange)
    for note in exchange.notes:
        yield timeline_entry(number, note.t_ns, EventSource.RECORDER, note.text)
    if exchange.timed:
        yield timeline_entry(
            number,
            watched_until(exchange),
            EventSource.RECORDER,
            ending_of(exchange),
            codes=_OF_ENDING,
        )


def _head_ns(exchange: Exchange) -> int | None:
    """Return when the head of the response came; None: unknown, as in most imported files."""
    head = exchange.response
    return head.t_ns if head and (exchange.timed or head.t_ns) else None


def timeline_entry(
    exchange: int,
    t_ns: int | None,
    source: EventSource,
    what: str,
    event: int | None = None,
    codes: tuple[str, ...] = (),
) -> TimelineEntry:
    """Return an entry; `what` is not escaped."""
    return TimelineEntry(
        t_ns=t_ns, exchange=exchange, event=event, what=what, source=source, codes=codes
    )


def _lag(exchange: Exchange) -> Iterator[TimelineEntry]:
    """Yield when a slow client took bytes that had arrived long before."""
    slow = [lag for lag in lags(exchange) if lag.end_ns - lag.start_ns >= _SLOW_NS]
    if not slow:
        return
    worst = max(slow, key=lambda lag: lag.end_ns - lag.start_ns)
    late = (worst.end_ns - worst.start_ns) / NS
    more = f"; {count(len(slow) - 1, 'smaller lag')}" if len(slow) > 1 else ""
    what = f"the client took byte {worst.offset} only now, {late:.1f} s after it came{more}"
    yield timeline_entry(exchange.number, worst.end_ns, EventSource.RECORDER, what)


def _request_line(asked: RequestSummary, exchange: Exchange) -> str:
    """Describe a request in one line."""
    if exchange.tap is Tap.APP:
        return f"app endpoint: {exchange.request.method} {exchange.request.path}"
    if not asked.known and not exchange.timed:
        return "the request was not recorded"
    if not asked.known:
        return f"{exchange.request.method} {exchange.request.path}"
    form = "a stream" if asked.stream else "an answer"
    parts = [
        f"requests {form} from {asked.model or 'the model'}: {count(len(asked.history), 'message')}"
    ]
    if asked.tools:
        choice = f", tool choice {asked.tool_choice}" if asked.tool_choice else ""
        parts.append(f"{count(len(asked.tools), 'tool')}{choice}")
    return ", ".join(parts)


def _events(analysis: Analysis, last_ns: int) -> Iterator[TimelineEntry]:
    exchange, number = analysis.exchange, analysis.exchange.number
    contributions = contributions_of(analysis)
    with_kinds = _with_kinds(analysis.stream.events, contributions)
    asked = [turn.exchange.request.t_ns for turn in analysis.turns]
    for kind, group in groupby(with_kinds, key=lambda pair: pair[0]):
        for run in _runs([event for _, event in group]):
            first_ns = run[0].t_ns
            last_ns = max(last_ns, *(t_ns for t_ns in asked if t_ns <= first_ns), 0)
            if first_ns - last_ns >= SILENCE_NS and not exchange.reported:
                yield _silence(analysis, last_ns, first_ns)
            last_ns = run[-1].t_ns
            yield timeline_entry(
                number,
                first_ns,
                EventSource.WIRE,
                f"{_describe(kind, run, contributions)}{_duration(run)}",
                run[0].number,
            )
    end_ns = watched_until(exchange) if exchange.timed else last_ns
    if end_ns - last_ns >= SILENCE_NS:
        yield _silence(analysis, last_ns, end_ns)


def _runs(events: Sequence[Event]) -> Iterator[list[Event]]:
    """Split `events` at silences."""
    run = [events[0]]
    for event in events[1:]:
        if event.t_ns - run[-1].t_ns >= SILENCE_NS:
            yield run
            run = []
        run.append(event)
    yield run


def _silence(analysis: Analysis, start_ns: int, end_ns: int) -> TimelineEntry:
    comments = sum(start_ns < each.place.t_ns <= end_ns for each in analysis.stream.comments)
    noise = f", {count(comments, 'keep-alive comment')}" if comments else ""
    watched = sum(start_ns < at <= end_ns for at in analysis.exchange.idle_ns)
    proof = f", watched ({count(watched, 'idle record')})" if watched else ""
    what = f"silence for {(end_ns - start_ns) / NS:.1f} s{noise}{proof}"
    return timeline_entry(
        analysis.exchange.number, start_ns, EventSource.RECORDER, what, codes=_OF_SILENCE
    )


def _duration(run: Sequence[Event]) -> str:
    spread = (run[-1].t_ns - run[0].t_ns) / NS
    return f" over {spread:.2f} s" if spread >= 0.01 else ""  # noqa: PLR2004 - two decimals


# What the events of a reply contribute: one by one, or in runs of one kind.

_SHOWN = 60
_RUNS = frozenset(
    {
        ContributionKind.TEXT,
        ContributionKind.REASONING,
        ContributionKind.REFUSAL,
        ContributionKind.ARGUMENTS,
    }
)
"""Content whose events are summarised in one entry."""


class _EventKind(NamedTuple):
    """The common properties of the events of one entry."""

    name: str
    description: str = ""
    """The text of an event that has its own entry."""


_EMPTY = _EventKind("empty")
_ARGUMENTS = _EventKind("arguments")


def contributions_of(analysis: Analysis) -> Mapping[int, tuple[EventContribution, ...]]:
    """Map the numbers of events to what they contribute, also on a WebSocket."""
    reply = analysis.reply
    if analysis.turns:
        return {
            turn.numbers[number]: brought_by
            for turn in analysis.turns
            for number, brought_by in brought(turn.reply, turn.stream, known=True).items()
        }
    return brought(reply, analysis.stream, known=reply.dialect != UNKNOWN)


def numbered_choices(analysis: Analysis) -> Iterator[tuple[Choice, Sequence[int]]]:
    """Yield the choices of a reply, each with the numbers that its events have in the exchange."""
    known = analysis.numbers or tuple(range(len(analysis.stream.events)))
    replies = [(turn.numbers, turn.reply) for turn in analysis.turns] or [(known, analysis.reply)]
    numbers = [known for known, reply in replies for _ in reply.choices]
    return zip(analysis.reply.choices, numbers, strict=True)


def call_places(analysis: Analysis) -> Iterator[CallPlace]:
    """Yield the calls of a reply with their places, choice by choice."""
    for choice, numbers in numbered_choices(analysis):
        for call in choice.tool_calls:
            yield CallPlace("calls", choice.index, call, numbers)
        for call in choice.server_calls:
            yield CallPlace("server_calls", choice.index, call, numbers)
        for written in choice.text_calls:
            yield CallPlace("text_calls", choice.index, written.call, numbers, written)


def label(call: ToolCall) -> str:
    """Return a call's label: `call 0`, `server call 1`."""
    return f"server call {call.index}" if call.kind in NOT_OURS else f"call {call.index}"


def identity(call: ToolCall) -> str:
    """Return a call's name and id: `get (c1)`."""
    return f"{call.name or 'no name'} ({call.id or 'no id'})"


def _terminal(event: Event) -> str:
    """Describe the terminal signal: a sentinel by its text, a JSON event by its type."""
    is_json = event.data.lstrip().startswith("{")
    return "the terminal event" if is_json else event.data


def _with_kinds(
    events: Sequence[Event], contributions: Mapping[int, tuple[EventContribution, ...]]
) -> Iterator[tuple[_EventKind, Event]]:
    """Yield each event with its kind; an empty event inside a run joins the run."""
    before = _EMPTY
    for event in events:
        kind = _kind(event, contributions.get(event.number, ()))
        if kind == _EMPTY and before.name in _RUNS:
            kind = before
        yield kind, event
        before = kind


def _kind(event: Event, contributions: Sequence[EventContribution]) -> _EventKind:
    by_what = {each.what: each for each in contributions}
    call = next((each.call for each in contributions if each.what is ContributionKind.OPEN), None)
    if call:
        size = sum(
            len(each.text) for each in contributions if each.what is ContributionKind.ARGUMENTS
        )
        shown = f", with {size} characters of arguments" if size else ""
        return _EventKind("open", f"{label(call)} opens: {identity(call)}{shown}")
    if ContributionKind.ARGUMENTS in by_what:
        return _ARGUMENTS
    if ContributionKind.FINISH in by_what:
        return _EventKind("finish", f"ends: {by_what[ContributionKind.FINISH].text[:_SHOWN]}")
    if ContributionKind.END in by_what:
        return _EventKind("sentinel", _terminal(event)[:_SHOWN])
    if ContributionKind.UNKNOWN in by_what:
        return _EventKind("data")
    return _EventKind(next(iter(by_what))) if by_what else _EMPTY


def _describe(
    kind: _EventKind,
    run: Sequence[Event],
    contributions: Mapping[int, tuple[EventContribution, ...]],
) -> str:
    """Describe a run of events of one kind."""
    if kind.description:
        return kind.description
    events = count(len(run), "event")
    if kind == _EMPTY:
        return f"{events} without content"
    if kind != _ARGUMENTS:
        return f"{kind.name}: {events}"
    calls = {
        label(each.call)
        for event in run
        for each in contributions.get(event.number, ())
        if each.call
    }
    mixed = ", interleaved" if len(calls) > 1 else ""
    return f"{' and '.join(sorted(calls))} arguments{mixed}: {events}"


def news(
    analysis: Analysis, contributions: Mapping[int, tuple[EventContribution, ...]] | None = None
) -> tuple[str, ...]:
    """Describe what each event adds, such as `text: 'Hel'`; not escaped.

    Args:
        analysis: the analysis of the exchange.
        contributions: `contributions_of` it, if they are known.
    """
    contributions = contributions_of(analysis) if contributions is None else contributions
    return tuple(
        _news_of(event, contributions.get(event.number, ())) for event in analysis.stream.events
    )


def _news_of(event: Event, contributions: Sequence[EventContribution]) -> str:
    if not contributions:
        return f"nothing new: {event.data}"
    parts = [
        _contribution_text(each)
        for each in contributions
        if each.what not in (ContributionKind.END, ContributionKind.UNKNOWN)
    ]
    if any(each.what is ContributionKind.END for each in contributions):
        parts.append(_terminal(event))
    return "; ".join(parts) or event.data


def _contribution_text(contribution: EventContribution) -> str:
    call, text = contribution.call, contribution.text
    if call is None:
        is_end = contribution.what is ContributionKind.FINISH
        return f"ends: {text}" if is_end else f"{contribution.what}: '{text}'"
    if contribution.what is ContributionKind.OPEN:
        return f"{label(call)} opens: {identity(call)}"
    return f"{label(call)} arguments: '{text}'"


# The time axis: when the parts of an exchange happened, and how long nothing did.

_SENDING = "sending"
_UNANSWERED = "unanswered"
_NO_ANSWER = "D003"


def time_axis(
    analysis: Analysis,
    reported: Collection[str],
    settings: Settings = DEFAULTS,
    *,
    unanswered: bool = False,
) -> TimeAxis:
    """Return when the parts of an exchange happened.

    Args:
        analysis: the analysis of the exchange.
        reported: the codes of the findings on it.
        settings: the thresholds by which they were found.
        unanswered: whether the app did not answer its calls (D003).
    """
    exchange = analysis.exchange
    if not exchange.has_times:
        return TimeAxis()
    if exchange.reported:  # when each event came, nobody knows
        return TimeAxis(request_ns=exchange.request.t_ns)
    events, sent, end = analysis.stream.events, exchange.sent, exchange.end
    turns = [(turn, context_of(turn, settings)) for turn in analysis.turns or (analysis,)]
    return TimeAxis(
        request_ns=exchange.request.t_ns,
        sent_ns=sent.t_ns if sent else None,
        head_ns=_head_ns(exchange),
        first_event_ns=events[0].t_ns if events else None,
        end_ns=end.t_ns if end else None,
        phases=tuple(_axis_phases(exchange, [context for _, context in turns])),
        dead_zones=(
            *_dead_zones(turns, reported),
            *(_unanswered(analysis) if unanswered else ()),
        ),
    )


def _axis_phases(exchange: Exchange, turns: Iterable[RuleContext]) -> Iterator[AxisPhase]:
    if exchange.sent and exchange.sent.t_ns > exchange.request.t_ns:
        yield AxisPhase(_SENDING, exchange.request.t_ns, exchange.sent.t_ns)
    for context in turns:
        for each in phases(context):
            if each.end_ns > each.start_ns:
                yield AxisPhase(each.phase.value, each.start_ns, each.end_ns)


def _dead_zones(
    turns: Iterable[tuple[Analysis, RuleContext]], reported: Collection[str]
) -> Iterator[DeadZone]:
    for turn, context in turns:
        for silence, code in dead_zones(context, reported):
            number = silence.after.number if silence.after else None
            if number is not None and turn.numbers:
                number = turn.numbers[number]
            phase, start_ns, end_ns = silence.phase.value, silence.start_ns, silence.end_ns
            yield DeadZone(phase, start_ns, end_ns, number, code)


def _unanswered(analysis: Analysis) -> Iterator[DeadZone]:
    """Yield the time after the last reply, in which nothing answered its calls."""
    replied = (analysis.turns or (analysis,))[-1].exchange
    if replied.end and replied.watch:
        last = analysis.stream.events[-1].number
        start_ns, end_ns = replied.end.t_ns, replied.watch.until_ns
        yield DeadZone(_UNANSWERED, start_ns, end_ns, last, _NO_ANSWER)
