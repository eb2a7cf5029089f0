"""Harmony, the notation of gpt-oss: a message whose recipient is a tool.

    <|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>{...}<|call|>
    <|start|>assistant to=functions.f<|channel|>commentary<|message|>{...}
    assistantcommentary to=functions.f json{...}                            with its tokens stripped

`<|call|>` ends the sampling and seldom arrives: a call ends with its JSON. A recipient that is no
function (`to=browser.search`) counts behind `commentary` or `analysis` only. Source: the Harmony
response format, https://github.com/openai/harmony.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from deltatape.text_calls._json import JsonEnd, read_arguments
from deltatape.text_calls._notation import (
    NotationFamily,
    TextSource,
    WrittenCall,
    before,
    cut_call,
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


def _read(source: TextSource, start: int) -> Sequence[WrittenCall]:
    named = _NAME.match(source.text, start + len(_OPENER))
    if named is None:
        return ()
    if not named[0].startswith(_FUNCTIONS) and source.text[start - 1 : start] != " ":
        return ()
    floor = max(0, start - _LOOK_BACK)
    before = _BEFORE.search(source.text, floor, start)
    header = source.text[before.start() : start] if before else ""
    name = named[0].removeprefix(_FUNCTIONS)
    if name == named[0] and not any(channel in header for channel in _CHANNELS):
        return ()
    call = _read_message(source, name, named.end())
    return (replace(call, start=start - len(header.lstrip())),) if call else ()


def _read_message(source: TextSource, name: str, at: int) -> WrittenCall | None:
    if at == source.end:
        return cut_call(source)
    head = read_head(source, source.blanks(at), _HEAD)
    if head is None or head.cut:
        begun = head or source.blanks(at) == source.end
        return cut_call(source, name) if begun else None
    place = source.blanks(head.end)
    extent = read_arguments(source, place, _END)
    if extent is None:
        return None
    arguments = source.text[place : extent.end].rstrip()
    end = source.blanks(extent.end)
    end = end + len(_END) if source.starts(_END, end) else extent.end
    return WrittenCall(
        name=name, arguments=arguments, end=end, closed=extent.state is JsonEnd.WHOLE
    )


HARMONY = NotationFamily(name="harmony", openers=(_OPENER,), read=_read)
