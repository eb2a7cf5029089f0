"""Find misplaced messages: they belong to another conversation or another call.

A server that keeps the state of several users in one variable puts the reply or the tool result of
one into the history of another. A loop that pairs results with calls by their order gives each call
another's result. Neither breaks a rule of the wire: what shows them is content.

Accusing wrongly is worse than saying nothing. A reply counts as another conversation's only if:
- its content is long enough to be nobody else's, and no other reply has it;
- both requests have the same instructions and the same tools: agents that work together differ;
- neither conversation has a user message of the other, nor quotes one: supervisors do;
- the history has begun before the message as that of a reply on the tape, so that it is no summary.

Strategy: one pass over the requests. Each message is looked at once, in the first request that
carries it.
"""

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from deltatape.conversation.continuation import first_new, had_arrived
from deltatape.conversation.read_back import goes_on_from
from deltatape.model.digest import ASSISTANT, DeliveredCall, Digest, HistoryMessage
from deltatape.model.request_summary import RepeatedCall
from deltatape.model.turn import DeliveredCallRef, MisplacedMessage, SwappedResult
from deltatape.rules.repeated import is_distinctive, leaves
from deltatape.wire.json_value import canonical

_ENOUGH = 20
"""A content of this many characters is unique."""
_VALUE = 3
"""Shorter arguments are not searched for in results: they occur everywhere. In characters."""
_ALIKE = 64
"""Replies with the same content, or calls with the same id, that are kept."""
_RESULTS = 64
"""Results of one reply that are compared with each other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MisplacedMessages:
    """The misplaced messages of a request."""

    foreign: tuple[MisplacedMessage, ...] = ()
    swapped: tuple[SwappedResult, ...] = ()


def _bounded_deque() -> deque[Any]:
    """Keep only the latest alike: servers that number calls from 0 have thousands of `call_0`."""
    return deque(maxlen=_ALIKE)


@dataclass(slots=True)
class MisplacedSearch:
    """Finds messages in the wrong place, request by request, each message once."""

    _seen: set[str] = field(default_factory=set)
    """Hashes of the first messages of every history."""
    _swapped_seen: set[str] = field(default_factory=set)
    _by_history: dict[str, list[Digest]] = field(default_factory=lambda: defaultdict(list))
    """Replies by the hash of their request's history."""
    _by_content: dict[str, deque[Digest]] = field(
        default_factory=lambda: defaultdict(_bounded_deque)
    )
    _by_id: dict[str, deque[DeliveredCallRef]] = field(
        default_factory=lambda: defaultdict(_bounded_deque)
    )
    _results: dict[str, deque[DeliveredCallRef]] = field(
        default_factory=lambda: defaultdict(_bounded_deque)
    )
    """By the hash of a result's text, the calls that it is for."""
    _named: dict[str, int] = field(default_factory=dict)
    """By tool, how many results name their own arguments; -1 if one did not."""
    _pairs: set[tuple[int, int]] = field(default_factory=set)
    """By identity: a reply that took another one's place, and that other one."""

    def add(self, digest: Digest) -> MisplacedMessages:
        """Return the misplaced messages of a request; then remember it and its reply.

        A later request may show that two replies changed places: see `exchanged`.
        """
        foreign = tuple(self._foreign(digest))
        swapped = tuple(self._swapped(digest))
        self._pairs.update((id(each.donor), id(each.own)) for each in foreign if each.own)
        self._remember(digest)
        return MisplacedMessages(foreign=self.exchanged(foreign), swapped=swapped)

    def exchanged(self, foreign: Sequence[MisplacedMessage]) -> tuple[MisplacedMessage, ...]:
        """Mark replies that took each other's places, judged by the requests so far."""
        return tuple(
            replace(message, exchanged=(id(message.own), id(message.donor)) in self._pairs)
            for message in foreign
        )

    def _remember(self, digest: Digest) -> None:
        if digest.history:
            self._seen.update(digest.prefixes[1:])
            self._by_history[digest.prefixes[-1]].append(digest)
        if len(digest.content) >= _ENOUGH or digest.calls:
            self._by_content[_key(digest.text, digest.calls)].append(digest)
        for call in digest.calls:
            for call_id in call.ids:
                self._by_id[call_id].append(DeliveredCallRef(call=call, reply=digest))

    def _foreign(self, digest: Digest) -> Iterator[MisplacedMessage]:
        """Yield the messages of other conversations."""
        history = digest.history
        for place in range(first_new(digest, self._seen), len(history)):
            message = history[place]
            if message.role in ASSISTANT:
                found = self._reply(digest, place)
            elif message.call_id:
                found = self._result(digest, place, message.call_id)
            else:
                found = None
            if found is not None:
                yield found

    def _reply(self, digest: Digest, place: int) -> MisplacedMessage | None:
        message = digest.history[place]
        if len(message.content) < _ENOUGH and not any(
            is_distinctive(call.id or "") for call in message.calls
        ):
            return None
        donors = [
            each
            for each in self._by_content.get(_key(message.text, message.calls), ())
            if had_arrived(each.said_ns, each, digest)
        ]
        if len(donors) != 1:
            return None
        donor = donors[0]
        own = [each for each in self._by_history.get(digest.prefixes[place], ()) if each.whole]
        if donor in own or not self._is_stranger(donor, digest, place):
            return None
        return MisplacedMessage(donor=donor, own=own[-1] if own else None, place=place)

    def _result(self, digest: Digest, place: int, call_id: str) -> MisplacedMessage | None:
        """Return a result of another conversation's call, found by its id or its content."""
        message = digest.history[place]
        owners: Sequence[DeliveredCallRef] = self._by_id.get(call_id, ())
        own = self._owner(digest, call_id)
        if own is None:
            lone = len(owners) == 1 and is_distinctive(call_id) and not _has_call(digest, call_id)
            if lone and self._is_stranger(owners[0].reply, digest, place):
                return MisplacedMessage(
                    donor=owners[0].reply, own=None, place=place, call=owners[0].call
                )
            return None
        if len(message.content) < _ENOUGH:
            return None
        for candidate in self._results.get(message.text, ()):
            if not self._is_stranger(candidate.reply, digest, place):
                continue
            if _is_about(message.content, candidate.call, own.call) and not _is_mentioned(
                digest, place, candidate.call, own.call
            ):
                return MisplacedMessage(
                    donor=candidate.reply, own=own.reply, place=place, call=candidate.call
                )
        self._results[message.text].append(own)
        return None

    def _owner(self, digest: Digest, call_id: str) -> DeliveredCallRef | None:
        """Return the latest call of that id in the conversation that `digest` continues."""
        owners: Sequence[DeliveredCallRef] = self._by_id.get(call_id, ())
        return next(
            (owner for owner in reversed(owners) if goes_on_from(digest, owner.reply)), None
        )

    def _is_stranger(self, donor: Digest, digest: Digest, place: int) -> bool:
        """Return whether `donor` is unrelated to the conversation that `digest` continues."""
        if donor.system != digest.system or donor.tools != digest.tools:
            return False
        begun = any(digest.prefixes[at] in self._by_history for at in range(1, place + 1))
        if not begun or goes_on_from(digest, donor):
            return False
        theirs, ours = _questions(donor.history), _questions(digest.history)
        if not theirs or {each.text for each in theirs} & {each.text for each in ours}:
            return False
        return not any(
            one.content in other.content or other.content in one.content
            for one in theirs
            for other in ours
        )

    def _swapped(self, digest: Digest) -> Iterator[SwappedResult]:
        """Yield results of one reply that were swapped between its calls."""
        history = digest.history
        start = len(history)
        while start and history[start - 1].role not in ASSISTANT:
            start -= 1
        key = digest.prefixes[-1]
        if not 0 < start < len(history) or key in self._swapped_seen:
            return
        self._swapped_seen.add(key)
        results: list[tuple[DeliveredCallRef, str]] = []
        for message in history[start : start + _RESULTS]:
            owner = self._owner(digest, message.call_id or "")
            if owner is not None and message.content:
                results.append((owner, message.content))
        wrong = [
            (one, other)
            for one, content in results
            for other, _ in results
            if one.call.name == other.call.name and _is_about(content, other.call, one.call)
        ]
        if len({id(one.call) for one, _ in wrong}) > 1:
            for one, other in wrong:
                named = max(self._named.get(one.call.name or "", 0), 0)
                yield SwappedResult(call=one, about=other, named=named)
            return
        for owner, content in results:
            self._count_named(owner.call, content)

    def _count_named(self, call: DeliveredCall, content: str) -> None:
        """Remember whether a result names its own arguments."""
        own, text, name = _values(call), content.casefold(), call.name or ""
        count = self._named.get(name, 0)
        if own and count >= 0:
            self._named[name] = count + 1 if any(each in text for each in own) else -1


