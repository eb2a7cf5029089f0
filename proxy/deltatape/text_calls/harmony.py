"""Harmony, the notation of gpt-oss: a message whose recipient is a tool.

    <|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>{...}<|call|>
    <|start|>assistant to=functions.f<|channel|>commentary<|message|>{...}
    assistantcommentary to=functions.f json{...}                            with its tokens stripped

`<|call|>` ends the sampling and seldom arrives: a call ends with its JSON. A recipient that is no
function (`to=browser.search`) counts behind `commentary` or `analysis` only. Source: the Harmony
response format, https://github.com/openai/harmony.
"""

import re

from deltatape.text_calls._json import JsonEnd, read_arguments
from deltatape.text_calls._notation import (
    CallBlock,
    FoundCall,
    NotationFamily,
    TextSource,
    before,
    maybe,
    read_head,
)

_OPENER = "to="
_FUNCTIONS = "functions."
_BEFORE = re.compile(
    r"(?:<\|start\|>)?(?:assistant)?[ ]?(?:<\|channel\|>)?(?:commentary|analysis)?[ ]{1,3}\Z"
)
_LOOK_BACK = 60
_CHANNELS = ("commentary", "analysis")
_NAME = re.compile(r"[A-Za-z_][\w.-]{0,199}+")
_CHANNEL = maybe("<|channel|>commentary", "<|channel|>analysis")
_HEAD = (_CHANNEL, maybe("<|constrain|>"), maybe("json", "code"), maybe("<|message|>"), before("{"))
_END = "<|call|>"


def _read(source: TextSource, start: int) -> CallBlock | None:
    named = _NAME.match(source.text, start + len(_OPENER))
    if named is None:
        return None
    if not named[0].startswith(_FUNCTIONS) and source.text[start - 1 : start] != " ":
        return None
    floor = max(0, start - _LOOK_BACK)
    before = _BEFORE.search(source.text, floor, start)
    header = source.text[before.start() : start] if before else ""
    name = named[0].removeprefix(_FUNCTIONS)
    if name == named[0] and not any(channel in header for channel in _CHANNELS):
        return None
    item = _read_message(source, name, named.end())
    if item is None:
        return None
    return CallBlock(items=(item,), end=item.end, start=start - len(header.lstrip()))


def _read_message(source: TextSource, name: str, at: int) -> FoundCall | None:
    if at == source.end:
        return FoundCall(name="", arguments="", end=at, closed=False)
    head = read_head(source, source.blanks(at), _HEAD)
    if head is None or head.cut:
        cut = FoundCall(name=name, arguments="", end=source.end, closed=False)
        return cut if head or source.blanks(at) == source.end else None
    place = source.blanks(head.end)
    extent = read_arguments(source, place, _END)
    if extent is None:
        return None
    arguments = source.text[place : extent.end].rstrip()
    end = source.blanks(extent.end)
    end = end + len(_END) if source.starts(_END, end) else extent.end
    return FoundCall(name=name, arguments=arguments, end=end, closed=extent.state is JsonEnd.WHOLE)


HARMONY = NotationFamily(name="harmony", openers=(_OPENER,), read=_read)
