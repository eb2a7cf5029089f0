"""Defects of index, id, name and order: of chat calls, Responses items and Messages blocks."""

import json

from deltatape.dialects import Traits
from deltatape.mutate._base import (
    CHAT,
    CONVERSE,
    MESSAGES,
    RESPONSES,
    MutationChoices,
    choose_one,
    cut_before,
    mutator,
)
from deltatape.mutate._calls import (
    ChatCall,
    ChatCallEntry,
    chat_calls,
    entries,
    message_calls,
    response_calls,
)
from deltatape.mutate._draft import MutableEvent, MutableExchange
from deltatape.wire.json_edit import Path, at

_INDEX = ("index",)
_ID = ("id",)
_NAME = ("function", "name")
_OUTPUT_INDEX = ("output_index",)


def _has_indexes(traits: Traits) -> bool:
    """Return whether every delta of a call has an index."""
    return traits.policy.indexes


def _parallel(draft: MutableExchange) -> list[ChatCall]:
    """Return the calls of the first choice that has several, or none."""
    found = chat_calls(draft)
    for call in found:
        same_choice = [other for other in found if other.choice == call.choice]
        if len(same_choice) > 1:
            return same_choice
    return []


def _are_sequential(calls: list[ChatCall], draft: MutableExchange) -> bool:
    """Return whether each call ends before the next begins."""
    order = [
        place
        for entry in entries(draft)
        for place, call in enumerate(calls)
        if entry in call.entries
    ]
    return order == sorted(order)


def _set_index(entry: ChatCallEntry, index: int) -> None:
    entry.put(_INDEX, str(index))


@mutator("index-missing", 1, CHAT, _has_indexes)
def index_missing(draft: MutableExchange, _: MutationChoices) -> None:
    """The entries of `tool_calls` have no `index`."""
    for entry in entries(draft):
        entry.drop("index")


@mutator("index-null", 2, CHAT, _has_indexes)
def index_null(draft: MutableExchange, _: MutationChoices) -> None:
    """The entries of `tool_calls` have `"index":null`."""
    for entry in entries(draft):
        entry.put(_INDEX, "null")


@mutator("index-all-zero", 3, CHAT)
def index_all_zero(draft: MutableExchange, _: MutationChoices) -> None:
    """Parallel calls, each in one entry, all have index 0; only their ids differ."""
    for call in _parallel(draft):
        call.merge()
        _set_index(call.entries[0], 0)


@mutator("index-all-zero-no-id", 4, CHAT)
def index_all_zero_no_id(draft: MutableExchange, _: MutationChoices) -> None:
    """Parallel calls, each in one entry, all have index 0 and no id."""
    for call in _parallel(draft):
        call.merge()
        _set_index(call.entries[0], 0)
        call.entries[0].drop("id")


@mutator("index-chunk-local", 5, CHAT)
def index_chunk_local(draft: MutableExchange, _: MutationChoices) -> None:
    """Parallel calls are sent one per event, and each index counts within its event."""
    calls = _parallel(draft)
    if len({id(call.opened) for call in calls}) == len(calls):
        for call in calls:
            call.merge()
            _set_index(call.entries[0], 0)


@mutator("index-by-name", 6, CHAT)
def index_by_name(draft: MutableExchange, _: MutationChoices) -> None:
    """Calls of the same tool share an index, since the server assigns it by name."""
    calls = _parallel(draft)
    if not _are_sequential(calls, draft):
        return
    for place, call in enumerate(calls):
        first = next(at for at, other in enumerate(calls) if other.name == call.name)
        if first != place:
            for entry in call.entries:
                _set_index(entry, first)


@mutator("index-not-zero-based", 7, CHAT)
def index_not_zero_based(draft: MutableExchange, _: MutationChoices) -> None:
    """The first tool call has index 1, since the server also counted a text block."""
    for entry in entries(draft):
        index = entry.get("index")
        if isinstance(index, int):
            _set_index(entry, index + 1)


