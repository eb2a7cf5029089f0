"""MiniMax M3: tags that each begin with a token of their own, and are named by the parameters.

    ]<]minimax[>[<tool_call>]<]minimax[>[<invoke name="f">]<]minimax[>[<k>v]<]minimax[>[</k>
    ]<]minimax[>[</invoke>]<]minimax[>[</tool_call>

Values with tags inside (objects, arrays) are kept as the text that they are. Source: the chat
template of the model.
"""

import re
from collections.abc import Sequence

from deltatape.text_calls._notation import (
    INVOKE,
    NotationFamily,
    TextSource,
    WrittenCall,
    close_wrapper,
    consecutive_calls,
    cut_call,
    literal,
    read_head,
)
from deltatape.text_calls._values import ObjectText, opened, typed

_TOKEN = "]<]minimax[>["  # noqa: S105 - a token of a model's vocabulary
_WRAPPER = f"{_TOKEN}<tool_call>"
_WRAPPER_END = f"{_TOKEN}</tool_call>"
_CALL_END = f"{_TOKEN}</invoke>"
_HEAD = (literal(_TOKEN), literal("<invoke"), *INVOKE)
_PARAMETER = re.compile(re.escape(_TOKEN) + r"\s*+<([^/<>\s][^<>\n]{0,199})>")
_PARTIAL_PARAMETER = re.compile(re.escape(_TOKEN) + r"\s*+<[^/<>\s]?[^<>\n]{0,199}+\Z")


def _read(source: TextSource, start: int) -> Sequence[WrittenCall]:
    at = start + len(_WRAPPER) if source.starts(_WRAPPER, start) else start
    if source.cut(_WRAPPER, start) or source.blanks(at) == source.end:
        return (cut_call(source),)
    return close_wrapper(source, consecutive_calls(source, at, _read_one), _WRAPPER_END)


def _read_one(source: TextSource, at: int) -> WrittenCall | None:
    head = read_head(source, at, _HEAD)
    if head is None or not source.is_name(head.word("name") or "_"):
        return None
    name, at = head.word("name"), head.end
    if head.cut:
        return cut_call(source, name)
    written = ObjectText()
    while tag := _PARAMETER.match(source.text, place := source.blanks(at)):
        closer = f"{_TOKEN}</{tag[1]}>"
        stop = min(source.find(closer, tag.end()), source.find(_CALL_END, tag.end()))
        value = source.text[tag.end() : stop]
        if stop == source.end:
            written.add(tag[1], opened(value))
            return WrittenCall(
                name=name, arguments=written.text(whole=False), end=stop, closed=False
            )
        written.add(tag[1], typed(source, name, tag[1], value))
        at = stop + len(closer) if source.starts(closer, stop) else stop
    if source.starts(_CALL_END, place):
        end = place + len(_CALL_END)
        return WrittenCall(name=name, arguments=written.text(whole=True), end=end, closed=True)
    cut = _PARTIAL_PARAMETER.match(source.text, place) or source.cut(_CALL_END, place)
    end = source.end if cut else at
    return WrittenCall(name=name, arguments=written.text(whole=False), end=end, closed=False)


MINIMAX_M3 = NotationFamily(name="minimax-m3", openers=(_TOKEN,), read=_read)
