"""Draws an answer as bars: on a terminal, and as an SVG file.

Each row is a bar. Its label joins the columns before the first column of numbers: `gpt-5, openai`.
"""

import html
from collections.abc import Sequence
from typing import NamedTuple

from rich.cells import cell_len

from deltatape.ask.dataset import AnswerColumn
from deltatape.errors import UsageError, did_you_mean
from deltatape.printable import excerpt
from deltatape.render.lines import BOLD, DIM, Line, StyledText, line

_EIGHTHS = " ▏▎▍▌▋▊▉"
_FULL = "█"
_LABEL = 48
"""The widest label, in characters."""
_LEAST_BAR = 10


class Bar(NamedTuple):
    """A bar with its label and value."""

    label: str
    value: float
    shown: str


def bars(
    columns: Sequence[AnswerColumn], rows: Sequence[Sequence[object]], value: str | None
) -> list[Bar]:
    """Return the bars of an answer.

    Args:
        columns: the columns of the answer.
        rows: its rows; those without the value are left out.
        value: the column with the lengths; None: the first one with numbers.

    Raises:
        UsageError: there is no such column, or it has no numbers.
    """
    numeric = [at for at, column in enumerate(columns) if column.numeric]
    names = [column.name for column in columns]
    if not numeric:
        raise UsageError("--plot: the answer has no column with numbers")
    if value is None:
        at = numeric[0]
    elif value not in names:
        raise UsageError(
            f"--value {value}: no such column.{did_you_mean(value, names)}"
            f" There are: {', '.join(names)}"
        )
    elif (at := names.index(value)) not in numeric:
        raise UsageError(f"--value {value}: has {columns[at].type} values, not numbers")
    labels = range(numeric[0])
    found = []
    for row in rows:
        number = row[at]
        if number is not None:
            label = ", ".join(str(row[each]) for each in labels if row[each] not in (None, ""))
            found.append(Bar(excerpt(label or "(none)", _LABEL), float(str(number)), str(number)))
    return found


def chart_lines(title: str, found: Sequence[Bar], width: int) -> list[Line]:
    """Draw bars for a terminal; the longest fills `width`."""
    head = [line(StyledText(title, BOLD))]
    if not found:
        return [*head, line(StyledText("nothing to show", DIM))]
    labels = max(cell_len(each.label) for each in found)
    shown = max(len(each.shown) for each in found)
    room = max(_LEAST_BAR, width - labels - shown - 3)
    most = max(0.0, *(each.value for each in found)) or 1.0
    return [
        *head,
        *(
            line(
                StyledText(each.label + " " * (labels - cell_len(each.label))),
                StyledText(f" {_bar(each.value / most, room)}", "cyan"),
                StyledText(f" {each.shown}"),
            )
            for each in found
        ),
    ]


def _bar(part: float, room: int) -> str:
    eighths = round(max(0.0, part) * room * 8)
    full, rest = divmod(eighths, 8)
    return _FULL * full + (_EIGHTHS[rest] if rest else "")


_ROW, _BAR, _MARGIN, _CHARACTER = 24, 16, 16, 7.2
_CHART = 480
_STYLE = (
    "text { font: 12px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; fill: #1f2328 }"
    " .title { font-weight: 600 } rect.bar { fill: #0969da } rect.page { fill: #ffffff }"
    " @media (prefers-color-scheme: dark) { text { fill: #e6edf3 } rect.bar { fill: #4493f8 }"
    " rect.page { fill: #0d1117 } }"
)


def chart_svg(title: str, found: Sequence[Bar]) -> str:
    """Draw bars as an SVG document, for light and dark pages."""
    labels = max((len(each.label) for each in found), default=0) * _CHARACTER
    shown = max((len(each.shown) for each in found), default=0) * _CHARACTER
    left = _MARGIN + labels + 8
    wide = max(left + _CHART + 8 + shown, 2 * _MARGIN + len(title) * _CHARACTER) + _MARGIN
    high = 2 * _MARGIN + _ROW * (len(found) + 1)
    most = max((each.value for each in found), default=0.0) or 1.0
    size = f'width="{wide:.0f}" height="{high}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" {size}>',
        f"<title>{html.escape(title)}</title>",
        f"<style>{_STYLE}</style>",
        f'<rect class="page" {size}/>',
        f'<text class="title" x="{_MARGIN}" y="{_MARGIN + 12}">{html.escape(title)}</text>',
    ]
    for at, each in enumerate(found, 1):
        top = _MARGIN + _ROW * at
        length = max(0.0, each.value) / most * _CHART
        texts = (
            (_MARGIN + labels, ' text-anchor="end"', each.label),
            (left + length + 8, "", each.shown),
        )
        parts.append(
            f'<rect class="bar" x="{left:.1f}" y="{top}" width="{length:.1f}" height="{_BAR}"/>'
        )
        parts += [
            f'<text x="{x:.1f}" y="{top + 12}"{more}>{html.escape(text)}</text>'
            for x, more, text in texts
        ]
    return "\n".join([*parts, "</svg>", ""])
