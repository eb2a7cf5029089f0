"""Lines of styled text: one value for the plain output and for the coloured one.

Every piece of text is escaped when lines become text, whoever made it: nothing of a tape can reach
a terminal unescaped. Styles are rich's.
"""

import textwrap
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

from rich.text import Text

from deltatape.model.finding import Severity
from deltatape.rules.evidence import escape


class Segment(NamedTuple):
    """A piece of a line; `style` is rich's, "" for none."""

    text: str
    style: str = ""


Line: TypeAlias = tuple[Segment, ...]
Cell: TypeAlias = str | Segment

BOLD = "bold"
DIM = "dim"
GOOD = "green"
STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "yellow", Severity.INFO: "cyan"}
WIDTH = 100
_MORE = "..."


def plain(lines: Iterable[Line]) -> str:
    """`lines` as text without styles, each ended by a line feed."""
    return "".join(
        "".join(escape(segment.text) for segment in line).rstrip() + "\n" for line in lines
    )


def styled(lines: Iterable[Line]) -> Text:
    """`lines` as a rich renderable with the same characters; markup in them means nothing."""
    text = Text(overflow="fold")
    for line in lines:
        for segment in line:
            text.append(escape(segment.text), style=segment.style or None)
        text.append("\n")
    text.right_crop()
    return text


def line(*pieces: Cell) -> Line:
    """One line of pieces."""
    return tuple(piece if isinstance(piece, Segment) else Segment(piece) for piece in pieces)


def cropped(whole: Line, width: int = WIDTH) -> Line:
    """`whole`, as it will be shown, cut to `width` characters; `...` if it was longer."""
    shown = [Segment(escape(segment.text), segment.style) for segment in whole]
    left = width if sum(len(segment.text) for segment in shown) <= width else width - len(_MORE)
    pieces: list[Segment] = []
    for segment in shown:
        pieces.append(Segment(segment.text[:left], segment.style))
        left -= len(pieces[-1].text)
    if pieces != shown:
        pieces.append(Segment(_MORE, DIM))
    return tuple(pieces)


def wrapped(text: str, indent: int, style: str = "", width: int = WIDTH) -> list[Line]:
    """`text` broken at blanks to lines of `width`, all indented; long words are broken, too."""
    pieces = textwrap.wrap(escape(text), width - indent, break_on_hyphens=False) or [""]
    return [line(" " * indent, Segment(piece, style)) for piece in pieces]


def table(rows: Sequence[Sequence[Cell]], indent: int = 0, right: Sequence[int] = ()) -> list[Line]:
    """`rows` in columns as wide as their widest cell; the columns in `right` are right-aligned."""
    cells = [[_cell(cell) for cell in row] for row in rows]
    columns = max((len(row) for row in cells), default=0)
    widths = [
        max(len(row[column].text) for row in cells if column < len(row))
        for column in range(columns)
    ]
    lines = []
    for row in cells:
        pieces = [Segment(" " * indent)]
        for column, cell in enumerate(row):
            width = widths[column] if column in right or column < columns - 1 else 0
            text = cell.text.rjust(width) if column in right else cell.text.ljust(width)
            pieces += [Segment(text, cell.style), Segment("  ")]
        lines.append(tuple(pieces[:-1]))
    return lines


def _cell(cell: Cell) -> Segment:
    """A cell as it will be shown, so that its width is known."""
    segment = cell if isinstance(cell, Segment) else Segment(cell)
    return Segment(escape(segment.text), segment.style)
