"""Defects of ids and names in the tool calls of chat completions."""

from deltatape.mutate._base import CHAT, MutationChoices, indexed, mutator
from deltatape.mutate._calls import ChatCall, chat_calls, entries
from deltatape.mutate._draft import MutableExchange
from deltatape.wire.json_edit import at

_ID = ("id",)
_NAME = ("function", "name")


def _fragmented(draft: MutableExchange) -> list[ChatCall]:
    return [call for call in chat_calls(draft) if call.later]


def _one(draft: MutableExchange, chance: MutationChoices) -> list[ChatCall]:
    """Yield a call in several entries, if there is one."""
    calls = _fragmented(draft)
    return [calls[chance.choose(len(calls))]] if calls else []


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
    for call in _one(draft, chance):
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
    for call in _one(draft, chance):
        middle = len(call.name) // 2
        call.entries[0].put_text(_NAME, call.name[:middle])
        call.later[0].put_text(_NAME, call.name[middle:])


@mutator("name-late", 19, CHAT)
def name_late(draft: MutableExchange, chance: MutationChoices) -> None:
    """Arguments are sent before the name."""
    for call in _one(draft, chance):
        call.entries[0].drop(*_NAME)
        call.later[-1].put_text(_NAME, call.name)


@mutator("name-empty-first", 20, CHAT)
def name_empty_first(draft: MutableExchange, chance: MutationChoices) -> None:
    """The name of a call is empty at first; a later fragment has the real one."""
    for call in _one(draft, chance):
        call.entries[0].put_text(_NAME, "")
        call.later[0].put_text(_NAME, call.name)


@mutator("name-polluted", 21, CHAT)
def name_polluted(draft: MutableExchange, chance: MutationChoices) -> None:
    """The name contains control tokens of the model's format."""
    calls = chat_calls(draft)
    if calls:
        call = calls[chance.choose(len(calls))]
        call.entries[0].put_text(_NAME, f"{call.name}<|channel|>commentary")


@mutator("chunk-id-changes", 22, CHAT, indexed)
def chunk_id_changes(draft: MutableExchange, _: MutationChoices) -> None:
    """Every event of one response has a different `id`."""
    for number, unit in enumerate(draft.units):
        id_ = at(unit.value, "id")
        if isinstance(id_, str) and at(unit.value, "choices") is not None:
            unit.put_text(_ID, f"{id_}-{number}")
