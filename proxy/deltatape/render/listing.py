"""Tapes in a list."""

from collections.abc import Sequence
from dataclasses import dataclass

from deltatape.render.lines import BOLD, DIM, Line, Segment, line, table
from deltatape.render.units import duration, size
from deltatape.rules.words import count


@dataclass(frozen=True, slots=True, kw_only=True)
class TapeRow:
    """A tape in a list. `exchanges` None: not counted."""

    path: str
    bytes: int
    age_ns: int
    exchanges: int | None


def tape_lines(rows: Sequence[TapeRow]) -> list[Line]:
    """One line per tape, in the given order."""
    if not rows:
        return [line(Segment("no tapes; make one with `deltatape record`", DIM))]
    return table(
        [
            [
                Segment(row.path, BOLD),
                size(row.bytes),
                "" if row.exchanges is None else count(row.exchanges, "exchange"),
                f"{duration(max(0, row.age_ns))} ago",
            ]
            for row in rows
        ],
        right=(1,),
    )
