"""Families that write calls as JSON or as Python calls behind one token, or behind none.

    llama  <|python_tag|>{"name": "f", "parameters": {...}}; {"name": ...}     Llama 3
           <|python_tag|>f.call(query="x")     built-in tools
           <|python_tag|>[f(a=1), g()]         Llama 4
           the same without the token, if it is the whole text and of tools that were offered;
           whole texts may be fenced, and may end with a token of the template
    lfm2   <|tool_call_start|>[f(a=1), g(b="x")]<|tool_call_end|>, or JSON inside

Code of Llama's interpreter follows the same token and is not a call. Source: the chat
templates of these models.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from deltatape.text_calls._json import JsonEnd, find_closer, read_calls
from deltatape.text_calls._notation import (
    NotationFamily,
    TextSource,
    WrittenCall,
    extend_last,
)
from deltatape.text_calls._values import ObjectText, opened, quoted
from deltatape.wire.json_value import parse

_LLAMA_OPENER = "<|python_tag|>"
_LFM2_OPENER = "<|tool_call_start|>"
_LFM2_CLOSER = "<|tool_call_end|>"
_HEAD = 400
"""Within this many characters a call names its tool and begins the arguments."""
_ARGUMENTS = ('"arguments"', '"parameters"', "(")
_BUILT_IN = ".call"
_START = re.compile(r"\s*+(?:```(?:json|tool_call)?+[ \t]*+\n\s*+)?(?=[\[{])")
_REST = re.compile(
    r"\s*+(?:```\s*+)?(?:(?:</tool_call>|<\|e(?:om|ot)_id\|>|<\|im_end\|>|</s>)\s*+)?"
)


def read_whole(source: TextSource) -> Sequence[WrittenCall]:
    """Return the calls that the whole text consists of, in Llama's notation without its token."""
    start = _START.match(source.text)
    if not source.offered or start is None:
        return ()
    at = start.end()
    head = source.text[at : at + _HEAD]
    if not all(any(word in head for word in words) for words in (source.offered, _ARGUMENTS)):
        return ()
    calls = _read_calls(source, at)
    rest = _REST.match(source.text, calls[-1].end) if calls else None
    if rest is None or rest.end() < source.end:
        return ()
    return calls if all(call.name in source.offered and call.arguments for call in calls) else ()


def _read_llama(source: TextSource, start: int) -> Sequence[WrittenCall]:
    return _read_calls(source, source.blanks(start + len(_LLAMA_OPENER)))


def _read_calls(source: TextSource, at: int) -> Sequence[WrittenCall]:
    calls = read_calls(source, at, None)
    read = None if calls else read_python_calls(source, at)
    if read is None:
        return calls
    calls = extend_last(read[0], read[1])
    return [replace(call, name=call.name.removesuffix(_BUILT_IN)) for call in calls]


def _read_lfm2(source: TextSource, start: int) -> Sequence[WrittenCall]:
    at = source.blanks(start + len(_LFM2_OPENER))
    calls = read_calls(source, at, _LFM2_CLOSER, _LFM2_OPENER)
    read = None if calls else read_python_calls(source, at)
    if read is None:
        return calls
    calls, end, state = read
    closed = False
    if state is not JsonEnd.CUT:
        end, closed = find_closer(source, end, _LFM2_CLOSER, _LFM2_OPENER)
    return [replace(call, closed=closed) for call in extend_last(calls, end)]


LLAMA = NotationFamily(name="llama", openers=(_LLAMA_OPENER,), read=_read_llama)
LFM2 = NotationFamily(name="lfm2", openers=(_LFM2_OPENER,), read=_read_lfm2)


# Calls written as Python calls, `f(a=1, b="x")`, to a name and a JSON object, token by token.
#
# Only literals are understood; anything else makes it no call. Nothing is ever evaluated.

_CALL_HEAD = re.compile(r"([A-Za-z_][\w.]{0,199})\(")
_PARTIAL_HEAD = re.compile(r"[A-Za-z_][\w.]{0,199}\Z")
_KEY = re.compile(r"\s*+([A-Za-z_]\w*+)\s*+=\s*+")
_TOKEN = re.compile(
    r"""\s++"""
    r"""|(?P<string>'[^'\\]*+(?:\\.[^'\\]*+)*+'|"[^"\\]*+(?:\\.[^"\\]*+)*+")"""
    r"""|(?P<open>['"])"""
    r"""|(?P<number>-?\d++(?:\.\d++)?(?:[eE][-+]?\d++)?)"""
    r"""|(?P<word>[A-Za-z]++)"""
    r"""|(?P<punctuation>[\[\]{}(),:])""",
    re.DOTALL,
)
_WORDS = {
    "True": "true",
    "False": "false",
    "None": "null",
    "true": "true",
    "false": "false",
    "null": "null",
}
_BRACKETS = {"(": "[", ")": "]", "[": "[", "]": "]", "{": "{", "}": "}", ",": ", ", ":": ": "}
_DEPTHS = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"', "\n": ""}


