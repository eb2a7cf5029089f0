"""Calls in the text, as parsers find them that do not wait for a whole tag.

What they go by is how the text was cut into pieces; the reference is what `text_calls` finds in the
whole of it.
"""

from collections.abc import Sequence
from typing import NamedTuple

from deltatape.model.asked import RepeatedCall
from deltatape.model.reply import Channel, Piece, Reply, TextCall
from deltatape.suspects.accumulate import Outcome

_MOST = 50
"""Repetitions of one call that are told."""


class _Body(NamedTuple):
    """The JSON of a call in the text, and what closes it."""

    start: int
    text: str
    closer: str


def tag_outcome(reply: Reply, how: str) -> Outcome:
    """The calls in the text of `reply`, for a parser that looks for them so; and what it parses."""
    found = [one for one in reply.text_calls if one.channel is Channel.TEXT]
    if how == "reasoning":
        return Outcome(_calls(reply.text_calls))
    if how == "first-call":
        return Outcome(_calls(found[:1]))
    cuts = _cuts(reply.choices[0].pieces)
    if how == "per-chunk":
        return Outcome(_calls([one for one in found if not _cut_inside(one, cuts)]))
    if how == "rescan":
        return Outcome(_calls([one for end in cuts for one in found if one.end <= end][:_MOST]))
    if how in ("flush-early", "braces"):
        return _spoilt(reply, found, cuts, how)
    return Outcome(_calls(found))


def _calls(found: Sequence[TextCall]) -> tuple[RepeatedCall, ...]:
    return tuple(
        RepeatedCall(id=one.call.id, name=one.call.name, arguments=one.call.arguments)
        for one in found
    )


def _cuts(pieces: Sequence[Piece]) -> list[int]:
    """Where the pieces of the text end."""
    ends, end = [], 0
    for piece in pieces:
        if piece.channel is Channel.TEXT:
            end += len(piece.text)
            ends.append(end)
    return ends


def _cut_inside(one: TextCall, cuts: Sequence[int]) -> bool:
    return any(one.start < cut < one.end for cut in cuts)


def _spoilt(reply: Reply, found: Sequence[TextCall], cuts: Sequence[int], how: str) -> Outcome:
    """The calls that survive, and the texts that are parsed of those that do not."""
    kept: list[TextCall] = []
    texts: list[str] = []
    for one in found:
        body = _body(reply.text, one)
        parsed = None if body is None else _parsed(body, cuts, how)
        if parsed:
            texts += parsed
        else:
            kept.append(one)
    return Outcome(_calls(kept), (), tuple(dict.fromkeys(texts)))


def bodies(reply: Reply) -> list[str]:
    """What stands between the tags of the calls in the text, where that is an object."""
    found = (_body(reply.text, one) for one in reply.text_calls if one.channel is Channel.TEXT)
    return [body.text for body in found if body is not None]


def _body(text: str, one: TextCall) -> _Body | None:
    raw = text[one.start : one.end]
    start, end = raw.find("{"), raw.rfind("}") + 1
    if start < 0 or end <= start:
        return None
    end = max(end, raw.rfind("</"))
    return _Body(one.start + start, raw[start:end].rstrip(), raw[end:].strip())


def _parsed(body: _Body, cuts: Sequence[int], how: str) -> list[str]:
    """What is parsed in the place of `body`; empty where it comes out right."""
    if how == "braces":
        end = _balanced(body.text)
        return [] if end == len(body.text) else [body.text[:end]]
    end = body.start + len(body.text)
    inside = [cut - body.start for cut in cuts if body.start < cut < end]
    if not inside and end not in cuts and not _closer_cut(body, cuts):
        return []
    # What was held back as a possible closing tag follows the part that was passed on.
    tails = [body.closer[at:] for at in range(1, len(body.closer))]
    return [*(body.text[:cut] for cut in inside), *(body.text + tail for tail in tails)]


def _closer_cut(body: _Body, cuts: Sequence[int]) -> bool:
    end = body.start + len(body.text)
    return any(end < cut < end + len(body.closer) for cut in cuts)


def _balanced(text: str) -> int:
    """Where braces balance, those in strings counted, too; the length if nowhere."""
    depth = 0
    for at, sign in enumerate(text, 1):
        depth += (sign == "{") - (sign == "}")
        if depth == 0:
            return at
    return len(text)
