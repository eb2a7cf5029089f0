"""The pieces in which a body arrives: `--reads`, and harmless variations that cut it elsewhere.

`--reads` is `recorded`; `event`, one event per piece; `bytes:N`; `every-byte`; or `random:SEED`,
pieces of random sizes, the same for the same seed. Sizes count bytes on the wire, which may be
compressed. Where an event or a character ends is found in the plain body, which is compressed again
so that each piece still brings its event. In a body with HTTP chunks each piece is a chunk: many
clients pass on what they get chunk by chunk, whatever the network does.
"""

import enum
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from deltatape.diagnose.decode import decode
from deltatape.errors import UsageError
from deltatape.model.exchange import Exchange
from deltatape.model.stream import Format
from deltatape.mutate import MutationChoices, SeededChoices
from deltatape.vary._base import harmless
from deltatape.vary.coded_bodies import plain, recoded
from deltatape.vary.shape import event_end, is_chunked, is_complete, rechunked, recut

_MOST = 1 << 30
_SCALES = (3, 3, 30, 300, 3000)
"""The maximum sizes of random pieces, each equally likely: most pieces are small."""
_TAIL = re.compile(rb"[\x80-\xbf]")
_ESCAPE = re.compile(rb"\\(?:u[0-9a-fA-F]{4}|.)", re.DOTALL)
_BLANK_LINE = re.compile(rb"(?:\r\n|\n|\r(?!\n))(?=[\r\n])")
_FIELD = re.compile(rb"^(?:data|event):", re.MULTILINE)
_TEXTS = (Format.SSE, Format.NDJSON, Format.JSON_ARRAY, Format.JSON)
_NUMBERED = re.compile(r"(bytes|random):([0-9]{1,18})")


class PieceUnit(enum.Enum):
    """How a body is split."""

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
        """Return `exchange` with the same body in these reads; each is an HTTP chunk."""
        if self.pieces is PieceUnit.EVENT:
            return event_reads(exchange)
        if self.pieces is PieceUnit.BYTES:
            return recut(exchange, range(0, len(exchange.body), self.number))
        if self.pieces is PieceUnit.RANDOM:
            return recut(exchange, random_cuts(len(exchange.body), self.number))
        return exchange


RECORDED = Cutting()
"""The recorded reads."""


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

    Unchanged if its content-codings cannot be decoded and encoded again.
    """
    bare = plain(exchange)
    if bare is None:
        return exchange
    ends = [event_end(bare.body, event.end) for event in decode(bare).events]
    return recoded(recut(bare, ends), exchange) or exchange


def random_cuts(size: int, seed: int) -> Iterator[int]:
    """Yield where to cut a body of `size` bytes, for a seed."""
    chance = SeededChoices(seed)
    at = 0
    while at < size:
        at += 1 + chance.choose(_SCALES[chance.choose(len(_SCALES))])
        yield at


# Harmless variations: the same bytes in other reads and chunks, as networks and proxies split them.


def cut_plain(exchange: Exchange, cuts: Iterable[int]) -> Exchange | None:
    """Return `exchange` with more cuts, at offsets of its plain body; None if there are none."""
    bare = plain(exchange)
    if bare is None:
        return None
    wanted = {cut for cut in cuts if 0 < cut < len(bare.body)}
    if not wanted:
        return None
    at = 0
    for read in bare.reads:
        at += len(read.data)
        wanted.add(at)
    return recoded(recut(bare, wanted), exchange)


def ends_of(exchange: Exchange, pattern: re.Pattern[bytes], *forms: Format) -> Iterator[int]:
    """Yield where matches end in the plain body, if it is framed in one of `forms`."""
    bare = plain(exchange)
    if bare is not None and decode(bare).format in forms:
        yield from (match.end() for match in pattern.finditer(bare.body))


@harmless("every-byte")
def every_byte(exchange: Exchange, _: MutationChoices) -> Exchange | None:
    """Every byte arrives in a read of its own."""
    size = len(exchange.body)
    return recut(exchange, range(size)) if size > 1 else None


@harmless("coalesced")
def coalesced(exchange: Exchange, _: MutationChoices) -> Exchange | None:
    """The whole body arrives in one read."""
    return recut(exchange, ()) if len(exchange.reads) > 1 else None


@harmless("event-reads")
def by_event(exchange: Exchange, _: MutationChoices) -> Exchange | None:
    """Every event arrives in a read of its own."""
    made = event_reads(exchange)
    return None if made is exchange else made


@harmless("random-reads")
def random_reads(exchange: Exchange, chance: MutationChoices) -> Exchange | None:
    """The body arrives in reads of random sizes."""
    size = len(exchange.body)
    return recut(exchange, random_cuts(size, chance.choose(1 << 62))) if size > 1 else None


@harmless("split-utf8")
def split_utf8(exchange: Exchange, _: MutationChoices) -> Exchange | None:
    """Every multi-byte UTF-8 character is split between reads."""
    starts = ends_of(exchange, _TAIL, *_TEXTS)
    return cut_plain(exchange, (end - 1 for end in starts))


@harmless("split-escape")
def split_escape(exchange: Exchange, _: MutationChoices) -> Exchange | None:
    r"""Every JSON escape, such as `\"` or `\u00e9`, is split between two reads."""
    bare = plain(exchange)
    if bare is None or decode(bare).format not in _TEXTS:
        return None
    places = (match.start() + 1 for match in _ESCAPE.finditer(bare.body))
    return cut_plain(exchange, places)


@harmless("split-blank-line")
def split_blank_line(exchange: Exchange, _: MutationChoices) -> Exchange | None:
    """The blank line that ends an event arrives in a later read than the event's last line."""
    return cut_plain(exchange, ends_of(exchange, _BLANK_LINE, Format.SSE))


