"""Gemma 4: a call with bare keys, and strings between special tokens.

    <|tool_call>call:f{k:<|"|>v<|"|>,n:1,o:{deep:[true]}}<tool_call|>
    <start_function_call>call:f{k:<escape>v<escape>}<end_function_call>          FunctionGemma

Translated to JSON token by token. Source: the chat templates of these models.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from deltatape.text_calls._json import JsonEnd, find_closer
from deltatape.text_calls._notation import (
    NotationFamily,
    TextSource,
    WrittenCall,
    before,
    cut_call,
    literal,
    read_head,
    word,
)
from deltatape.text_calls._values import as_json, opened, quoted

_HEAD = (literal("call"), literal(":"), word("name", r"[^\s{}<>]{1,200}+"), before("{"))
_BARE = re.compile(r"[^\s{}\[\],:<][^{}\[\],:<]*+|<")
_BRACKETS = {"{": "}", "[": "]"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Spelling:
    opener: str
    closer: str
    quote: str


_SPELLINGS = (
    _Spelling(opener="<|tool_call>", closer="<tool_call|>", quote='<|"|>'),
    _Spelling(opener="<start_function_call>", closer="<end_function_call>", quote="<escape>"),
)


def _read(source: TextSource, start: int) -> Sequence[WrittenCall]:
    spelling = next(tags for tags in _SPELLINGS if source.starts(tags.opener, start))
    head = read_head(source, start + len(spelling.opener), _HEAD)
    if head is None or not source.is_name(head.word("name") or "_"):
        return ()
    name, at = head.word("name"), source.blanks(head.end)
    if head.cut:
        return (cut_call(source, name),)
    arguments, end, state = _translate(source, at, spelling.quote)
    if state is JsonEnd.BROKEN:
        stop = source.find(spelling.closer, end)
        if stop == source.end:
            return ()
        arguments, end = source.text[at:stop], stop
    end, closed = find_closer(source, end, spelling.closer, spelling.opener)
    return (WrittenCall(name=name, arguments=arguments, end=end, closed=closed),)


def _translate(source: TextSource, at: int, quote: str) -> tuple[str, int, JsonEnd]:
    """Return the object at `at` as JSON, where it ends, and how."""
    parts: list[str] = []
    stack: list[str] = []
    key = False
    while at < source.end:
        char = source.text[at]
        if char in _BRACKETS:
            stack.append(_BRACKETS[char])
            parts.append(char)
            key = char == "{"
        elif char == stack[-1]:
            parts.append(stack.pop())
            if not stack:
                return "".join(parts), at + 1, JsonEnd.WHOLE
        elif char in ",:":
            parts.append(f"{char} ")
            key = char == "," and stack[-1] == "}"
        elif not char.isspace():
            text, at, state = _read_scalar(source, at, quote, key=key)
            parts.append(text)
            if state is not JsonEnd.WHOLE:
                return "".join(parts), at, state
            continue
        at += 1
    return "".join(parts), at, JsonEnd.CUT


def _read_scalar(source: TextSource, at: int, quote: str, *, key: bool) -> tuple[str, int, JsonEnd]:
    """Return a quoted or a bare value, or a key."""
    if source.starts(quote, at):
        start = at + len(quote)
        stop = source.find(quote, start)
        if stop == source.end:
            return opened(source.text[start:]), stop, JsonEnd.CUT
        return quoted(source.text[start:stop]), stop + len(quote), JsonEnd.WHOLE
    if source.cut(quote, at):
        return "", source.end, JsonEnd.CUT
    bare = _BARE.match(source.text, at)
    if bare is None:
        return "", at, JsonEnd.BROKEN
    text = bare[0].rstrip()
    value = None if key else as_json(text)
    if bare.end() == source.end:
        return opened(text) if value is None else text, source.end, JsonEnd.CUT
    return quoted(text) if value is None else value, bare.end(), JsonEnd.WHOLE


GEMMA = NotationFamily(name="gemma", openers=tuple(tags.opener for tags in _SPELLINGS), read=_read)
