"""Defects of the fragments of arguments, and of their JSON type."""

from collections.abc import Callable

from deltatape.mutate._base import CHAT, GEMINI, RESPONSES, MutationChoices, cut_before, mutator
from deltatape.mutate._calls import (
    CallSite,
    ChatCall,
    chat_calls,
    echoed,
    entries,
    needs,
    remove_entry,
    response_calls,
)
from deltatape.mutate._draft import MutableExchange
from deltatape.mutate.indexes import whole
from deltatape.mutate.items import renumbered
from deltatape.wire.json_edit import at, listed
from deltatape.wire.json_value import read_object

_ARGUMENTS = ("function", "arguments")


def _one(
    draft: MutableExchange, chance: MutationChoices, fits: Callable[[ChatCall], object] = bool
) -> list[ChatCall]:
    found = [call for call in chat_calls(draft) if fits(call)]
    return [found[chance.choose(len(found))]] if found else []


def _needing(draft: MutableExchange, chance: MutationChoices) -> list[ChatCall]:
    """Yield a call of a tool that is known to need arguments, if there is one."""
    return _one(draft, chance, lambda call: call.text and needs(draft.exchange, call.name))


@mutator("args-empty-lost", 32, CHAT)
def args_empty_lost(draft: MutableExchange, chance: MutationChoices) -> None:
    """A call has a name, then the stream ends, with or without a connection error."""
    for call in _one(draft, chance, lambda call: call.later and call.text):
        for piece in call.pieces[:1]:
            piece.write("")
        cut_before(draft, draft.units.index(call.opened) + 1, chance)


@mutator("args-null", 33, CHAT)
def args_null(draft: MutableExchange, chance: MutationChoices) -> None:
    """The arguments are null in every fragment."""
    for call in _needing(draft, chance):
        for entry in call.entries:
            entry.put(_ARGUMENTS, "null")


@mutator("args-absent", 34, CHAT)
def args_absent(draft: MutableExchange, _: MutationChoices) -> None:
    """The call of a tool that needs no arguments has no `arguments` key: legal."""
    for call in chat_calls(draft):
        if not needs(draft.exchange, call.name):
            for entry in reversed(call.later):
                remove_entry(entry)
            call.entries[0].drop(*_ARGUMENTS)


@mutator("args-object", 35, CHAT)
def args_object(draft: MutableExchange, chance: MutationChoices) -> None:
    """The arguments are a JSON object instead of a string."""
    for call in _one(draft, chance, lambda call: read_object(call.text) is not None):
        text = call.text
        whole(call)
        call.entries[0].put(_ARGUMENTS, text)


@mutator("args-cumulative", 38, CHAT)
def args_cumulative(draft: MutableExchange, chance: MutationChoices) -> None:
    """Every fragment repeats all previous ones (cumulative arguments)."""
    for call in _one(draft, chance, lambda call: len(call.pieces) > 1):
        text = ""
        for piece in call.pieces:
            text += piece.text
            piece.write(text)


@mutator("args-final-repeat", 39, CHAT + RESPONSES)
def args_final_repeat(draft: MutableExchange, chance: MutationChoices) -> None:
    """A last fragment repeats the complete arguments."""
    every: list[CallSite] = [*chat_calls(draft), *response_calls(draft)]
    found = [call for call in every if len(call.pieces) > 1 and ":" in call.text]
    if not found:
        return
    call = found[chance.choose(len(found))]
    last = call.pieces[-1]
    new = echoed(last)
    new.write(call.text)
    draft.add_after(last.unit, new.unit)
    renumbered(draft)


@mutator("args-lost-in-one-delta", 44, CHAT)
def args_lost_in_one_delta(draft: MutableExchange, chance: MutationChoices) -> None:
    """A call has a name but no arguments, and the reply ends normally."""
    for call in _needing(draft, chance):
        for entry in reversed(call.later):
            remove_entry(entry)
        call.entries[0].put_text(_ARGUMENTS, "")


@mutator("args-custom-empty", 53, CHAT)
def args_custom_empty(draft: MutableExchange, _: MutationChoices) -> None:
    """Each entry has an empty `custom` next to `function`."""
    for entry in entries(draft):
        entry.put(("custom",), "{}")


@mutator("g-partial-args-open", 59, GEMINI)
def g_partial_args_open(draft: MutableExchange, _: MutationChoices) -> None:
    """Arguments are sent in parts, and the empty `functionCall` that closes them is missing."""
    for unit in draft.units:
        for candidate, told in enumerate(listed(unit.value, "candidates")):
            for place, part in enumerate(listed(told, "content", "parts")):
                if at(part, "functionCall") == {}:
                    unit.drop(("candidates", candidate, "content", "parts", place))


@mutator("g-finish-later-chunk", 70, GEMINI)
def finish_later_chunk(draft: MutableExchange, _: MutationChoices) -> None:
    """The finish reason is in a later event than the call, with an empty text: legal."""
    for unit in draft.units:
        parts = listed(unit.value, "candidates", 0, "content", "parts")
        reason = unit.source(("candidates", 0, "finishReason"))
        if reason and any(at(part, "functionCall") is not None for part in parts):
            new = unit.like()
            new.put(("candidates", 0, "content", "parts"), '[{"text": ""}]')
            unit.drop(("candidates", 0, "finishReason"))
            draft.add_after(unit, new)
            return
