"""Defects of framing and timing, which servers, gateways and proxies cause."""

import re
from itertools import accumulate

from deltatape.dialects import EventShape, Traits
from deltatape.model.exchange import Read
from deltatape.model.stream import Format
from deltatape.mutate._base import APP_EVENTS, CHAT, CONVERSE, MESSAGES, MutationChoices, mutator
from deltatape.mutate._calls import chat_calls, converse_calls, message_calls
from deltatape.mutate._draft import MutableExchange
from deltatape.mutate._units import MutableEvent
from deltatape.mutate.indexes import whole

NS = 1_000_000_000
_LINE_ENDS = re.compile(rb"(?:\r\n|\n|\r)([\r\n]*)\Z")
_EVERY = tuple(EventShape)
_BUFFERED = tuple(each for each in EventShape if each not in APP_EVENTS)


def _over_sse(traits: Traits) -> bool:
    return Format.SSE in traits.formats


def _is_named(traits: Traits) -> bool:
    return traits.named_events


@mutator("sse-comment-as-data", 96, _EVERY, _over_sse)
def sse_comment_as_data(draft: MutableExchange, chance: MutationChoices) -> None:
    """A keep-alive comment is sent as the data of an event."""
    if draft.is_sse and draft.units:
        unit = draft.units[chance.choose(len(draft.units))]
        new = unit.like()
        new.text = ": PROCESSING"
        draft.add_before(unit, new)


@mutator("sse-interleaved-json", 99, _EVERY, _over_sse)
def sse_interleaved_json(draft: MutableExchange, chance: MutationChoices) -> None:
    """An event is cut inside its JSON, and the next `data:` line continues on the same line."""
    if not draft.is_sse:
        return
    places = [
        place
        for place, unit in enumerate(draft.units[1:], 1)
        if len(unit.text) > 1 and isinstance(unit.value, dict)
    ]
    if places:
        place = places[chance.choose(len(places))]
        unit, before = draft.units[place], draft.units[place - 1]
        at = 1 + chance.choose(len(before.text) - 1) if len(before.text) > 1 else 0
        before.text = f"{before.text[:at]}data: {unit.text}"
        unit.removed = True


@mutator("proxy-buffered", 100, _BUFFERED)
def proxy_buffered(draft: MutableExchange, chance: MutationChoices) -> None:
    """A proxy buffers the body and sends it in one burst at the end."""
    exchange = draft.exchange
    if exchange.timed and exchange.reads:
        late = exchange.reads[-1].t_ns + (5 + chance.choose(25)) * NS
        draft.retime(lambda _: late)


@mutator("long-silent-tool", 101, MESSAGES + CONVERSE)
def long_silent_tool(draft: MutableExchange, chance: MutationChoices) -> None:
    """The stream pauses for 1 to 2.5 minutes inside a call's arguments, then continues."""
    inside = [
        piece.unit
        for call in (*message_calls(draft), *converse_calls(draft))
        for piece in call.pieces
    ]
    exchange = draft.exchange
    after = _later(draft, inside)
    if exchange.timed and after:
        start = after[chance.choose(len(after))].t_ns
        gap = (60 + chance.choose(90)) * NS
        draft.retime(lambda read: read.t_ns + (gap if read.t_ns >= start else 0))


def _later(draft: MutableExchange, inside: list[MutableEvent]) -> list[Read]:
    """Yield the reads that begin between events of arguments, later than the previous read."""
    reads = draft.exchange.reads
    starts = accumulate(len(read.data) for read in reads)
    begins = [unit.start or 0 for unit in inside]
    return [
        read
        for before, read, start in zip(reads, reads[1:], starts, strict=False)
        if begins and begins[0] < start <= begins[-1] and read.t_ns > before.t_ns
    ]


@mutator("no-tool-streaming", 102, CHAT)
def no_tool_streaming(draft: MutableExchange, _: MutationChoices) -> None:
    """Each call is sent whole in one event, without deltas: legal."""
    for call in chat_calls(draft):
        whole(call)


@mutator("sse-last-event-unterminated", 103, _EVERY, _over_sse)
def sse_last_event_unterminated(draft: MutableExchange, _: MutationChoices) -> None:
    """The body ends after the data of its last event, without the blank line."""
    if draft.is_sse and draft.units:
        ends = _LINE_ENDS.search(draft.tail())
        if ends and ends[1]:
            draft.shorten(len(ends[1]))


@mutator("sse-no-event-line", 104, MESSAGES, _is_named)
def sse_no_event_line(draft: MutableExchange, _: MutationChoices) -> None:
    """The events have no `event:` line, though their data has a type."""
    if message_calls(draft):
        for unit in draft.units:
            unit.unnamed()
