"""What happened around an exchange: log, connections, the app's other side, later silence.

The app's log, closed client connections and the end of the recording show what the app did with a
reply. The window reaches from a second before the request to the next sign of the app, or to the
end of the recording. Of a long log the lines nearest to the end of the response are shown, since
errors usually show there.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from deltatape.model.exchange import Exchange, Tap, header
from deltatape.model.explanation import EventSource, TimelineEntry
from deltatape.model.tape_summary import CHILD_EXIT, LogEntry, TapeContext, TapeSummary
from deltatape.printable import count
from deltatape.rules.progress import watched_until
from deltatape.rules.stalls import SILENCE_NS
from deltatape.why.timeline import ENDINGS, timeline_entry

MOST = 20
"""The most entries of one kind to show; the others are only counted."""
MOST_LINES = 1000
"""The most lines of a log around an exchange, for programs."""
_BEFORE_NS = 1_000_000_000
_NS = 1_000_000_000
LATE_NS = 50_000_000
"""How late a line that was printed before a request may reach the tape after it."""
_COLOUR = re.compile(rb"\x1b\[[0-9;]*m")
_TRACEBACK = "Traceback (most recent call last)"
_FRAME = re.compile(r"\s+(?:at |File \")")
"""A stack frame: of JavaScript, Java or .NET, or of Python."""
_CHAINED = ("During handling of ", "The above exception was ")
"""What Python prints between two chained tracebacks."""
_CHAIN = 4
"""Lines from an exception to the next chained traceback, two of them empty."""
_SHOWN = 500
"""The longest log line to show, in bytes."""
_OF_WATCH = ("D003",)

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class _Window:
    """The time window of the timeline. Entries near its centre are shown first."""

    start_ns: int
    centre_ns: int
    end_ns: int

    def holds(self, t_ns: int) -> bool:
        return self.start_ns <= t_ns <= self.end_ns


def around(
    exchange: Exchange, others: Sequence[Exchange], context: TapeContext, *, silent: bool
) -> Iterator[TimelineEntry]:
    """Yield what happened around `exchange`, unsorted.

    Args:
        exchange: the one that is explained.
        others: all exchanges of its tape.
        context: what else is on the tape.
        silent: whether no later request answers its calls.
    """
    if not exchange.timed:
        return
    window, goes_on = _window(exchange, others, silent=silent)
    number = exchange.number
    yield from _logged(number, _with_late_lines(window, goes_on=goes_on), context.logs)
    yield from _closed_clients(number, window, context)
    for other in others:
        if other.tap is not exchange.tap and are_linked(exchange, other):
            yield from _other_side(other)
    if exchange.watch and exchange.end and not goes_on:
        yield from _watched_silence(number, window, exchange.watch, silent=silent)


def printed_around(
    exchange: Exchange, others: Iterable[Exchange], logs: Iterable[LogEntry]
) -> list[LogEntry]:
    """Return what the app printed from a second before the request to the next one, in order.

    Of a long log those lines nearest to the end of the response.
    """
    if not exchange.timed:
        return []
    window, goes_on = _window(exchange, others, silent=False)
    window = _with_late_lines(window, goes_on=goes_on)
    return _nearest(window, logs, lambda entry: entry.t_ns, MOST_LINES)[0]


def _window(
    exchange: Exchange, others: Iterable[Exchange], *, silent: bool
) -> tuple[_Window, bool]:
    """Return the time around an exchange, and whether a later request ends it."""
    end_ns = watched_until(exchange)
    after = [each.request.t_ns for each in others if each.request.t_ns >= end_ns]
    after = [] if silent or exchange.end is None else after
    until_ns = min(after, default=max(end_ns, exchange.watch.until_ns if exchange.watch else 0))
    return _Window(exchange.request.t_ns - _BEFORE_NS, end_ns, until_ns), bool(after)


def _with_late_lines(window: _Window, *, goes_on: bool) -> _Window:
    return replace(window, end_ns=window.end_ns + LATE_NS) if goes_on else window


def _nearest(
    window: _Window, every: Iterable[_T], t_ns: Callable[[_T], int], most: int = MOST
) -> tuple[list[_T], list[_T]]:
    """Split `every` into the entries nearest to the window's centre, and the others."""
    inside = [each for each in every if window.holds(t_ns(each))]
    by_distance = sorted(
        range(len(inside)), key=lambda place: abs(t_ns(inside[place]) - window.centre_ns)
    )
    near = set(by_distance[:most])
    kept = [each for place, each in enumerate(inside) if place in near]
    return kept, [each for place, each in enumerate(inside) if place not in near]


@dataclass(slots=True)
class _Line:
    """A log line, and the number of stack-trace lines after it."""

    entry: LogEntry
    text: str
    frames: int = 0


