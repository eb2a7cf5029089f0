"""Families that write a call object, or several, as JSON between two tags.

    generic   <tool>{"tool_name": "f", "arguments": {...}}</tool>
    hermes    <tool_call>{"name": "f", "arguments": {...}}</tool_call>         Hermes, Qwen 2.5 and 3
    cohere    <|START_ACTION|>[{"tool_call_id": "0", "tool_name": "f", "parameters": {...}}]<|END_ACTION|>
    internlm  <|action_start|> <|plugin|>{"name": "f", "parameters": {...}}<|action_end|>

Sources: the chat templates of these models. `generic` is what applications ask for in their own
prompts.
"""  # noqa: E501 - a notation is shown on one line

import re

from deltatape.text_calls._json import read_calls
from deltatape.text_calls._notation import CallBlock, NotationFamily, TextSource

_PLUGIN = re.compile(r"<\|action_start\|>\s*+<\|(?:plugin|interpreter)\|>")


def _read_generic(source: TextSource, start: int) -> CallBlock | None:
    return read_calls(source, start + len("<tool>"), "</tool>", "<tool>")


def _read_hermes(source: TextSource, start: int) -> CallBlock | None:
    return read_calls(source, start + len("<tool_call>"), "</tool_call>", "<tool_call>")


def _read_cohere(source: TextSource, start: int) -> CallBlock | None:
    opener = "<|START_ACTION|>"
    return read_calls(source, start + len(opener), "<|END_ACTION|>", opener)


def _read_internlm(source: TextSource, start: int) -> CallBlock | None:
    opened = _PLUGIN.match(source.text, start)
    if opened is None:
        return None
    return read_calls(source, opened.end(), "<|action_end|>", "<|action_start|>")


GENERIC = NotationFamily(name="tool", openers=("<tool>",), read=_read_generic)
HERMES = NotationFamily(name="hermes", openers=("<tool_call>",), read=_read_hermes)
COHERE = NotationFamily(name="cohere", openers=("<|START_ACTION|>",), read=_read_cohere)
INTERNLM = NotationFamily(name="internlm", openers=("<|action_start|>",), read=_read_internlm)
