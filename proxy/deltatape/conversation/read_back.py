"""Link replies to the requests that repeat them, and compare them.

Most interfaces are stateless: a request repeats the conversation so far, the last reply included,
as the application understood it. A reply is linked to a later request whose history is that of the
reply's own request, message by message, followed by one assistant message (or several in a row).
Where histories are trimmed or edited, a call id identifies the reply, too, if it is too random to
be anybody else's, no other reply used it, the last user message of the reply's request is in the
history, and name or arguments are the same. Where the provider keeps the history, only results come
back: see `read_stored`.

Accusing wrongly is worse than saying nothing. Hence:
- a message is compared once, in the first request that carries it, and a reply once: applications
  that shorten an old history later on are not accused;
- of several replies to the same history (retries, samples, regenerated answers, conversations
  that begin alike) one that fits exactly wins, then one whose ids appear; else nobody is accused;
- a reply that some message repeats exactly, be it much later, is not held against a message that
  shows none of its ids; and where the only reply left has not much in common with such a message,
  there may be another one that was not taped: tapes begin in the middle, and programs that run
  side by side begin alike;
- an id that was in use before the reply came does not name that reply: some servers number calls
  from 0 in each answer, and prompts hold examples; a reply that is not linked stays open for the
  request that truly repeats it;
- a reply that had not come when the request left is not what it repeats;
- replies that broke off are never held against the application, nor is a request that ends with the
  message itself: that is a prefill, not a history.
"""

from bisect import bisect_right
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from operator import itemgetter
from typing import Protocol, TypeAlias

from deltatape.conversation.continuation import had_arrived
from deltatape.model.digest import (
    ASSISTANT,
    CallHabits,
    CallWithRepeat,
    DeliveredCall,
    Digest,
    HistoryMessage,
    ReadBack,
)
from deltatape.model.exchange import Tap
from deltatape.model.finding import Confidence
from deltatape.model.request_summary import RepeatedCall
from deltatape.rules.pattern_set import PatternSet
from deltatape.rules.repeated import (
    CLEAN,
    ArgumentsDamage,
    DerivedIds,
    SiblingCalls,
    delivered_keys,
    first_difference,
    is_derived,
    is_distinctive,
    is_related,
    is_same_content,
    relation,
    repeated_keys,
    same_id,
    same_name,
)

_MOST = 64
"""How many replies to the same history are compared, besides those whose ids appear."""
_TEARING = frozenset(
    {
        ArgumentsDamage.LOST,
        ArgumentsDamage.ALONE,
        ArgumentsDamage.DOUBLED,
        ArgumentsDamage.MIXED,
        ArgumentsDamage.TRIMMED,
    }
)
"""Damage to arguments that is never an edit."""
_LOOKED_AT = 16
"""Later messages that are compared with a reply, in histories that were changed."""


@dataclass(frozen=True, kw_only=True)
class AssistantRun:
    """Adjacent assistant messages that may repeat one reply: `later.history[start:end]`."""

    later: Digest
    start: int
    end: int

    @property
    def messages(self) -> Sequence[HistoryMessage]:
        return self.later.history[self.start : self.end]

    @cached_property
    def calls(self) -> tuple[RepeatedCall, ...]:
        """Return the calls of these messages."""
        return tuple(call for message in self.messages for call in message.calls)

    @property
    def texts(self) -> frozenset[str]:
        """Return hashes of the texts of these messages."""
        return frozenset(message.text for message in self.messages if message.text)

    @cached_property
    def further(self) -> tuple[RepeatedCall, ...]:
        """Return the calls of all later messages of the history."""
        rest = self.later.history[self.end :]
        return tuple(call for message in rest for call in message.calls)

    @cached_property
    def answered(self) -> tuple[str, ...]:
        """Return the ids answered between this run and the next assistant message."""
        found = []
        for message in self.later.history[self.end :]:
            if message.role in ASSISTANT:
                break
            if message.call_id:
                found.append(message.call_id)
        return tuple(found)

    @cached_property
    def ids(self) -> frozenset[str]:
        """Return the ids of its calls, and those answered after it."""
        return frozenset(call.id for call in self.calls if call.id) | frozenset(self.answered)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallPairing:
    """Delivered calls paired with the calls that repeat them, and the rest of both."""

    pairs: tuple[CallWithRepeat, ...]
    lost: tuple[DeliveredCall, ...]
    extra: tuple[RepeatedCall, ...]

    @property
    def identical(self) -> bool:
        """Return whether the application repeats exactly the delivered calls."""
        return not (self.lost or self.extra) and all(
            is_same_content(pair.delivered, pair.repetition)
            and same_id(pair.delivered, pair.repetition)
            for pair in self.pairs
        )


