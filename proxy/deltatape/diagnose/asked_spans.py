"""Where the arguments of repeated calls stand in a request's body.

Strategy: the id of a call stands beside its arguments, and before the result that names it, so that
the first place of the id is the call's. Behind it the member that holds the arguments is looked
for. What is found is compared with what the request was read as: what does not agree is no place.
Calls without an id are looked for by their arguments alone, from the end.
"""

import json
import re
from collections.abc import Iterable, Iterator

from deltatape.model.asked import RepeatedCall
from deltatape.model.stream import Span

_MEMBER = re.compile(rb'"(?:arguments|input|args)"[ \t\r\n]*+:[ \t\r\n]*+')
_NEAR = 4096
"""Bytes behind an id in which the arguments of its call begin."""
_LEAST = 3
"""Arguments of fewer bytes are not looked for without an id: they are everywhere."""


def argument_spans(
    body: bytes, calls: Iterable[RepeatedCall]
) -> tuple[tuple[RepeatedCall, Span], ...]:
    """The calls whose arguments were found, with the bytes of these, a string's quotes included.

    Args:
        body: of the request.
        calls: what it was read as.
    """
    each = ((call, _by_id(body, call) if call.id else _by_text(body, call)) for call in calls)
    return tuple([(call, span) for call, span in each if span is not None])


def _by_id(body: bytes, call: RepeatedCall) -> Span | None:
    at = body.find(json.dumps(call.id).encode())
    member = _MEMBER.search(body, at, at + _NEAR) if at >= 0 else None
    if member is None:
        return None
    found = (_at(body, member.end(), text) for text in _spellings(call.arguments))
    return next((span for span in found if span is not None), None)


def _by_text(body: bytes, call: RepeatedCall) -> Span | None:
    for text in _spellings(call.arguments):
        at = body.rfind(text) if len(text) >= _LEAST else -1
        if at >= 0:
            return Span(at, at + len(text))
    return None


def _at(body: bytes, start: int, text: bytes) -> Span | None:
    return Span(start, start + len(text)) if body.startswith(text, start) else None


def _spellings(arguments: str) -> Iterator[bytes]:
    """How arguments may be written: as a string of JSON, in ASCII or not, or as they are."""
    yield json.dumps(arguments, ensure_ascii=False).encode("utf-8", "surrogatepass")
    yield json.dumps(arguments).encode()
    yield arguments.encode("utf-8", "surrogatepass")
