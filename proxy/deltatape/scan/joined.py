"""Compares exchanges of one conversation that are on several tapes.

Requests of one conversation get one clock and consecutive numbers, as if they were on one tape, and
are compared as `check` compares those of a tape. A finding that no tape has by itself is new; one
that a tape has only by itself is withdrawn.

A silence can be seen only on a whole tape, so none is reported here; but a reported one is
withdrawn if the conversation continues on another tape.

Pure: no file, no clock.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from deltatape.conversation import check_conversation
from deltatape.conversation.attempts import attempts_of
from deltatape.diagnose.check_tape import NEAR, ComparedExchanges, ExchangeWindow, shape
from deltatape.model.digest import DeliveredCall, Digest, digest_at
from deltatape.model.finding import Finding
from deltatape.model.rule_settings import DEFAULTS, Settings
from deltatape.why.exchange_index import CountedFinding
from deltatape.why.survey import reply_of

_JOINED = "joined"
"""The name given to all tapes together, as if they were one."""
_FIRST = 1_000_000_000
"""The first number of joined exchanges; no message has such a number otherwise."""
_NUMBER = re.compile(r"#(1\d{9})\b")


class TapeDigest(NamedTuple):
    """A digest with its tape."""

    tape: str
    """The tape's key."""
    began_ns: int | None
    """When the tape began, since 1970; None: unknown."""
    alone: bool
    """Whether the tape's exchanges were not compared with each other."""
    digest: Digest


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """The result of joining a conversation."""

    new: tuple[tuple[str, CountedFinding], ...]
    """New findings, each with the key of the tape of its request."""
    withdrawn: tuple[tuple[str, CountedFinding], ...]
    """Findings of a single tape that the others refute."""
    answered: tuple[tuple[str, int], ...]
    """Tapes and exchanges with calls whose conversation continues on another tape."""
    retried: tuple[tuple[str, int, str], ...]
    """Tapes and exchanges that failed, each with the exchange on another tape that succeeded."""


def joined(
    found: Sequence[TapeDigest], settings: Settings = DEFAULTS, *, near: int = NEAR
) -> Joined:
    """Compare requests whose histories begin alike.

    Args:
        found: the digests of each tape in the order of their requests.
        settings: the thresholds.
        near: see `check_tape.NEAR`.
    """
    conversation = _Conversation(found, settings, near)
    together = conversation.findings(conversation.digests)
    apart: list[CountedFinding] = []
    alone = {each.tape for each in found if each.alone}
    for tape, own in conversation.by_tape.items():
        apart += conversation.findings(own) if tape not in alone else ()
    return Joined(
        new=tuple(map(conversation.placed, _without(together, apart))),
        withdrawn=tuple(map(conversation.placed, _without(apart, together))),
        answered=tuple(conversation.answered()),
        retried=tuple(conversation.retried()),
    )