@dataclass(slots=True)
class _Index:
    """The requests and replies seen so far."""

    place: int = 0
    """The place of the current request."""
    places: dict[int, int] = field(default_factory=dict)
    """The place of every request so far, by the identity of its digest."""
    by_history: dict[str, list[Digest]] = field(default_factory=dict)
    """Replies by the prefix hash of their request."""
    by_id: dict[str, list[Digest]] = field(default_factory=dict)
    """Replies by the ids of their calls."""
    by_name: dict[str, Digest] = field(default_factory=dict)
    """The latest reply by the provider's name for it, or for its conversation."""
    compared: set[str] = field(default_factory=set)
    """Prefix hashes up to and including a message that has been compared."""
    seen_ids: dict[str, int] = field(default_factory=dict)
    """By call id, the position of the first request that repeats it."""
    unmatched: dict[tuple[str, ...], list[tuple[int, AssistantRun]]] = field(default_factory=dict)
    """Messages that match no known reply, with the places of their requests, by the names of their
    calls."""
    repeated: set[int] = field(default_factory=set)
    """The identities of the replies that a request repeats."""
    decided: set[int] = field(default_factory=set)
    """The identities of those found by `ReadBackSearch.decide`; `compare` does not look there."""
    orphaned_results: dict[str, str] = field(default_factory=dict)
    """By tape, a clause about the first result that came back without its call."""

    def find_orphaned_result(self, digest: Digest) -> None:
        """Remember a result whose call is missing from its own history."""
        if digest.tape in self.orphaned_results or digest.previous is not None:
            return
        called: set[str | None] = set()
        earlier = (call.id for message in reversed(digest.history) for call in message.calls)
        for call_id in digest.results:
            owners = self.by_id.get(call_id, ())
            if call_id in called or not any(goes_on_from(digest, owner) for owner in owners):
                continue
            for each in earlier:  # from where the search for the last one ended
                called.add(each)
                if each == call_id:
                    break
            else:
                self.orphaned_results[digest.tape] = (
                    f"#{digest.exchange} has the result of a call that its history does not have"
                )
                return

    def add(self, digest: Digest) -> None:
        self.places[id(digest)] = self.place
        if digest.history:
            self.by_history.setdefault(digest.prefixes[-1], []).append(digest)
        for call in digest.calls:
            for call_id in call.ids:
                self.by_id.setdefault(call_id, []).append(digest)
        for name in (digest.reply_id, digest.previous):
            if name is not None:
                self.by_name[name] = digest

    def is_unmatched(self, digest: Digest) -> bool:
        return id(digest) not in self.repeated

    def is_older(self, run: AssistantRun, reply: Digest) -> bool:
        """Return whether an id of the run was in use before `reply`: some servers count from 0."""
        came = self.places[id(reply)]
        return any(self.seen_ids[call.id] <= came for call in run.calls if call.id)

    def record_ids(self, run: AssistantRun) -> None:
        for call in run.calls:
            if call.id:
                self.seen_ids.setdefault(call.id, self.place)

    def add_unmatched(self, run: AssistantRun) -> None:
        if run.calls:
            self.unmatched.setdefault(_names(run.calls), []).append((self.place, run))

    def is_repeated(self, reply: Digest, but: AssistantRun) -> bool:
        """Return whether a message after `reply` other than `but` has exactly its calls."""
        unmatched = self.unmatched.get(_names(reply.calls), [])
        first = bisect_right(unmatched, self.places[id(reply)], key=itemgetter(0))
        near = (run for _, run in unmatched[first : first + _LOOKED_AT])
        return any(run is not but and _pair(reply, run).identical for run in near)


