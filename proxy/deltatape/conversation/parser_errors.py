"""Find an application's parser errors and the delivered calls that they may be about.

A message that answers a call is about that call. What an application prints is about the reply
before it: the latest of which part of a call had arrived, and that ended not long ago.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain
from operator import itemgetter

from deltatape.model.digest import CallWithRepeat, Digest, ParserError, ReadBack
from deltatape.model.request_summary import RepeatedCall
from deltatape.model.rule_settings import Settings
from deltatape.model.tape_summary import LogEntry
from deltatape.model.turn import Complaint, DeliveredCallRef, Turn
from deltatape.printable import excerpt
from deltatape.rules.complaints import is_of_nothing
from deltatape.rules.parser_errors import in_log
from deltatape.rules.repeated import first_difference

_NS = 1_000_000_000
_LINE = 4000
"""How much of a printed line is searched, in bytes."""
_SHOWN = 100
_ID_AT_LEAST = 6
"""The shortest id to search for in a line, in characters."""
_LOSES = re.compile(
    r"(?i)\blost\b|\bunexpected (?:tool |function )?(?:call )?index"
    r"|\bfailed to (?:process|add|assemble|collect|append|store|decode|parse)\b"
)
"""Messages that programs print when they cannot process a call."""
_WORD = re.compile(r"\w[\w-]*")
"""A word that may be an id."""


class RepeatedPairs:
    """The pairs of what a request repeats, by the delivered call."""

    def __init__(self, read_backs: Sequence[ReadBack]) -> None:
        self._read_backs = read_backs

    @cached_property
    def _by_call(self) -> Mapping[int, list[tuple[int, CallWithRepeat]]]:
        """Pairs and their places by the identity of the delivered call."""
        found: dict[int, list[tuple[int, CallWithRepeat]]] = {}
        for place, pair in enumerate(chain(*(each.pairs for each in self._read_backs))):
            found.setdefault(id(pair.delivered), []).append((place, pair))
        return found

    def changed(self, calls: Iterable[DeliveredCallRef]) -> RepeatedCall | None:
        """Return the first repetition of the calls with other arguments, if there is one."""
        pairs = chain(*(self._by_call.get(id(ref.call), ()) for ref in calls))
        for _, pair in sorted(pairs, key=itemgetter(0)):
            if first_difference(pair.delivered, pair.repetition) is not None:
                return pair.repetition
        return None


def in_history(
    error: ParserError, about: tuple[DeliveredCallRef, ...], pairs: RepeatedPairs
) -> Complaint:
    """Return the complaint of a message that answers the calls `about`.

    Args:
        error: what a parser says in it.
        about: the calls.
        pairs: what the same request repeats.
    """
    return Complaint(
        error=error,
        logged=False,
        t_ns=None,
        about=about,
        repeated=pairs.changed(about),
        sure=True,
    )


def with_unread(turns: Sequence[Turn], digests: Sequence[Digest]) -> Iterator[Turn]:
    """Yield the turns with evidence that a call without argument bytes could not be read.

    An empty text can also come from a service that failed. Where the application repeats `{}` it
    has read the call; where it repeats nothing, it did not if the same tool works with `{}` or if
    the application tears calls apart elsewhere.
    """
    if not any(_may_be_unread(complaint) for turn in turns for complaint in turn.complaints):
        yield from turns
        return
    worked = dict(_successful_empty_calls(digests))
    for turn in turns:
        complaints = tuple(
            replace(complaint, unread=_unread(complaint, turn, worked))
            if _may_be_unread(complaint)
            else complaint
            for complaint in turn.complaints
        )
        yield replace(turn, complaints=complaints) if complaints else turn


def _may_be_unread(complaint: Complaint) -> bool:
    about = [ref.call for ref in complaint.about]
    return not complaint.logged and is_of_nothing(complaint.error, about)


def _unread(complaint: Complaint, turn: Turn, worked: Mapping[tuple[str, str], int]) -> str:
    pairs = [(read_back, pair) for read_back in turn.read_backs for pair in read_back.pairs]
    about = complaint.about[0].call
    read_back, repetition = next(
        ((one, pair.repetition) for one, pair in pairs if pair.delivered is about), (None, None)
    )
    if read_back is None or repetition is None or repetition.arguments.strip():
        return ""
    nothing = "the request repeats the call without arguments"
    if read_back.habits.broken:
        return f"{nothing}, and {read_back.habits.broken}"
    number = worked.get((turn.digest.tape, about.name or ""))
    return (
        "" if number is None else f"{nothing}, and the tool works where they are {{}} (#{number})"
    )


def _successful_empty_calls(digests: Sequence[Digest]) -> Iterator[tuple[tuple[str, str], int]]:
    """Yield tape and tool with a request whose result for the arguments `{}` is no error."""
    for digest in digests:
        names: dict[str, str] = {}
        for message in digest.history:
            for call in message.calls:
                if call.id and call.name and call.arguments.strip() == "{}":
                    names[call.id] = call.name
            if message.call_id in names and message.error is None:
                yield (digest.tape, names[message.call_id]), digest.exchange


def printed(
    digests: Sequence[Digest], logs: Iterable[LogEntry], settings: Settings
) -> dict[int, Complaint]:
    """Map identities of replies to the first complaint that was printed after them.

    Args:
        digests: in the order of their requests.
        logs: in order, on the same clock.
        settings: how long after its end a reply may be complained of.
    """
    found: dict[int, Complaint] = {}
    began = [
        (since_ns, reply)
        for reply in digests
        if (reply.calls or reply.text_calls) and (since_ns := _since_ns(reply)) is not None
    ]
    if not began:
        return {}
    waiting = sorted(began, key=itemgetter(0), reverse=True)
    recent: list[Digest] = []
    for entry in logs:
        error = in_log(entry.line)
        if error is None:
            continue
        while waiting and waiting[-1][0] <= entry.t_ns:
            recent.append(waiting.pop()[1])
        recent = [reply for reply in recent if _may_concern(reply, entry.t_ns, settings)]
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


def reported_losses(
    digests: Sequence[Digest], logs: Iterable[LogEntry], settings: Settings
) -> dict[int, tuple[tuple[str, str], ...]]:
    """Map identities of replies to ids of calls that a printed line reports as lost, with the line.

    The line names the id, and says that the call was lost, or that the code which takes it failed.
    That a call was dropped, skipped or denied is a choice, and that its tool failed is no loss.

    Args:
        digests: in the order of their requests.
        logs: in order, on the same clock.
        settings: how long after its end a reply may be complained of.
    """
    found: dict[int, dict[str, str]] = {}
    owners: dict[str, list[Digest]] = {}
    for reply in digests:
        for each in (call_id for call in reply.calls for call_id in call.ids):
            if _since_ns(reply) is not None and len(each) >= _ID_AT_LEAST:
                owners.setdefault(each, []).append(reply)
    for entry in logs if owners else ():
        line = entry.line[:_LINE].decode("utf-8", "backslashreplace").strip()
        loses = _LOSES.search(line) is not None
        if not loses and "KeyError: " not in line:
            continue
        for each in _WORD.findall(line):
            if not loses and f"KeyError: {each!r}" not in line:
                continue
            for reply in owners.get(each, ()):
                after = (_since_ns(reply) or 0) <= entry.t_ns
                if after and _may_concern(reply, entry.t_ns, settings):
                    found.setdefault(id(reply), {}).setdefault(each, excerpt(line, _SHOWN))
    return {reply: tuple(lines.items()) for reply, lines in found.items()}


def without_echoes(turns: Sequence[Turn]) -> Iterator[Turn]:
    """Yield the turns without printed errors that a request repeats."""
    in_requests = {
        id(ref.call)
        for turn in turns
        for complaint in turn.complaints
        if not complaint.logged
        for ref in complaint.about
    }
    for turn in turns:
        left = tuple(
            complaint
            for complaint in turn.complaints
            if not complaint.logged
            or in_requests.isdisjoint(id(ref.call) for ref in complaint.about)
        )
        yield replace(turn, complaints=left) if left != turn.complaints else turn


def _since_ns(reply: Digest) -> int | None:
    """Return from when on a printed line can be about the calls of a reply, if that is known."""
    return reply.t_ns if reply.called_ns is None else reply.called_ns


def _may_concern(reply: Digest, t_ns: int, settings: Settings) -> bool:
    return reply.end_ns is None or t_ns <= reply.end_ns + settings.app_error_s * _NS


def _calls(reply: Digest) -> tuple[DeliveredCallRef, ...]:
    return tuple(
        DeliveredCallRef(call=each, reply=reply) for each in (*reply.calls, *reply.text_calls)
    )
