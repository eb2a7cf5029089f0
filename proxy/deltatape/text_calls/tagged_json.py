"""Families that write a call object, or several, as JSON between two tags.

    generic   <tool>{"tool_name": "f", "arguments": {...}}</tool>
    hermes    <tool_call>{"name": "f", "arguments": {...}}</tool_call>         Hermes, Qwen 2.5 and 3
    cohere    <|START_ACTION|>[{"tool_call_id": "0", "tool_name": "f", "parameters": {...}}]<|END_ACTION|>
    internlm  <|action_start|> <|plugin|>{"name": "f", "parameters": {...}}<|action_end|>

Sources: the chat templates of these models. `generic` is what applications ask for in their own
prompts.
"""  # noqa: E501 - a notation is shown on one line

import re
from collections.abc import Sequence

from deltatape.text_calls._json import read_calls
from deltatape.text_calls._notation import NotationFamily, TextSource, WrittenCall

_PLUGIN = re.compile(r"<\|action_start\|>\s*+<\|(?:plugin|interpreter)\|>")


def _family(name: str, opener: str, closer: str) -> NotationFamily:
    def read(source: TextSource, start: int) -> Sequence[WrittenCall]:
        return read_calls(source, start + len(opener), closer, opener)

    return NotationFamily(name=name, openers=(opener,), read=read)


def _read_internlm(source: TextSource, start: int) -> Sequence[WrittenCall]:
    opened = _PLUGIN.match(source.text, start)
    if opened is None:
        return ()
    return read_calls(source, opened.end(), "<|action_end|>", "<|action_start|>")


GENERIC = _family("tool", "<tool>", "</tool>")
HERMES = _family("hermes", "<tool_call>", "</tool_call>")
COHERE = _family("cohere", "<|START_ACTION|>", "<|END_ACTION|>")
INTERNLM = NotationFamily(name="internlm", openers=("<|action_start|>",), read=_read_internlm)
