"""Mistral: everything behind `[TOOL_CALLS]` is calls.

    [TOOL_CALLS] [{"name": "f", "arguments": {...}}, ...]
    [TOOL_CALLS]f[ARGS]{...}[TOOL_CALLS]g[ARGS]{...}        also f[CALL_ID]abc[ARGS]{...} and f{...}

There is no closing tag: a call ends with its JSON. Source: mistral-common's instruct tokenizers.
"""

from collections.abc import Sequence
from dataclasses import replace

from deltatape.text_calls._json import JsonEnd, read_arguments, read_calls
from deltatape.text_calls._notation import (
    NotationFamily,
    TextSource,
    WrittenCall,
    before,
    cut_call,
    literal,
    maybe,
    read_head,
    word,
)

_OPENER = "[TOOL_CALLS]"
_NAME = word("name", r"[^\s\[\]{}<>]{1,200}+")
_WITH_ID = (_NAME, literal("[CALL_ID]"), word("id", r"[^\s\[\]{}]{1,200}+"), literal("[ARGS]"))
_WITHOUT_ID = (_NAME, maybe("[ARGS]"), before("{"))


def _read(source: TextSource, start: int) -> Sequence[WrittenCall]:
    at = start + len(_OPENER)
    calls = read_calls(source, at, None)
    if calls:
        return calls
    head = read_head(source, at, _WITH_ID) or read_head(source, at, _WITHOUT_ID)
    if head is None or not source.is_name(head.word("name") or head.partial):
        return ()
    cut = replace(cut_call(source, head.word("name")), id=head.word("id") or None)
    place = source.blanks(head.end)
    if head.cut or place == source.end:
        return (cut,)
    extent = read_arguments(source, place, None)
    if extent is None:
        return ()
    arguments, closed = source.text[place : extent.end], extent.state is JsonEnd.WHOLE
    return (replace(cut, arguments=arguments, end=extent.end, closed=closed),)


MISTRAL = NotationFamily(name="mistral", openers=(_OPENER,), read=_read)
