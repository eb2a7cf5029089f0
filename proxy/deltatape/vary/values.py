"""Harmless: the same events in other words, of the same value or with what readers must ignore.

Sources: RFC 8259; Amazon's event stream encoding, whose readers skip headers that they do not know.
"""

from collections.abc import Callable, Iterator

from deltatape.diagnose.rebuild import analyse
from deltatape.model.stream import Format, Stream
from deltatape.mutate import Chance, Draft, Unit
from deltatape.vary._base import rewriting
from deltatape.vary.json_text import escaped, reversed_members, spaced
from deltatape.vary.message import with_header

_STRICT = ("ai-sdk-ui",)
"""Dialects whose readers refuse members that they do not know."""


def _objects(draft: Draft) -> Iterator[Unit]:
    for unit in draft.units:
        if isinstance(unit.value, dict):
            yield unit


def _rewritten(draft: Draft, change: Callable[[str], str]) -> None:
    for unit in _objects(draft):
        unit.text = change(unit.text)


@rewriting("json-blanks")
def json_blanks(draft: Draft, _stream: Stream, _: Chance) -> None:
    """Blanks stand between the tokens of the JSON."""
    _rewritten(draft, spaced)


@rewriting("json-escapes")
def json_escapes(draft: Draft, _stream: Stream, _: Chance) -> None:
    r"""Characters beyond ASCII are written as `\uXXXX`."""
    _rewritten(draft, escaped)


@rewriting("json-order")
def json_order(draft: Draft, _stream: Stream, _: Chance) -> None:
    """The members of the JSON objects come in the opposite order."""
    _rewritten(draft, reversed_members)


@rewriting("unknown-member")
def unknown_member(draft: Draft, stream: Stream, _: Chance) -> None:
    """Every event has a member that no client knows, as padding against eavesdroppers."""
    if analyse(draft.exchange).reply.dialect in _STRICT:
        return
    name = "p" if stream.format is Format.EVENTSTREAM else "obfuscation"
    for unit in _objects(draft):
        if not unit.source((name,)):
            unit.put((name,), '"abcdefgh"')


@rewriting("unknown-header")
def unknown_header(draft: Draft, stream: Stream, _: Chance) -> None:
    """Every binary message has a header that no client knows."""
    if stream.format is Format.EVENTSTREAM:
        for event in stream.events:
            start, end = event.place.span
            draft.edit(start, end, with_header(stream.body[start:end], "x-trace", "fake"))


VALUES = (json_blanks, json_escapes, json_order, unknown_member, unknown_header)
