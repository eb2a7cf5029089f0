"""Defects of the arguments of a call."""

import json
import re
from collections.abc import Callable
from itertools import pairwise

from deltatape.mutate._base import CHAT, CONVERSE, MESSAGES, RESPONSES, MutationChoices, mutator
from deltatape.mutate._calls import ArgumentsPiece, CallSite, calls, chat_calls, echoed, needs
from deltatape.mutate._draft import MutableExchange

_STREAMED = CHAT + RESPONSES + MESSAGES + CONVERSE
_COLON = re.compile(r'(?<=")\s*+(:)')
_STRING_VALUE = re.compile(r'[:,\[]\s*"([^"\\]+)"(?!\s*:)')


def _victim(
    draft: MutableExchange, chance: MutationChoices, fits: Callable[[CallSite], object] = bool
) -> list[CallSite]:
    """Yield one of the fitting calls whose arguments are a non-empty object, if there is one."""
    found = [call for call in calls(draft) if ":" in call.text and fits(call)]
    return [found[chance.choose(len(found))]] if found else []


@mutator("args-empty-noarg", 31, _STREAMED)
def args_empty_noarg(draft: MutableExchange, _: MutationChoices) -> None:
    """The call of a tool that needs no arguments has none, not even `{}`: legal."""
    for call in calls(draft):
        if call.pieces and not needs(draft.exchange, call.name):
            call.spread("")


@mutator("args-double-encoded", 36, CHAT)
def args_double_encoded(draft: MutableExchange, chance: MutationChoices) -> None:
    """The arguments are a JSON string that contains the JSON object."""
    for call in _victim(draft, chance):
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
            _continue(first)
            first = new
        first.write("{}")


def _continue(piece: ArgumentsPiece) -> None:
    """Remove what opens a call from an entry of `tool_calls`."""
    entry = piece.path[:-2]
    if piece.path[-2:] == ("function", "arguments"):
        for path in (("id",), ("type",), ("function", "name")):
            piece.unit.drop((*entry, *path))


@mutator("args-missing-tail", 41, CHAT)
def args_missing_tail(draft: MutableExchange, chance: MutationChoices) -> None:
    """The last characters of the arguments are missing, and the reply ends normally."""
    for call in _victim(draft, chance):
        size = len(call.text.rstrip())
        call.splice(size - 1 - chance.choose(2), len(call.text), "")


@mutator("args-corrupt-punct", 42, CHAT)
def args_corrupt_punct(draft: MutableExchange, chance: MutationChoices) -> None:
    """Punctuation is missing in the arguments, and their end is repeated."""
    for call in _victim(draft, chance, lambda call: _COLON.search(call.text)):
        text = call.text
        places = [mark.start(1) for mark in _COLON.finditer(text)]
        place = places[chance.choose(len(places))]
        call.splice(len(text), len(text), text[-2:])
        call.splice(place, place + 1, "")


@mutator("args-missing-head", 43, MESSAGES)
def args_missing_head(draft: MutableExchange, chance: MutationChoices) -> None:
    """The first characters of the arguments are missing."""
    for call in _victim(draft, chance):
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
    for call in _victim(draft, chance):
        size = len(call.text)
        call.splice(size, size, "}")


@mutator("args-trailing-ws", 47, CHAT)
def args_trailing_ws(draft: MutableExchange, chance: MutationChoices) -> None:
    """A fragment of whitespace follows complete arguments: legal."""
    fragmented = [call for call in chat_calls(draft) if call.later and call.pieces]
    if fragmented:
        last = fragmented[chance.choose(len(fragmented))].pieces[-1]
        new = echoed(last)
        new.write(" ")
        draft.add_after(last.unit, new.unit)


@mutator("args-json-prefix", 49, CHAT)
def args_json_prefix(draft: MutableExchange, chance: MutationChoices) -> None:
    """The label of a code fence, `json`, precedes the arguments."""
    for call in _victim(draft, chance):
        call.splice(0, 0, "json\n")


@mutator("args-control-chars", 50, _STREAMED)
def args_control_chars(draft: MutableExchange, chance: MutationChoices) -> None:
    """A string in the arguments contains an unescaped line break."""
    for call in _victim(draft, chance, _has_string):
        start, _ = _string(call, chance)
        call.splice(start, start, "\n")


@mutator("args-invalid-fgts", 51, MESSAGES)
def args_invalid_fgts(draft: MutableExchange, chance: MutationChoices) -> None:
    """A string in the arguments has no quotes, as fine-grained streaming lets pass."""
    for call in _victim(draft, chance, _has_string):
        start, end = _string(call, chance)
        call.splice(end, end + 1, "")
        call.splice(start - 1, start, "")


@mutator("args-double-escaped-str", 52, _STREAMED)
def args_double_escaped_str(draft: MutableExchange, chance: MutationChoices) -> None:
    r"""A string in the arguments has a double-escaped line break (`\\n`)."""
    for call in _victim(draft, chance, _has_string):
        start, end = _string(call, chance)
        call.splice(start, end, r"def run():\\n    return 1\\n")


def _has_string(call: CallSite) -> bool:
    return _STRING_VALUE.search(call.text) is not None


def _string(call: CallSite, chance: MutationChoices) -> tuple[int, int]:
    """Return start and end, inside the quotes, of one of the strings in the arguments of a call."""
    found = [match.span(1) for match in _STRING_VALUE.finditer(call.text)]
    return found[chance.choose(len(found))]
