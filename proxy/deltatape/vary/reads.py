"""`--reads`: the pieces in which to play a body.

`recorded` as it was read; `event` an event per piece; `bytes:N`; `every-byte`; `random:SEED` in
pieces of any size, the same for the same seed. Pieces of bytes are those of the wire, coded if the
body is; events are those of the plain body, coded so that each piece brings its event.
"""

import enum
import re
from collections.abc import Iterator
from dataclasses import dataclass

from deltatape.diagnose.decode import decode
from deltatape.errors import UsageError
from deltatape.model.exchange import Exchange
from deltatape.mutate import SeededChoices
from deltatape.vary.coded_bodies import plain, recoded
from deltatape.vary.shape import recut

_MOST = 1 << 30
_SCALES = (3, 3, 30, 300, 3000)
"""Up to how many bytes a random piece has, one as likely as the other: most are small."""
_NUMBERED = re.compile(r"(bytes|random):([0-9]{1,18})")


class PieceUnit(enum.Enum):
    """What a piece consists of."""

    RECORDED = "recorded"
    EVENT = "event"
    BYTES = "bytes"
    RANDOM = "random"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cutting:
    """A way to cut bodies; `number` is the size of pieces of bytes, or the seed of random ones."""

    pieces: PieceUnit = PieceUnit.RECORDED
    number: int = 0

    def cut(self, exchange: Exchange) -> Exchange:
        """Return `exchange` with the same body in these reads; each an HTTP chunk of its own."""
        if self.pieces is PieceUnit.EVENT:
            return event_reads(exchange)
        if self.pieces is PieceUnit.BYTES:
            return recut(exchange, range(0, len(exchange.body), self.number))
        if self.pieces is PieceUnit.RANDOM:
            return recut(exchange, random_cuts(len(exchange.body), self.number))
        return exchange


RECORDED = Cutting()
"""As the bodies were read."""


def parse_reads(text: str) -> Cutting:
    """Parse `recorded`, `event`, `bytes:N`, `every-byte` or `random:SEED`.

    Raises:
        UsageError: none of these.
    """
    if text in ("recorded", "event"):
        return Cutting(pieces=PieceUnit(text))
    if text == "every-byte":
        return Cutting(pieces=PieceUnit.BYTES, number=1)
    match = _NUMBERED.fullmatch(text)
    kind = PieceUnit(match[1]) if match else None
    number = int(match[2]) if match else 0
    if kind is None or (kind is PieceUnit.BYTES and not 1 <= number <= _MOST):
        raise UsageError(
            f"--reads {text!r}: invalid; use recorded, event, every-byte, bytes:N (N from 1"
            f" to {_MOST}) or random:SEED"
        )
    return Cutting(pieces=kind, number=number)


def event_reads(exchange: Exchange) -> Exchange:
    """Return `exchange` with a read per event; comments and blank lines join the event before them.

    As it is if its content-codings cannot be undone and done again.
    """
    bare = plain(exchange)
    if bare is None:
        return exchange
    ends = [_with_line_feed(bare.body, event.end) for event in decode(bare).events]
    return recoded(recut(bare, ends), exchange) or exchange


def _with_line_feed(body: bytes, end: int) -> int:
    """Return the end of an event whose span may stop between CR and LF."""
    return end + 1 if body[end - 1 : end + 1] == b"\r\n" else end


def random_cuts(size: int, seed: int) -> Iterator[int]:
    """Yield where to cut a body of `size` bytes, for a seed."""
    chance = SeededChoices(seed)
    at = 0
    while at < size:
        at += 1 + chance.choose(_SCALES[chance.choose(len(_SCALES))])
        yield at
