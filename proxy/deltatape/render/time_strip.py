"""An exchange on one line of time, to scale: when it was read, and where nothing came.

    seconds   0              2              4              6              8             10
    phase     before-first---|in-text----------|in-arguments----------------------------------
    silence                                     ======= 5.2 s, D001 ========
    reads                    |  |  |  |  |  |  #                            |  |  |  |  |  |  #
    events                   |  |  |  |  |  |  #                            |  |  |  |  |  |  #

A column is a span of time as long as any other: `|` is one read or event in it, `#` several.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from deltatape.model.explanation import TimeAxis
from deltatape.render.lines import DIM, WIDTH, Line, StyledText, line
from deltatape.render.numbers import duration

_LABELS = ("seconds", "phase", "silence", "reads", "events")
_MARGIN = max(map(len, _LABELS)) + 2
_NS = 1_000_000_000
_APART = 12
"""Columns between two times of the scale, at least."""
_FOUND, _SHORT = "red", "yellow"
"""The styles of silences: of those that a finding is about, and of others."""


def strip_lines(
    axis: TimeAxis, reads: Sequence[int], events: Sequence[int], width: int = WIDTH
) -> list[Line]:
    """Draw an exchange in `width` columns; nothing if it has no times, or took none.

    Args:
        axis: the axis of the exchange.
        reads: when it was read; of a WebSocket, when its frames were.
        events: when its events were complete.
        width: the width of the page.
    """
    start_ns = axis.request_ns
    if start_ns is None or axis.first_event_ns is axis.end_ns is None:
        return []
    strip = _Strip(start_ns, max(axis.end_ns or 0, *reads, *events, start_ns), width - _MARGIN)
    if not strip.length_ns:
        return []
    lines = [_labelled("seconds", StyledText(strip.scale(), DIM))]
    phases = [(each.start_ns, each.end_ns, each.name) for each in axis.phases]
    if phases:
        lines.append(_labelled("phase", StyledText(strip.phases(phases), DIM)))
    if axis.dead_zones:
        lines.append(_labelled("silence", *strip.silences(axis)))
    lines += [
        _labelled(name, StyledText(strip.marks(times)))
        for name, times in (("reads", reads), ("events", events))
        if times
    ]
    return lines


def timeline(times: Sequence[int], start_ns: int, end_ns: int, columns: int) -> str:
    """Return an exchange in `columns`: `[.....|||#||   ||]`, dots until something came.

    Args:
        times: when something was read.
        start_ns: when the request came.
        end_ns: when it ended, or now.
        columns: the columns of the whole, with its brackets.
    """
    room = columns - 2
    strip = _Strip(start_ns, max(end_ns, start_ns + 1, *times), room)
    marks = strip.marks(times) if times else ""
    waited = len(marks) - len(marks.lstrip()) if times else room
    return f"[{'.' * waited}{marks[waited:]:<{room - waited}}]"


def _labelled(label: str, *pieces: StyledText) -> Line:
    return line(StyledText(f"{label:<{_MARGIN}}", DIM), *pieces)


class _Strip:
    """Maps times to columns."""

    def __init__(self, start_ns: int, end_ns: int, columns: int) -> None:
        self._start_ns = start_ns
        self.length_ns = end_ns - start_ns
        self._columns = columns

    def _column(self, t_ns: int) -> int:
        at = (t_ns - self._start_ns) * self._columns // (self.length_ns or 1)
        return max(0, min(at, self._columns - 1))

    def scale(self) -> str:
        """Return the seconds since the request, at round times."""
        step_ns = _round_step(self.length_ns * _APART // self._columns)
        digits = max(0, 9 - (len(str(step_ns)) - 1))
        text = ""
        for t_ns in range(0, self.length_ns, step_ns):
            shown = f"{t_ns / _NS:.{digits}f}"
            at = self._column(self._start_ns + t_ns)
            if at + len(shown) <= self._columns:
                text = text.ljust(at) + shown
        return text

    def marks(self, times: Iterable[int]) -> str:
        """Return a mark in each column in which something happened."""
        counts = Counter(map(self._column, times))
        return "".join(" |#"[min(counts[at], 2)] for at in range(max(counts) + 1))

    def phases(self, spans: Iterable[tuple[int, int, str]]) -> str:
        """Return spans of time, with their names where there is room."""
        text = ""
        for start_ns, end_ns, name in spans:
            text = text.ljust(self._column(start_ns))
            room = self._column(end_ns) - len(text)
            if room > 0:
                text += f"|{name if len(name) < room else '':-<{room - 1}}"
        return text

    def silences(self, axis: TimeAxis) -> list[StyledText]:
        """Return the silences with how long they were, and which finding is about them."""
        pieces: list[StyledText] = []
        at = 0
        for zone in axis.dead_zones:
            start, end = max(at, self._column(zone.start_ns)), self._column(zone.end_ns)
            room = max(1, end - start)
            took = duration(zone.end_ns - zone.start_ns)
            told = f" {took}, {zone.code} " if zone.code else f" {took} "
            shown = told if len(told) + 2 <= room else ""
            style = _FOUND if zone.code else _SHORT
            pieces += [StyledText(" " * (start - at)), StyledText(f"{shown:=^{room}}", style)]
            at = start + room
        return pieces


def _round_step(least: int) -> int:
    """Return the least 1, 2 or 5 times a power of ten that is no less."""
    power = 1
    while power * 10 <= least:
        power *= 10
    return next(power * each for each in (1, 2, 5, 10) if power * each >= least)