def read_python_calls(source: TextSource, at: int) -> tuple[list[WrittenCall], int, JsonEnd] | None:
    """Return the calls in the list at `at`, or the one call there, with the end and how it ends."""
    array = source.starts("[", at)
    at = source.blanks(at + 1) if array else at
    items: list[WrittenCall] = []
    while (read := _read_call(source, at)) is not None:
        item, state = read
        items.append(item)
        at = item.end
        if state is JsonEnd.CUT or not array:
            return items, at, state
        after = source.blanks(at)
        if source.starts("]", after):
            return items, after + 1, JsonEnd.WHOLE
        if not source.starts(",", after):
            return items, at, JsonEnd.CUT if after == source.end else JsonEnd.BROKEN
        at = source.blanks(after + 1)
    return (items, items[-1].end, JsonEnd.BROKEN) if items else None


def _read_call(source: TextSource, at: int) -> tuple[WrittenCall, JsonEnd] | None:
    head = _CALL_HEAD.match(source.text, at)
    if head is None:
        return _ended("", "", source.end, JsonEnd.CUT) if _is_partial(source, at) else None
    written = ObjectText()
    at = source.blanks(head.end())
    while at < source.end and not source.starts(")", at):
        key = _KEY.match(source.text, at)
        if key is None:
            if not _PARTIAL_HEAD.match(source.text, at):
                return None
            return _ended(head[1], written.text(whole=False), source.end, JsonEnd.CUT)
        value = _read_value(source, key.end())
        if value is None:
            return None
        text, at, state = value
        written.add(key[1], text)
        if state is JsonEnd.CUT:
            return _ended(head[1], written.text(whole=False), source.end, JsonEnd.CUT)
        if source.starts(",", at):
            at = source.blanks(at + 1)
    if at == source.end:
        return _ended(head[1], written.text(whole=False), at, JsonEnd.CUT)
    return _ended(head[1], written.text(whole=True), at + 1, JsonEnd.WHOLE)


def _is_partial(source: TextSource, at: int) -> bool:
    """Return whether the text ends within a name; behind white space that can be any word."""
    return not source.text[at - 1].isspace() and bool(_PARTIAL_HEAD.match(source.text, at))


def _ended(name: str, arguments: str, end: int, state: JsonEnd) -> tuple[WrittenCall, JsonEnd]:
    item = WrittenCall(name=name, arguments=arguments, end=end, closed=state is JsonEnd.WHOLE)
    return item, state


def _read_value(source: TextSource, at: int) -> tuple[str, int, JsonEnd] | None:
    """Return the JSON of the literal at `at`, up to the comma or parenthesis behind it."""
    parts: list[str] = []
    depth = 0
    while at < source.end:
        token = _TOKEN.match(source.text, at)
        if token is None:
            return None
        if depth == 0 and token[0] in (",", ")"):
            text = "".join(parts)
            return (text, at, JsonEnd.WHOLE) if parse(text).error is None else None
        if token["open"]:
            parts.append(opened(_unescaped(source.text[at + 1 :])))
            break
        part = _translated(token)
        depth += _DEPTHS.get(token[0], 0)
        if part is None and token.end() == source.end:
            break
        if part is None or depth < 0:
            return None
        parts.append(part)
        at = token.end()
    return "".join(parts), source.end, JsonEnd.CUT


def _translated(token: re.Match[str]) -> str | None:
    """Return a token as JSON; None for a word that is not a literal."""
    match token.lastgroup:
        case "string":
            return quoted(_unescaped(token[0][1:-1]))
        case "number":
            return token[0]
        case "word":
            return _WORDS.get(token[0])
        case "punctuation":
            return _BRACKETS[token[0]]
        case _:
            return ""


def _unescaped(text: str) -> str:
    """Return the value of a Python string with this inside."""
    return _ESCAPE.sub(_character, text)


def _character(escape: re.Match[str]) -> str:
    code = escape[1] or escape[2]
    return chr(int(code, base=16)) if code else _ESCAPED.get(escape[3], escape[0])
