"""Defects of identity and order in typed events: the items of Responses, the blocks of Messages."""

import json

from deltatape.mutate._base import (
    CONVERSE,
    MESSAGES,
    RESPONSES,
    MutationChoices,
    cut_before,
    mutator,
)
from deltatape.mutate._calls import message_calls, response_calls
from deltatape.mutate._draft import MutableExchange
from deltatape.mutate._units import MutableEvent, kinds
from deltatape.wire.json_edit import Path, at

_INDEX = ("output_index",)


def renumbered(draft: MutableExchange) -> None:
    """Renumber the remaining events, as if the others had never existed."""
    number = 0
    for unit in draft.units:
        if not unit.removed and at(unit.value, "sequence_number") is not None:
            if at(unit.value, "sequence_number") != number:
                unit.put(("sequence_number",), str(number))
            number += 1


def _call_items(draft: MutableExchange, kind: str) -> list[MutableEvent]:
    return [
        unit
        for unit in kinds(draft.units).get(f"response.output_item.{kind}", ())
        if at(unit.value, "item", "type") == "function_call"
    ]


@mutator("r-item-id-rotates", 23, RESPONSES)
def item_id_rotates(draft: MutableExchange, _: MutationChoices) -> None:
    """The id of one item differs from event to event."""
    places: tuple[Path, ...] = (("item_id",), ("item", "id"))
    for number, unit in enumerate(draft.units):
        for place in places:
            found = at(unit.value, *place)
            if isinstance(found, str):
                unit.put_text(place, f"{found}{number}")


@mutator("r-done-item-no-id", 24, RESPONSES)
def done_item_no_id(draft: MutableExchange, _: MutationChoices) -> None:
    """The finished item has no `id`, but an `item_id`."""
    for unit in _call_items(draft, "done"):
        id_ = unit.source(("item", "id"))
        if id_:
            unit.drop(("item", "id"))
            unit.put(("item", "item_id"), id_)


@mutator("r-output-index-collides", 26, RESPONSES)
def output_index_collides(draft: MutableExchange, _: MutationChoices) -> None:
    """All calls have the same `output_index`."""
    indexes = [at(unit.value, *_INDEX) for unit in _call_items(draft, "added")]
    for unit in draft.units:
        if at(unit.value, *_INDEX) in indexes:
            unit.put(_INDEX, json.dumps(indexes[0]))


@mutator("a-delta-unknown-block", 29, MESSAGES)
def delta_unknown_block(draft: MutableExchange, chance: MutationChoices) -> None:
    """A delta has the index of a block that was never started."""
    deltas = kinds(draft.units).get("content_block_delta", [])
    if deltas:
        unit = deltas[chance.choose(len(deltas))]
        unit.put(("index",), str(len(draft.units)))


@mutator("a-text-on-tool-block", 30, MESSAGES)
def text_on_tool_block(draft: MutableExchange, chance: MutationChoices) -> None:
    """A text delta refers to a block that is a tool call."""
    pieces = [piece for call in message_calls(draft) for piece in call.pieces]
    if pieces:
        unit = pieces[chance.choose(len(pieces))].unit
        new = unit.like()
        new.put(("delta",), '{"type":"text_delta","text":" "}')
        draft.add_after(unit, new)


@mutator("r-done-only-args", 55, RESPONSES)
def done_only_args(draft: MutableExchange, _: MutationChoices) -> None:
    """Arguments are sent only at the end of a call, without deltas: legal."""
    for call in response_calls(draft):
        for piece in call.pieces:
            piece.unit.removed = True
    renumbered(draft)


@mutator("r-empty-first-delta", 56, RESPONSES)
def empty_first_delta(draft: MutableExchange, _: MutationChoices) -> None:
    """The first delta of a call's arguments is empty: legal."""
    for call in response_calls(draft):
        if call.pieces:
            new = call.pieces[0].unit.like()
            new.put_text(("delta",), "")
            draft.add_before(call.pieces[0].unit, new)
    renumbered(draft)


@mutator("r-cipher-delta", 57, RESPONSES)
def cipher_delta(draft: MutableExchange, chance: MutationChoices) -> None:
    """The deltas are encrypted, and only the finished call has readable arguments."""
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    for call in response_calls(draft):
        for piece in call.pieces:
            text = "".join(alphabet[chance.choose(len(alphabet))] for _ in range(8))
            piece.write(text)


@mutator("r-completed-output-empty", 74, RESPONSES)
def completed_output_empty(draft: MutableExchange, _: MutationChoices) -> None:
    """The final event has an empty output list, although items were streamed."""
    for unit in kinds(draft.units).get("response.completed", ()):
        if unit.source(("response", "output")):
            unit.put(("response", "output"), "[]")


@mutator("r-no-item-done", 75, RESPONSES)
def no_item_done(draft: MutableExchange, _: MutationChoices) -> None:
    """No event ends a call after its deltas; only the final event contains it."""
    done = kinds(draft.units).get("response.function_call_arguments.done", [])
    for unit in (*done, *_call_items(draft, "done")):
        unit.removed = True
    renumbered(draft)


@mutator("a-dup-message-start", 77, MESSAGES)
def dup_message_start(draft: MutableExchange, _: MutationChoices) -> None:
    """`message_start` is sent twice."""
    for unit in kinds(draft.units).get("message_start", ())[:1]:
        draft.add_after(unit, unit.like())


@mutator("a-no-message-stop", 76, MESSAGES + CONVERSE)
def no_message_stop(draft: MutableExchange, chance: MutationChoices) -> None:
    """The stream ends without `message_stop`, with or without a connection error."""
    ends = [
        place
        for place, unit in enumerate(draft.units)
        if at(unit.value, "type") == "message_stop" or at(unit.value, "stopReason") is not None
    ]
    if ends and ends[0]:
        cut_before(draft, ends[0], chance)