@dataclass(frozen=True, slots=True, kw_only=True)
class _UncertainMatch:
    """A message with no id of the replies it may repeat; later requests may decide."""

    run: AssistantRun
    reply: Digest
    """The only candidate that is left."""
    sure: bool
    """Whether there never was another candidate, and the system messages are the same."""


Comparison: TypeAlias = ReadBack | _UncertainMatch
"""What a request shows about one reply."""


def read_backs(digests: Iterable[Digest]) -> tuple[ReadBack, ...]:
    """Return every reply that a later request repeats, changed or not, in the order of requests.

    Exchanges with the application's own endpoint are left out: they are not a conversation with a
    model.
    """
    search = ReadBackSearch()
    return search.decide([found for digest in digests for found in search.compare(digest)])


class ReadBackSearch:
    """Finds the replies that requests repeat, request by request.

    The work for a request depends on its history, not on the number of requests before it.
    """

    def __init__(self) -> None:
        self._index = _Index()
        self._habits: dict[str, CallHabits] = {}
        """By tape."""

    def compare(self, digest: Digest) -> Sequence[Comparison]:
        """Compare a request with the replies before it; then add its own reply."""
        if digest.tap is not Tap.PROVIDER:
            return ()
        index = self._index
        index.find_orphaned_result(digest)
        found = tuple(_in_request(index, digest))
        index.add(digest)
        index.place += 1
        return found

    def decide(self, compared: Iterable[Comparison]) -> tuple[ReadBack, ...]:
        """Return the read-backs among `compared`, by what all requests so far show.

        Call it once with the comparisons of all requests, or after each request with its own.
        """
        decided = (
            _decide(self._index, each) if isinstance(each, _UncertainMatch) else each
            for each in compared
        )
        found = [each for each in decided if each]
        for each in found:
            self._add_habits(each)
        return tuple(replace(each, habits=self._habits_on(each.later.tape)) for each in found)

    def _add_habits(self, read_back: ReadBack) -> None:
        tape = read_back.later.tape
        so_far = self._habits.get(tape, CallHabits())
        several = len(read_back.pairs) > 1 and not read_back.lost
        names = frozenset(pair.delivered.name for pair in read_back.pairs if pair.delivered.name)
        self._habits[tape] = CallHabits(
            keeps_several=so_far.keeps_several or several,
            keeps=so_far.keeps if names <= so_far.keeps else so_far.keeps | names,
            broken=so_far.broken or _broken(read_back),
        )

    def _habits_on(self, tape: str) -> CallHabits:
        found = self._habits[tape]
        orphaned = self._index.orphaned_results.get(tape)
        return replace(found, broken=orphaned) if orphaned else found


def _broken(read_back: ReadBack) -> str:
    """Return a clause that the application splits calls wrongly; "" if nothing shows that."""
    if not read_back.reply.whole or read_back.confidence is not Confidence.PROVEN:
        return ""
    siblings = SiblingCalls(read_back.reply.calls)
    for pair in read_back.pairs:
        if (
            pair.delivered.arguments == pair.repetition.arguments
            or pair.delivered.status not in CLEAN
        ):
            continue
        found = relation(pair.delivered, pair.repetition, siblings)
        if found is not None and found.damage in _TEARING:
            later, reply = read_back.later.exchange, read_back.reply.exchange
            return f"#{later} repeats a call of #{reply} wrongly: {found.clause}"
    return ""


