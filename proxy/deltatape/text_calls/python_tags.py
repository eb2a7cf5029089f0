"""Families that write calls as JSON or as Python calls behind one token, or behind none.

    llama  <|python_tag|>{"name": "f", "parameters": {...}}; {"name": ...}     Llama 3
           <|python_tag|>f.call(query="x")     built-in tools
           <|python_tag|>[f(a=1), g()]         Llama 4
           the same without the token, if it is the whole text and of tools that were offered;
           whole texts may be fenced, and may end with a token of the template
    lfm2   <|tool_call_start|>[f(a=1), g(b="x")]<|tool_call_end|>, or JSON inside

Code of Llama's interpreter stands behind the same token and is no call. Source: the chat templates
of these models.
"""

import re
from dataclasses import replace

from deltatape.text_calls import _python
from deltatape.text_calls._json import Extent, State, find_closer, read_calls
from deltatape.text_calls._shape import Block, Family
from deltatape.text_calls._source import Source

_LLAMA_OPENER = "<|python_tag|>"
_LFM2_OPENER = "<|tool_call_start|>"
_LFM2_CLOSER = "<|tool_call_end|>"
_HEAD = 400
"""Characters in which a text that is a call names its tool and begins the arguments."""
_ARGUMENTS = ('"arguments"', '"parameters"', "(")
_BUILT_IN = ".call"
_START = re.compile(r"\s*+(?:```(?:json|tool_call)?+[ \t]*+\n\s*+)?(?=[\[{])")
_REST = re.compile(
    r"\s*+(?:```\s*+)?(?:(?:</tool_call>|<\|e(?:om|ot)_id\|>|<\|im_end\|>|</s>)\s*+)?"
)


def read_whole(source: Source) -> Block | None:
    """The calls that the whole text consists of, in Llama's notation without its token."""
    start = _START.match(source.text)
    if not source.offered or start is None:
        return None
    at = start.end()
    head = source.text[at : at + _HEAD]
    if not all(any(word in head for word in words) for words in (source.offered, _ARGUMENTS)):
        return None
    block = _read_calls(source, at)
    rest = _REST.match(source.text, block.end) if block else None
    if block is None or rest is None or rest.end() < source.end:
        return None
    offered = all(item.name in source.offered for item in block.items)
    return block if offered and all(item.arguments for item in block.items) else None


def _read_llama(source: Source, start: int) -> Block | None:
    return _read_calls(source, source.blanks(start + len(_LLAMA_OPENER)))


def _read_calls(source: Source, at: int) -> Block | None:
    block = read_calls(source, at, None)
    if block is not None:
        return block
    read = _python.read_calls(source, at)
    if read is None:
        return None
    items, end, _ = read
    items[-1] = replace(items[-1], end=end)
    bare = tuple(replace(item, name=item.name.removesuffix(_BUILT_IN)) for item in items)
    return Block(items=bare, end=end)


def _read_lfm2(source: Source, start: int) -> Block | None:
    at = source.blanks(start + len(_LFM2_OPENER))
    block = read_calls(source, at, _LFM2_CLOSER, _LFM2_OPENER)
    if block is not None:
        return block
    read = _python.read_calls(source, at)
    if read is None:
        return None
    items, end, state = read
    closed = False
    if state is not State.CUT:
        extent = Extent(end=end, state=state)
        end, closed = find_closer(source, extent, _LFM2_CLOSER, _LFM2_OPENER)
    items = [replace(item, closed=closed) for item in items]
    items[-1] = replace(items[-1], end=end)
    return Block(items=tuple(items), end=end)


LLAMA = Family(name="llama", openers=(_LLAMA_OPENER,), read=_read_llama)
LFM2 = Family(name="lfm2", openers=(_LFM2_OPENER,), read=_read_lfm2)
