"""A list of tapes, one line each.

If a line is too wide, the worst finding and the names of apps and models are shortened; then
columns are left out, the least important first; last, paths lose their beginning.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from deltatape.model.finding import Finding, Severity
from deltatape.printable import count, escape, excerpt
from deltatape.render.json_document import document, finding_object
from deltatape.render.lines import (
    BOLD,
    DIM,
    GOOD,
    LEAST,
    STYLES,
    WIDTH,
    Line,
    StyledText,
    column_widths,
    line,
    table,
)
from deltatape.render.numbers import duration, size
from deltatape.why.overview import TapeOverview

_MAX_APP = 28
_MAX_MODEL = 32
_MAX_PROBLEM = 60
_PATH, _SIZE, _EXCHANGES, _APP, _MODEL, _WORST = range(6)
_GIVE = {_APP: LEAST, _MODEL: LEAST, _WORST: len("warning D001...")}
"""Columns that may be cut, and to what."""
_LEAVE_OUT = (_SIZE, _EXCHANGES, _APP, _MODEL)
"""Columns that may be left out, in this order."""
_LEAST_PATH = 32
"""How far paths are cut before a column is left out: their ends tell files apart."""
_NO_TAPES = "no tapes; make one with `deltatape record`"


@dataclass(frozen=True, slots=True, kw_only=True)
class TapeRow:
    """A tape in a list."""

    path: str
    bytes: int
    age_ns: int
    exchanges: int | None
    """None: not counted."""
    recording: bool
    overview: TapeOverview | None
    """None: not analysed."""
    error: str
    """Why it cannot be read; "" if it can."""


def tape_lines(rows: Sequence[TapeRow], width: int = WIDTH) -> list[Line]:
    """Format one line per tape, and what to do about tapes that are not analysed."""
    if not rows:
        return [line(StyledText(_NO_TAPES, DIM))]
    lines = _fitting([_cells(row) for row in rows], width)
    left = sum(row.overview is None and not row.error for row in rows)
    if left:
        them = f"{count(left, 'tape')} too large to analyse here: deltatape ls --full"
        lines.append(line(StyledText(them, DIM)))
    return lines


def _fitting(rows: list[list[StyledText]], width: int) -> list[Line]:
    """Format `rows` without empty columns and columns that do not fit."""
    shown = [
        column
        for column, cells in enumerate(zip(*rows, strict=True))
        if any(cell.text for cell in cells)
    ]
    least = column_widths(rows)
    for column, lowest in _GIVE.items():
        least[column] = min(least[column], lowest)
    longest = least[_PATH]
    least[_PATH] = min(longest, _LEAST_PATH)
    for column in _LEAVE_OUT:
        if column in shown and _total(least, shown) > width:
            shown.remove(column)
    slack = width - _total(least, shown)
    path = min(longest, least[_PATH] + (slack // 2 if slack > 0 else slack))
    rows = [[_ending(row[_PATH], path), *row[1:]] for row in rows]
    return table(
        [[row[column] for column in shown] for row in rows],
        right=[at for at, column in enumerate(shown) if column == _SIZE],
        width=width,
        give={at: _GIVE[column] for at, column in enumerate(shown) if column in _GIVE},
    )


def _total(widths: Sequence[int], shown: Sequence[int]) -> int:
    """Return the width of a line with the columns `shown`."""
    return sum(widths[column] for column in shown) + 2 * (len(shown) - 1)


def _ending(path: StyledText, room: int) -> StyledText:
    """Return `path`, or its end, which distinguishes files."""
    if len(path.text) <= room:
        return path
    return StyledText(f"...{path.text[len(path.text) - max(LEAST, room - 3) :]}", path.style)


def _cells(row: TapeRow) -> list[StyledText]:
    seen = row.overview
    age = f"{' '.join(duration(max(0, row.age_ns)).split()[:2])} ago"
    return [
        StyledText(escape(row.path), BOLD),
        StyledText(size(row.bytes)),
        StyledText("" if row.exchanges is None else count(row.exchanges, "exchange")),
        StyledText(excerpt(_first(seen.apps), _MAX_APP) if seen else ""),
        StyledText(excerpt(_first(seen.models), _MAX_MODEL) if seen else ""),
        _worst(row),
        StyledText(f"recording, {age}" if row.recording else age),
    ]


def _first(names: Sequence[str]) -> str:
    """`gpt-4o`; `gpt-4o +2` if there are more."""
    if not names:
        return ""
    return names[0] if len(names) == 1 else f"{names[0]} +{len(names) - 1}"


def _worst(row: TapeRow) -> StyledText:
    """Return the worst finding: `error T001 empty-arguments`, `healthy`, or why it is unknown."""
    if row.error:
        return StyledText(excerpt(f"unreadable: {row.error}", _MAX_PROBLEM), STYLES[Severity.ERROR])
    if row.overview is None:
        return StyledText("not analysed", DIM)
    worst = row.overview.worst
    if worst is None:
        return StyledText("healthy", GOOD) if row.overview.exchanges else StyledText("")
    return StyledText(f"{worst.severity} {worst.code} {worst.name}", STYLES[worst.severity])


# The keys of the JSON are a contract: they are added to, never renamed. docs/ls.schema.json says
# what each means.


def tapes_json(rows: Iterable[TapeRow]) -> str:
    """`ls --format json`."""
    return document(tapes=[_json_row(row) for row in rows])


def _json_row(row: TapeRow) -> dict[str, object]:
    seen = row.overview
    worst, shown = (seen.worst, seen.worst_object) if seen else (None, None)
    return {
        "path": row.path,
        "bytes": row.bytes,
        "age_ns": row.age_ns,
        "exchanges": row.exchanges,
        "recording": row.recording,
        "error": row.error or None,
        "analysed": seen is not None,
        "apps": list(seen.apps) if seen else [],
        "models": list(seen.models) if seen else [],
        "findings": seen.findings if seen else None,
        "worst": finding_object(worst) if isinstance(worst, Finding) else shown,
    }