def _names(calls: Iterable[DeliveredCall | RepeatedCall]) -> tuple[str, ...]:
    return tuple(sorted(call.name or "" for call in calls))


def _in_request(index: _Index, digest: Digest) -> Iterator[ReadBack | _UncertainMatch]:
    if digest.previous is not None:
        yield from _compare_stored(index, digest)
    for run in assistant_runs(digest):
        key = digest.prefixes[run.end]
        if key in index.compared:
            continue
        index.compared.add(key)
        index.record_ids(run)
        found = _match(index, run)
        if isinstance(found, ReadBack):
            index.repeated.add(id(found.reply))
        else:
            index.add_unmatched(run)
        if found:
            yield found


def _compare_stored(index: _Index, digest: Digest) -> Iterator[ReadBack]:
    """Yield the comparison of a request with the stored reply that it continues."""
    reply = index.by_name.get(digest.previous or "")
    if reply is None or not index.is_unmatched(reply):
        return
    found = read_stored(reply, digest)
    if found:
        index.repeated.add(id(reply))
        yield found


def _match(index: _Index, run: AssistantRun) -> ReadBack | _UncertainMatch | None:
    same_history = index.by_history.get(run.later.prefixes[run.start], [])
    same_system = [reply for reply in same_history if reply.system == run.later.system]
    nearest = _nearest(same_system or same_history, run)
    candidates = [reply for reply in nearest if _may_be_repeated(reply, run)]
    for reply in candidates:
        pairing = _pair(reply, run)
        if pairing.identical and (reply.calls or reply.text in run.texts or not reply.text):
            return _read_back(reply, run, pairing, Confidence.PROVEN)
    named = _named_by_ids(index, run, candidates)
    if named:
        # Only the same history proves that the reply is repeated.
        near = any(candidate is named for candidate in candidates)
        confidence = Confidence.PROVEN if near else Confidence.LIKELY
        return _read_back(named, run, _pair(named, run), confidence)
    left = [candidate for candidate in candidates if index.is_unmatched(candidate)]
    if len(left) != 1 or not _may_repeat(index, left[0], run, candidates):
        return None
    sure = bool(same_system) and len(candidates) == 1
    return _UncertainMatch(run=run, reply=left[0], sure=sure)


def assistant_runs(digest: Digest) -> Iterator[AssistantRun]:
    """Yield the runs of assistant messages in a request's history, without one at its end."""
    start = None
    for place, message in enumerate(digest.history):
        if message.role in ASSISTANT:
            start = place if start is None else start
        elif start is not None:
            yield AssistantRun(later=digest, start=start, end=place)
            start = None


def _nearest(replies: Sequence[Digest], run: AssistantRun) -> Sequence[Digest]:
    """Return the replies to the same history that are worth comparing.

    A test suite may ask the same a thousand times: compare those whose ids the message repeats, and
    the last.
    """
    if len(replies) <= _MOST:
        return replies
    ids = run.ids
    named = [reply for reply in replies[:-_MOST] if not ids.isdisjoint(_ids(reply))]
    return [*named, *replies[-_MOST:]]


def _may_repeat(
    index: _Index, reply: Digest, run: AssistantRun, candidates: Sequence[Digest]
) -> bool:
    """Return whether the message may be a shortened repetition of `reply`.

    It does not repeat a reply that its ids name. Nor one that has been read back already and was
    shortened since then: such a one keeps its calls.
    """
    owners = [owner for call_id in run.ids for owner in index.by_id.get(call_id, ())]
    if owners and all(owner is not reply for owner in owners):
        return False
    others = [candidate for candidate in candidates if candidate is not reply]
    if not others or not (run.calls or run.answered):
        return True
    return _is_made_of(run, reply) and not any(_is_made_of(run, each) for each in others)


