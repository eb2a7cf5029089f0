"""Finds the tapes of a test.

A test that names none has its own, beside it: `recordings/<module>/<test>.tape`. A named tape is
looked for beside the test, then in pytest's root folder. If neither exists, it is recorded beside
the test.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from deltatape.errors import UsageError
from deltatape.model.exchange import Exchange, Tap
from deltatape.model.tape_summary import LogEntry
from deltatape.store.listing import locate
from deltatape.store.names import SUFFIX
from deltatape.store.shards import open_recording, recording_of

FOLDER = "recordings"
MAX_STEM = 120
"""So that a hidden name of a draft and a suffix find room in the 255 bytes of a file's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TapeLocation:
    """A tape, and the number of one exchange if given."""

    path: Path
    exchange: int | None = None


def own_place(test_file: Path, names: Sequence[str]) -> TapeLocation:
    """Return a test's own tape.

    Args:
        test_file: the file of the test.
        names: the names of the classes around it, outermost first, and its own, as pytest shows it:
            `test_weather[lisbon]`.
    """
    folder = test_file.parent / FOLDER / test_file.stem
    return TapeLocation(path=folder / f"{_stem('.'.join(names))}{SUFFIX}")


def named_place(text: str, test_file: Path, root: Path) -> TapeLocation:
    """Return the tape that a marker names.

    Raises:
        UsageError: the exchange's number is 0.
    """
    if not text:
        raise UsageError('@pytest.mark.tape(""): not a tape; the path of one is accepted')
    bases = (test_file.parent, root)
    for base in bases:
        found = locate(str(base / text))
        if found.path.exists():
            return TapeLocation(path=found.path, exchange=found.exchange)
    found = locate(str(bases[0] / text))
    return TapeLocation(path=found.path, exchange=found.exchange)


def exchanges_at(places: Sequence[TapeLocation]) -> tuple[Exchange, ...]:
    """Return what a provider plays from these tapes, by tape and number.

    Raises: see `every_at`.
    """
    return tuple(exchange for exchange in every_at(places)[0] if exchange.tap is Tap.PROVIDER)


Taped: TypeAlias = tuple[tuple[Exchange, ...], Mapping[str, tuple[LogEntry, ...]]]
"""Exchanges, and by tape what the application printed."""


def every_at(places: Sequence[TapeLocation]) -> Taped:
    """Return everything on these tapes, by tape and number.

    Raises:
        UsageError: there is no such tape or exchange.
        TapeFormatError: a tape is damaged.
    """
    found: list[Exchange] = []
    logs = {}
    seen = set()
    for place in places:
        tape = open_recording(shown(place.path))
        recording = recording_of(tape.path)
        if recording is not None and recording in seen and place.exchange is None:
            continue  # read together with one before
        seen.add(recording)
        if place.exchange is not None:
            found.append(tape[place.exchange])
        else:
            found += sorted(tape.exchanges(), key=lambda exchange: exchange.number)
        logs[tape.path] = tape.logs
    return tuple(found), logs


def stored_volatile(places: Sequence[TapeLocation]) -> tuple[str, ...]:
    """Return what is stored with those tapes that exist about what may differ in requests.

    Raises:
        TapeFormatError: a tape is damaged.
    """
    tapes = (open_recording(place.path) for place in places if place.path.exists())
    return tuple(each for tape in tapes for each in tape.volatile)


def shown(path: Path) -> str:
    """Return a path relative to the working directory, if it is below."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def _stem(name: str) -> str:
    """Return a unique file name for a test's name."""
    plain = re.sub(r"\[(.*)\]$", r"-\1", name)
    safe = re.sub(r"[^A-Za-z0-9._-]", "_", plain)
    if safe == plain and len(safe) <= MAX_STEM:
        return safe
    mark = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{safe[: MAX_STEM - 9]}-{mark}"
