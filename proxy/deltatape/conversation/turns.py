"""Describe exchanges as turns of their conversations: what each request shows first.

A request goes on from an earlier one if its history begins with all of that one's. It is found by
the hash of its first messages, from the end: an agent's request brings a few new ones. Only where
histories branch or were trimmed is one read from its beginning again; then, what has been reported
of it is not reported again.

Linear in the number of exchanges and in the messages that are new in them.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from deltatape.conversation.continuation import (
    Continuations,
    ConversationState,
    call_key,
    is_result,
)
from deltatape.conversation.misplaced import misplaced
from deltatape.conversation.parser_errors import (
    in_history,
    printed,
    reported_losses,
    with_unread,
    without_echoes,
)
from deltatape.conversation.read_back import goes_on_from
from deltatape.model.digest import ASSISTANT, Digest, HistoryMessage, ReadBack
from deltatape.model.exchange import Tap
from deltatape.model.tape_summary import LogEntry
from deltatape.model.turn import (
    Complaint,
    DeliveredCallRef,
    MissingResult,
    OrphanResult,
    RepeatedIdenticalCall,
    ReusedId,
    Turn,
)
from deltatape.rules.repeated import is_distinctive
from deltatape.rules.settings import DEFAULTS, Settings

_ATTEMPTS = 100
"""Failed attempts that are kept of one request."""
_OWNERS = 64
"""Calls with the same id that are kept: some servers number calls from 0 in each answer."""


def turns(
    digests: Iterable[Digest],
    links: Sequence[ReadBack],
    logs: Iterable[LogEntry] = (),
    settings: Settings = DEFAULTS,
) -> tuple[Turn, ...]:
    """Return every exchange with a model as a turn of its conversation, in the order of requests.

    Args:
        digests: of any number of conversations, in the order of their requests.
        links: what their requests repeat of their replies.
        logs: what the application printed, in order; on the same clock as the digests.
        settings: the thresholds.
    """
    every = [each for each in digests if each.tap is Tap.PROVIDER]
    by_later: dict[int, list[ReadBack]] = {}
    for link in links:
        by_later.setdefault(id(link.later), []).append(link)
    # What was printed is read for its calls only, and twice.
    logs = tuple(logs) if any(each.calls or each.text_calls for each in every) else ()
    told = printed(every, logs, settings)
    reported_lost = reported_losses(every, logs, settings)
    ledger = _Ledger()
    astray = misplaced(every)
    found = []
    for digest in every:
        repeated = [
            _with_printed(each, told, reported_lost) for each in by_later.get(id(digest), [])
        ]
        turn = _turn(ledger, digest, repeated, told)
        wrong = astray.get(id(digest))
        found.append(replace(turn, foreign=wrong.foreign, swapped=wrong.swapped) if wrong else turn)
    found = list(with_unread([*ledger.continuations.settled(found)], every))
    return tuple(without_echoes(found) if told else found)


def _with_printed(
    link: ReadBack,
    told: Mapping[int, Complaint],
    reported_lost: Mapping[int, tuple[tuple[str, str], ...]],
) -> ReadBack:
    if id(link.reply) in reported_lost:
        link = replace(link, reported_lost=reported_lost[id(link.reply)])
    complaint = told.get(id(link.reply))
    if complaint is None or not complaint.sure or complaint.t_ns is None:
        return link
    before = link.later.t_ns is None or complaint.t_ns <= link.later.t_ns
    return replace(link, printed=complaint.error) if before else link


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mark:
    """What the requests up to one of a conversation have shown of their tools."""

    offered: int | None = None
    lacks_tools: bool = False
    forced: bool = False


@dataclass(slots=True)
class _Ledger:
    """The requests and replies seen so far."""

    known: set[str] = field(default_factory=set)
    """Hashes of the first messages of every history."""
    heads: dict[str, ConversationState] = field(default_factory=dict)
    """Threads by the hash of all their messages."""
    ends: dict[str, Digest] = field(default_factory=dict)
    """The latest request with just these messages."""
    marks: dict[int, _Mark] = field(default_factory=dict)
    """By the identity of a digest."""
    delivered: dict[str, deque[DeliveredCallRef]] = field(default_factory=dict)
    """Calls by their ids, the latest last."""
    owned: set[str] = field(default_factory=set)
    """Ids and names of calls in all histories so far."""
    told: set[tuple[str, ...]] = field(default_factory=set)
    attempts: dict[tuple[str, ...], deque[Digest]] = field(default_factory=dict)
    continuations: Continuations = field(default_factory=Continuations)

    def first(self, *what: str) -> bool:
        """Return whether this is the first report of it."""
        if what in self.told:
            return False
        self.told.add(what)
        return True


def _turn(
    ledger: _Ledger,
    digest: Digest,
    links: Sequence[ReadBack],
    logged: Mapping[int, Complaint],
) -> Turn:
    history, prefixes = digest.history, digest.prefixes
    news = next((at for at in range(len(history), 0, -1) if prefixes[at] in ledger.known), 0)
    thread = _thread(ledger, digest, news)
    before = thread.before
    mark = ledger.marks.get(id(before), _Mark())
    turn = Turn(
        digest=digest,
        before=before,
        news=news,
        links=tuple(links),
        orphans=tuple(_orphans(ledger, digest, thread, news)),
        missing=tuple(_missing(ledger, digest, thread)),
        again=tuple(_again(digest, thread)) if news < len(history) else (),
        silent_calls=_silent(digest, thread) if news < len(history) else 0,
        offered=mark.offered,
        lacks_tools=_lacks_tools(digest, thread, mark),
        forced_again=mark.forced,
        attempts=_attempts(ledger, digest),
        complaints=tuple(_complaints(ledger, digest, before, news, links, logged)),
        continues=ledger.continuations.of(digest, news),
        shortened=ledger.continuations.shortened(digest, news),
        same=ledger.continuations.same(digest),
        reused=tuple(_reused(ledger, digest, thread)),
    )
    ledger.known.update(prefixes[news + 1 :])
    _enter(ledger, turn, mark)
    return turn


def _thread(ledger: _Ledger, digest: Digest, news: int) -> ConversationState:
    """Return the conversation's state after the history of `digest`."""
    history, prefixes = digest.history, digest.prefixes
    thread = ledger.heads.pop(prefixes[news], None) if news else None
    if thread is None:
        thread = ConversationState()
        thread.take(history, 0)
        shorter = prefixes[min(news, len(history) - 1) : 0 : -1]
        nearest = (ledger.ends.get(each) for each in shorter)
        thread.last = next((each for each in nearest if each is not None), None)
    else:
        thread.take(history, news)
    thread.enter(digest)
    if history:
        ledger.heads[prefixes[-1]] = thread
    return thread


