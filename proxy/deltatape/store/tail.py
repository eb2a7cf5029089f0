"""Follows a tape while it is being written.

The file stays open, so that a recorder may rename or delete the tape. Lines count once they are
complete; a damaged line is a `TapeFormatError`, as in `reader`.

Whoever assembles exchanges holds those that have not ended: hundreds of megabytes where uploads or
readers are slow. So from the first long line of an exchange on, its lines come only when its `end`
has come. Until then only their places are known (`Holds.LONG`).

Whoever shows exchanges in progress does not need each read at once, and parsing them is most of the
work of following: so what comes after an exchange's first read can wait, too (`Holds.READS`).
"""

import enum
import os
from collections.abc import Iterable, Iterator
from io import BytesIO
from pathlib import Path
from types import TracebackType
from typing import Self

from deltatape.errors import TapeFormatError
from deltatape.store.reader import MAX_LINE, open_lines
from deltatape.tape.decode import decode_header, decode_lines, decode_record
from deltatape.tape.fields import MalformedError
from deltatape.tape.payload import BodyRead, EndRecord, FrameRecord
from deltatape.tape.record import Header, ReadRecord, Record

BLOCK = 1 << 18
LONG_LINE = 1 << 14
"""A length that the record of an exchange of ordinary size seldom reaches."""


_CODE_PLACE = 2
_END = b'"%b"' % EndRecord.code.encode()
_DATA = frozenset(b'"%b"' % kind.code.encode() for kind in (BodyRead, FrameRecord))
"""The codes of what a provider sends bit by bit."""


class Holds(enum.Enum):
    """Which lines of an exchange wait until it has ended."""

    NONE = "none"
    LONG = "long"
    """From the first long one on."""
    READS = "reads"
    """After the first read or frame, unless `TapeTail.release` gives them out before."""


class TapeTail:
    """The records that are appended to a tape, from its beginning on.

    Args:
        path: the path of the tape.
        holds: which lines wait.

    Attributes:
        path: the tape, as it was called when it was opened.
        header: its first line; None until that is complete.

    Raises:
        UsageError: there is no such file, or it cannot be opened.
    """

    def __init__(self, path: str | Path, *, holds: Holds = Holds.LONG) -> None:
        self.path = str(path)
        self.header: Header | None = None
        self._file = open_lines(self.path)
        try:
            self._file.fileno()
        except OSError:  # a sealed tape, all of which is there
            holds = Holds.NONE
        self._holds = holds
        self._rest = b""
        self._line = 0
        self._offset = 0
        self._held: dict[bytes, list[tuple[int, int, int]]] = {}
        """Number, offset and length of the long lines that wait, by their exchange."""
        self._reads: dict[bytes, list[tuple[int, bytes]]] = {}
        """The lines that wait after the first read, by their exchange."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._file.close()

    def read(self) -> Iterator[tuple[int, Record | ReadRecord]]:
        """Yield the records that are complete by now and were not yielded before.

        With their line numbers; in order, but for those of an exchange whose lines wait. Memory
        holds one block, or one line if that is longer, and reads that wait.

        Raises:
            TapeFormatError: a line is damaged, or longer than any record; reading ends there.
        """
        while block := self._file.read(max(BLOCK, len(self._rest))):
            lines = BytesIO(self._rest + block).readlines()
            self._rest = b"" if lines[-1].endswith(b"\n") else lines.pop()
            if len(self._rest) > MAX_LINE:
                problem = f"longer than {MAX_LINE} bytes, the most that a line may have"
                raise TapeFormatError(self.path, self._line + len(lines) + 1, problem)
            if lines and self.header is None:
                self.header = self._first(lines.pop(0))
            numbered: Iterable[tuple[int, bytes]] = enumerate(lines, start=self._line + 1)
            self._line += len(lines)
            sizes = [*map(len, lines)]
            if self._holds is Holds.READS:
                numbered = self._without_reads(numbered)
            elif self._holds is Holds.LONG and (self._held or max(sizes, default=0) >= LONG_LINE):
                numbered = self._in_turn(numbered)
            else:
                self._offset += sum(sizes)
            yield from decode_lines(numbered, self._unusual)

    def is_waiting(self, exchange: int) -> bool:
        """Check whether lines of an exchange wait to be released."""
        return bool(self._reads.get(b"%d" % exchange))

    def release(self, exchange: int) -> Iterator[tuple[int, Record | ReadRecord]]:
        """Yield the records of an exchange that wait after its first read.

        Raises:
            TapeFormatError: a line is damaged; reading ends there.
        """
        key = b"%d" % exchange
        lines = self._reads.get(key)
        if lines:
            self._reads[key] = []
            yield from decode_lines(lines, self._unusual)

    def _without_reads(self, lines: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
        waiting = self._reads
        for numbered in lines:
            parts = numbered[1].split(b",", 3)
            exchange = parts[1] if len(parts) > _CODE_PLACE else b""
            held = waiting.get(exchange)
            if held is not None:
                if parts[_CODE_PLACE] != _END:
                    held.append(numbered)
                    continue
                yield from waiting.pop(exchange)
            elif len(parts) > _CODE_PLACE and parts[_CODE_PLACE] in _DATA and exchange.isdigit():
                waiting[exchange] = []  # the first comes: an exchange may have nothing else
            yield numbered

    def _in_turn(self, lines: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
        for number, line in lines:
            size, offset = len(line), self._offset
            self._offset += size
            _, exchange, code, *_ = (*line.split(b",", 3), b"", b"")
            long = size >= LONG_LINE and exchange.isdigit() and exchange != b"0"
            if not long and exchange not in self._held:
                yield number, line
                continue
            self._held.setdefault(exchange, []).append((number, offset, size))
            if code == _END:
                for held, at, length in self._held.pop(exchange):
                    yield held, os.pread(self._file.fileno(), length, at)

    def _first(self, line: bytes) -> Header:
        self._line = 1
        self._offset = len(line)
        try:
            return decode_header(line)
        except MalformedError as error:
            raise TapeFormatError(self.path, 1, f"no tape: {error}") from error

    def _unusual(self, number: int, line: bytes) -> Iterator[Record]:
        try:
            yield decode_record(line)
        except MalformedError as error:
            raise TapeFormatError(self.path, number, str(error)) from error
