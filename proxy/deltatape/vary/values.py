"""Harmless: the same events with other spellings of their values, and with unknown members.

Sources: RFC 8259; Amazon's event stream encoding, whose readers skip headers that they do not know.
"""

import re
from collections.abc import Callable, Iterator

from deltatape.diagnose.rebuild import analyse
from deltatape.dialects import traits_of
from deltatape.model.stream import Format, Stream
from deltatape.mutate import MutableEvent, MutableExchange, MutationChoices
from deltatape.vary._base import rewriting
from deltatape.wire.aws_eventstream import (
    PRELUDE_SIZE,
    encode_headers,
    encode_message,
    payload_span,
)


def _objects(draft: MutableExchange) -> Iterator[MutableEvent]:
    for unit in draft.units:
        if isinstance(unit.value, dict):
            yield unit


def _rewritten(draft: MutableExchange, change: Callable[[str], str]) -> None:
    for unit in _objects(draft):
        unit.text = change(unit.text)


@rewriting("json-blanks")
def json_blanks(draft: MutableExchange, _stream: Stream, _: MutationChoices) -> None:
    """There are spaces between the tokens of the JSON."""
    _rewritten(draft, spaced)


@rewriting("json-escapes")
def json_escapes(draft: MutableExchange, _stream: Stream, _: MutationChoices) -> None:
    r"""Non-ASCII characters are written as `\uXXXX`."""
    _rewritten(draft, escaped)


@rewriting("json-order")
def json_order(draft: MutableExchange, _stream: Stream, _: MutationChoices) -> None:
    """The members of JSON objects are in reverse order."""
    _rewritten(draft, reversed_members)


@rewriting("unknown-member")
def unknown_member(draft: MutableExchange, stream: Stream, _: MutationChoices) -> None:
    """Every event has an unknown member, such as the padding that some providers send."""
    if traits_of(analyse(draft.exchange).reply.dialect).strict:
        return
    name = "p" if stream.format is Format.EVENTSTREAM else "obfuscation"
    for unit in _objects(draft):
        if not unit.source((name,)):
            unit.put((name,), '"abcdefgh"')


@rewriting("unknown-header")
def unknown_header(draft: MutableExchange, stream: Stream, _: MutationChoices) -> None:
    """Every binary message has an unknown header."""
    if stream.format is Format.EVENTSTREAM:
        for event in stream.events:
            start, end = event.place.span
            draft.edit(start, end, _with_header(stream.body[start:end], "x-trace", "fake"))


def _with_header(message: bytes, name: str, value: str) -> bytes:
    start, end = payload_span(message)
    headers = message[PRELUDE_SIZE:start] + encode_headers({name: value})
    return encode_message(headers, message[start:end])


VALUES = (json_blanks, json_escapes, json_order, unknown_member, unknown_header)


# JSON texts written otherwise: the same value in other bytes.
#
# What is not rewritten keeps its spelling: numbers, escapes, nested values, since a call's
# arguments may be one and count byte for byte. All texts are valid JSON.
#
# Spec: RFC 8259.

_TOKEN = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[\[\]{}:,]|[^\s"\[\]{}:,]++|\s++')
_STEPS = {"{": 1, "[": 1, "}": -1, "]": -1}
_ESCAPED = re.compile(r"[^\x00-\x7f\ud800-\udfff]")
_MEMBER = 1


def spaced(text: str) -> str:
    """Return `text` with spaces around each token of its outermost level."""
    parts: list[str] = []
    for part, depth in _tokens(text):
        outer = depth == _MEMBER and part in "{}[]:,"
        parts.append(f" {part} " if outer else part)
    return "".join(parts).strip()


def escaped(text: str) -> str:
    r"""Return `text` with `\uXXXX` for every character beyond ASCII."""
    return _ESCAPED.sub(lambda match: _escape(match[0]), text)


def _escape(character: str) -> str:
    units = character.encode("utf-16-be").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def reversed_members(text: str) -> str:
    """Return the object `text` with its members reversed; itself if a name occurs twice."""
    members: list[list[str]] = [[]]
    for part, depth in _tokens(text):
        if depth == _MEMBER and part == ",":
            members.append([])
        elif depth > _MEMBER or part not in "{}":
            members[-1].append(part)
    names = [next((part for part in each if not part.isspace()), "") for each in members]
    if len(names) != len(set(names)):
        return text
    inside = ",".join("".join(each).strip() for each in reversed(members))
    return f"{{{inside}}}"


def _tokens(text: str) -> Iterator[tuple[str, int]]:
    """Yield the tokens with their depth: brackets of the outermost value have 1."""
    depth = 0
    for match in _TOKEN.finditer(text):
        token = match[0]
        step = _STEPS.get(token, 0)
        depth += max(step, 0)
        yield token, depth
        depth += min(step, 0)
