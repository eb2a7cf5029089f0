"""Calls that open with `<function=f>`.

    qwen3-coder  <tool_call><function=f><parameter=k>
                 value
                 </parameter></function></tool_call>                         Qwen3-Coder, MiMo
    llama        <function=f>{"k": "value"}</function>

The wrapper is often missing, or only its end is there, and so is the last `</parameter>`. Values
have no types: the tool's schema decides. Source: the chat templates of these models.
"""

import re
from collections.abc import Sequence

from deltatape.text_calls._markup import CallTags, is_known, read_call
from deltatape.text_calls._notation import (
    NotationFamily,
    TextSource,
    WrittenCall,
    before,
    close_wrapper,
    cut_call,
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


def _read(source: TextSource, start: int) -> Sequence[WrittenCall]:
    at = start
    wrapped = source.starts(_WRAPPER, at)
    if wrapped:
        at = source.blanks(at + len(_WRAPPER))
    calls: list[WrittenCall] = []
    while (call := _read_one(source, at)) is not None:
        calls.append(call)
        at = source.blanks(call.end)
        if not call.closed:
            break
    if not calls or not (wrapped or is_known(source, calls[0])):
        return ()
    return close_wrapper(source, calls, _WRAPPER_END)


def _read_one(source: TextSource, at: int) -> WrittenCall | None:
    head = read_head(source, at, _HEAD) if source.starts(_OPENER, at) else None
    if head is None:
        return None
    name = head.word("name").strip().strip("\"'")
    if head.cut:
        begun = name or (head.partial and source.starts(head.partial, at + len(_OPENER)))
        return cut_call(source, name) if begun else None
    return read_call(source, name, head.end, _TAGS) if source.is_name(name) else None


QWEN3_CODER = NotationFamily(name="qwen3-coder", openers=(_WRAPPER, _OPENER), read=_read)
