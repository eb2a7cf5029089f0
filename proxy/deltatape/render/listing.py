"""Tapes in a list."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from deltatape.model.finding import Severity
from deltatape.render.lines import BOLD, DIM, GOOD, STYLES, Line, Segment, line, table
from deltatape.render.units import duration, size
from deltatape.rules.evidence import excerpt
from deltatape.rules.words import count
from deltatape.why.overview import Overview

_MAX_APP = 28
_MAX_MODEL = 32
_MAX_PROBLEM = 60
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
    overview: Overview | None
    """None: not analysed."""
    error: str
    """Why it cannot be read; "" if it can."""


def tape_lines(rows: Sequence[TapeRow]) -> list[Line]:
    """One line per tape, in the given order, and what to do about those not analysed."""
    if not rows:
        return [line(Segment(_NO_TAPES, DIM))]
    lines = table(_used([_cells(row) for row in rows]), right=(1,))
    left = sum(row.overview is None and not row.error for row in rows)
    if left:
        them = f"{count(left, 'tape')} not analysed, being large: deltatape ls --full"
        lines.append(line(Segment(them, DIM)))
    return lines


def _cells(row: TapeRow) -> list[Segment]:
    seen = row.overview
    age = f"{duration(max(0, row.age_ns))} ago"
    return [
        Segment(row.path, BOLD),
        Segment(size(row.bytes)),
        Segment("" if row.exchanges is None else count(row.exchanges, "exchange")),
        Segment(excerpt(_first(seen.apps), _MAX_APP) if seen else ""),
        Segment(excerpt(_first(seen.models), _MAX_MODEL) if seen else ""),
        _worst(row),
        Segment(f"recording, {age}" if row.recording else age),
    ]


def _used(rows: list[list[Segment]]) -> list[list[Segment]]:
    """`rows` without the columns that are empty in all of them."""
    used = [any(cell.text for cell in column) for column in zip(*rows, strict=True)]
    return [list(itertools.compress(row, used)) for row in rows]


def _first(names: Sequence[str]) -> str:
    """`gpt-4o`; `gpt-4o +2` if there are more."""
    if not names:
        return ""
    return names[0] if len(names) == 1 else f"{names[0]} +{len(names) - 1}"


def _worst(row: TapeRow) -> Segment:
    """`error T001 empty-arguments`; `healthy`; why nothing is known."""
    if row.error:
        return Segment(excerpt(f"unreadable: {row.error}", _MAX_PROBLEM), STYLES[Severity.ERROR])
    if row.overview is None:
        return Segment("not analysed", DIM)
    worst = row.overview.worst
    if worst is None:
        return Segment("healthy", GOOD) if row.overview.exchanges else Segment("")
    return Segment(f"{worst.severity} {worst.code} {worst.name}", STYLES[worst.severity])
