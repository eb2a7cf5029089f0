"""The recorded incidents as files that a user would have."""

import os
import shutil
from pathlib import Path

from deltatape.demo.demo import INCIDENTS
from deltatape.model.exchange import Exchange
from deltatape.store.reader import open_tape

BROKEN = INCIDENTS / "itinerary-broken.tape"
"""The app changed both calls (C002), then got no answer (D002)."""
FIXED = INCIDENTS / "itinerary-fixed.tape"
"""Nothing to find."""
CUT = INCIDENTS / "cut-mid-arguments.tape"
"""One exchange: W006, S001, T003."""
EMPTY = INCIDENTS / "empty-arguments.tape"
"""T001, then D002."""
STALL = INCIDENTS / "stall-before-arguments.tape"
"""A warning, D001: 12 s of silence."""


def exchange(path: Path, number: int) -> Exchange:
    """An exchange of an incident."""
    return open_tape(path)[number]


def recorded(folder: Path, *tapes: Path) -> list[Path]:
    """Copies in `folder/.deltatape`, the last one the newest."""
    home = folder / ".deltatape"
    home.mkdir(exist_ok=True)
    copies: list[Path] = []
    for age, tape in enumerate(reversed(tapes)):
        copy = home / tape.name
        shutil.copyfile(tape, copy)
        moment = copy.stat().st_mtime - 60 * (age + 1)
        os.utime(copy, (moment, moment))
        copies.insert(0, copy)
    return copies