def _is_made_of(run: AssistantRun, reply: Digest) -> bool:
    derived = DerivedIds(reply.calls, (call.id for call in run.calls))
    return any(True for call_id in _own_ids(reply) for _ in derived.of(call_id))


def _decide(index: _Index, match: _UncertainMatch) -> ReadBack | None:
    """Decide about a message by what all requests so far show."""
    reply, run = match.reply, match.run
    if not index.is_unmatched(reply) or id(reply) in index.decided:
        return None
    if run.calls and index.is_repeated(reply, run):
        return None
    pairing = _pair(reply, run)
    confidence = _confidence_of_only(reply, run, pairing)
    if confidence is Confidence.PROVEN and not match.sure:
        confidence = Confidence.LIKELY
    if confidence is None:
        return None
    index.decided.add(id(reply))
    return _read_back(reply, run, pairing, confidence)


def _may_be_repeated(reply: Digest, run: AssistantRun) -> bool:
    """Return whether the reply has content and had ended when the request came, if known."""
    if not (reply.whole or reply.calls or reply.text):
        return False
    arrived = had_arrived(reply.said_ns, reply, run.later)
    return arrived or any(map(is_distinctive, _own_ids(reply) & run.ids))


def _pair(reply: Digest, run: AssistantRun) -> CallPairing:
    return pair_calls(reply.calls, run.calls, run.further)


def _named_by_ids(index: _Index, run: AssistantRun, candidates: Sequence[Digest]) -> Digest | None:
    """Return the one reply, not read back yet, whose call ids the message or its results repeat."""
    ids = run.ids
    near = [candidate for candidate in candidates if _own_ids(candidate) & ids]
    if len(near) == 1:
        unique = any(len(index.by_id[each]) == 1 for each in _own_ids(near[0]) & ids)
        return near[0] if unique and index.is_unmatched(near[0]) else None
    owners = [index.by_id.get(each, []) for each in {call.id for call in run.calls if call.id}]
    if near or candidates or not owners or any(len(replies) != 1 for replies in owners):
        return None
    first = owners[0][0]
    same = all(replies[0] is first for replies in owners)
    if not same or not index.is_unmatched(first) or index.is_older(run, first):
        return None
    return first if _is_surely(first, run) else None


def _is_surely(reply: Digest, run: AssistantRun) -> bool:
    """Return whether ids alone identify the reply, in a history other than its request's.

    The conversation has to be the same, as far as can be seen, and the call: ids are numbered from
    0 in each conversation, repeated in examples, and made up.
    """
    if not _has_question(run, reply):
        return False
    by_id: dict[str | None, DeliveredCall] = {}
    for each in reply.calls:
        for call_id in each.ids:
            by_id.setdefault(call_id, each)
    for call in run.calls:
        original = by_id.get(call.id)
        if original is None or call.id is None:
            continue
        alike = same_name(original, call), first_difference(original, call) is None
        if all(alike) or (any(alike) and is_distinctive(call.id)):
            return True
    return False


def _has_question(run: AssistantRun, reply: Digest) -> bool:
    """Return whether the history before the run has the reply's last user message."""
    asked = next((message for message in reversed(reply.history) if _is_question(message)), None)
    before = run.later.history[: run.start]
    return asked is not None and any(
        _is_question(each) and each.text == asked.text for each in before
    )


def _is_question(message: HistoryMessage) -> bool:
    return message.role == "user" and message.call_id is None and bool(message.text)


def _ids(reply: Digest) -> frozenset[str]:
    return frozenset(identifier for call in reply.calls for identifier in call.answers_to)


def _own_ids(reply: Digest) -> frozenset[str]:
    """Return its call ids, without names that serve as ids: these identify nothing."""
    return frozenset(call_id for call in reply.calls for call_id in call.ids)


