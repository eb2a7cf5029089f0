"""Everything that happened in an exchange, condensed to lines on one axis of time.

Neighbouring events of the same kind are one entry, so that a stream of a thousand deltas is a line;
a silence of a second or more is an entry of its own.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from deltatape.diagnose.rebuild import Analysis
from deltatape.model.asked import Asked
from deltatape.model.exchange import EndReason, Exchange
from deltatape.model.finding import Finding
from deltatape.model.story import Entry, Teller
from deltatape.model.stream import Event
from deltatape.rules.words import count
from deltatape.why.kinds import Kinds

SILENCE_NS = 1_000_000_000
_SILENCE = "silence for "
"""A gap that is worth a line."""
_NS = 1_000_000_000
_SILENCE = "silence for "

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
    """How the transport ended, in words."""
    if exchange.end:
        detail = f" ({exchange.end.detail})" if exchange.end.detail else ""
        return f"{ENDINGS[exchange.end.reason]}{detail}"
    if exchange.open:
        return "still going on when the tape was read"
    if exchange.timed:
        return "the tape breaks off here: the recorder died"
    return "how it ended was not recorded"


def timeline(analysis: Analysis, findings: Sequence[Finding]) -> tuple[Entry, ...]:
    """What happened from the request to the end, in order; `findings` mark their entries."""
    entries = sorted(_entries(analysis), key=lambda entry: entry.t_ns or 0)
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


def _home(finding: Finding, entries: Sequence[Entry]) -> int | None:
    """The place of the entry that `finding` is about: a silence, a run of events, the ending."""
    if finding.code == "W006":
        return len(entries) - 1
    if finding.code == "D001":
        starts = [finding.t_ns, None if finding.t_ns else entries[0].t_ns]
        for place, entry in enumerate(entries):
            if entry.what.startswith(_SILENCE) and entry.t_ns in starts:
                return place
    if finding.event is None:
        return None
    places = [
        place
        for place, entry in enumerate(entries)
        if entry.event is not None and entry.event <= finding.event
    ]
    return places[-1] if places else None


def _entries(analysis: Analysis) -> Iterator[Entry]:
    exchange = analysis.exchange
    number, head = exchange.number, exchange.response
    start_ns = exchange.request.t_ns
    yield _entry(number, start_ns, Teller.APP, asks(analysis.asked, exchange))
    last_ns = exchange.sent.t_ns if exchange.sent else start_ns
    if head:
        reason = f" {head.reason.decode('latin-1')}" if head.reason else ""
        yield _entry(number, head.t_ns, Teller.WIRE, f"status {head.status}{reason}")
    yield from _events(analysis, last_ns)
    for note in exchange.notes:
        yield _entry(number, note.t_ns, Teller.RECORDER, note.text)
    if exchange.timed:
        yield _entry(number, _last_ns(exchange), Teller.RECORDER, ending_of(exchange))


def _entry(number: int, t_ns: int, source: Teller, what: str, event: int | None = None) -> Entry:
    return Entry(t_ns=t_ns, exchange=number, event=event, what=what, source=source)


def asks(asked: Asked, exchange: Exchange) -> str:
    """What a request asks for, in one line."""
    if not asked.known and not exchange.timed:
        return "the request was not recorded"
    if not asked.known:
        return f"{exchange.request.method} {exchange.request.path}"
    form = "a stream" if asked.stream else "an answer"
    parts = [
        f"asks {asked.model or 'the model'} for {form}: {count(len(asked.history), 'message')}"
    ]
    if asked.tools:
        choice = f", tool choice {asked.tool_choice}" if asked.tool_choice else ""
        parts.append(f"{count(len(asked.tools), 'tool')}{choice}")
    return ", ".join(parts)


def _events(analysis: Analysis, last_ns: int) -> Iterator[Entry]:
    number = analysis.exchange.number
    kinds = Kinds(analysis.reply)
    every = kinds.of_all(analysis.stream.events)
    for kind, group in groupby(every, key=lambda pair: pair[0]):
        for run in _runs([event for _, event in group]):
            first_ns = run[0].place.t_ns
            if first_ns - last_ns >= SILENCE_NS:
                yield _silence(analysis, last_ns, first_ns)
            last_ns = run[-1].place.t_ns
            yield _entry(
                number, first_ns, Teller.WIRE, f"{kinds.tell(kind, run)}{_took(run)}", run[0].number
            )
    end = analysis.exchange.end
    if end and end.t_ns - last_ns >= SILENCE_NS:
        yield _silence(analysis, last_ns, end.t_ns)


def _runs(events: Sequence[Event]) -> Iterator[list[Event]]:
    """`events` in pieces without a silence in them."""
    run = [events[0]]
    for event in events[1:]:
        if event.place.t_ns - run[-1].place.t_ns >= SILENCE_NS:
            yield run
            run = []
        run.append(event)
    yield run


def _silence(analysis: Analysis, start_ns: int, end_ns: int) -> Entry:
    comments = sum(start_ns < each.place.t_ns <= end_ns for each in analysis.stream.comments)
    noise = f", {count(comments, 'keep-alive comment')}" if comments else ""
    what = f"{_SILENCE}{(end_ns - start_ns) / _NS:.1f} s{noise}"
    return _entry(analysis.exchange.number, start_ns, Teller.RECORDER, what)


def _took(run: Sequence[Event]) -> str:
    spread = (run[-1].place.t_ns - run[0].place.t_ns) / _NS
    return f" over {spread:.2f} s" if spread >= 0.01 else ""  # noqa: PLR2004 - two decimals


def _last_ns(exchange: Exchange) -> int:
    if exchange.end:
        return exchange.end.t_ns
    times = [exchange.request.t_ns, *exchange.idle_ns, *(read.t_ns for read in exchange.reads)]
    return max(times)
