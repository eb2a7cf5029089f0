"""Defects of text: calls that leak into it, and arguments that are shown."""

import json

from deltatape.mutate._base import CHAT, MutationChoices, mutator
from deltatape.mutate._calls import ChatCall, chat_calls, remove_entry
from deltatape.mutate._draft import MutableExchange
from deltatape.mutate._units import MutableEvent
from deltatape.wire.json_edit import at, listed, quoted

_STOPS = ("tool_calls", "function_call")


def _said(unit: MutableEvent, choice: int, text: str, key: str = "content") -> MutableEvent:
    """Return an event like `unit` whose delta has only `text`."""
    new = unit.like()
    source = quoted(text, plain=unit.text.isascii())
    new.put(("choices", choice, "delta"), f'{{"{key}":{source}}}')
    new.put(("choices", choice, "finish_reason"), "null")
    return new


def _written(call: ChatCall) -> str:
    name = json.dumps(call.name, ensure_ascii=False)
    return f'<tool_call>\n{{"name": {name}, "arguments": {call.text or "{}"}}}\n</tool_call>'


def _into(draft: MutableExchange, key: str) -> None:
    """Send the calls as text under `key` of the delta, and end the reply with `stop`."""
    for call in chat_calls(draft):
        text = _written(call)
        middle = len(text) // 2
        first = call.entries[0]
        parts = [
            _said(first.unit, first.choice, part, key) for part in (text[:middle], text[middle:])
        ]
        draft.add_after(first.unit, *parts)
    for call in reversed(chat_calls(draft)):
        for entry in reversed(call.entries):
            remove_entry(entry)
    for unit in draft.units:
        for place, told in enumerate(listed(unit.value, "choices")):
            if at(told, "finish_reason") in _STOPS:
                unit.put_text(("choices", place, "finish_reason"), "stop")


@mutator("text-tool-leak", 87, CHAT)
def text_tool_leak(draft: MutableExchange, _: MutationChoices) -> None:
    """The calls are in the text, in the model's own notation, instead of `tool_calls`."""
    _into(draft, "content")


@mutator("text-partial-leak", 88, CHAT)
def text_partial_leak(draft: MutableExchange, _: MutationChoices) -> None:
    """The start of a call in the model's notation is in the text; the call itself is intact."""
    for call in chat_calls(draft)[:1]:
        name = json.dumps(call.name, ensure_ascii=False)[1:-1]
        first = call.entries[0]
        text = f'<tool_call>\n{{"name": "{name}", '
        draft.add_before(first.unit, _said(first.unit, first.choice, text))


@mutator("reasoning-tool", 89, CHAT)
def reasoning_tool(draft: MutableExchange, _: MutationChoices) -> None:
    """The calls are in the reasoning instead of `tool_calls`."""
    _into(draft, "reasoning_content")


@mutator("content-duplicates-args", 92, CHAT)
def content_duplicates_args(draft: MutableExchange, chance: MutationChoices) -> None:
    """The text repeats the arguments of a call."""
    found = [call for call in chat_calls(draft) if ":" in call.text]
    if found:
        call = found[chance.choose(len(found))]
        last = call.entries[-1]
        draft.add_after(last.unit, _said(last.unit, last.choice, call.text))