@harmless("split-field")
def split_field(exchange: Exchange, _: MutationChoices) -> Exchange | None:
    """Every field name is split between two reads: `da`, then `ta:`."""
    ends = ends_of(exchange, _FIELD, Format.SSE)
    return cut_plain(exchange, (end - 3 for end in ends))


@harmless("split-event")
def split_event(exchange: Exchange, chance: MutationChoices) -> Exchange | None:
    """Every event is split, and its end arrives in one read with the start of the next event."""
    bare = plain(exchange)
    if bare is None:
        return None
    spans = [event.place.span for event in decode(bare).events]
    cuts = [start + 1 + chance.choose(end - start - 1) for start, end in spans if end - start > 1]
    return recoded(recut(bare, cuts), exchange) if cuts else None


@harmless("split-message")
def split_message(exchange: Exchange, _: MutationChoices) -> Exchange | None:
    """Every binary message is split inside its length fields and inside its checksum."""
    bare = plain(exchange)
    if bare is None or decode(bare).format is not Format.EVENTSTREAM:
        return None
    spans = [event.place.span for event in decode(bare).events]
    return cut_plain(exchange, [at for start, end in spans for at in (start + 2, end - 2)])


@harmless("one-chunk")
def one_chunk(exchange: Exchange, _: MutationChoices) -> Exchange | None:
    """The whole body is one HTTP chunk."""
    if not _is_chunked_and_complete(exchange) or len(exchange.reads) == 1:
        return None
    return rechunked(exchange, (len(exchange.body),))


@harmless("chunks-astride")
def chunks_astride(exchange: Exchange, _: MutationChoices) -> Exchange | None:
    """HTTP chunks end in the middle of reads, never at a read boundary."""
    if not _is_chunked_and_complete(exchange):
        return None
    start, ends = 0, []
    for read in exchange.reads:
        if len(read.data) > 1:
            ends.append(start + len(read.data) // 2)
        start += len(read.data)
    return rechunked(exchange, (*ends, start))


def _is_chunked_and_complete(exchange: Exchange) -> bool:
    return is_complete(exchange) and is_chunked(exchange) and bool(exchange.reads)


CUTTINGS = (
    every_byte,
    coalesced,
    by_event,
    random_reads,
    split_event,
    split_utf8,
    split_escape,
    split_blank_line,
    split_field,
    split_message,
    one_chunk,
    chunks_astride,
)
