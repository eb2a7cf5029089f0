"""What a model says in the bodies that are decoded: text and a call's arguments, cut into deltas.

Made up and the same each time. The text is prose with line breaks and a few letters beyond ASCII,
the arguments are a JSON object as a tool that edits files takes it.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

SINGLE = (1,)
SHORT = (3, 1, 4, 2)
"""Characters a delta, as providers send them."""
LONG = (40, 120, 80, 160)

_PROSE = (
    'The file starts with a table: every row names a city, "Tromsø" or "Århus", and a date.\n'
    "Two rows are wrong — one is dated 2025-02-30, one repeats its neighbour. I change both.\n\n"
)
_EDIT = (
    '{"line": 17, "old": "if row[\\"date\\"] is None:", "new": "if not row:\\n    # Å: empty",'
    ' "all": false}'
)
_BEFORE, _BETWEEN, _AFTER = '{"path": "src/cities.py", "edits": [', ", ", "]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleReply:
    """Text, and the arguments of one call, each in the pieces in which they are sent."""

    text: Sequence[str]
    arguments: Sequence[str]


def sample_reply(deltas: int, lengths: Sequence[int]) -> SampleReply:
    """About `deltas` pieces, half of them text; their lengths go round in `lengths`."""
    half = max(1, deltas // 2)
    size = half * sum(lengths) // len(lengths)
    prose = (_PROSE * (size // len(_PROSE) + 1))[:size]
    edits = [_EDIT] * max(1, size // (len(_EDIT) + len(_BETWEEN)))
    arguments = f"{_BEFORE}{_BETWEEN.join(edits)}{_AFTER}"
    return SampleReply(text=tuple(_cut(prose, lengths)), arguments=tuple(_cut(arguments, lengths)))


def _cut(text: str, lengths: Sequence[int]) -> Iterator[str]:
    at = 0
    for length in itertools.cycle(lengths):
        if at >= len(text):
            return
        yield text[at : at + length]
        at += length
