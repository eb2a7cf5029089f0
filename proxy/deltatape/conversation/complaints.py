"""Error texts of an application's parsers, and the delivered calls that they may be about.

A message that answers a call is about that call. What an application prints is about the reply
before it: the latest that called anything, and ended not long ago.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from deltatape.model.digest import Digest, ReadBack
from deltatape.model.log import LogEntry
from deltatape.model.parser_error import ParserError
from deltatape.model.turn import Complaint, Delivered, Turn
from deltatape.rules.parser_errors import in_log
from deltatape.rules.repeated import first_difference
from deltatape.rules.settings import Settings

_NS = 1_000_000_000


def in_history(
    error: ParserError, about: tuple[Delivered, ...], links: Sequence[ReadBack]
) -> Complaint:
    """The complaint of a message that answers the calls `about`.

    Args:
        error: what a parser says in it.
        about: those calls.
        links: what the same request repeats.
    """
    changed = [
        pair.heard
        for link in links
        for pair in link.pairs
        if any(pair.said is each.call for each in about)
        and first_difference(pair.said, pair.heard) is not None
    ]
    return Complaint(
        error=error,
        logged=False,
        t_ns=None,
        about=about,
        repeated=changed[0] if changed else None,
        sure=True,
    )


def printed(
    digests: Sequence[Digest], logs: Iterable[LogEntry], settings: Settings
) -> dict[int, Complaint]:
    """By the identity of a reply the first complaint that was printed after it.

    Args:
        digests: in the order of their requests.
        logs: in order, on the same clock.
        settings: how long after its end a reply may be complained of.
    """
    found: dict[int, Complaint] = {}
    waiting = [each for each in digests if each.t_ns is not None and _called(each)]
    if not waiting:
        return {}
    waiting.reverse()
    recent: list[Digest] = []
    for entry in logs:
        error = in_log(entry.line)
        if error is None:
            continue
        while waiting and (waiting[-1].t_ns or 0) <= entry.t_ns:
            recent.append(waiting.pop())
        recent = [each for each in recent if _may_concern(each, entry.t_ns, settings)]
        if recent and id(recent[-1]) not in found:
            found[id(recent[-1])] = Complaint(
                error=error,
                logged=True,
                t_ns=entry.t_ns,
                about=_calls(recent[-1]),
                repeated=None,
                sure=len(recent) == 1,
            )
    return found


def without_echoes(turns: Sequence[Turn]) -> Iterator[Turn]:
    """The turns, without what was printed about calls of which a request complains, too."""
    told = {
        id(each.call)
        for turn in turns
        for complaint in turn.complaints
        if not complaint.logged
        for each in complaint.about
    }
    for turn in turns:
        left = tuple(
            one
            for one in turn.complaints
            if not one.logged or told.isdisjoint(id(each.call) for each in one.about)
        )
        yield replace(turn, complaints=left) if left != turn.complaints else turn


def _may_concern(reply: Digest, t_ns: int, settings: Settings) -> bool:
    return reply.end_ns is None or t_ns <= reply.end_ns + settings.app_error_s * _NS


def _called(reply: Digest) -> bool:
    return bool(reply.calls or reply.text_calls)


def _calls(reply: Digest) -> tuple[Delivered, ...]:
    return tuple(Delivered(call=each, reply=reply) for each in (*reply.calls, *reply.text_calls))