def _confidence_of_only(
    reply: Digest, run: AssistantRun, pairing: CallPairing
) -> Confidence | None:
    """Rate a match without ids with the only reply that is left; None: do not report it."""
    if not reply.calls or (reply.forced and not run.calls):
        return None  # a forced call is an answer in the form of a call: it may be kept as a text
    if not run.calls:
        return Confidence.PROVEN if run.texts <= {reply.text} else Confidence.POSSIBLE
    if any(is_derived(pair.delivered, pair.repetition) for pair in pairing.pairs):
        return Confidence.PROVEN
    if not _may_be_changed(reply, pairing):
        return None
    if not any(call.id for call in run.calls):
        return Confidence.PROVEN
    named = pairing.pairs and all(
        same_name(pair.delivered, pair.repetition) for pair in pairing.pairs
    )
    return Confidence.LIKELY if named and not pairing.extra else None


def _may_be_changed(reply: Digest, pairing: CallPairing) -> bool:
    """Return whether the repeated calls may derive from the calls of the reply."""
    siblings = SiblingCalls(reply.calls)
    if pairing.pairs:
        return all(is_related(pair.delivered, pair.repetition, siblings) for pair in pairing.pairs)
    start = 0
    for repetition in pairing.extra:
        # Most applications keep the order: look first behind the last call that was found.
        ordered = chain(range(start, len(reply.calls)), range(start))
        found = next(
            (at for at in ordered if is_related(reply.calls[at], repetition, siblings)), None
        )
        if found is None:
            return False
        start = found + 1
    return True


def _read_back(
    reply: Digest, run: AssistantRun, pairing: CallPairing, confidence: Confidence
) -> ReadBack:
    return ReadBack(
        reply=reply,
        later=run.later,
        confidence=confidence,
        pairs=pairing.pairs,
        lost=pairing.lost,
        extra=pairing.extra,
        answered=run.answered,
        repeated_calls=run.calls,
        start=run.start,
        end=run.end,
    )


# Pair repeated calls with delivered ones.
#
# Ids decide where both sides have them; then equality, then the name, and only between equally long
# rests the order. A call without a pair is lost, unless the request repeats it later.
#
# A reply may have thousands of calls: what a call may be paired with is looked up, not searched.


class _Unpaired(Protocol):
    """Repeated calls that have no pair yet, indexed."""

    def first(self, call: DeliveredCall, taken: set[int]) -> int | None:
        """Return the place of the first one for `call`, besides those that are taken."""


def pair_calls(
    original: Sequence[DeliveredCall],
    repetition: Sequence[RepeatedCall],
    further: Sequence[RepeatedCall],
) -> CallPairing:
    """Pair the calls of a reply with the calls of the message that repeats it.

    Args:
        original: the delivered calls.
        repetition: the calls of the message.
        further: calls of later messages of the same request: some applications repeat one reply
            as several messages. They only keep a call from being lost.
    """
    left, unpaired = list(original), list(repetition)
    pairs = _pair_by_id(left, unpaired)
    elsewhere = list(further)
    _pair_by_id(left, elsewhere)
    if left:
        pairs += _pair_by(_Same(unpaired), left, unpaired)
        _pair_by(_Same(elsewhere), left, elsewhere)
        pairs += _pair_by(_Named(unpaired), left, unpaired)
    if left and len(left) == len(unpaired):
        pairs += _pair_by(_StandIns(left, unpaired), left, unpaired)
    pairs.sort(key=lambda pair: pair.delivered.index)
    return CallPairing(pairs=tuple(pairs), lost=tuple(left), extra=tuple(unpaired))


def _pair_by_id(
    original: list[DeliveredCall], repetition: list[RepeatedCall]
) -> list[CallWithRepeat]:
    """Pair calls with equal ids: most calls are paired so."""
    by_id: dict[str, list[RepeatedCall]] = {}
    for each in reversed(repetition):
        if each.id is not None:
            by_id.setdefault(each.id, []).append(each)
    pairs = []
    for call in original:
        same = next((by_id[call_id] for call_id in call.ids if by_id.get(call_id)), None)
        if same:
            pairs.append(CallWithRepeat(delivered=call, repetition=same.pop()))
    taken = {id(each) for pair in pairs for each in (pair.delivered, pair.repetition)}
    original[:] = [call for call in original if id(call) not in taken]
    repetition[:] = [call for call in repetition if id(call) not in taken]
    return pairs


