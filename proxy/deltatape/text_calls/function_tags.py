"""Calls that open with `<function=f>`.

    qwen3-coder  <tool_call><function=f><parameter=k>
                 value
                 </parameter></function></tool_call>                         Qwen3-Coder, MiMo
    llama        <function=f>{"k": "value"}</function>

The wrapper is often missing, or only its end is there, and so is the last `</parameter>`. Values
have no types: the tool's schema decides. Source: the chat templates of these models.
"""

import re
from dataclasses import replace

from deltatape.text_calls._markup import CallTags, is_known, read_call
from deltatape.text_calls._notation import (
    CallBlock,
    FoundCall,
    NotationFamily,
    TextSource,
    before,
    literal,
    read_head,
    word,
)

_WRAPPER = "<tool_call>"
_WRAPPER_END = "</tool_call>"
_OPENER = "<function="
_HEAD = (
    literal(_OPENER),
    word("name", r"[^<>\n]{1,200}+"),
    literal(">"),
    before("<parameter=", "{", "</function>"),
)
_TAGS = CallTags(
    parameter=re.compile(r"<parameter=(?P<key>[^<>\n]{1,200})>"),
    begin="<parameter=",
    complete=">",
    close=("</parameter>",),
    end=("</function>",),
    newlines=True,
)


def _read(source: TextSource, start: int) -> CallBlock | None:
    at = start
    wrapped = source.starts(_WRAPPER, at)
    if wrapped:
        at = source.blanks(at + len(_WRAPPER))
    items: list[FoundCall] = []
    while (item := _read_one(source, at)) is not None:
        items.append(item)
        at = source.blanks(item.end)
        if not item.closed:
            break
    if not items or not (wrapped or is_known(source, items[0])):
        return None
    end = items[-1].end
    if source.starts(_WRAPPER_END, at):
        end = at + len(_WRAPPER_END)
        items[-1] = replace(items[-1], end=end)
    return CallBlock(items=tuple(items), end=end)


def _read_one(source: TextSource, at: int) -> FoundCall | None:
    head = read_head(source, at, _HEAD) if source.starts(_OPENER, at) else None
    if head is None:
        return None
    name = head.word("name").strip().strip("\"'")
    if head.cut:
        begun = name or (head.partial and source.starts(head.partial, at + len(_OPENER)))
        cut = FoundCall(name=name, arguments="", end=source.end, closed=False)
        return cut if begun else None
    return read_call(source, name, head.end, _TAGS) if source.is_name(name) else None


QWEN3_CODER = NotationFamily(name="qwen3-coder", openers=(_WRAPPER, _OPENER), read=_read)
