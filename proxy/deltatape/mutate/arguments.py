"""Defects of the arguments of a call: their text, their JSON type, their fragments."""

import json
import re
from collections.abc import Callable
from itertools import pairwise

from deltatape.mutate._base import (
    CHAT,
    CONVERSE,
    GEMINI,
    MESSAGES,
    RESPONSES,
    MutationChoices,
    choose_one,
    cut_before,
    mutator,
)
from deltatape.mutate._calls import (
    ArgumentsPiece,
    CallSite,
    ChatCall,
    calls,
    chat_calls,
    echoed,
    entries,
    needs,
    response_calls,
)
from deltatape.mutate._draft import MutableExchange
from deltatape.wire.json_edit import at, listed
from deltatape.wire.json_value import read_object

_STREAMED = CHAT + RESPONSES + MESSAGES + CONVERSE
_ARGUMENTS = ("function", "arguments")
_COLON = re.compile(r'(?<=")\s*+(:)')
_STRING_VALUE = re.compile(r'[:,\[]\s*"([^"\\]+)"(?!\s*:)')


def _choose_call(
    draft: MutableExchange, chance: MutationChoices, fits: Callable[[CallSite], object] = bool
) -> CallSite | None:
    """Choose a call that fits and whose arguments are an object with members."""
    found = [call for call in calls(draft) if ":" in call.text and fits(call)]
    return choose_one(found, chance)


def _choose_string(
    draft: MutableExchange, chance: MutationChoices
) -> tuple[CallSite, int, int] | None:
    """Choose a string in the arguments of a call; return its start and end inside the quotes."""
    call = _choose_call(draft, chance, lambda call: _STRING_VALUE.search(call.text))
    if call is None:
        return None
    spans = [match.span(1) for match in _STRING_VALUE.finditer(call.text)]
    return call, *spans[chance.choose(len(spans))]


def _choose_needing(draft: MutableExchange, chance: MutationChoices) -> ChatCall | None:
    """Choose a chat call with arguments, of a tool that is known to need some."""
    found = [call for call in chat_calls(draft) if call.text and needs(draft.exchange, call.name)]
    return choose_one(found, chance)


@mutator("args-empty-noarg", 31, _STREAMED)
def args_empty_noarg(draft: MutableExchange, _: MutationChoices) -> None:
    """The call of a tool that needs no arguments has none, not even `{}`: legal."""
    for call in calls(draft):
        if call.pieces and not needs(draft.exchange, call.name):
            call.spread("")


@mutator("args-double-encoded", 36, CHAT)
def args_double_encoded(draft: MutableExchange, chance: MutationChoices) -> None:
    """The arguments are a JSON string that contains the JSON object."""
    if call := _choose_call(draft, chance):
        call.spread(json.dumps(call.text))


@mutator("args-empty-obj-prefix", 37, CHAT + CONVERSE)
def args_empty_obj_prefix(draft: MutableExchange, _: MutationChoices) -> None:
    """`{}` precedes the real arguments."""
    for call in calls(draft):
        if ":" not in call.text:
            continue
        first = call.pieces[0]
        if first.text:
            new = echoed(first)
            draft.add_before(first.unit, new.unit)
            _remove_opening(first)
            first = new
        first.write("{}")


def _remove_opening(piece: ArgumentsPiece) -> None:
    """Remove id, type and name from the entry of `tool_calls` with this piece."""
    entry = piece.path[:-2]
    if piece.path[-2:] == _ARGUMENTS:
        for path in (("id",), ("type",), ("function", "name")):
            piece.unit.drop((*entry, *path))


@mutator("args-missing-tail", 41, CHAT)
def args_missing_tail(draft: MutableExchange, chance: MutationChoices) -> None:
    """The last characters of the arguments are missing, and the reply ends normally."""
    if call := _choose_call(draft, chance):
        size = len(call.text.rstrip())
        call.splice(size - 1 - chance.choose(2), len(call.text), "")


@mutator("args-corrupt-punct", 42, CHAT)
def args_corrupt_punct(draft: MutableExchange, chance: MutationChoices) -> None:
    """Punctuation is missing in the arguments, and their end is repeated."""
    if call := _choose_call(draft, chance, lambda call: _COLON.search(call.text)):
        text = call.text
        places = [mark.start(1) for mark in _COLON.finditer(text)]
        place = places[chance.choose(len(places))]
        call.splice(len(text), len(text), text[-2:])
        call.splice(place, place + 1, "")


@mutator("args-missing-head", 43, MESSAGES)
def args_missing_head(draft: MutableExchange, chance: MutationChoices) -> None:
    """The first characters of the arguments are missing."""
    if call := _choose_call(draft, chance):
        call.splice(0, call.text.index('"') + 1, "")


@mutator("args-lost-after-empty-call", 45, CHAT)
def args_lost_after_empty_call(draft: MutableExchange, _: MutationChoices) -> None:
    """A call has the arguments `{}`, and those of the next call are lost."""
    found = [call for call in calls(draft) if call.pieces]
    for call, following in pairwise(found):
        if needs(draft.exchange, following.name) and following.text:
            call.spread("{}")
            following.spread("")
            return