def _enter(ledger: _Ledger, turn: Turn, mark: _Mark) -> None:
    digest = turn.digest
    ledger.continuations.enter(digest)
    if digest.history:
        ledger.ends[digest.prefixes[-1]] = digest
    offers = _offers(digest)
    ledger.marks[id(digest)] = _Mark(
        offered=digest.exchange if offers else mark.offered,
        lacks_tools=not offers and (turn.lacks_tools or mark.lacks_tools),
        forced=mark.forced or turn.forced_to_loop,
    )
    for call in digest.calls:
        for each in call.ids:
            known = ledger.delivered.setdefault(each, deque(maxlen=_OWNERS))
            known.append(DeliveredCallRef(call=call, reply=digest))


def _offers(digest: Digest) -> bool:
    return bool(digest.tools) or digest.tools_elsewhere


def _lacks_tools(digest: Digest, thread: ConversationState, mark: _Mark) -> bool:
    if _offers(digest) or digest.previous is not None or mark.lacks_tools:
        return False
    return thread.uses_tools and mark.offered is not None


def _orphans(
    ledger: _Ledger, digest: Digest, thread: ConversationState, news: int
) -> Iterator[OrphanResult]:
    """Yield new results without a call, unless the provider may store it."""
    fresh = digest.history[news:]
    kept = digest.previous is not None or thread.by_reference
    for place, message in enumerate(fresh, news):
        call_id = message.call_id
        if kept or not call_id or call_id in thread.owned:
            continue
        if ledger.first("orphan", call_id, message.text):
            found = _delivered(ledger, call_id, digest, thread.before)
            yield OrphanResult(
                call_id=call_id,
                delivered=found,
                trimmed=call_id in ledger.owned or _is_front(digest.history, place),
                same_conversation=found is not None and _is_same_agent(digest, found.reply),
            )
    for call_id in thread.twice:
        found = _delivered(ledger, call_id, digest, thread.before)
        if found and _is_alone(found) and ledger.first("twice", call_id):
            yield OrphanResult(call_id=call_id, delivered=found, trimmed=False, twice=True)
    for message in fresh:
        ledger.owned.update(message.owns)
        for call in message.calls:
            ledger.owned.update(each for each in (call.id, call.name) if each)


def _is_same_agent(digest: Digest, reply: Digest) -> bool:
    """Return whether the agent that got `reply` continues; another one sees less."""
    handed_on = digest.system != reply.system and digest.tools != reply.tools
    return goes_on_from(digest, reply) and not handed_on


def _is_alone(delivered: DeliveredCallRef) -> bool:
    """Return whether the reply has no other call to which the same result could belong."""
    named = frozenset(delivered.call.answers_to)
    return sum(not named.isdisjoint(each.answers_to) for each in delivered.reply.calls) == 1


