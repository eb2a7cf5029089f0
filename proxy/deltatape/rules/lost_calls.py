"""Calls that were delivered and that the application does not repeat."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain

from deltatape.model.digest import DeliveredCall, ReadBack
from deltatape.model.finding import Confidence, Excluded, Severity, weaker
from deltatape.model.reply import CallStatus
from deltatape.model.request_summary import RepeatedCall
from deltatape.printable import count, excerpt
from deltatape.rules._call_references import (
    ClaimGrade,
    against,
    call_label,
    looks_up,
    was_delivered,
)
from deltatape.rules.complaints import is_untrue, is_untrue_of_call
from deltatape.rules.context import Claim
from deltatape.rules.edits import breaks_schema
from deltatape.rules.pattern_set import PatternSet
from deltatape.rules.repeated import CLEAN, ArgumentsDamage, SiblingCalls, leaves, relation
from deltatape.rules.rule import read_back_rule
from deltatape.wire.json_value import canonical, parse

_LISTED = 32
"""Most calls that a message lists."""
_KNOWN_AT_LEAST = 3
"""Shorter values are not searched for in texts: they occur everywhere. In characters."""


@read_back_rule("C001", "call-lost-by-app", Severity.ERROR)
def call_lost_by_app(read_back: ReadBack) -> Iterator[Claim]:
    """Report a call that was delivered and that the application does not repeat."""
    if not read_back.reply.whole or not read_back.lost:
        return
    losses = _Losses(read_back)
    for call in read_back.lost:
        if call.status not in CLEAN or not was_delivered(read_back, call):
            continue
        if losses.is_repeated_otherwise(call):
            continue
        grade = _graded(losses, call)
        yield Claim(
            message=(
                f"{call_label(call, read_back.reply)} was delivered complete, but the next"
                " request of the app does not have it:"
                f" {losses.instead}{grade.clause and f'; {grade.clause}'}"
            ),
            hint=grade.hint,
            evidence=call.arguments or "(no arguments)",
            severity=grade.severity,
            against=against(call, read_back.reply),
            blame=grade.blame,
            confidence=weaker(grade.confidence, read_back.confidence),
            excluded=grade.excluded,
        )


_LAST = "only the last call was kept: keep one entry per index instead of one current call"
_FIRST = "if all calls should run, read every entry of tool_calls, and every index"
_ALL = "keep one entry per index, whatever the finish reason is"
_LOOK = (
    "check how the app handles a reply with calls: a filter, a denial, an early return; if"
    " it drops the call on purpose, ignore this finding"
)
_DROPPED = "the app dropped the call on purpose"
_DENIED = "a person or a filter denied the call, or a later call of the tool replaces it"
_ONE = "the app runs one call at a time"


def _graded(losses: "_Losses", call: DeliveredCall) -> ClaimGrade:
    if call.after_finish:
        return ClaimGrade(
            (
                "it came after the finish reason: a client that stops reading there never sees"
                " it (S010)"
            ),
            (
                "read the stream to its terminal event; the provider should not send calls"
                " after the finish reason"
            ),
            Confidence.PROVEN,
            severity=Severity.INFO,
            blame=None,
        )
    if call.ids and not losses.answered.isdisjoint(call.answers_to):
        has = Excluded(_DROPPED, "the request has the result of the call")
        return ClaimGrade("", _ALL, Confidence.PROVEN, (has,))
    torn = losses.torn(call)
    if torn:
        return ClaimGrade("", _ALL, Confidence.PROVEN, (Excluded(_DROPPED, torn),))
    otherwise = losses.otherwise(call)
    if otherwise:
        clause = f"{otherwise}, so it may have been dropped on purpose"
        return ClaimGrade(clause, _LOOK, Confidence.POSSIBLE, severity=Severity.INFO)
    read_back = losses.read_back
    if losses.printed:
        excluded = Excluded(_DROPPED, f"after this reply the app printed {losses.printed!r}")
        return ClaimGrade("", losses.hint, Confidence.LIKELY, (excluded,))
    line = losses.reported(call)
    if line:
        lost = Excluded(_DROPPED, f"after this reply the app printed {line!r}")
        return ClaimGrade(f"the app printed {line!r}", losses.hint, Confidence.LIKELY, (lost,))
    if read_back.habits.broken:
        torn_elsewhere = Excluded(
            _DROPPED, f"the app breaks other calls, too: {read_back.habits.broken}"
        )
        return ClaimGrade("", losses.hint, Confidence.LIKELY, (torn_elsewhere,))
    if read_back.pairs:
        return _of_several(losses, call)
    follows = "a user message follows" if losses.user_follows else ""
    return ClaimGrade(
        f"{follows + ', ' if follows else ''}so it may have been dropped on purpose",
        _LOOK,
        Confidence.POSSIBLE,
        severity=Severity.WARNING,
    )


def _of_several(losses: "_Losses", call: DeliveredCall) -> ClaimGrade:
    """Grade a lost call whose siblings are repeated, weighing a mistake against a choice."""
    read_back = losses.read_back
    refused = call.status is CallStatus.EMPTY_SUSPECT or breaks_schema(
        read_back.reply.schemas.get(call.name or ""), call.arguments
    )
    excluded = []
    if call.name in losses.kept_tools and not refused and looks_up(call):
        excluded.append(
            Excluded(_DENIED, f"it keeps other calls of {call.name}, which looks something up")
        )
    if read_back.habits.keeps_several:
        excluded.append(Excluded(_ONE, "elsewhere on the tape it repeats several calls of a reply"))
    elif losses.keeps_last:
        excluded.append(
            Excluded(
                _ONE, ("it keeps the last call; an app that runs one at a time takes the first")
            )
        )
    if len(excluded) > 1:
        return ClaimGrade("", losses.hint, Confidence.LIKELY, tuple(excluded))
    return ClaimGrade(
        "it may have been dropped on purpose, by a filter or a limit of one call at a time",
        f"{losses.hint}; if the app drops it on purpose, ignore this finding",
        Confidence.POSSIBLE,
        severity=Severity.WARNING,
    )


class _Losses:
    """What the lost calls of a read-back are looked for in: indexed once, for thousands of them."""

    def __init__(self, read_back: ReadBack) -> None:
        self.read_back = read_back
        self._near = read_back.later.history[read_back.start :]
        self.answered = frozenset(read_back.answered)
        self._kept = {pair.delivered.index for pair in read_back.pairs}
        self.keeps_last = self._kept == {read_back.reply.calls[-1].index}
        self._siblings = SiblingCalls(read_back.reply.calls)

    @property
    def hint(self) -> str:
        """What to change, by which of the calls survived."""
        if self.keeps_last:
            return _LAST
        return _FIRST if self._kept == {self.read_back.reply.calls[0].index} else _ALL

    @cached_property
    def kept_tools(self) -> frozenset[str | None]:
        """The tools whose other calls it keeps."""
        kept = frozenset(pair.delivered.name for pair in self.read_back.pairs)
        return kept | self.read_back.habits.keeps

    @cached_property
    def instead(self) -> str:
        """What the request has instead, as a clause."""
        read_back = self.read_back
        if self._kept:
            return (
                f"of {len(read_back.reply.calls)} calls, the request has only call"
                f" {_places(sorted(self._kept))}"
            )
        if read_back.extra:
            return f"instead it has {count(len(read_back.extra), 'call')} that the model never made"
        return "its assistant message has no call at all"

    @cached_property
    def user_follows(self) -> bool:
        following = self.read_back.following
        return bool(following) and following[0].role == "user" and not following[0].call_id

    @cached_property
    def printed(self) -> str:
        """What the application printed, if it is false about all lost calls; "" otherwise."""
        error, lost = self.read_back.printed, self.read_back.lost
        if error is None or not is_untrue(error, lost) or not is_untrue_of_call(error, lost):
            return ""
        return excerpt(error.text, 100)

    def reported(self, call: DeliveredCall) -> str:
        """Return the first line that reports the call as lost; "" if there is none."""
        found = [self._reported[each] for each in call.ids if each in self._reported]
        return min(found)[1] if found else ""

    @cached_property
    def _reported(self) -> Mapping[str, tuple[int, str]]:
        """Printed lines and their places by the id that they name."""
        lines: dict[str, tuple[int, str]] = {}
        for place, (call_id, line) in enumerate(self.read_back.reported_lost):
            lines.setdefault(call_id, (place, line))
        return lines

    def torn(self, call: DeliveredCall) -> str:
        """Return where the fragments of `call` are instead, as a clause; "" if they are nowhere."""
        broken = sum(self._broken[piece] for piece in set(call.fragments))
        if broken:
            return f"{count(broken, 'call')} that it repeats instead contain its fragments"
        return self._mixed if call.arguments else ""

    @cached_property
    def _broken(self) -> Counter[str]:
        """Count by its text each call that it repeats instead and that is not JSON."""
        texts = (call.arguments for call in self.read_back.extra if call.arguments)
        return Counter(text for text in texts if parse(text).error is not None)

    @cached_property
    def _mixed(self) -> str:
        """Where the fragments of several calls are mixed, as a clause; "" if they are nowhere."""
        for pair in self.read_back.pairs:
            if pair.repetition.arguments != pair.delivered.arguments:
                found = relation(pair.delivered, pair.repetition, self._siblings)
                if found and found.damage is ArgumentsDamage.MIXED:
                    return f"{found.clause}, in what the app repeats as call {pair.delivered.index}"
        return ""

    def is_repeated_otherwise(self, call: DeliveredCall) -> bool:
        """Return whether the message has an equal call or a text with the call's id."""
        return _content(call) in self._repeated or not self._mentioned_ids.isdisjoint(call.ids)

    @cached_property
    def _repeated(self) -> frozenset[tuple[str | None, str]]:
        return frozenset(map(_content, self.read_back.repeated_calls))

    @cached_property
    def _mentioned_ids(self) -> frozenset[str]:
        ids = (call_id for call in self.read_back.lost for call_id in call.ids)
        wanted = PatternSet(each for each in ids if len(each) > _KNOWN_AT_LEAST)
        return frozenset(chain(*(wanted.within(message.content) for message in self._near)))

    def otherwise(self, call: DeliveredCall) -> str:
        """Describe where else in the request the call may be; "" if it is nowhere."""
        if _content(call) in self._in_history:
            return "the history has an equal call"
        named, values = self._mentioned.get(call.name or "", set()), _values(call)
        mentioned = not all(named.isdisjoint(self._mentioned.get(each, ())) for each in values)
        if not values:
            mentioned = bool(named)
        return "a text in the request mentions it" if mentioned else ""

    @cached_property
    def _in_history(self) -> frozenset[tuple[str | None, str]]:
        history = self.read_back.later.history
        return frozenset(_content(call) for message in history for call in message.calls)

    @cached_property
    def _mentioned(self) -> Mapping[str, set[int]]:
        """By name or value of a lost call, the places of the messages that mention it."""
        lost = self.read_back.lost
        wanted = PatternSet(
            chain((call.name for call in lost if call.name), *(_values(call) for call in lost))
        )
        found: dict[str, set[int]] = {}
        for place, message in enumerate(self._near):
            for each in wanted.within(message.content):
                found.setdefault(each, set()).add(place)
        return found


def _values(call: DeliveredCall) -> list[str]:
    """Return the values of its arguments that are long enough to be searched for."""
    return [each for each in leaves(call.arguments) if len(each) >= _KNOWN_AT_LEAST]


def _content(call: DeliveredCall | RepeatedCall) -> tuple[str | None, str]:
    return call.name, canonical(call.arguments.strip() or "{}") or call.arguments


def _places(indexes: Sequence[int]) -> str:
    """List calls for a message, which each of thousands of lost calls has."""
    more = len(indexes) - _LISTED
    listed = ", ".join(map(str, indexes[:_LISTED] if more > 0 else indexes))
    return f"{listed} and {more} more" if more > 0 else listed