@mutator("args-extra-brace", 46, CHAT)
def args_extra_brace(draft: MutableExchange, chance: MutationChoices) -> None:
    """The arguments end with one closing brace too many."""
    if call := _choose_call(draft, chance):
        size = len(call.text)
        call.splice(size, size, "}")


@mutator("args-trailing-ws", 47, CHAT)
def args_trailing_ws(draft: MutableExchange, chance: MutationChoices) -> None:
    """A fragment of whitespace follows complete arguments: legal."""
    fragmented = [call for call in chat_calls(draft) if call.later and call.pieces]
    if call := choose_one(fragmented, chance):
        last = call.pieces[-1]
        new = echoed(last)
        new.write(" ")
        draft.add_after(last.unit, new.unit)


@mutator("args-json-prefix", 49, CHAT)
def args_json_prefix(draft: MutableExchange, chance: MutationChoices) -> None:
    """The label of a code fence, `json`, precedes the arguments."""
    if call := _choose_call(draft, chance):
        call.splice(0, 0, "json\n")


@mutator("args-control-chars", 50, _STREAMED)
def args_control_chars(draft: MutableExchange, chance: MutationChoices) -> None:
    """A string in the arguments contains an unescaped line break."""
    if found := _choose_string(draft, chance):
        call, start, _ = found
        call.splice(start, start, "\n")


@mutator("args-invalid-fgts", 51, MESSAGES)
def args_invalid_fgts(draft: MutableExchange, chance: MutationChoices) -> None:
    """A string in the arguments has no quotes, as fine-grained streaming lets pass."""
    if found := _choose_string(draft, chance):
        call, start, end = found
        call.splice(end, end + 1, "")
        call.splice(start - 1, start, "")


@mutator("args-double-escaped-str", 52, _STREAMED)
def args_double_escaped_str(draft: MutableExchange, chance: MutationChoices) -> None:
    r"""A string in the arguments has a double-escaped line break (`\\n`)."""
    if found := _choose_string(draft, chance):
        call, start, end = found
        call.splice(start, end, r"def run():\\n    return 1\\n")


@mutator("args-empty-lost", 32, CHAT)
def args_empty_lost(draft: MutableExchange, chance: MutationChoices) -> None:
    """A call has a name, then the stream ends, with or without a connection error."""
    found = [call for call in chat_calls(draft) if call.later and call.text]
    if call := choose_one(found, chance):
        for piece in call.pieces[:1]:
            piece.write("")
        cut_before(draft, draft.units.index(call.opened) + 1, chance)


@mutator("args-null", 33, CHAT)
def args_null(draft: MutableExchange, chance: MutationChoices) -> None:
    """The arguments are null in every fragment."""
    if call := _choose_needing(draft, chance):
        for entry in call.entries:
            entry.put(_ARGUMENTS, "null")


@mutator("args-absent", 34, CHAT)
def args_absent(draft: MutableExchange, _: MutationChoices) -> None:
    """The call of a tool that needs no arguments has no `arguments` key: legal."""
    for call in chat_calls(draft):
        if not needs(draft.exchange, call.name):
            call.remove_later()
            call.entries[0].drop(*_ARGUMENTS)


@mutator("args-object", 35, CHAT)
def args_object(draft: MutableExchange, chance: MutationChoices) -> None:
    """The arguments are a JSON object instead of a string."""
    found = [call for call in chat_calls(draft) if read_object(call.text) is not None]
    if call := choose_one(found, chance):
        text = call.text
        call.merge()
        call.entries[0].put(_ARGUMENTS, text)


@mutator("args-cumulative", 38, CHAT)
def args_cumulative(draft: MutableExchange, chance: MutationChoices) -> None:
    """Every fragment repeats all previous ones (cumulative arguments)."""
    if call := choose_one([call for call in chat_calls(draft) if len(call.pieces) > 1], chance):
        text = ""
        for piece in call.pieces:
            text += piece.text
            piece.write(text)


@mutator("args-final-repeat", 39, CHAT + RESPONSES)
def args_final_repeat(draft: MutableExchange, chance: MutationChoices) -> None:
    """A last fragment repeats the complete arguments."""
    streamed: list[CallSite] = [*chat_calls(draft), *response_calls(draft)]
    found = [call for call in streamed if len(call.pieces) > 1 and ":" in call.text]
    if call := choose_one(found, chance):
        last = call.pieces[-1]
        new = echoed(last)
        new.write(call.text)
        draft.add_after(last.unit, new.unit)
        draft.renumber()


@mutator("args-lost-in-one-delta", 44, CHAT)
def args_lost_in_one_delta(draft: MutableExchange, chance: MutationChoices) -> None:
    """A call has a name but no arguments, and the reply ends normally."""
    if call := _choose_needing(draft, chance):
        call.remove_later()
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
        for candidate, value in enumerate(listed(unit.value, "candidates")):
            for place, part in enumerate(listed(value, "content", "parts")):
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
