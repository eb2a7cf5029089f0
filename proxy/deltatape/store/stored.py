"""Reads tapes that lie in an object store, and lists those that are there.

A sealed tape is read by range: one exchange of it takes a few requests. Any other is read as a
file whose bytes come in blocks.
"""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from deltatape.errors import UsageError
from deltatape.objects.urls import folder_store, open_object
from deltatape.store.reader import Tape, read_header
from deltatape.store.sealed import PositionedFile, RangeReader, open_sealed
from deltatape.tape.record import Header
from deltatape.tape.sealed import ZSTD

_HEADER_BYTES = 1 << 16
_BLOCK = 1 << 20


class RangesFile(PositionedFile):
    """What is read by range, as a file."""

    def __init__(self, ranges: RangeReader) -> None:
        super().__init__(ranges.size())
        self._ranges = ranges

    def readinto(self, buffer: object, /) -> int:
        room = memoryview(buffer).cast("B")  # type: ignore[arg-type]  # as the class demands
        data = self._ranges.read(self._at, len(room))
        room[: len(data)] = data
        self._at += len(data)
        return len(data)


class StoredTape(Tape):
    """A tape in a store that is not sealed. Use `open_tape`."""

    def __init__(self, name: str, ranges: RangeReader, header: Header) -> None:
        super().__init__(name, header)
        self._ranges = ranges

    def open(self) -> BinaryIO:
        return io.BufferedReader(RangesFile(self._ranges), _BLOCK)

    @property
    def size(self) -> int:
        return self._ranges.size()

    @property
    def recording(self) -> bool:
        """Never: only finished tapes are shipped."""
        return False


def open_stored(url: str) -> Tape:
    """Return the tape at a URL.

    Raises:
        DeltatapeError: it is no tape, there is none, or the store refuses or does not answer.
    """
    ranges = open_object(url)
    start = ranges.read(0, _HEADER_BYTES)
    if start.startswith(ZSTD):
        return open_sealed(url, ranges)
    line = start[: start.find(b"\n") + 1] or start
    return StoredTape(url, ranges, read_header(url, line))


def stored_tapes(url: str) -> Iterator[tuple[Path, int, int]]:
    """Yield what lies below a URL: path (see `urls`), size, time of storing in nanoseconds.

    Raises:
        DeltatapeError: the store refuses or does not answer.
    """
    for each in folder_store(url).list():
        yield Path(url, each.key), each.size, each.modified_us * 1000


def stored_tape(url: str) -> tuple[Path, int, int]:
    """Return the same of one tape.

    Raises:
        DeltatapeError: there is none, or the store refuses or does not answer.
    """
    folder, _, key = url.rpartition("/")
    found = folder_store(folder).head(key)
    if found is None:
        raise UsageError(f"{url}: there is no such object")
    return Path(url), found.size, found.modified_us * 1000