def _pair_by(
    index: _Unpaired, original: list[DeliveredCall], repetition: list[RepeatedCall]
) -> list[CallWithRepeat]:
    """Pair calls, each with the first that is left; remove them from both lists."""
    pairs, left = [], []
    taken: set[int] = set()
    for call in original:
        place = index.first(call, taken)
        if place is None:
            left.append(call)
            continue
        taken.add(place)
        pairs.append(CallWithRepeat(delivered=call, repetition=repetition[place]))
    original[:] = left
    repetition[:] = [call for at, call in enumerate(repetition) if at not in taken]
    return pairs


class _Places:
    """Places by key, in order."""

    def __init__(self) -> None:
        self._by_key: dict[Hashable, list[int]] = {}

    def __contains__(self, key: Hashable) -> bool:
        return key in self._by_key

    def put(self, key: Hashable, places: Iterable[int]) -> None:
        self._by_key[key] = sorted(places, reverse=True)

    def add(self, key: Hashable, place: int) -> None:
        """Add a place before all others of its key."""
        self._by_key.setdefault(key, []).append(place)

    def first(self, key: Hashable, taken: set[int]) -> Iterator[int]:
        """Yield the first place that is not taken, if there is one."""
        places = self._by_key.get(key, [])
        while places and places[-1] in taken:
            places.pop()
        yield from places[-1:]


class _Same:
    """Finds calls with the same name and arguments."""

    def __init__(self, calls: Sequence[RepeatedCall]) -> None:
        self._calls = calls
        self._places = _Places()
        self._masked: list[int] = []
        for place in reversed(range(len(calls))):
            keys, masked = repeated_keys(calls[place])
            for key in keys:
                self._places.add(key, place)
            if masked:
                self._masked.append(place)
        self._masked.reverse()

    def first(self, call: DeliveredCall, taken: set[int]) -> int | None:
        keys, masked = delivered_keys(call)
        end = min(
            chain(*(self._places.first(key, taken) for key in keys)), default=len(self._calls)
        )
        for place in range(end) if masked else self._masked:
            if place >= end:
                break
            if place not in taken and is_same_content(call, self._calls[place]):
                return place
        return end if end < len(self._calls) else None


class _Named:
    """Finds calls with the same name."""

    def __init__(self, calls: Sequence[RepeatedCall]) -> None:
        self._places = _Places()
        for place in reversed(range(len(calls))):
            self._places.add(calls[place].name, place)

    def first(self, call: DeliveredCall, taken: set[int]) -> int | None:
        return None if call.name is None else next(self._places.first(call.name, taken), None)


class _StandIns:
    """Finds calls that a damaged call may repeat: not if id and name are another call's.

    It has no id, or one that is derived, or one of the names contains the other.
    """

    def __init__(self, original: Sequence[DeliveredCall], calls: Sequence[RepeatedCall]) -> None:
        self._ids = _DerivedPlaces(original, [call.id for call in calls])
        self._places = _Places()
        self._places.put(None, (place for place, call in enumerate(calls) if not call.id))
        by_name: dict[str, list[int]] = {}
        for place, call in enumerate(calls):
            by_name.setdefault(call.name or "", []).append(place)
        delivered = {call.name or "" for call in original}
        wanted, named = PatternSet(delivered), PatternSet(by_name)
        alike = {name: set(named.within(name)) for name in delivered}
        for name in by_name:
            for part in wanted.within(name):
                alike[part].add(name)
        for name, others in alike.items():
            self._places.put(name, (place for other in others for place in by_name[other]))

    def first(self, call: DeliveredCall, taken: set[int]) -> int | None:
        return min(
            (
                *self._places.first(None, taken),
                *self._places.first(call.name or "", taken),
                *self._ids.first(call, taken),
            ),
            default=None,
        )


