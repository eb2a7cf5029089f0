"""Defects that servers, gateways, proxies and applications cause: framing, timing, own events."""

import re
from itertools import accumulate, pairwise

from deltatape.dialects import EventShape, Traits
from deltatape.model.stream import Format
from deltatape.mutate._base import (
    APP_EVENTS,
    CHAT,
    CONVERSE,
    MESSAGES,
    SDK_UI,
    MutationChoices,
    choose_one,
    mutator,
)
from deltatape.mutate._calls import chat_calls, converse_calls, message_calls
from deltatape.mutate._draft import MutableExchange
from deltatape.wire.json_edit import at

_NS = 1_000_000_000
_LINE_ENDS = re.compile(rb"(?:\r\n|\n|\r)([\r\n]*)\Z")
_ALL = tuple(EventShape)
_BUFFERED = tuple(shape for shape in EventShape if shape not in APP_EVENTS)


def _over_sse(traits: Traits) -> bool:
    return Format.SSE in traits.formats


@mutator("sse-comment-as-data", 96, _ALL, _over_sse)
def sse_comment_as_data(draft: MutableExchange, chance: MutationChoices) -> None:
    """A keep-alive comment is sent as the data of an event."""
    if draft.is_sse and draft.units:
        unit = draft.units[chance.choose(len(draft.units))]
        new = unit.like()
        new.text = ": PROCESSING"
        draft.add_before(unit, new)


@mutator("sse-interleaved-json", 99, _ALL, _over_sse)
def sse_interleaved_json(draft: MutableExchange, chance: MutationChoices) -> None:
    """An event is cut inside its JSON, and the next `data:` line continues on the same line."""
    if not draft.is_sse:
        return
    pairs = [
        (before, unit)
        for before, unit in pairwise(draft.units)
        if len(unit.text) > 1 and isinstance(unit.value, dict)
    ]
    if pair := choose_one(pairs, chance):
        before, unit = pair
        cut = 1 + chance.choose(len(before.text) - 1) if len(before.text) > 1 else 0
        before.text = f"{before.text[:cut]}data: {unit.text}"
        unit.removed = True


@mutator("proxy-buffered", 100, _BUFFERED)
def proxy_buffered(draft: MutableExchange, chance: MutationChoices) -> None:
    """A proxy buffers the body and sends it in one burst at the end."""
    exchange = draft.exchange
    if exchange.timed and exchange.reads:
        late = exchange.reads[-1].t_ns + (5 + chance.choose(25)) * _NS
        draft.retime(lambda _: late)


@mutator("long-silent-tool", 101, MESSAGES + CONVERSE)
def long_silent_tool(draft: MutableExchange, chance: MutationChoices) -> None:
    """The stream pauses for 1 to 2.5 minutes inside a call's arguments, then continues."""
    exchange = draft.exchange
    begins = [
        piece.unit.start or 0
        for call in (*message_calls(draft), *converse_calls(draft))
        for piece in call.pieces
    ]
    starts = accumulate(len(read.data) for read in exchange.reads)
    inside = [
        read
        for (before, read), start in zip(pairwise(exchange.reads), starts, strict=False)
        if begins and begins[0] < start <= begins[-1] and read.t_ns > before.t_ns
    ]
    if exchange.timed and inside:
        resumed_ns = inside[chance.choose(len(inside))].t_ns
        gap = (60 + chance.choose(90)) * _NS
        draft.retime(lambda read: read.t_ns + (gap if read.t_ns >= resumed_ns else 0))


@mutator("no-tool-streaming", 102, CHAT)
def no_tool_streaming(draft: MutableExchange, _: MutationChoices) -> None:
    """Each call is sent whole in one event, without deltas: legal."""
    for call in chat_calls(draft):
        call.merge()


@mutator("sse-last-event-unterminated", 103, _ALL, _over_sse)
def sse_last_event_unterminated(draft: MutableExchange, _: MutationChoices) -> None:
    """The body ends after the data of its last event, without the blank line."""
    if draft.is_sse and draft.units:
        ends = _LINE_ENDS.search(draft.tail())
        if ends and ends[1]:
            draft.shorten(len(ends[1]))


@mutator("sse-no-event-line", 104, MESSAGES, lambda traits: traits.named_events)
def sse_no_event_line(draft: MutableExchange, _: MutationChoices) -> None:
    """The events have no `event:` line, though their data has a type."""
    if message_calls(draft):
        for unit in draft.units:
            unit.rename("")


@mutator("agui-order", 93, SDK_UI)
def agui_order(draft: MutableExchange, _: MutationChoices) -> None:
    """The last piece of a tool's input follows the event that ends the input."""
    for complete in draft.of_type("tool-input-available")[:1]:
        id_ = at(complete.value, "toolCallId")
        deltas = draft.of_type("tool-input-delta")
        for delta in [unit for unit in deltas if at(unit.value, "toolCallId") == id_][-1:]:
            draft.add_after(complete, delta.like())
            delta.removed = True


@mutator("ui-no-start", 94, SDK_UI)
def ui_no_start(draft: MutableExchange, _: MutationChoices) -> None:
    """The pieces of a tool's input are not preceded by the event that starts it."""
    for unit in draft.of_type("tool-input-start")[:1]:
        unit.removed = True


@mutator("app-toolcall-per-chunk", 95, APP_EVENTS)
def app_toolcall_per_chunk(draft: MutableExchange, _: MutationChoices) -> None:
    """The application sends one call per fragment, without a name, its arguments a number."""
    for number, unit in enumerate(draft.of_type("tool_call")):
        for piece in range(3):
            new = unit.like()
            new.put(("name",), "null")
            new.put(("arguments",), str(10 * (number + piece)))
            draft.add_after(unit, new)
        unit.removed = True
