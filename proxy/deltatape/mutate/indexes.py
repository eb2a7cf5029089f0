"""Defects of `index` in the tool calls of chat completions."""

import json

from deltatape.mutate._base import CHAT, MutationChoices, indexed, mutator
from deltatape.mutate._calls import ChatCall, ChatCallEntry, chat_calls, entries, remove_entry
from deltatape.mutate._draft import MutableExchange

_INDEX = ("index",)


def whole(call: ChatCall) -> None:
    """Send a whole call, arguments included, in its first entry."""
    text = call.text
    first, *later = call.entries
    if later:
        first.put_text(("function", "arguments"), text)
    for entry in reversed(later):
        remove_entry(entry)


def parallel(draft: MutableExchange) -> list[ChatCall]:
    """Return the calls of the first choice that has several, or none."""
    found = chat_calls(draft)
    for call in found:
        others = [each for each in found if each.choice == call.choice]
        if len(others) > 1:
            return others
    return []


def _in_turn(calls: list[ChatCall], draft: MutableExchange) -> bool:
    """Return whether each call ends before the next begins."""
    order = [
        place
        for entry in entries(draft)
        for place, call in enumerate(calls)
        if entry in call.entries
    ]
    return order == sorted(order)


def _set(entry: ChatCallEntry, index: int) -> None:
    entry.put(_INDEX, str(index))


@mutator("index-missing", 1, CHAT, indexed)
def index_missing(draft: MutableExchange, _: MutationChoices) -> None:
    """The entries of `tool_calls` have no `index`."""
    for entry in entries(draft):
        entry.drop("index")


@mutator("index-null", 2, CHAT, indexed)
def index_null(draft: MutableExchange, _: MutationChoices) -> None:
    """The entries of `tool_calls` have `"index":null`."""
    for entry in entries(draft):
        entry.put(_INDEX, "null")


@mutator("index-all-zero", 3, CHAT)
def index_all_zero(draft: MutableExchange, _: MutationChoices) -> None:
    """Parallel calls, each in one entry, all have index 0; only their ids differ."""
    for call in parallel(draft):
        whole(call)
        _set(call.entries[0], 0)


@mutator("index-all-zero-no-id", 4, CHAT)
def index_all_zero_no_id(draft: MutableExchange, _: MutationChoices) -> None:
    """Parallel calls, each in one entry, all have index 0 and no id."""
    for call in parallel(draft):
        whole(call)
        _set(call.entries[0], 0)
        call.entries[0].drop("id")


@mutator("index-chunk-local", 5, CHAT)
def index_chunk_local(draft: MutableExchange, _: MutationChoices) -> None:
    """Parallel calls are sent one per event, and each index counts within its event."""
    calls = parallel(draft)
    if len({id(call.opened) for call in calls}) == len(calls):
        for call in calls:
            whole(call)
            _set(call.entries[0], 0)


@mutator("index-by-name", 6, CHAT)
def index_by_name(draft: MutableExchange, _: MutationChoices) -> None:
    """Calls of the same tool share an index, since the server assigns it by name."""
    calls = parallel(draft)
    if not _in_turn(calls, draft):
        return
    for place, call in enumerate(calls):
        first = next(at for at, each in enumerate(calls) if each.name == call.name)
        if first != place:
            for entry in call.entries:
                _set(entry, first)


@mutator("index-not-zero-based", 7, CHAT)
def index_not_zero_based(draft: MutableExchange, _: MutationChoices) -> None:
    """The first tool call has index 1, since the server also counted a text block."""
    for entry in entries(draft):
        index = entry.says("index")
        if isinstance(index, int):
            _set(entry, index + 1)


@mutator("index-split-call", 8, CHAT)
def index_split_call(draft: MutableExchange, chance: MutationChoices) -> None:
    """The later fragments of a call have another index, with the call's id."""
    calls = chat_calls(draft)
    several = [call for call in calls if len(call.pieces) > 1]
    if not several:
        return
    call = several[chance.choose(len(several))]
    for entry in call.later[len(call.later) // 2 :]:
        _set(entry, len(calls))
        entry.put_text(("id",), call.id)


@mutator("index-wrong-call", 9, CHAT)
def index_wrong_call(draft: MutableExchange, _: MutationChoices) -> None:
    """The second call has the index of the first, an empty name and no id."""
    calls = parallel(draft)
    if not calls or not _in_turn(calls, draft):
        return
    for entry in calls[1].entries:
        _set(entry, 0)
        entry.drop("id")
    calls[1].entries[0].put_text(("function", "name"), "")


@mutator("index-dup-in-chunk", 10, CHAT)
def index_dup_in_chunk(draft: MutableExchange, chance: MutationChoices) -> None:
    """One `tool_calls` list has two entries with the same index: legal, but unexpected."""
    long = [entry for entry in entries(draft) if len(entry.arguments.text) > 1]
    if not long:
        return
    entry = long[chance.choose(len(long))]
    text = entry.arguments.text
    second = {"index": entry.says("index"), "function": {"arguments": text[len(text) // 2 :]}}
    entry.arguments.write(text[: len(text) // 2])
    entry.unit.append(entry.path[:-1], json.dumps(second, separators=(",", ":")))


@mutator("bridge-identity-lost", 28, CHAT)
def bridge_identity_lost(draft: MutableExchange, _: MutationChoices) -> None:
    """A bridge from Responses to chat completions gives all calls index 0; the ids stay."""
    calls = parallel(draft)
    if _in_turn(calls, draft):
        for entry in (entry for call in calls for entry in call.entries):
            _set(entry, 0)