class _DerivedPlaces:
    """Finds repeated ids that are derived from delivered ids."""

    def __init__(self, original: Sequence[DeliveredCall], ids: Sequence[str | None]) -> None:
        self._derived = DerivedIds(original, ids)
        self._by_id: dict[str | None, list[int]] = {}
        for place, call_id in enumerate(ids):
            self._by_id.setdefault(call_id, []).append(place)
        self._places = _Places()

    def first(self, call: DeliveredCall, taken: set[int]) -> Iterator[int]:
        """Yield the place of the first id that is derived from one of the call's, and not taken."""
        for each in call.ids:
            if each not in self._places:
                derived = set(self._derived.of(each))
                self._places.put(each, chain(*(self._by_id[found] for found in derived)))
        yield from sorted(chain(*(self._places.first(each, taken) for each in call.ids)))[:1]


# Reading back where the provider keeps the history: only the results of calls come back.
#
# A request names the stored reply, or the conversation, that it goes on from. Nothing shows what
# the application made of names and arguments; but which calls it knew shows in the results it
# brings, and under which ids it knew them.


def read_stored(reply: Digest, later: Digest) -> ReadBack | None:
    """Compare the results in `later` with the calls of `reply`, which the provider stored.

    Returns:
        None if it has no result: the user may have interrupted. A call without a result is lost if
        the request continues this very reply; in a stored conversation results may have been stored
        by other requests.
    """
    answered = tuple(message.call_id for message in later.history if message.call_id)
    known = _Places()
    for place in reversed(range(len(answered))):
        known.add(answered[place], place)
    taken: set[int] = set()
    pairs: list[CallWithRepeat] = []
    unknown: list[DeliveredCall] = []

    def pair(call: DeliveredCall, place: int) -> None:
        taken.add(place)
        again = _known_as(call, answered[place])
        pairs.append(CallWithRepeat(delivered=call, repetition=again))

    for call in reply.calls:
        found = min(chain(*(known.first(each, taken) for each in call.answers_to)), default=None)
        if found is None:
            unknown.append(call)
        else:
            pair(call, found)
    lost: list[DeliveredCall] = []
    derived = _DerivedPlaces(unknown, answered)
    for call in unknown:
        found = next(derived.first(call, taken), None)
        if found is None:
            lost.append(call)
        else:
            pair(call, found)
    if not pairs:
        return None
    exact = reply.reply_id is not None and reply.reply_id == later.previous
    return ReadBack(
        reply=reply,
        later=later,
        confidence=Confidence.PROVEN if exact else Confidence.LIKELY,
        pairs=tuple(pairs),
        lost=tuple(lost) if exact else (),
        extra=(),
        answered=answered,
        repeated_calls=tuple(pair.repetition for pair in pairs),
    )


def _known_as(call: DeliveredCall, call_id: str) -> RepeatedCall:
    """Return the call as its result shows it; the rest is as it was delivered."""
    return RepeatedCall(id=call_id, name=call.name, arguments=call.arguments)


def goes_on_from(later: Digest, reply: Digest) -> bool:
    """Return whether a request's history begins with all of the history that `reply` answers."""
    place = len(reply.history)
    return len(later.history) > place > 0 and later.prefixes[place] == reply.prefixes[-1]


def goes_on_without(reply: Digest, later: Iterable[Digest]) -> Digest | None:
    """Return the first of the `later` requests that continues the reply's history without it.

    This proves nothing: applications drop an answer when the user interrupts them.
    """
    place = len(reply.history)
    for digest in later:
        known = len(digest.history) > place and digest.prefixes[place] == reply.prefixes[-1]
        if place and known and digest.history[place].role not in ASSISTANT:
            return digest
    return None