def _without_stacks(lines: Iterable[LogEntry]) -> Iterator[_Line]:
    """Yield log lines without stack traces."""
    every = []
    for entry in lines:
        shown = _COLOUR.sub(b"", entry.line[:_SHOWN]).decode("utf-8", "backslashreplace")
        every.append(_Line(entry, shown.rstrip()))
    place = 0
    while place < len(every):
        end = _after_stack(every, place)
        chained = _chained(every, end)
        if chained is not None:
            end = _after_stack(every, chained)
        every[place].frames = end - place - 1
        yield every[place]
        place = end


def _after_stack(lines: Sequence[_Line], place: int) -> int:
    """Return the index after a line and its stack trace."""
    inside = lines[place].text.startswith(_TRACEBACK)
    end = place + 1
    while end < len(lines) and (
        _FRAME.match(lines[end].text) or (inside and lines[end].text[:1].isspace())
    ):
        end += 1
    return end


def _chained(lines: Sequence[_Line], place: int) -> int | None:
    """Return the start of Python's next chained traceback."""
    near = [at for at in range(place, min(place + _CHAIN, len(lines))) if lines[at].text]
    is_chain = len(near) > 1 and lines[near[0]].text.startswith(_CHAINED)
    return near[1] if is_chain else None


def _logged(number: int, window: _Window, lines: Iterable[LogEntry]) -> Iterator[TimelineEntry]:
    near, left = _nearest(window, _without_stacks(lines), lambda line: line.entry.t_ns)
    for line in near:
        stack = f" ... {count(line.frames, 'line')} of the stack" if line.frames else ""
        what = f"{line.entry.stream}: {line.text}{stack}"
        yield timeline_entry(number, line.entry.t_ns, EventSource.LOG, what)
    if left:
        more = f"... {count(len(left), 'more line')} of the log around this exchange"
        yield timeline_entry(number, left[0].entry.t_ns, EventSource.LOG, more)


def _closed_clients(number: int, window: _Window, context: TapeContext) -> Iterator[TimelineEntry]:
    """Yield client connections that were open during the exchange and closed."""
    late = {
        each.connection for each in context.clients if each.opened and each.t_ns > window.centre_ns
    }
    closed = (each for each in context.clients if not each.opened and each.connection not in late)
    near, left = _nearest(window, closed, lambda change: change.t_ns)
    for change in near:
        what = f"client connection {change.connection} is closed"
        yield timeline_entry(number, change.t_ns, EventSource.RECORDER, what)
    if left:
        more = f"... {count(len(left), 'more client connection')} closed around this exchange"
        yield timeline_entry(number, left[0].t_ns, EventSource.RECORDER, more)


def are_linked(one: Exchange, other: Exchange) -> bool:
    """Check whether two exchanges on the two sides of the app belong together.

    By their trace id (https://www.w3.org/TR/trace-context/), else by their times.
    """
    traces = [_trace(one), _trace(other)]
    if None not in traces:
        return traces[0] == traces[1]
    return one.request.t_ns <= watched_until(other) and other.request.t_ns <= watched_until(one)


def _trace(exchange: Exchange) -> bytes | None:
    parts = (header(exchange.request.headers, "traceparent") or b"").split(b"-")
    return parts[1].lower() if len(parts) > 1 else None


def _other_side(other: Exchange) -> Iterator[TimelineEntry]:
    """Describe an exchange on the app's other side: its request and its answer."""
    side = "app endpoint" if other.tap is Tap.APP else "provider"
    request = other.request
    yield timeline_entry(
        other.number, request.t_ns, EventSource.APP, f"{side}: {request.method} {request.path}"
    )
    size = count(other.body_size, "byte")
    came = f"answered: status {other.response.status}, {size}" if other.response else "is silent"
    how = f", {ENDINGS[other.end.reason]}" if other.end else ""
    what = f"{side} {came}{how}"
    yield timeline_entry(other.number, watched_until(other), EventSource.APP, what)


def _watched_silence(
    number: int, window: _Window, watch: TapeSummary, *, silent: bool
) -> Iterator[TimelineEntry]:
    """Describe how long nothing came after the response, and why recording ended."""
    watched_ns = window.end_ns - window.centre_ns
    if watched_ns >= SILENCE_NS or silent:
        request = "request of this conversation" if silent else "further request"
        what = f"watched for {watched_ns / _NS:.1f} s: no {request}"
        yield timeline_entry(number, window.centre_ns, EventSource.RECORDER, what, codes=_OF_WATCH)
    if watch.stop is not None:
        yield timeline_entry(number, window.end_ns, EventSource.RECORDER, stop_of(watch))


def stop_of(watch: TapeSummary) -> str:
    """Say why recording ended."""
    if watch.stop == CHILD_EXIT and watch.exit_code is not None:
        return f"the app exited with {watch.exit_code}; the recorder stopped"
    return f"the recorder stopped: {watch.stop}"
