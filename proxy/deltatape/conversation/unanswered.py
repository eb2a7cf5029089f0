"""Find delivered calls that were never answered while the recorder was watching.

A silence proves less than a request: an application may be slow, wait for a person, take a call as
its output, or answer in a form that is not recognised. Hence a reply counts as unanswered only if
no later request on its tape could belong to its conversation:
- none has its history, or begins with the same message and is longer;
- none continues from it, or from its conversation, where the provider keeps the history;
- none carries the id of one of its calls, or its name where calls have no ids;
- none carries a call or a result that is new and that no other reply explains;
- none went to the same place and cannot be read;
- none is missing on the tape, by its number or because the recorder lost its head.
A reply that lost a part in the recorder does not count either: it may have been different. Nor
does one on the tape of a recorder that was replaced: while its last streams ended, answers went to
the new recorder.

Strategy: one pass from the last request to the first that remembers what the later ones carry.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from deltatape.conversation.parser_errors import printed
from deltatape.model.digest import DeliveredCall, Digest, ReadBack, Unanswered
from deltatape.model.exchange import Tap
from deltatape.model.reply import CallStatus
from deltatape.model.rule_settings import DEFAULTS, Settings
from deltatape.model.tape_summary import CHILD_EXIT, REPLACED, LogEntry
from deltatape.model.turn import Complaint
from deltatape.printable import excerpt
from deltatape.rules.app_exception import crashed, last_thrown
from deltatape.rules.complaints import is_untrue, is_untrue_of_call
from deltatape.wire.json_value import canonical

_RUNNABLE = frozenset({CallStatus.COMPLETE, CallStatus.EMPTY_OK})
_SHOWN = 100
_ENOUGH = 2
"""Unanswered replies on a tape that show a habit, if there is no answered one: the application may
take calls as its output. That is worth saying once."""


def unanswered(
    digests: Sequence[Digest],
    read_backs: Sequence[ReadBack],
    logs: Sequence[LogEntry] = (),
    settings: Settings = DEFAULTS,
) -> tuple[Unanswered, ...]:
    """Return replies with calls that no later request answers, in the order of their requests.

    Args:
        digests: in the order of their requests; those without a `watch` are never unanswered.
        read_backs: what later requests repeat of them.
        logs: what the application printed, in order; on the same clock as the digests.
        settings: how long after its end a reply may be complained of.
    """
    lost = _last_lost(digests)
    digests = [digest for digest in digests if digest.tap is Tap.PROVIDER]
    repeated = {id(read_back.reply) for read_back in read_backs}
    new = _new_keys(digests)
    tools = set(_answered_tools(digests))
    later: dict[str, _Later] = {}
    found: list[Unanswered] = []
    for place in range(len(digests) - 1, -1, -1):
        digest = digests[place]
        after = later.setdefault(digest.tape, _Later())
        waits = id(digest) not in repeated and _expects_answer(digest)
        waits &= digest.exchange > lost.get(digest.tape, 0)
        if digest.watch and waits and not after.could_answer(digest):
            watch = digest.watch
            alive_ns = watch.until_ns if watch.stop == CHILD_EXIT else after.last_ns
            silence = Unanswered(
                reply=digest,
                until_ns=watch.until_ns,
                alive_ns=alive_ns,
                others=0,
                answers_tools=all((digest.tape, each.name) in tools for each in digest.calls),
            )
            if crashed(watch):
                ended = (digest.end_ns or 0, watch.until_ns)
                silence = replace(silence, thrown=last_thrown(logs, *ended))
            found.append(silence)
        after.enter(digest, new[place])
    if logs and found:
        complaints = printed(digests, logs, settings)
        found = [replace(each, complaint=_complaint(each, complaints)) for each in found]
    answering = {read_back.reply.tape for read_back in read_backs if read_back.answered}
    return tuple(_without_habits(found[::-1], answering))


def _last_lost(digests: Sequence[Digest]) -> dict[str, int]:
    """Map tapes to the number of their last missing exchange, if one is missing."""
    there: dict[str, set[int]] = {}
    for digest in digests:
        there.setdefault(digest.tape, set()).add(digest.exchange)
    # Only the ends of gaps are looked at: a damaged number may leave a gap of billions.
    return {
        tape: max(ends)
        for tape, each in there.items()
        if (ends := [number - 1 for number in each - {min(each)} if number - 1 not in each])
    }


def _expects_answer(digest: Digest) -> bool:
    """Return whether the application was to run the calls and the tape shows what it did then."""
    watch = digest.watch
    if watch is None or digest.end_ns is None or watch.stop == REPLACED:
        return False
    runnable = bool(digest.calls) and all(call.status in _RUNNABLE for call in digest.calls)
    return runnable and digest.whole and not digest.forced and not digest.lossy


def _answered_tools(digests: Sequence[Digest]) -> Iterator[tuple[str, str | None]]:
    """Yield the tapes and names of the tools of which a request brings a result."""
    names = {
        (digest.tape, key): call.name
        for digest in digests
        for call in digest.calls
        for key in call.answers_to
    }
    for digest in digests:
        for key in ((digest.tape, each) for each in digest.results):
            if key in names:
                yield digest.tape, names[key]


def _complaint(silence: Unanswered, complaints: Mapping[int, Complaint]) -> str:
    """Return the error that was printed about the calls of a reply and is false of them."""
    found, calls = complaints.get(id(silence.reply)), silence.reply.calls
    if found is None or not (found.sure and is_untrue(found.error, calls)):
        return ""
    return excerpt(found.error.text, _SHOWN) if is_untrue_of_call(found.error, calls) else ""


def _without_habits(
    found: Sequence[Unanswered], answering: Collection[str]
) -> Iterator[Unanswered]:
    """Keep only the first of several unanswered replies on a tape where none is answered."""
    counts = Counter(each.reply.tape for each in found if each.reply.tape not in answering)
    reported: set[str] = set()
    for silence in found:
        tape = silence.reply.tape
        if counts[tape] < _ENOUGH:
            yield silence
        elif tape not in reported:
            reported.add(tape)
            yield replace(silence, others=counts[tape] - 1)


@dataclass(slots=True)
class _Later:
    """The contents of all requests after a certain one."""

    prefixes: set[str] = field(default_factory=set)
    longest: dict[str, int] = field(default_factory=dict)
    """By the hash of a first message, the length of the longest history that begins with it."""
    ids: set[str] = field(default_factory=set)
    stored: set[str] = field(default_factory=set)
    """The stored replies that the requests continue, where the provider keeps the history."""
    unexplained: bool = False
    unreadable: set[str] = field(default_factory=set)
    """Paths of requests that cannot be read."""
    last_ns: int | None = None

    def enter(self, digest: Digest, new: Collection[str]) -> None:
        """Remember a request and the calls and results that appear in it first, unexplained."""
        if self.last_ns is None:
            self.last_ns = digest.t_ns
        self.unexplained |= bool(new)
        if not digest.known:
            self.unreadable.add(digest.path)
        self.unexplained |= not digest.path  # the recorder lost its head
        self.prefixes.update(digest.prefixes)
        if digest.history:
            first = digest.prefixes[1]
            self.longest[first] = max(self.longest.get(first, 0), len(digest.history))
        self.ids.update(_ids(digest))
        if digest.previous is not None:
            self.stored.add(digest.previous)

    def could_answer(self, reply: Digest) -> bool:
        """Return whether any of the requests may belong to the conversation of `reply`."""
        if self.unexplained or reply.path in self.unreadable:
            return True
        if any(identifier in self.ids for call in reply.calls for identifier in call.answers_to):
            return True
        if reply.reply_id in self.stored or reply.previous in self.stored:
            return True
        if not reply.history:
            return self.last_ns is not None
        longer = self.longest.get(reply.prefixes[1], 0) > len(reply.history)
        return longer or reply.prefixes[-1] in self.prefixes


def _new_keys(digests: Sequence[Digest]) -> list[set[str]]:
    """Return for each request the calls and results that no earlier request and no reply has.

    A repeated call without id is explained only by a delivered one without id.
    """
    delivered = {
        key for digest in digests for call in digest.calls for key in _delivered_keys(call)
    }
    seen: set[str] = set()
    new = []
    for digest in digests:
        keys = {key for key in _keys(digest) if key not in delivered and key not in seen}
        seen |= keys
        new.append(keys)
    return new


def _ids(digest: Digest) -> set[str]:
    calls = {call.id for message in digest.history for call in message.calls if call.id}
    return calls | {message.call_id for message in digest.history if message.call_id}


def _delivered_keys(call: DeliveredCall) -> tuple[str, ...]:
    nameless = () if call.ids else (_nameless(call.name, call.arguments),)
    return (*call.answers_to, *nameless)


def _nameless(name: str | None, arguments: str) -> str:
    """Return a key for a call without id, however its arguments are spelled."""
    return f"{name} {canonical(arguments) or arguments}"


def _keys(digest: Digest) -> set[str]:
    nameless = {
        _nameless(call.name, call.arguments)
        for message in digest.history
        for call in message.calls
        if not call.id
    }
    return _ids(digest) | nameless
