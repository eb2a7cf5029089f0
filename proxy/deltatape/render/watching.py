"""`deltatape watch`: a line for each exchange that has ended or is in progress."""

from collections.abc import Sequence
from typing import NamedTuple

from deltatape.model.exchange import Exchange
from deltatape.model.exchange_row import ExchangeRow
from deltatape.model.finding import Severity
from deltatape.printable import count, excerpt
from deltatape.render.exchange_rows import row_cells
from deltatape.render.lines import BOLD, DIM, STYLES, WIDTH, Line, StyledText, cropped, line
from deltatape.render.numbers import duration
from deltatape.render.time_strip import timeline

_TIMELINE = 22
"""Columns of a timeline."""
_FINDING = len("error C002 arguments-chan")
"""Columns of a finding, at least."""
_MODEL = 18
"""Columns of a model's name."""
_QUIET_NS = 3_000_000_000
"""A silence that is shown."""
_CLOCK = slice(11, 19)
"""The time of day in a date with a time."""
_LATER = "later requests show:"


class RunningExchange(NamedTuple):
    """An exchange in progress."""

    tape: str
    """The tape's name; "" where there is one tape alone."""
    row: ExchangeRow
    exchange: Exchange
    now_ns: int
    """The time on its tape."""

    @property
    def silent_ns(self) -> int:
        """Return how long nothing has come."""
        exchange = self.exchange
        times = [exchange.request.t_ns]
        times += [read.t_ns for read in exchange.reads[-1:]]
        times += [piece.t_ns for piece in exchange.frames[-1:]]
        return max(0, self.now_ns - max(times))


def ended_line(
    row: ExchangeRow, exchange: Exchange | None, tape: str = "", width: int = WIDTH
) -> Line:
    """Format an exchange that has ended.

    Args:
        row: the row of the exchange.
        exchange: itself; None if it ended before, and a later request shows more about it.
        tape: its tape's name; "" where there is one tape alone.
        width: the width of the page.
    """
    drawn = f"{_LATER:<{_TIMELINE}}"
    if exchange is not None:
        end_ns = exchange.end.t_ns if exchange.end else exchange.request.t_ns
        drawn = _drawn(exchange, end_ns)
    number, at, _, model, took, _, _, calls, ending, worst, conversation = row_cells(row)
    called = count(int(calls.text), "call") if calls.text else ""
    pieces = (
        *_front(at.text[_CLOCK], tape, number.text),
        StyledText(f"{drawn}  ", DIM),
        StyledText(f"{took.text:<7}  "),
        StyledText(f"{worst.text:<{_FINDING}}  ", worst.style),
        StyledText(f"{called:<7}  "),
        StyledText(f"{ending.text:<10}  ", ending.style),
        StyledText(f"{model.text}  "),
        StyledText(conversation.text, DIM),
    )
    return cropped(line(*pieces), width)


def running_lines(
    running: Sequence[RunningExchange], stall_ns: int, most: int, width: int = WIDTH
) -> list[Line]:
    """Format exchanges in progress, the one that has been silent longest first.

    Args:
        running: the exchanges.
        stall_ns: the silence that a finding reports.
        most: how many to show; the others are counted.
        width: the width of the page.
    """
    ordered = sorted(running, key=lambda each: -each.silent_ns)
    lines = [cropped(_running_line(each, stall_ns), width) for each in ordered[:most]]
    if len(ordered) > most:
        lines.append(line(StyledText(f"and {len(ordered) - most} more in progress", DIM)))
    return lines


def _running_line(running: RunningExchange, stall_ns: int) -> Line:
    tape, row, exchange, now_ns = running
    reads = len(exchange.reads) + len(exchange.frames)
    silent_ns = running.silent_ns
    silent = f", silent for {duration(silent_ns)}" if silent_ns >= _QUIET_NS else ""
    took = duration(max(0, now_ns - exchange.request.t_ns))
    return line(
        *_front("", tape, f"#{exchange.number}"),
        StyledText(f"{_drawn(exchange, now_ns)}  "),
        StyledText(f"{excerpt(row.model or row.target, _MODEL):<{_MODEL}}  {took:<7}  "),
        StyledText(count(reads, "read") if reads else "nothing has come"),
        StyledText(silent, STYLES[Severity.ERROR if silent_ns >= stall_ns else Severity.WARNING]),
    )


def _front(at: str, tape: str, number: str) -> tuple[StyledText, ...]:
    named = (StyledText(f"{tape}  ", DIM),) if tape else ()
    return (StyledText(f"{at:<8}  ", DIM), *named, StyledText(f"{number:<5}  ", BOLD))


def _drawn(exchange: Exchange, end_ns: int) -> str:
    times = [read.t_ns for read in exchange.reads] + [piece.t_ns for piece in exchange.frames]
    return timeline(times, exchange.request.t_ns, end_ns, _TIMELINE)
