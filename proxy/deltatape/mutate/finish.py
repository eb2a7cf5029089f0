"""Defects of how a chat completion finishes, of the events around its calls, and of its text."""

import json
from itertools import pairwise
from typing import NamedTuple

from deltatape.mutate._base import (
    CHAT,
    MESSAGES,
    RESPONSES,
    MutationChoices,
    choose_one,
    cut_before,
    mutator,
)
from deltatape.mutate._calls import chat_calls, entries, message_calls
from deltatape.mutate._draft import MutableEvent, MutableExchange
from deltatape.wire.json_edit import Path, at, listed, quoted

_TERMINAL = ("response.completed", "response.incomplete")
_CALL_REASONS = ("tool_calls", "function_call")


class _Finish(NamedTuple):
    """A choice of an event, with its finish reason, if it has one."""

    unit: MutableEvent
    choice: Path
    reason: str | None

    def write(self, reason: str) -> None:
        """Set the finish reason."""
        self.unit.put_text((*self.choice, "finish_reason"), reason)


def _choices(draft: MutableExchange) -> list[_Finish]:
    found = []
    for unit in draft.units:
        for place, choice in enumerate(listed(unit.value, "choices")):
            reason = at(choice, "finish_reason")
            known = reason if isinstance(reason, str) and reason else None
            found.append(_Finish(unit, ("choices", place), known))
    return found


def _ends(draft: MutableExchange) -> list[_Finish]:
    """Return the choices with a finish reason."""
    return [choice for choice in _choices(draft) if choice.reason]


def _call_ends(draft: MutableExchange) -> list[_Finish]:
    """Return the choices whose finish reason announces calls."""
    return [end for end in _ends(draft) if end.reason == "tool_calls"]


@mutator("finish-stop-with-calls", 63, CHAT)
def finish_stop_with_calls(draft: MutableExchange, _: MutationChoices) -> None:
    """The reply has calls, and its finish reason is `stop`."""
    if chat_calls(draft):
        for end in _call_ends(draft):
            end.write("stop")


@mutator("finish-calls-without-calls", 64, CHAT + MESSAGES)
def finish_calls_without_calls(draft: MutableExchange, _: MutationChoices) -> None:
    """The finish reason announces calls, but the reply has none."""
    if _call_ends(draft):
        for entry in reversed([*entries(draft)]):
            entry.remove()
    for call in message_calls(draft):
        block = at(call.opened.value, "index")
        for unit in draft.units:
            if at(unit.value, "index") == block:
                unit.removed = True


