"""Sealed tapes for tests: what they hold, and ways to damage them."""

import json
from pathlib import Path
from typing import Any

import zstandard

from deltatape.store.packing import seal
from deltatape.tape.sealed import SKIPPABLE_HEAD, TRAILER_BYTES, read_trailer, skippable, trailer


def sealed_copy(tape: Path, folder: Path) -> Path:
    """The sealed form of a tape, in another folder."""
    return seal(tape, folder / f"{tape.name}.zst").path


def table_of(path: Path) -> dict[str, Any]:
    """The table of a sealed tape."""
    data = path.read_bytes()
    at, length = read_trailer(data[-TRAILER_BYTES:])
    table: dict[str, Any] = json.loads(zstandard.decompress(data[at : at + length]))
    return table


def index_end(path: Path) -> int:
    """Where the table of a sealed tape begins: what `with_table` puts before it stands there."""
    return read_trailer(path.read_bytes()[-TRAILER_BYTES:])[0] - SKIPPABLE_HEAD


def with_table(path: Path, table: dict[str, Any] | bytes, more: bytes = b"") -> Path:
    """Replace the table of a sealed tape; `more` stands before it."""
    text = table if isinstance(table, bytes) else json.dumps(table).encode()
    coded = zstandard.ZstdCompressor().compress(text)
    begin = path.read_bytes()[: index_end(path)] + more
    end = trailer(len(begin) + SKIPPABLE_HEAD, len(coded))
    path.write_bytes(begin + skippable(coded) + end)
    return path