@mutator("index-split-call", 8, CHAT)
def index_split_call(draft: MutableExchange, chance: MutationChoices) -> None:
    """The later fragments of a call have another index, with the call's id."""
    calls = chat_calls(draft)
    if call := choose_one([call for call in calls if len(call.pieces) > 1], chance):
        for entry in call.later[len(call.later) // 2 :]:
            _set_index(entry, len(calls))
            entry.put_text(_ID, call.id)


@mutator("index-wrong-call", 9, CHAT)
def index_wrong_call(draft: MutableExchange, _: MutationChoices) -> None:
    """The second call has the index of the first, an empty name and no id."""
    calls = _parallel(draft)
    if not calls or not _are_sequential(calls, draft):
        return
    for entry in calls[1].entries:
        _set_index(entry, 0)
        entry.drop("id")
    calls[1].entries[0].put_text(_NAME, "")


@mutator("index-dup-in-chunk", 10, CHAT)
def index_dup_in_chunk(draft: MutableExchange, chance: MutationChoices) -> None:
    """One `tool_calls` list has two entries with the same index: legal, but unexpected."""
    divisible = [entry for entry in entries(draft) if len(entry.arguments.text) > 1]
    if entry := choose_one(divisible, chance):
        text = entry.arguments.text
        second = {"index": entry.get("index"), "function": {"arguments": text[len(text) // 2 :]}}
        entry.arguments.write(text[: len(text) // 2])
        entry.unit.append(entry.path[:-1], json.dumps(second, separators=(",", ":")))


@mutator("bridge-identity-lost", 28, CHAT)
def bridge_identity_lost(draft: MutableExchange, _: MutationChoices) -> None:
    """A bridge from Responses to chat completions gives all calls index 0; the ids stay."""
    calls = _parallel(draft)
    if _are_sequential(calls, draft):
        for call in calls:
            for entry in call.entries:
                _set_index(entry, 0)


def _fragmented(draft: MutableExchange) -> list[ChatCall]:
    """Return the calls in several entries."""
    return [call for call in chat_calls(draft) if call.later]


def _choose_fragmented(draft: MutableExchange, chance: MutationChoices) -> ChatCall | None:
    return choose_one(_fragmented(draft), chance)


@mutator("id-empty-cont", 11, CHAT)
def id_empty_cont(draft: MutableExchange, _: MutationChoices) -> None:
    """Continuations have `"id":""`: legal, but some clients start a new call."""
    for call in _fragmented(draft):
        for entry in call.later:
            entry.put_text(_ID, "")


@mutator("id-null-cont", 12, CHAT)
def id_null_cont(draft: MutableExchange, _: MutationChoices) -> None:
    """Continuations have `null` as id and name, which strict decoders reject."""
    for call in _fragmented(draft):
        for entry in call.later:
            entry.put(_ID, "null")
            entry.put(_NAME, "null")


@mutator("id-string-null", 13, CHAT)
def id_string_null(draft: MutableExchange, _: MutationChoices) -> None:
    """The id is the word "null"."""
    for call in chat_calls(draft):
        call.entries[0].put_text(_ID, "null")


@mutator("id-missing", 14, CHAT)
def id_missing(draft: MutableExchange, _: MutationChoices) -> None:
    """Calls have a name and arguments, but never an id."""
    for entry in entries(draft):
        entry.drop("id")


@mutator("id-repeated", 15, CHAT)
def id_repeated(draft: MutableExchange, _: MutationChoices) -> None:
    """The id is repeated in every fragment of a call."""
    for call in _fragmented(draft):
        for entry in call.later:
            entry.put_text(_ID, call.id)


@mutator("id-changes", 16, CHAT)
def id_changes(draft: MutableExchange, chance: MutationChoices) -> None:
    """Later fragments of a call have another id under the same index."""
    if call := _choose_fragmented(draft, chance):
        for entry in call.later:
            entry.put_text(_ID, f"{call.id}b")


@mutator("name-repeated", 17, CHAT)
def name_repeated(draft: MutableExchange, _: MutationChoices) -> None:
    """The name is repeated in every fragment of a call."""
    for call in _fragmented(draft):
        for entry in call.later:
            entry.put_text(_NAME, call.name)


@mutator("name-split", 18, CHAT)
def name_split(draft: MutableExchange, chance: MutationChoices) -> None:
    """The name is split over two fragments."""
    if call := _choose_fragmented(draft, chance):
        middle = len(call.name) // 2
        call.entries[0].put_text(_NAME, call.name[:middle])
        call.later[0].put_text(_NAME, call.name[middle:])


@mutator("name-late", 19, CHAT)
def name_late(draft: MutableExchange, chance: MutationChoices) -> None:
    """Arguments are sent before the name."""
    if call := _choose_fragmented(draft, chance):
        call.entries[0].drop(*_NAME)
        call.later[-1].put_text(_NAME, call.name)


@mutator("name-empty-first", 20, CHAT)
def name_empty_first(draft: MutableExchange, chance: MutationChoices) -> None:
    """The name of a call is empty at first; a later fragment has the real one."""
    if call := _choose_fragmented(draft, chance):
        call.entries[0].put_text(_NAME, "")
        call.later[0].put_text(_NAME, call.name)


@mutator("name-polluted", 21, CHAT)
def name_polluted(draft: MutableExchange, chance: MutationChoices) -> None:
    """The name contains control tokens of the model's format."""
    if call := choose_one(chat_calls(draft), chance):
        call.entries[0].put_text(_NAME, f"{call.name}<|channel|>commentary")


@mutator("chunk-id-changes", 22, CHAT, _has_indexes)
def chunk_id_changes(draft: MutableExchange, _: MutationChoices) -> None:
    """Every event of one response has a different `id`."""
    for number, unit in enumerate(draft.units):
        id_ = at(unit.value, "id")
        if isinstance(id_, str) and at(unit.value, "choices") is not None:
            unit.put_text(_ID, f"{id_}-{number}")


def _call_items(draft: MutableExchange, kind: str) -> list[MutableEvent]:
    """Return the events `response.output_item.KIND` of calls."""
    units = draft.of_type(f"response.output_item.{kind}")
    return [unit for unit in units if at(unit.value, "item", "type") == "function_call"]


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
    indexes = [at(unit.value, *_OUTPUT_INDEX) for unit in _call_items(draft, "added")]
    for unit in draft.units:
        if at(unit.value, *_OUTPUT_INDEX) in indexes:
            unit.put(_OUTPUT_INDEX, json.dumps(indexes[0]))


@mutator("a-delta-unknown-block", 29, MESSAGES)
def delta_unknown_block(draft: MutableExchange, chance: MutationChoices) -> None:
    """A delta has the index of a block that was never started."""
    if unit := choose_one(draft.of_type("content_block_delta"), chance):
        unit.put(("index",), str(len(draft.units)))


@mutator("a-text-on-tool-block", 30, MESSAGES)
def text_on_tool_block(draft: MutableExchange, chance: MutationChoices) -> None:
    """A text delta refers to a block that is a tool call."""
    pieces = [piece for call in message_calls(draft) for piece in call.pieces]
    if piece := choose_one(pieces, chance):
        new = piece.unit.like()
        new.put(("delta",), '{"type":"text_delta","text":" "}')
        draft.add_after(piece.unit, new)


@mutator("r-done-only-args", 55, RESPONSES)
def done_only_args(draft: MutableExchange, _: MutationChoices) -> None:
    """Arguments are sent only at the end of a call, without deltas: legal."""
    for call in response_calls(draft):
        for piece in call.pieces:
            piece.unit.removed = True
    draft.renumber()


@mutator("r-empty-first-delta", 56, RESPONSES)
def empty_first_delta(draft: MutableExchange, _: MutationChoices) -> None:
    """The first delta of a call's arguments is empty: legal."""
    for call in response_calls(draft):
        if call.pieces:
            new = call.pieces[0].unit.like()
            new.put_text(("delta",), "")
            draft.add_before(call.pieces[0].unit, new)
    draft.renumber()


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
    for unit in draft.of_type("response.completed"):
        if unit.source(("response", "output")):
            unit.put(("response", "output"), "[]")


@mutator("r-no-item-done", 75, RESPONSES)
def no_item_done(draft: MutableExchange, _: MutationChoices) -> None:
    """No event ends a call after its deltas; only the final event contains it."""
    done = draft.of_type("response.function_call_arguments.done")
    for unit in (*done, *_call_items(draft, "done")):
        unit.removed = True
    draft.renumber()


@mutator("a-dup-message-start", 77, MESSAGES)
def dup_message_start(draft: MutableExchange, _: MutationChoices) -> None:
    """`message_start` is sent twice."""
    for unit in draft.of_type("message_start")[:1]:
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
