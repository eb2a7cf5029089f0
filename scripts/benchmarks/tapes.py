"""What the tapes of a run hold, to be compared with what the clients got."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_END = b',"end",'
_COMPLETE = "complete"


@dataclass(frozen=True, slots=True, kw_only=True)
class Taped:
    """Totals of all tapes in a folder.

    Attributes:
        complete: exchanges that ended in order, and of which nothing was lost.
        bytes: of their response bodies, counted in the reads.
        size: of the files.
    """

    complete: int
    bytes: int
    size: int


def read_tapes(folder: Path) -> Taped:
    """What the tapes in `folder` hold."""
    complete = size = bytes_ = 0
    for path in sorted(folder.glob("*.tape")):
        size += path.stat().st_size
        for end in _ends(path):
            if end["reason"] == _COMPLETE and "recorder" not in end:
                complete += 1
                count = end["bytes"]
                assert isinstance(count, int)
                bytes_ += count
    return Taped(complete=complete, bytes=bytes_, size=size)


def _ends(path: Path) -> Iterator[dict[str, object]]:
    with path.open("rb") as lines:
        for line in lines:
            if _END in line[:60]:
                _, _, code, end = json.loads(line)
                if code == "end":
                    yield end