@mutator("finish-masks-length", 65, CHAT)
def finish_masks_length(draft: MutableExchange, _: MutationChoices) -> None:
    """Arguments are cut at the token limit, but the finish reason is a regular one."""
    for call in chat_calls(draft)[-1:]:
        size = len(call.text)
        if size > 1 and _ends(draft):
            call.splice(size // 2, size, "")


@mutator("finish-twice", 66, CHAT)
def finish_twice(draft: MutableExchange, _: MutationChoices) -> None:
    """A second finish reason, `stop`, follows the right one."""
    for end in _call_ends(draft)[:1]:
        if chat_calls(draft):
            new = end.unit.like()
            new.put((*end.choice, "delta"), "{}")
            new.put_text((*end.choice, "finish_reason"), "stop")
            draft.add_after(end.unit, new)


@mutator("finish-empty-string", 67, CHAT)
def finish_empty_string(draft: MutableExchange, _: MutationChoices) -> None:
    """The finish reason is an empty string until the end."""
    for choice in _choices(draft):
        if choice.reason is None:
            choice.write("")


@mutator("finish-always-stop", 68, CHAT)
def finish_always_stop(draft: MutableExchange, _: MutationChoices) -> None:
    """Every event has the finish reason `stop`."""
    if _call_ends(draft):
        for choice in _choices(draft):
            choice.write("stop")


@mutator("finish-same-chunk", 69, CHAT)
def finish_same_chunk(draft: MutableExchange, _: MutationChoices) -> None:
    """The finish reason is in the event of the last fragment: legal."""
    ends, last = _ends(draft), [*entries(draft)][-1:]
    if len(ends) != 1 or not last or ends[0].unit is last[0].unit:
        return
    end, entry = ends[0], last[0]
    if at(end.unit.value, *end.choice, "delta", "content") or end.choice[1] != entry.choice:
        return
    entry.unit.put_text((*end.choice, "finish_reason"), end.reason or "")
    if at(end.unit.value, "usage"):
        end.unit.put(("choices",), "[]")
    else:
        end.unit.removed = True


@mutator("no-finish-no-done", 71, CHAT)
def no_finish_no_done(draft: MutableExchange, chance: MutationChoices) -> None:
    """The stream ends inside the arguments, with or without a connection error."""
    if place := choose_one(_places_inside(draft), chance):
        cut_before(draft, place, chance)


@mutator("r-no-terminal", 72, RESPONSES)
def r_no_terminal(draft: MutableExchange, chance: MutationChoices) -> None:
    """The stream ends without its terminal event, with or without a connection error."""
    places = [
        place for place, unit in enumerate(draft.units) if at(unit.value, "type") in _TERMINAL
    ]
    if places and places[0]:
        cut_before(draft, places[0], chance)


def _places_inside(draft: MutableExchange) -> list[int]:
    """Return the positions before events with the rest of a chat call's arguments."""
    return [
        draft.units.index(piece.unit)
        for call in chat_calls(draft)
        for before, piece in pairwise(call.pieces)
        if before.unit is not piece.unit and piece.text.strip()
    ]


@mutator("err-flat-responses", 79, RESPONSES)
def err_flat_responses(draft: MutableExchange, chance: MutationChoices) -> None:
    """The stream ends with an error in one flat object: `type`, `code` and `message`."""
    unit = choose_one(draft.of_type("response.function_call_arguments.delta"), chance)
    if unit is None:
        return
    number = at(unit.value, "sequence_number")
    numbered = f'"sequence_number":{number + 1},' if isinstance(number, int) else ""
    new = unit.like()
    new.rename("error")
    new.text = (
        f'{{"type":"error",{numbered}"code":"server_error","message":"The server had an error"}}'
    )
    draft.cut_after(unit)
    draft.add_after(unit, new)


@mutator("empty-choices", 80, CHAT)
def empty_choices(draft: MutableExchange, _: MutationChoices) -> None:
    """The first event has no choices, like the prompt filter results of Azure: legal."""
    for unit in draft.units[:1]:
        if listed(unit.value, "choices"):
            new = unit.like()
            new.put(("choices",), "[]")
            draft.add_before(unit, new)


@mutator("delta-null", 81, CHAT)
def delta_null(draft: MutableExchange, chance: MutationChoices) -> None:
    """`delta` is null in the last event, or `function` in a fragment."""
    later = [entry for call in chat_calls(draft) for entry in call.later]
    empty = [entry for entry in later if not entry.arguments.text]
    if empty and chance.choose(2):
        empty[chance.choose(len(empty))].put(("function",), "null")
        return
    for end in _ends(draft):
        delta = at(end.unit.value, *end.choice, "delta")
        members = delta.items() if isinstance(delta, dict) else ()
        if not any(value for key, value in members if key != "role"):
            end.unit.put((*end.choice, "delta"), "null")


@mutator("function-call-legacy", 83, CHAT)
def function_call_legacy(draft: MutableExchange, _: MutationChoices) -> None:
    """The only call is sent as `function_call`, the predecessor of `tool_calls`."""
    found = chat_calls(draft)
    if len(found) != 1:
        return
    for entry in found[0].entries:
        source = entry.unit.source((*entry.path, "function"))
        entry.unit.drop(entry.path[:-1])
        entry.unit.put((*entry.path[:-2], "function_call"), source or "{}")
    for end in _ends(draft):
        end.write("function_call")


@mutator("provider-diff-crash", 86, CHAT)
def provider_diff_crash(draft: MutableExchange, chance: MutationChoices) -> None:
    """The server fails inside the arguments, sends an error, and ends the stream."""
    if place := choose_one(_places_inside(draft), chance):
        unit = draft.units[place - 1]
        new = unit.like()
        new.text = '{"error":{"code":500,"message":"Invalid diff: now finding less tool calls!"}}'
        draft.cut_after(unit)
        draft.add_after(unit, new)


def _text_event(unit: MutableEvent, choice: int, text: str, key: str = "content") -> MutableEvent:
    """Return an event like `unit` whose delta has only `text`."""
    new = unit.like()
    source = quoted(text, plain=unit.text.isascii())
    new.put(("choices", choice, "delta"), f'{{"{key}":{source}}}')
    new.put(("choices", choice, "finish_reason"), "null")
    return new


def _move_calls_to_text(draft: MutableExchange, key: str) -> None:
    """Send the calls as text under `key` of the delta, and end the reply with `stop`."""
    found = chat_calls(draft)
    for call in found:
        name = json.dumps(call.name, ensure_ascii=False)
        call_json = f'{{"name": {name}, "arguments": {call.text or "{}"}}}'
        text = f"<tool_call>\n{call_json}\n</tool_call>"
        middle = len(text) // 2
        unit, choice = call.entries[0].unit, call.entries[0].choice
        halves = (text[:middle], text[middle:])
        draft.add_after(unit, *(_text_event(unit, choice, half, key) for half in halves))
    for call in reversed(found):
        for entry in reversed(call.entries):
            entry.remove()
    for end in _ends(draft):
        if end.reason in _CALL_REASONS:
            end.write("stop")


@mutator("text-tool-leak", 87, CHAT)
def text_tool_leak(draft: MutableExchange, _: MutationChoices) -> None:
    """The calls are in the text, in the model's own notation, instead of `tool_calls`."""
    _move_calls_to_text(draft, "content")


@mutator("text-partial-leak", 88, CHAT)
def text_partial_leak(draft: MutableExchange, _: MutationChoices) -> None:
    """The start of a call in the model's notation is in the text; the call itself is intact."""
    for call in chat_calls(draft)[:1]:
        name = json.dumps(call.name, ensure_ascii=False)[1:-1]
        first = call.entries[0]
        text = f'<tool_call>\n{{"name": "{name}", '
        draft.add_before(first.unit, _text_event(first.unit, first.choice, text))


@mutator("reasoning-tool", 89, CHAT)
def reasoning_tool(draft: MutableExchange, _: MutationChoices) -> None:
    """The calls are in the reasoning instead of `tool_calls`."""
    _move_calls_to_text(draft, "reasoning_content")


@mutator("content-duplicates-args", 92, CHAT)
def content_duplicates_args(draft: MutableExchange, chance: MutationChoices) -> None:
    """The text repeats the arguments of a call."""
    if call := choose_one([call for call in chat_calls(draft) if ":" in call.text], chance):
        last = call.entries[-1]
        draft.add_after(last.unit, _text_event(last.unit, last.choice, call.text))
