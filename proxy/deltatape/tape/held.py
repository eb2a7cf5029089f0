"""Masks what comes in pieces, when a credential may begin in one piece and end in a later one.

Strategy: the end of what has come that may begin a credential is kept, and with it the pieces it
stands in; a piece is decided when nothing of it is in that end any more. Almost every piece is
decided at once. What comes after a piece that is not decided waits behind it, so that the order of
records is that of their times.

Invariants: pieces keep their lengths; what is masked in one is told as spans of it; what waits is
bounded.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from deltatape.model.exchange import MaskedSpan
from deltatape.tape.literals import LEAST, Literals, blanked, merged

MOST_HELD = 4 << 20
"""How many bytes may wait behind a piece; beyond that it is masked as if a credential came."""


class Piece:
    """A piece of a body. `decided`: whether what is masked in it is known for good."""

    __slots__ = ("_data", "_spans", "decided", "start")

    def __init__(self, data: bytes, start: int) -> None:
        self._data = data
        self._spans: list[MaskedSpan] = []
        self.start = start
        self.decided = False

    @property
    def end(self) -> int:
        """Where it ends in the body."""
        return self.start + len(self)

    def mark(self, start: int, end: int, digest: str) -> None:
        """Mask what of the body's `[start, end)` is in this piece."""
        start, end = max(start - self.start, 0), min(end - self.start, len(self))
        if start < end:
            self._spans.append((start, end, digest))

    def __len__(self) -> int:
        return len(self._data)

    def masked(self) -> tuple[bytes, tuple[MaskedSpan, ...]]:
        """The piece as it may be written, and where in it asterisks stand for a credential."""
        spans = merged(self._spans)
        return (blanked(self._data, spans) if spans else self._data), spans


class BodyMasker:
    """Masks one body; pieces come in order."""

    __slots__ = ("_end", "_literals", "_open", "_tail")

    def __init__(self, literals: Literals) -> None:
        self._literals = literals
        self._end = 0
        self._tail = b""  # what has come that may begin a credential
        self._open: list[Piece] = []  # the pieces that it stands in

    @property
    def waiting(self) -> bool:
        """Whether the next piece may continue a credential."""
        return bool(self._tail)

    def add(self, data: bytes) -> Piece:
        """The next piece; it and earlier ones may be decided by it."""
        piece = Piece(data, self._end)
        window = self._tail + data
        at = self._end - len(self._tail)
        self._end += len(data)
        self._open.append(piece)
        for start, end, digest in self._literals.find(window):
            self._mark(at + start, at + end, digest)
        length, _ = self._literals.tail(window)
        self._tail = window[len(window) - length :]
        self._decide(self._end - length)
        return piece

    def finish(self) -> None:
        """Decide: nothing more comes. What may be a credential that was cut is masked."""
        length, digest = self._literals.tail(self._tail)
        if length >= LEAST:
            self._mark(self._end - length, self._end, digest)
        self._tail = b""
        self._decide(self._end)

    def give_up(self) -> None:
        """Decide, although more may come: what may begin a credential is masked as one."""
        length, digest = self._literals.tail(self._tail)
        self._mark(self._end - length, self._end, digest)
        self._decide(self._end)

    def _mark(self, start: int, end: int, digest: str) -> None:
        for piece in self._open:
            piece.mark(start, end, digest)

    def _decide(self, until: int) -> None:
        for piece in self._open:
            piece.decided = piece.end <= until
        self._open = [piece for piece in self._open if not piece.decided]


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A piece of a body and what its record is made of."""

    t_ns: int
    middle: str
    """See `encode.data_record`."""
    piece: Piece
    chunk_ends: tuple[int, ...] | None


class Queue:
    """The records of an exchange that wait for a piece before them to be decided.

    Args:
        put_line: takes a finished line.
        put_piece: takes a piece that is decided.
    """

    __slots__ = ("_bytes", "_put_line", "_put_piece", "_waiting")

    def __init__(
        self, put_line: Callable[[bytes], None], put_piece: Callable[[Held], None]
    ) -> None:
        self._put_line = put_line
        self._put_piece = put_piece
        self._waiting: deque[bytes | Held] = deque()
        self._bytes = 0

    def __bool__(self) -> bool:
        return bool(self._waiting)

    @property
    def full(self) -> bool:
        """Whether more waits than may."""
        return self._bytes > MOST_HELD

    def add(self, record: bytes | Held) -> None:
        """Take a record; it is handed on at once if nothing has to be waited for."""
        self._waiting.append(record)
        self._bytes += _size(record)
        self.release()

    def release(self) -> None:
        """Hand on what has waited long enough."""
        while self._waiting:
            first = self._waiting[0]
            if isinstance(first, Held) and not first.piece.decided:
                return
            self._waiting.popleft()
            self._bytes -= _size(first)
            if isinstance(first, Held):
                self._put_piece(first)
            else:
                self._put_line(first)


def _size(record: bytes | Held) -> int:
    return len(record) if isinstance(record, bytes) else len(record.piece)