def _has_call(digest: Digest, call_id: str) -> bool:
    return any(
        call.id == call_id or call_id in message.owns
        for message in digest.history
        for call in message.calls
    )


def _questions(history: Sequence[HistoryMessage]) -> list[HistoryMessage]:
    return [
        message
        for message in history
        if message.role == "user" and not message.call_id and message.content
    ]


def _is_about(content: str, other: DeliveredCall, own: DeliveredCall) -> bool:
    """Return whether a result names argument values of `other` and none of `own`."""
    theirs, ours = _values(other), _values(own)
    text = content.casefold()
    named = [each for each in theirs - ours if each in text]
    return bool(named) and bool(ours - theirs) and not any(each in text for each in ours - theirs)


def _is_mentioned(digest: Digest, place: int, other: DeliveredCall, own: DeliveredCall) -> bool:
    """Return whether the history before `place` mentions what only `other` has."""
    named = _values(other) - _values(own)
    before = digest.history[:place]
    return any(value in message.content.casefold() for value in named for message in before)


def _values(call: DeliveredCall) -> frozenset[str]:
    return frozenset(each.casefold() for each in leaves(call.arguments) if len(each) >= _VALUE)


def _key(text: str, calls: Sequence[DeliveredCall] | Sequence[RepeatedCall]) -> str:
    """Return a key that equals for a reply and its repetition; numbered ids say nothing."""
    spelled = (
        f"{call.id} {call.name} {canonical(call.arguments.strip() or '{}')}" for call in calls
    )
    return "\0".join((text, *spelled))
