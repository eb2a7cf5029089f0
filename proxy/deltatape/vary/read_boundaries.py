"""Harmless: the same bytes in other reads and chunks, as networks and proxies split them.

Where to cut is asked of the plain body. A body in HTTP chunks gets a chunk for every piece: many
clients hand on what they get chunk by chunk, whatever the network does.
"""

import re
from collections.abc import Iterable, Iterator

from deltatape.diagnose.decode import decode
from deltatape.model.exchange import EndReason, Exchange
from deltatape.model.stream import Format
from deltatape.mutate import MutationChoices
from deltatape.vary._base import harmless
from deltatape.vary.coded_bodies import plain, recoded
from deltatape.vary.reads import event_reads, random_cuts
from deltatape.vary.shape import is_chunked, rechunked, recut

_TAIL = re.compile(rb"[\x80-\xbf]")
_ESCAPE = re.compile(rb"\\(?:u[0-9a-fA-F]{4}|.)", re.DOTALL)
_BLANK_LINE = re.compile(rb"(?:\r\n|\n|\r(?!\n))(?=[\r\n])")
_FIELD = re.compile(rb"^(?:data|event):", re.MULTILINE)
_TEXTS = (Format.SSE, Format.NDJSON, Format.JSON_ARRAY, Format.JSON)


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
    if not _is_whole(exchange) or len(exchange.reads) == 1:
        return None
    return rechunked(exchange, (len(exchange.body),))


@harmless("chunks-astride")
def chunks_astride(exchange: Exchange, _: MutationChoices) -> Exchange | None:
    """HTTP chunks end in the middle of reads, never at a read boundary."""
    if not _is_whole(exchange):
        return None
    start, ends = 0, []
    for read in exchange.reads:
        if len(read.data) > 1:
            ends.append(start + len(read.data) // 2)
        start += len(read.data)
    return rechunked(exchange, (*ends, start))


def _is_whole(exchange: Exchange) -> bool:
    """Return whether a body is complete, in HTTP chunks."""
    ended = exchange.end is not None and exchange.end.reason is EndReason.COMPLETE
    return ended and is_chunked(exchange) and bool(exchange.reads)


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
