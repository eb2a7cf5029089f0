"""Lines of styled text, printed with or without colour.

Every piece of text is escaped when lines become text, whoever made it: nothing of a tape can reach
a terminal unescaped. Styles are rich's.
"""

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from rich.cells import cell_len

from deltatape.model.finding import Severity
from deltatape.printable import escape, escape_each

if TYPE_CHECKING:
    from rich.text import Text


class StyledText(NamedTuple):
    """A piece of a line; `style` is rich's, "" for none."""

    text: str
    style: str = ""


Line: TypeAlias = tuple[StyledText, ...]
Cell: TypeAlias = str | StyledText

BOLD = "bold"
DIM = "dim"
GOOD = "green"
STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "yellow", Severity.INFO: "cyan"}
WIDTH = 100
"""Columns of a page of unknown width."""
LEAST = 10
"""A column is not cut to less."""
_MORE = "..."
_GAP = "  "
_BETWEEN = StyledText(_GAP)
_NOTHING: Mapping[int, int] = MappingProxyType({})


def plain(lines: Iterable[Line]) -> str:
    """`lines` as text without styles, each ended by a line feed."""
    return "".join(
        "".join(segment.text for segment in line).rstrip() + "\n" for line in _escaped([*lines])
    )


def styled(lines: Iterable[Line]) -> "Text":
    """Return `lines` as a rich renderable; markup in them is not interpreted."""
    from rich.text import Text  # noqa: PLC0415 - what goes to no terminal does not wait for it

    text = Text(overflow="fold")
    for line in _escaped([*lines]):
        for segment in line:
            text.append(segment.text, style=segment.style or None)
        text.append("\n")
    if text:  # cropping nothing is an error
        text.right_crop()
    return text


def line(*pieces: Cell) -> Line:
    """Make a line of pieces."""
    return tuple(piece if isinstance(piece, StyledText) else StyledText(piece) for piece in pieces)


def measured(whole: Line) -> int:
    """Return the width of `whole` in columns."""
    (shown,) = _escaped([whole])
    return _measured(shown)


def cropped(whole: Line, width: int = WIDTH) -> Line:
    """Cut `whole` to `width` columns, with `...` if it was longer."""
    (shown,) = _escaped([whole])
    left = width if _measured(shown) <= width else width - len(_MORE)
    pieces: list[StyledText] = []
    for segment in shown:
        pieces.append(StyledText(_leading(segment.text, left), segment.style))
        left -= _columns(segment.text)
    return tuple(pieces) if tuple(pieces) == shown else (*pieces, StyledText(_MORE, DIM))


def wrapped(text: str, indent: int, style: str = "", width: int = WIDTH) -> list[Line]:
    """Wrap `text` at blanks, all lines indented; break words that are too long."""
    pieces = _pieces(escape(text), width - indent) or [""]
    return [line(" " * indent, StyledText(piece, style)) for piece in pieces]


def _pieces(text: str, width: int) -> list[str]:
    """Wrap `text` into lines of `width` columns."""
    if _columns(text) == len(text):
        return textwrap.wrap(text, width, break_on_hyphens=False)
    lines, current = [], ""
    for word in text.split():
        joined = f"{current} {word}" if current else word
        if _columns(joined) <= width:
            current = joined
            continue
        if current:
            lines.append(current)
        current = word
        while _columns(current) > width:
            front = _leading(current, width) or current[0]
            lines.append(front)
            current = current[len(front) :]
    return [*lines, current] if current else lines


def hanging(text: str, width: int, indent: int = 4) -> list[Line]:
    """Wrap `text` at blanks with a hanging indent."""
    pieces = textwrap.wrap(
        escape(text),
        width,
        subsequent_indent=" " * indent,
        break_on_hyphens=False,
        break_long_words=False,
    )
    return [line(piece) for piece in pieces or [""]]


