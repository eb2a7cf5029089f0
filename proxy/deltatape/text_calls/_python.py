r"""Calls written as Python calls, `f(a=1, b="x")`, to a name and a JSON object, token by token.

Only literals are understood; anything else makes it no call. Nothing is ever evaluated.
"""

import re

from deltatape.text_calls._json import State
from deltatape.text_calls._shape import Item
from deltatape.text_calls._source import Source
from deltatape.text_calls._values import ObjectText, opened, quoted
from deltatape.wire.json_value import parse

_HEAD = re.compile(r"([A-Za-z_][\w.]{0,199})\(")
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


def read_calls(source: Source, at: int) -> tuple[list[Item], int, State] | None:
    """The calls in the list at `at`, or the one call there, with the end and how it ends."""
    array = source.starts("[", at)
    at = source.blanks(at + 1) if array else at
    items: list[Item] = []
    while (read := _read_call(source, at)) is not None:
        item, state = read
        items.append(item)
        at = item.end
        if state is State.CUT or not array:
            return items, at, state
        after = source.blanks(at)
        if source.starts("]", after):
            return items, after + 1, State.WHOLE
        if not source.starts(",", after):
            return items, at, State.CUT if after == source.end else State.BROKEN
        at = source.blanks(after + 1)
    return (items, items[-1].end, State.BROKEN) if items else None


def _read_call(source: Source, at: int) -> tuple[Item, State] | None:
    head = _HEAD.match(source.text, at)
    if head is None:
        return _ended("", "", source.end, State.CUT) if _is_partial(source, at) else None
    written = ObjectText()
    at = source.blanks(head.end())
    while at < source.end and not source.starts(")", at):
        key = _KEY.match(source.text, at)
        if key is None:
            return _unfinished(source, at, head[1], written)
        value = _read_value(source, key.end())
        if value is None:
            return None
        text, at, state = value
        written.add(key[1], text)
        if state is State.CUT:
            return _ended(head[1], written.text(whole=False), source.end, State.CUT)
        if source.starts(",", at):
            at = source.blanks(at + 1)
    if at == source.end:
        return _ended(head[1], written.text(whole=False), at, State.CUT)
    return _ended(head[1], written.text(whole=True), at + 1, State.WHOLE)


def _is_partial(source: Source, at: int) -> bool:
    """Whether the text ends within a name; behind white space that can be any word."""
    return not source.text[at - 1].isspace() and bool(_PARTIAL_HEAD.match(source.text, at))


def _unfinished(
    source: Source, at: int, name: str, written: ObjectText
) -> tuple[Item, State] | None:
    """The call, if the text ends within a key at `at`."""
    key = _PARTIAL_HEAD.match(source.text, at)
    return _ended(name, written.text(whole=False), source.end, State.CUT) if key else None


def _ended(name: str, arguments: str, end: int, state: State) -> tuple[Item, State]:
    item = Item(name=name, arguments=arguments, end=end, closed=state is State.WHOLE)
    return item, state


def _read_value(source: Source, at: int) -> tuple[str, int, State] | None:
    """The JSON of the literal at `at`, up to the comma or parenthesis behind it."""
    parts: list[str] = []
    depth = 0
    while at < source.end:
        token = _TOKEN.match(source.text, at)
        if token is None:
            return None
        if depth == 0 and token[0] in (",", ")"):
            text = "".join(parts)
            return (text, at, State.WHOLE) if parse(text).error is None else None
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
    return "".join(parts), source.end, State.CUT


def _translated(token: re.Match[str]) -> str | None:
    """A token as JSON; None for a word that is no literal."""
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
    """The value of a Python string with this inside."""
    return _ESCAPE.sub(_character, text)


def _character(escape: re.Match[str]) -> str:
    code = escape[1] or escape[2]
    return chr(int(code, base=16)) if code else _ESCAPED.get(escape[3], escape[0])
