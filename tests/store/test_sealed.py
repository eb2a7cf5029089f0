"""Sealed tapes are untrusted input."""

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from deltatape.errors import DeltatapeError, TapeFormatError, UsageError
from deltatape.model.rule_settings import DEFAULTS
from deltatape.store.packing import unpack
from deltatape.store.reader import open_tape
from deltatape.store.rule_set import rule_set
from deltatape.store.sealed import (
    FileRanges,
    SealedTape,
    is_sealed,
    open_sealed,
    sealed_rows,
    verify,
)
from deltatape.why.exchange_index import index_rows
from helpers.incidents import BROKEN, CUT
from helpers.sealing import index_end, sealed_copy, table_of, with_table
from helpers.tapes import whole_tape, write_tape


def opened(path: Path) -> SealedTape:
    tape = open_tape(path)
    assert isinstance(tape, SealedTape)
    return tape


def read_all(path: Path) -> None:
    """Read everything of a tape, in every way."""
    tape = opened(path)
    verify(tape)
    for _ in tape:
        pass
    for number in sorted(tape.numbers()):
        assert tape[number].number == number
    assert tape.logs is not None
    assert tape.clients is not None
    for _ in sealed_rows(path, tape.sealed.table.rules) or ():
        pass


def test_rows_are_those_of_the_same_rules(tmp_path: Path) -> None:
    path = sealed_copy(BROKEN, tmp_path)
    rules = rule_set(DEFAULTS)
    tape = opened(path)
    expected = {row.exchange: row for row in index_rows(tape)}
    assert [*(sealed_rows(path, rules) or ())] == [expected[1], expected[2]]
    assert sealed_rows(path, "other rules") is None
    assert sealed_rows(BROKEN, rules) is None
    with pytest.raises(UsageError):
        sealed_rows(tmp_path / "none", rules)


def test_only_what_ends_in_an_index_is_sealed(tmp_path: Path) -> None:
    path = sealed_copy(BROKEN, tmp_path)
    compressed = tmp_path / "compressed"
    compressed.write_bytes(zstandard.compress(BROKEN.read_bytes()))
    assert [is_sealed(each) for each in (path, BROKEN, compressed)] == [True, False, False]
    with pytest.raises(TapeFormatError, match="compressed, but no sealed tape"):
        open_tape(compressed)
    with pytest.raises(OSError, match="No such file"):
        is_sealed(tmp_path / "none")


@pytest.mark.parametrize("kept", [4, 20, 31, 32, 100, -1, -8, -33])
def test_a_truncated_file_is_told(tmp_path: Path, kept: int) -> None:
    path = sealed_copy(BROKEN, tmp_path)
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(TapeFormatError, match="sealed, and damaged: its end: compressed, but no"):
        open_tape(path)


@given(st.integers(0, 2**32))
def test_a_flipped_bit_is_told_or_harmless(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    random = Random(seed)
    folder = tmp_path_factory.mktemp("flipped")
    path = sealed_copy(CUT, folder)
    data = bytearray(path.read_bytes())
    data[random.randrange(4, len(data))] ^= 1 << random.randrange(8)
    path.write_bytes(data)
    try:
        read_all(path)
        with opened(path).open() as journal:
            assert journal.read() == CUT.read_bytes()
    except TapeFormatError:
        pass


def _larger(table: dict[str, Any]) -> None:
    """Two frames that hold less than is said, and the journal with them."""
    table["frames"][1][2] += 1
    table["journal"]["bytes"] += 1


def _smaller(table: dict[str, Any]) -> None:
    table["frames"][1][2] -= 1
    table["journal"]["bytes"] -= 1


def _swapped(table: dict[str, Any]) -> None:
    table["frames"][1], table["frames"][2] = table["frames"][2], table["frames"][1]


@pytest.mark.parametrize(
    "change",
    [
        _larger,
        _smaller,
        _swapped,
        lambda table: table["journal"].update(sha256="0" * 64),
        lambda table: table["journal"].update(lines=table["journal"]["lines"] + 1),
        lambda table: table.update(exchanges=9),
        lambda table: table.update(rest=[]),
        lambda table: table.update(entries=[]),
        lambda table: table.update(entries=table["entries"] * 2),
        lambda table: table["entries"][0].__setitem__(0, 0),
        lambda table: table["order"][0].__setitem__(0, 5),
        lambda table: table["order"][0].__setitem__(2, 5),
    ],
)
def test_an_index_that_is_wrong_is_told(
    tmp_path: Path, change: Callable[[dict[str, Any]], None]
) -> None:
    path = sealed_copy(BROKEN, tmp_path)
    table = table_of(path)
    change(table)
    with_table(path, table)
    with pytest.raises(TapeFormatError, match="sealed, and damaged"):
        verify(opened(path))
    with pytest.raises(TapeFormatError):
        unpack(path)
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_an_exchange_that_is_elsewhere_is_told(tmp_path: Path) -> None:
    path = sealed_copy(BROKEN, tmp_path)
    table = table_of(path)
    frame, length, _ = table["entries"][0][:3]
    lines = zstandard.decompress(path.read_bytes()[frame : frame + length])
    moved = lines.replace(b'"exchange":2', b'"exchange":3')
    coded = zstandard.compress(moved)
    table["entries"][0][4] = 3
    table["entries"][0][:3] = [index_end(path), len(coded), len(moved)]
    with_table(path, table, coded)
    tape = opened(path)
    with pytest.raises(TapeFormatError, match="exchange 3 has no records"):
        tape[3]
    with pytest.raises(TapeFormatError, match="are where they are not"):
        verify(tape)


def bomb(size: int, *, said: bool) -> bytes:
    """A frame that holds `size` zeros."""
    coder = zstandard.ZstdCompressor(write_content_size=said).compressobj(size=size if said else -1)
    block = bytes(1 << 20)
    return b"".join(coder.compress(block) for _ in range(size >> 20)) + coder.flush()


@pytest.mark.parametrize("said", [True, False])
def test_a_frame_that_holds_more_than_is_said_is_not_decompressed(
    tmp_path: Path, *, said: bool
) -> None:
    path = sealed_copy(BROKEN, tmp_path)
    coded = bomb(100 << 20, said=said)
    table = table_of(path)
    table["frames"][0][:2] = [index_end(path), len(coded)]
    with_table(path, table, coded)
    with pytest.raises(DeltatapeError, match="holds more than"):
        open_tape(path)


def test_a_table_that_is_a_bomb_is_not_decompressed(tmp_path: Path) -> None:
    path = sealed_copy(BROKEN, tmp_path)
    with_table(path, bytes(65 << 20))
    with pytest.raises(TapeFormatError, match="holds more than"):
        open_tape(path)


def test_what_its_header_line_holds_is_checked(tmp_path: Path) -> None:
    path = sealed_copy(Path(write_tape(tmp_path, whole_tape())), tmp_path)
    table = table_of(path)
    table["frames"][0], table["frames"][1] = table["frames"][1], table["frames"][0]
    table["order"][0][3] = table["frames"][0][2]
    with_table(path, table)
    with pytest.raises(TapeFormatError, match="no tape"):
        open_tape(path)


class _Failing(FileRanges):
    """A store that does not answer."""

    def read(self, offset: int, length: int) -> bytes:  # noqa: ARG002 - as it is called
        raise ConnectionResetError(104, "Connection reset by peer")


def test_a_store_that_fails_is_told(tmp_path: Path) -> None:
    path = sealed_copy(BROKEN, tmp_path)
    with pytest.raises(UsageError, match="far: Connection reset by peer"):
        open_sealed("far", _Failing(path))
