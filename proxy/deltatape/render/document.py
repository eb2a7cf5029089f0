"""Formats Markdown documentation for a terminal: `deltatape why CODE`.

Only as much of Markdown as the rules' documentation uses: headings, paragraphs, lists, code.
"""

import textwrap
from collections.abc import Iterator

from deltatape.render.lines import BOLD, DIM, WIDTH, Line, StyledText, line

_FENCE = "```"
_ITEM = "- "


def document_lines(text: str, width: int = WIDTH) -> list[Line]:
    """Format `text` in `width` columns: refill paragraphs, keep the lines of code."""
    lines: list[Line] = []
    in_code = False
    for block in _blocks(text):
        if block == _FENCE:
            in_code = not in_code
            lines.append(line(StyledText(block, DIM)))
        elif in_code:
            lines += _hanging(block, width, DIM, indent=4, anywhere=True)
        elif block.startswith("#"):
            lines += _hanging(block, width, BOLD)
        else:
            lines += _hanging(block, width, "", indent=2 if block.startswith(_ITEM) else 0)
    return lines


def _blocks(text: str) -> Iterator[str]:
    """Yield fences, code lines, blank lines, headings, items and paragraphs, each as one line."""
    in_code = False
    open_: list[str] = []
    for each in text.rstrip("\n").split("\n"):
        alone = in_code or each == _FENCE or not each or each.startswith("#")
        if open_ and (alone or each.startswith(_ITEM)):
            yield " ".join(open_)
            open_ = []
        if alone:
            yield each
        else:
            open_.append(each.strip())
        in_code ^= each == _FENCE
    if open_:
        yield " ".join(open_)


def _hanging(
    text: str, width: int, style: str, indent: int = 0, *, anywhere: bool = False
) -> list[Line]:
    """Wrap `text` with a hanging indent; break addresses only if `anywhere`."""
    pieces = textwrap.wrap(
        text,
        width,
        subsequent_indent=" " * indent,
        break_on_hyphens=False,
        break_long_words=anywhere,
    )
    return [line(StyledText(piece, style)) for piece in pieces or [""]]
