"""The parts of an exchange as text: its calls, its events, its reads."""

from collections.abc import Iterator, Sequence

from deltatape.diagnose.rebuild import Analysis
from deltatape.model.exchange import Exchange
from deltatape.model.reply import CallStatus, ToolCall
from deltatape.model.stream import Comment, Event
from deltatape.render.lines import BOLD, DIM, GOOD, Cell, Line, Segment, line, table
from deltatape.render.units import seconds
from deltatape.rules.evidence import excerpt, excerpt_bytes

_SHOWN = 70
_BROKEN = "red"
_FINE = frozenset({CallStatus.COMPLETE, CallStatus.EMPTY_OK})


def call_lines(analyses: Sequence[Analysis]) -> list[Line]:
    """The rebuilt calls of all exchanges, one a line."""
    head = [
        Segment(word, BOLD) for word in ("exchange", "call", "id", "name", "status", "arguments")
    ]
    rows = [
        [f"#{analysis.exchange.number}", *call_cells(call)]
        for analysis in analyses
        for choice in analysis.reply.choices
        for call in choice.tool_calls
    ]
    return table([head, *rows]) if rows else [line(Segment("no calls", DIM))]


def call_cells(call: ToolCall) -> list[Cell]:
    """A call in cells: index, id, name, status with repairs, arguments."""
    style = GOOD if call.status in _FINE else _BROKEN
    repairs = f" ({', '.join(call.repairs)})" if call.repairs else ""
    return [
        str(call.index),
        excerpt(call.id or "-", 40),
        excerpt(call.name or "-", 40),
        Segment(f"{call.status}{repairs}", style),
        excerpt(call.arguments, _SHOWN) or "(no bytes)",
    ]


def event_lines(analysis: Analysis) -> list[Line]:
    """Events and comments in the order of their bytes, with time and span."""
    stream, timed = analysis.stream, analysis.exchange.timed
    units: list[Event | Comment] = sorted(
        [*stream.events, *stream.comments], key=lambda unit: unit.place.span
    )
    head = [Segment(word, BOLD) for word in ("event", "seconds", "bytes", "type", "data")]
    rows = [list(_event_cells(unit, timed=timed)) for unit in units]
    return table([head, *rows], right=(0, 1)) if rows else [line(Segment("no events", DIM))]


def _event_cells(unit: Event | Comment, *, timed: bool) -> Iterator[Cell]:
    start, end = unit.place.span
    yield str(unit.number) if isinstance(unit, Event) else ":"
    yield seconds(unit.place.t_ns) if timed else "-"
    yield f"{start}-{end}"
    yield excerpt(unit.type, 30) if isinstance(unit, Event) else Segment("comment", DIM)
    yield excerpt(unit.data if isinstance(unit, Event) else unit.text, _SHOWN)


def read_lines(exchange: Exchange) -> list[Line]:
    """The reads from the upstream socket, with time, offset and size."""
    head = [Segment(word, BOLD) for word in ("read", "seconds", "offset", "bytes", "data")]
    rows: list[list[Cell]] = []
    offset = 0
    for number, read in enumerate(exchange.reads):
        time = seconds(read.t_ns) if exchange.timed else "-"
        data = excerpt_bytes(read.data, _SHOWN)
        rows.append([str(number), time, str(offset), str(len(read.data)), data])
        offset += len(read.data)
    return table([head, *rows], right=(0, 1, 2, 3)) if rows else [line(Segment("no reads", DIM))]