def _is_front(history: Sequence[HistoryMessage], place: int) -> bool:
    """Return whether only results come before the result at `place`."""
    return all(is_result(message) for message in history[:place])


def _delivered(
    ledger: _Ledger, call_id: str, digest: Digest, before: Digest | None
) -> DeliveredCallRef | None:
    """Return the delivered call that a result in `digest` names.

    One of this conversation goes first. Another one counts only if its id can be nobody else's and
    no other reply has it. Where calls have no ids, it is one of the reply before.
    """
    owners = [each for each in ledger.delivered.get(call_id, ()) if _had_come(each, digest)]
    for each in reversed(owners):
        if goes_on_from(digest, each.reply):
            return each
    if len(owners) == 1 and is_distinctive(call_id):
        return owners[0]
    if owners or before is None:
        return None
    named = (call for call in before.calls if not call.ids and call_id in call.answers_to)
    return next((DeliveredCallRef(call=call, reply=before) for call in named), None)


def _had_come(delivered: DeliveredCallRef, digest: Digest) -> bool:
    """Return whether the call had been delivered when the request left."""
    came_ns, reply = delivered.call.t_ns, delivered.reply
    if came_ns is None or digest.t_ns is None or reply.tape != digest.tape:
        return True
    return came_ns <= digest.t_ns


def _missing(ledger: _Ledger, digest: Digest, thread: ConversationState) -> Iterator[MissingResult]:
    for call in thread.unanswered():
        key = call.id or call.name or ""
        if not thread.by_reference and ledger.first("missing", key, call_key(call)):
            yield MissingResult(call=call, delivered=_delivered(ledger, key, digest, thread.before))


def _again(digest: Digest, thread: ConversationState) -> Iterator[RepeatedIdenticalCall]:
    if not thread.tallies:
        return
    for key, call in {call_key(call): call for call in reversed(digest.calls)}.items():
        tally = thread.tallies.get(key)
        if tally is not None:
            yield RepeatedIdenticalCall(call=call, times=tally.times + 1, first=tally.first)


def _reused(ledger: _Ledger, digest: Digest, thread: ConversationState) -> Iterator[ReusedId]:
    """Yield the new calls whose ids calls in the history have."""
    for call in digest.calls:
        for each in call.ids:
            if each in thread.owned and ledger.first("reused", digest.prefixes[1], each):
                yield ReusedId(call=call, earlier=_earlier(ledger, digest, thread, each))


def _earlier(
    ledger: _Ledger, digest: Digest, thread: ConversationState, call_id: str
) -> DeliveredCallRef | None:
    """Return the conversation's delivered call of that id, or an equal re-parsed one."""
    found = thread.delivered.get(call_id)
    if found is not None:
        return found
    calls = (call for message in digest.history for call in message.calls)
    repeated = {call_key(call) for call in calls if call.id == call_id}
    known = reversed(ledger.delivered.get(call_id, ()))
    return next((each for each in known if call_key(each.call) in repeated), None)


def _silent(digest: Digest, thread: ConversationState) -> int:
    return thread.silent + 1 if digest.calls and not digest.text else 0


def _attempts(ledger: _Ledger, digest: Digest) -> tuple[Digest, ...]:
    if not digest.history:
        return ()
    key = (digest.tape, digest.path, digest.system, digest.prefixes[-1])
    failed = ledger.attempts.get(key)
    so_far = tuple(failed or ())
    if digest.failed:
        ledger.attempts.setdefault(key, deque(maxlen=_ATTEMPTS)).append(digest)
    elif failed is not None:
        del ledger.attempts[key]
    return so_far


def _complaints(
    ledger: _Ledger,
    digest: Digest,
    before: Digest | None,
    news: int,
    links: Sequence[ReadBack],
    logged: Mapping[int, Complaint],
) -> Iterator[Complaint]:
    said = False  # whether the assistant's message in front of it is new, too
    for message in digest.history[news:]:
        said = said or message.role in ASSISTANT
        if message.error is None:
            continue
        if is_result(message):
            call = _delivered(ledger, message.call_id, digest, before) if message.call_id else None
            about: tuple[DeliveredCallRef, ...] = (call,) if call else ()
        else:
            about = _written(before) if said else ()
        if about and ledger.first("failure", message.call_id or "", message.text):
            yield in_history(message.error, about, links)
    if id(digest) in logged:
        yield logged[id(digest)]


def _written(before: Digest | None) -> tuple[DeliveredCallRef, ...]:
    """Return the calls in the text of the reply before, if they are all that it calls.

    Applications that find calls in text have no other place for a result than the user's message.
    """
    if before is None or before.calls:
        return ()
    return tuple(DeliveredCallRef(call=call, reply=before) for call in before.text_calls)
