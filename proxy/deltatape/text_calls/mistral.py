"""Mistral: everything behind `[TOOL_CALLS]` is calls.

    [TOOL_CALLS] [{"name": "f", "arguments": {...}}, ...]
    [TOOL_CALLS]f[ARGS]{...}[TOOL_CALLS]g[ARGS]{...}        also f[CALL_ID]abc[ARGS]{...} and f{...}

There is no closing tag: a call ends with its JSON. Source: mistral-common's instruct tokenizers.
"""

from deltatape.text_calls._json import JsonEnd, read_arguments, read_calls
from deltatape.text_calls._notation import (
    CallBlock,
    CallHead,
    FoundCall,
    NotationFamily,
    TextSource,
    before,
    literal,
    maybe,
    read_head,
    word,
)

_OPENER = "[TOOL_CALLS]"
_NAME = word("name", r"[^\s\[\]{}<>]{1,200}+")
_WITH_ID = (_NAME, literal("[CALL_ID]"), word("id", r"[^\s\[\]{}]{1,200}+"), literal("[ARGS]"))
_WITHOUT_ID = (_NAME, maybe("[ARGS]"), before("{"))


def _read(source: TextSource, start: int) -> CallBlock | None:
    at = start + len(_OPENER)
    block = read_calls(source, at, None)
    if block is not None:
        return block
    head = read_head(source, at, _WITH_ID) or read_head(source, at, _WITHOUT_ID)
    if head is None or not source.is_name(head.word("name") or head.partial):
        return None
    if head.cut:
        return _block(head, "", source.end, closed=False)
    place = source.blanks(head.end)
    extent = read_arguments(source, place, None)
    if extent is None:
        return _block(head, "", source.end, closed=False) if place == source.end else None
    arguments = source.text[place : extent.end]
    return _block(head, arguments, extent.end, closed=extent.state is JsonEnd.WHOLE)


def _block(head: CallHead, arguments: str, end: int, *, closed: bool) -> CallBlock:
    item = FoundCall(
        name=head.word("name"),
        arguments=arguments,
        id=head.word("id") or None,
        end=end,
        closed=closed,
    )
    return CallBlock(items=(item,), end=end)


MISTRAL = NotationFamily(name="mistral", openers=(_OPENER,), read=_read)
