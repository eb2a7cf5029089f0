"""The wire around a finding, with carets under the bytes that it is about.

Every line is cut to the page so that what is marked stays visible. Columns are counted as a
terminal counts them: wide characters take two, combining ones none.
"""

from itertools import accumulate

from rich.cells import cell_len

from deltatape.diagnose.wire_excerpt import MarkedLine, WireExcerpt
from deltatape.model.finding import Severity
from deltatape.render.lines import BOLD, DIM, STYLES, WIDTH, Line, Segment, line

_MORE = "..."
_LEAD = 3
"""Marked text may take all but one part in so many of a line; the rest is what stands before."""


def wire_lines(
    excerpt: WireExcerpt, number: int | None, severity: Severity, width: int = WIDTH
) -> list[Line]:
    """`excerpt` beside a gutter.

    Args:
        excerpt: at least one line.
        number: the tape line, for the gutter; None: unknown.
        severity: of the finding, for the carets' style.
        width: columns of the page.
    """
    label = "" if number is None else str(number)
    blank = " " * len(label)
    lines = [line(Segment(f"  {blank} |", DIM))]
    for each in excerpt.lines:
        # Where nothing is marked the caret stands beside the text, and needs a column.
        shown = _fitted(each, width - len(blank) - 5 - (not each.marked))
        lines.append(
            line(
                Segment(f"  {label.rjust(len(blank))} | ", DIM),
                shown.before,
                Segment(shown.marked, BOLD),
                shown.after,
            )
        )
        lines.append(
            line(
                Segment(f"  {blank} | ", DIM),
                " " * cell_len(shown.before),
                Segment("^" * max(cell_len(shown.marked), 1), STYLES[severity]),
            )
        )
        label = ""
    if excerpt.more:
        lines.append(line(Segment(f"  {blank} | {_MORE}", DIM)))
    return lines


def _fitted(whole: MarkedLine, width: int) -> MarkedLine:
    """`whole` in `width` columns: cut on its left, its right, and where it must in the middle."""
    if cell_len("".join(whole)) <= width:
        return whole
    marked = whole.marked
    after_least = len(_MORE) if whole.after else 0
    most = width - min(cell_len(whole.before), width // _LEAD) - after_least
    if cell_len(marked) > most:
        marked = _first(marked, most - len(_MORE)) + _MORE
    before = whole.before
    room = width - cell_len(marked) - after_least
    # What stands before tells more than what comes after: it gets all room but a third.
    for_before = max(room - min(cell_len(whole.after), room // _LEAD), 0)
    if cell_len(before) > for_before:
        before = _MORE + _last(before, for_before - len(_MORE))
    room = width - cell_len(before) - cell_len(marked)
    after = whole.after
    if cell_len(after) > room:
        after = _first(after, room - len(_MORE)) + _MORE
    return MarkedLine(before, marked, after)


def _first(text: str, width: int) -> str:
    """As many characters of the front as fit."""
    return text[: sum(end <= width for end in accumulate(map(cell_len, text)))]


def _last(text: str, width: int) -> str:
    """As many characters of the end as fit."""
    return _first(text[::-1], width)[::-1]