def table(
    rows: Sequence[Sequence[Cell]],
    indent: int = 0,
    right: Sequence[int] = (),
    *,
    width: int | None = None,
    give: Mapping[int, int] = _NOTHING,
) -> list[Line]:
    """Format `rows` in columns.

    Args:
        rows: rows of cells; a row may be shorter than others.
        indent: the indent of every line.
        right: the columns that are right-aligned.
        width: the width of the page; None: as wide as it gets.
        give: the columns to shorten on a narrow page, the widest first, each with its least width.
            If that is not enough, lines are cut.
    """
    cells = _escaped([line(*row) for row in rows])
    widths = column_widths(cells)
    if width is not None:
        widths = _fitting(widths, width - indent - len(_GAP) * (len(widths) - 1), give)
    lines = []
    for row in cells:
        pieces = [StyledText(" " * indent)]
        for column, cell in enumerate(row):
            text = cell.text
            taken = _columns(text)
            if taken > widths[column]:
                text = _leading(text, widths[column] - len(_MORE)) + _MORE
                taken = _columns(text)
            blanks = " " * (widths[column] - taken)
            last = column == len(widths) - 1 and column not in right
            padded = blanks + text if column in right else text + blanks
            pieces += [StyledText(text if last else padded, cell.style), _BETWEEN]
        whole = tuple(pieces[:-1])
        if width is not None and _measured(whole) > width:
            whole = cropped(whole, width)
        lines.append(whole)
    return lines


def column_widths(rows: Sequence[Sequence[StyledText]]) -> list[int]:
    """Return the width of each column's widest cell, escaped."""
    columns = max((len(row) for row in rows), default=0)
    return [
        max(_columns(row[column].text) for row in rows if column < len(row))
        for column in range(columns)
    ]


def without_columns(
    rows: Sequence[Sequence[StyledText]],
    width: int,
    leave_out: Sequence[int],
    give: Mapping[int, int],
) -> list[int]:
    """Return the columns to show in `width`: those with text that fit.

    Args:
        rows: all of the same length; the first has the heads of the columns.
        width: the width of the page.
        leave_out: the columns that may be left out, in this order.
        give: see `table`.
    """
    columns = zip(*rows[1:], strict=True)
    shown = [at for at, cells in enumerate(columns) if any(cell.text for cell in cells)]
    widths = column_widths(rows)
    least = [min(each, give.get(column, each)) for column, each in enumerate(widths)]
    for column in leave_out:
        if sum(least[each] for each in shown) + len(_GAP) * (len(shown) - 1) <= width:
            break
        if column in shown:
            shown.remove(column)
    return shown


def _fitting(widths: Sequence[int], room: int, give: Mapping[int, int]) -> list[int]:
    """Reduce the widths of the columns in `give` until all fit into `room`."""
    fitting = dict(enumerate(widths))
    while sum(fitting.values()) > room:
        giving = [column for column, least in give.items() if fitting.get(column, 0) > least]
        if not giving:
            break
        fitting[max(giving, key=lambda column: fitting[column])] -= 1
    return list(fitting.values())


def _leading(text: str, width: int) -> str:
    """Return the characters of the front that fit; some take two columns."""
    if _columns(text) <= width:
        return text
    ends = accumulate(map(_columns, text))
    return text[: sum(1 for end in ends if end <= width)]


def _columns(text: str) -> int:
    """Return how many columns `text` takes."""
    return len(text) if text.isascii() and text.isprintable() else cell_len(text)


def _measured(shown: Line) -> int:
    return sum(_columns(segment.text) for segment in shown)


def _escaped(lines: Sequence[Line]) -> list[Line]:
    """Return `lines` as shown, so that their widths are known."""
    texts = [segment.text for line in lines for segment in line]
    shown = escape_each(texts)
    if shown == texts:
        return [*lines]
    each = iter(shown)
    return [tuple(StyledText(next(each), segment.style) for segment in line) for line in lines]


_EMPHASES = {"trouble": STYLES[Severity.ERROR], "label": DIM, "good": GOOD}
_EMPHASIS = re.compile(
    r"(?P<trouble>^(?:TAPING IN TROUBLE|NOT TAPED|NOT ON THE TAPE)\b)"
    r"|(?P<label>^(?:tape|next|note):)"
    rf"|\b(?P<severity>{'|'.join(Severity)}) [A-Z][0-9]{{3}}\b"
    r"|(?P<good>\bno findings$)"
)


def emphasised(text: str) -> Line:
    """Style the severities, labels and troubles in a recorder's line."""
    pieces, at = [], 0
    for found in _EMPHASIS.finditer(text):
        severity = found["severity"]
        style = STYLES[Severity(severity)] if severity else _EMPHASES[found.lastgroup or ""]
        pieces += [StyledText(text[at : found.start()]), StyledText(found[0], style)]
        at = found.end()
    return (*pieces, StyledText(text[at:]))