class _Conversation:
    """Digests of several tapes, treated as one tape."""

    def __init__(self, found: Sequence[TapeDigest], settings: Settings, near: int) -> None:
        self._settings = settings
        self._near = near
        self._places: list[tuple[str, int]] = []
        """Tape and number of each joined exchange."""
        self.digests: list[Digest] = []
        """In the order of their requests."""
        self.by_tape: dict[str, list[Digest]] = {}
        numbers: dict[tuple[str, int], int] = {}
        tapes: dict[str, str] = {}
        """By the ids of exchanges: of a copy of a tape, only one counts."""
        for each, began_ns in _on_one_clock(found):
            if each.digest.id and tapes.setdefault(each.digest.id, each.tape) != each.tape:
                continue
            place = each.tape, each.digest.exchange
            if place not in numbers:
                numbers[place] = _FIRST + len(numbers)
                self._places.append(place)
            digest = _moved(each.digest, began_ns, numbers[place])
            self.digests.append(digest)
            self.by_tape.setdefault(each.tape, []).append(digest)

    def _place(self, number: int) -> tuple[str, int]:
        return self._places[number - _FIRST]

    def findings(self, digests: Iterable[Digest]) -> list[CountedFinding]:
        """Return the findings on conversations as if all were on one tape."""
        exchanges: dict[int, list[Digest]] = {}
        for each in digests:
            exchanges.setdefault(each.exchange, []).append(each)
        window = ExchangeWindow(self._near)
        found: list[CountedFinding] = []
        for number in sorted(exchanges):
            compared = window.add(number, tuple(exchanges[number]))
            if compared is not None:
                found += _compared(compared, self._settings)
        return [*found, *_compared(window.rest(), self._settings)]

    def placed(self, counted: CountedFinding) -> tuple[str, CountedFinding]:
        """Return a finding's tape, and the finding with the exchange's number on that tape."""
        finding = counted.finding
        tape, exchange = self._place(finding.exchange)
        message = _NUMBER.sub(lambda match: self._name(match, tape), finding.message)
        about = self._place(counted.about)
        return tape, counted._replace(
            finding=replace(finding, tape=tape, exchange=exchange, message=message),
            about=about[1] if about[0] == tape else exchange,
        )

    def _name(self, match: re.Match[str], tape: str) -> str:
        number = int(match[1])
        return self._named(number, tape) if number - _FIRST < len(self._places) else match[0]

    def _named(self, number: int, tape: str) -> str:
        """Return the name of an exchange in a finding about a tape."""
        of, exchange = self._place(number)
        return f"#{exchange}" if of == tape else f"#{exchange} of {of}"

    def retried(self) -> Iterator[tuple[str, int, str]]:
        """Yield the exchanges that failed and whose request succeeded on another tape."""
        for row in attempts_of(self.digests):
            answered = row.tries[-1].exchange
            for each in row.tries[:-1] if row.answered else ():
                tape, exchange = self._place(each.exchange)
                if self._place(answered)[0] != tape:
                    yield tape, exchange, self._named(answered, tape)

    def answered(self) -> Iterator[tuple[str, int]]:
        """Yield the exchanges with calls that a later request on another tape continues."""
        later: dict[str, set[str]] = {}
        """By the hash of some first messages of a history, the tapes that have them."""
        stored: dict[str, set[str]] = {}
        for digest in reversed(self.digests):
            tape, exchange = self._place(digest.exchange)
            going_on = later.get(digest.prefixes[-1], set()) if digest.history else set()
            going_on = going_on | stored.get(digest.reply_id or "", set())
            if digest.calls and going_on - {tape}:
                yield tape, exchange
            for prefix in digest.prefixes[1:]:
                later.setdefault(prefix, set()).add(tape)
            if digest.previous:
                stored.setdefault(digest.previous, set()).add(tape)


def _compared(compared: ComparedExchanges, settings: Settings) -> Iterator[CountedFinding]:
    for finding in check_conversation(compared.digests, settings, told=compared.told, goes_on=True):
        number = finding.exchange
        about = reply_of(finding) or number
        request = digest_at(compared.held[number], number, finding.line)
        yield CountedFinding(finding, about, request, compared.held.get(about, ()), finding)


def _without(
    found: Iterable[CountedFinding], others: Iterable[CountedFinding]
) -> list[CountedFinding]:
    """Return the findings that are not in `others`; counts how often each occurs."""
    left = Counter(_identity(each.finding) for each in others)
    kept = []
    for each in found:
        identity = _identity(each.finding)
        if left[identity]:
            left[identity] -= 1
        else:
            kept.append(each)
    return kept


def _identity(finding: Finding) -> tuple[object, ...]:
    return finding.exchange, finding.code, finding.line, finding.event, shape(finding.message)


def _on_one_clock(found: Sequence[TapeDigest]) -> list[tuple[TapeDigest, int | None]]:
    """Return digests in the order of their requests, each with the offset of its tape.

    Offsets count from the beginning of the first tape. If one tape has no known beginning, there
    are no offsets, and the tapes follow each other.
    """
    timed = [each.began_ns for each in found if each.began_ns is not None]
    first = min(timed, default=0)
    if len(timed) < len(found) or any(each.digest.t_ns is None for each in found):
        ordered = sorted(found, key=lambda each: (each.began_ns or 0, each.tape))
        return [(each, None) for each in ordered]
    ordered = sorted(found, key=lambda each: (each.began_ns or 0) + (each.digest.t_ns or 0))
    return [(each, (each.began_ns or 0) - first) for each in ordered]


def _moved(digest: Digest, began_ns: int | None, number: int) -> Digest:
    """Return a digest with another number, its times shifted."""

    def at(t_ns: int | None) -> int | None:
        return None if t_ns is None or began_ns is None else t_ns + began_ns

    def calls(own: Iterable[DeliveredCall]) -> tuple[DeliveredCall, ...]:
        return tuple([replace(call, t_ns=at(call.t_ns)) for call in own])

    return replace(
        digest,
        tape=_JOINED,
        exchange=number,
        t_ns=at(digest.t_ns),
        end_ns=at(digest.end_ns),
        called_ns=at(digest.called_ns),
        said_ns=at(digest.said_ns),
        watch=None,
        calls=calls(digest.calls),
        text_calls=calls(digest.text_calls),
    )
