"""Everything that happened in an exchange, as lines on one time axis.

Neighbouring events of the same kind are one entry, so that a stream of a thousand deltas is a line;
a silence of a second or more is an entry of its own.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from deltatape.diagnose.rebuild import Analysis
from deltatape.model.exchange import EndReason, Exchange, RequestSent, Tap
from deltatape.model.explanation import EventSource, TimelineEntry
from deltatape.model.finding import Finding
from deltatape.model.request_summary import RequestSummary
from deltatape.model.stream import Event
from deltatape.printable import count
from deltatape.rules.progress import lags, watched_until
from deltatape.why.event_kinds import Kinds

SILENCE_NS = 1_000_000_000
"""A gap that is worth a line."""
_SLOW_NS = 200_000_000
"""A way to the upstream, or a lag of the client, that is worth a line."""
_NS = 1_000_000_000
_OF_SILENCE = ("D001", "D004")
_PRINTED = ("C009",)
_WITHOUT_END = ("S001",)
_OF_WIRE = frozenset({EventSource.WIRE, EventSource.RECORDER})
_KNOWN = 20
"""Characters by which a printed line is known again."""
_OF_ENDING = ("W006",)
"""Codes of findings whose place is an entry of that kind: `_home` takes them off again."""

ENDINGS = {
    EndReason.COMPLETE: "the response ended as announced",
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
    analysis: Analysis, findings: Sequence[Finding], beside: Iterable[TimelineEntry] = ()
) -> tuple[TimelineEntry, ...]:
    """Return what happened, in order, with the codes of `findings`.

    Args:
        analysis: of the exchange.
        findings: on it.
        beside: what happened around it; its `codes` are those of findings that have their place
            there, if they are found.
    """
    entries = sorted([*_entries(analysis), *beside], key=lambda entry: entry.t_ns or 0)
    marks: dict[int, list[str]] = {}
    for finding in findings:
        home = _home(finding, entries)
        if home is not None:
            marks.setdefault(home, []).append(finding.code)
    timed = analysis.exchange.timed
    return tuple(
        replace(
            entry,
            t_ns=entry.t_ns if timed else None,
            codes=tuple(dict.fromkeys(marks.get(place, ()))),
        )
        for place, entry in enumerate(entries)
    )


def is_printed(finding: Finding) -> bool:
    """Check whether a finding is about a log line."""
    return finding.code in _PRINTED and finding.line is None and finding.t_ns is not None


def _home(finding: Finding, entries: Sequence[TimelineEntry]) -> int | None:
    """Return the index of the entry that `finding` is about."""
    for place, entry in enumerate(entries):
        elsewhere = finding.code in _OF_SILENCE and finding.t_ns not in (None, entry.t_ns)
        if finding.code in entry.codes and not elsewhere:
            return place
    if is_printed(finding):
        then = (at for at, entry in enumerate(entries) if entry.t_ns == finding.t_ns)
        logged = [at for at in then if entries[at].source is EventSource.LOG]
        said = finding.evidence[:_KNOWN]
        return next((at for at in logged if said in entries[at].what), next(iter(logged), None))
    if finding.event is None:
        return _by_time(finding, entries)
    places = [
        place
        for place, entry in enumerate(entries)
        if entry.event is not None and entry.event <= finding.event
    ]
    return places[-1] if places else None


def _by_time(finding: Finding, entries: Sequence[TimelineEntry]) -> int | None:
    """Return the last wire entry at that time, such as an error's status line.

    Where an end is missing in a stream without events: how the transport ended.
    """
    then = (
        place
        for place, entry in enumerate(entries)
        if entry.exchange == finding.exchange and entry.t_ns == finding.t_ns
    )
    told = [place for place in then if entries[place].source in _OF_WIRE]
    if finding.code in _WITHOUT_END:
        told = [place for place, entry in enumerate(entries) if entry.codes == _OF_ENDING]
    return told[-1] if told else None


def _entries(analysis: Analysis) -> Iterator[TimelineEntry]:
    exchange = analysis.exchange
    number, head, sent = exchange.number, exchange.response, exchange.sent
    start_ns = exchange.request.t_ns
    yield _entry(number, start_ns, EventSource.APP, asks(analysis.request, exchange))
    if sent and sent.t_ns - start_ns >= _SLOW_NS:
        yield _entry(number, sent.t_ns, EventSource.RECORDER, _way(sent, start_ns))
    if head:
        reason = f" {head.reason.decode('latin-1')}" if head.reason else ""
        yield _entry(number, head.t_ns, EventSource.WIRE, f"status {head.status}{reason}")
    yield from _events(analysis, sent.t_ns if sent else start_ns)
    yield from _lag(exchange)
    for note in exchange.notes:
        yield _entry(number, note.t_ns, EventSource.RECORDER, note.text)
    if exchange.timed:
        ended = _entry(number, watched_until(exchange), EventSource.RECORDER, ending_of(exchange))
        yield replace(ended, codes=_OF_ENDING)


def _entry(
    number: int, t_ns: int, source: EventSource, what: str, event: int | None = None
) -> TimelineEntry:
    return TimelineEntry(t_ns=t_ns, exchange=number, event=event, what=what, source=source)


def _way(sent: RequestSent, start_ns: int) -> str:
    """Describe how long connecting and sending took."""
    took = f"connected in {sent.connect_ns / _NS:.2f} s, TLS in {sent.tls_ns / _NS:.2f} s"
    how = "on a connection used before" if sent.reused else took
    return f"left for the upstream {(sent.t_ns - start_ns) / _NS:.2f} s after it came, {how}"


def _lag(exchange: Exchange) -> Iterator[TimelineEntry]:
    """Yield when a slow client took bytes that had arrived long before."""
    slow = [lag for lag in lags(exchange) if lag.end_ns - lag.start_ns >= _SLOW_NS]
    if not slow:
        return
    worst = max(slow, key=lambda lag: lag.end_ns - lag.start_ns)
    late = (worst.end_ns - worst.start_ns) / _NS
    more = f"; {count(len(slow) - 1, 'smaller lag')}" if len(slow) > 1 else ""
    what = f"the client has taken byte {worst.offset} only now, {late:.1f} s after it came{more}"
    yield _entry(exchange.number, worst.end_ns, EventSource.RECORDER, what)


def asks(asked: RequestSummary, exchange: Exchange) -> str:
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
    number = analysis.exchange.number
    kinds = Kinds(analysis)
    every = kinds.of_all(analysis.stream.events)
    for kind, group in groupby(every, key=lambda pair: pair[0]):
        for run in _runs([event for _, event in group]):
            first_ns = run[0].t_ns
            if first_ns - last_ns >= SILENCE_NS:
                yield _silence(analysis, last_ns, first_ns)
            last_ns = run[-1].t_ns
            yield _entry(
                number,
                first_ns,
                EventSource.WIRE,
                f"{kinds.tell(kind, run)}{_took(run)}",
                run[0].number,
            )
    end_ns = watched_until(analysis.exchange) if analysis.exchange.timed else last_ns
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
    what = f"silence for {(end_ns - start_ns) / _NS:.1f} s{noise}{proof}"
    entry = _entry(analysis.exchange.number, start_ns, EventSource.RECORDER, what)
    return replace(entry, codes=_OF_SILENCE)


def _took(run: Sequence[Event]) -> str:
    spread = (run[-1].t_ns - run[0].t_ns) / _NS
    return f" over {spread:.2f} s" if spread >= 0.01 else ""  # noqa: PLR2004 - two decimals
