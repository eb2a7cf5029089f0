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
from types import MappingProxyType

from deltatape.conversation.continuation import (
    Continuations,
    ConversationState,
    call_key,
    first_new,
    had_arrived,
    is_result,
)
from deltatape.conversation.misplaced import MisplacedSearch
from deltatape.conversation.parser_errors import (
    RepeatedPairs,
    in_history,
    printed,
    reported_losses,
    with_unread,
    without_echoes,
)
from deltatape.conversation.read_back import goes_on_from
from deltatape.conversation.tool_servers import with_servers
from deltatape.model.digest import ASSISTANT, Digest, HistoryMessage, ReadBack
from deltatape.model.exchange import Tap
from deltatape.model.rule_settings import DEFAULTS, Settings
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

_ATTEMPTS = 100
"""How many failed attempts are kept per request."""
_OWNERS = 64
"""How many calls are kept per id: some servers number calls from 0 in each answer."""


def turns(
    digests: Iterable[Digest],
    read_backs: Sequence[ReadBack],
    logs: Iterable[LogEntry] = (),
    settings: Settings = DEFAULTS,
) -> tuple[Turn, ...]:
    """Return every exchange with a model as a turn of its conversation, in the order of requests.

    Args:
        digests: the digests of any number of conversations, in the order of their requests.
        read_backs: the replies that their requests repeat.
        logs: what the application printed, in order; on the same clock as the digests.
        settings: the thresholds.
    """
    search = TurnSearch()
    digests = [digest for digest in digests if digest.tap is Tap.PROVIDER]
    by_later: dict[int, list[ReadBack]] = {}
    for read_back in read_backs:
        by_later.setdefault(id(read_back.later), []).append(read_back)
    # The log only matters where there are calls; it is read twice.
    logs = tuple(logs) if any(digest.calls or digest.text_calls for digest in digests) else ()
    printed_errors = printed(digests, logs, settings)
    reported_lost = reported_losses(digests, logs, settings)
    found = []
    for digest in digests:
        repeated = [
            _with_printed(each, printed_errors, reported_lost)
            for each in by_later.get(id(digest), [])
        ]
        found.append(search.add(digest, repeated, printed_errors))
    found = list(with_servers(with_unread(search.with_later(found), digests), digests))
    return tuple(without_echoes(found) if printed_errors else found)


class TurnSearch:
    """Describes exchanges as turns, one by one.

    The work for an exchange depends on its history, not on the number of exchanges before it.
    """

    def __init__(self) -> None:
        self._index = _Index()
        self._misplaced = MisplacedSearch()

    def add(
        self,
        digest: Digest,
        read_backs: Sequence[ReadBack],
        printed_errors: Mapping[int, Complaint] = MappingProxyType({}),
    ) -> Turn:
        """Return an exchange with a model as a turn of its conversation, by those before it.

        Args:
            digest: the digest of the exchange.
            read_backs: the replies that its request repeats.
            printed_errors: by the identity of a reply, what the application printed about it.
        """
        turn = _turn(self._index, digest, read_backs, printed_errors)
        wrong = self._misplaced.add(digest)
        if wrong.foreign or wrong.swapped:
            turn = replace(turn, foreign=wrong.foreign, swapped=wrong.swapped)
        return turn

    def with_later(self, turns: Sequence[Turn]) -> list[Turn]:
        """Return all turns so far, with the facts that only later requests show."""
        return [
            replace(turn, foreign=self._misplaced.exchanged(turn.foreign)) if turn.foreign else turn
            for turn in self._index.continuations.with_followers(turns)
        ]


def _with_printed(
    read_back: ReadBack,
    printed_errors: Mapping[int, Complaint],
    reported_lost: Mapping[int, tuple[tuple[str, str], ...]],
) -> ReadBack:
    if id(read_back.reply) in reported_lost:
        read_back = replace(read_back, reported_lost=reported_lost[id(read_back.reply)])
    complaint = printed_errors.get(id(read_back.reply))
    if complaint is None or not complaint.sure or complaint.t_ns is None:
        return read_back
    before = read_back.later.t_ns is None or complaint.t_ns <= read_back.later.t_ns
    return replace(read_back, printed=complaint.error) if before else read_back


@dataclass(frozen=True, slots=True, kw_only=True)
class _ToolHistory:
    """How the requests of a conversation have used tools so far."""

    offered: int | None = None
    lacks_tools: bool = False
    forced: bool = False


@dataclass(slots=True)
class _Index:
    """The requests and replies seen so far."""

    known: set[str] = field(default_factory=set)
    """Hashes of the first messages of every history."""
    heads: dict[str, ConversationState] = field(default_factory=dict)
    """Conversations by the hash of all their messages."""
    ends: dict[str, Digest] = field(default_factory=dict)
    """The latest request by the hash of its messages."""
    tool_histories: dict[int, _ToolHistory] = field(default_factory=dict)
    """By the identity of a request's digest."""
    delivered: dict[str, deque[DeliveredCallRef]] = field(default_factory=dict)
    """Calls by their ids, the latest last."""
    owned: set[str] = field(default_factory=set)
    """Ids and names of calls in all histories so far."""
    reported: set[tuple[str, ...]] = field(default_factory=set)
    attempts: dict[tuple[str, ...], deque[Digest]] = field(default_factory=dict)
    continuations: Continuations = field(default_factory=Continuations)

    def first(self, *what: str) -> bool:
        """Return whether this is the first report of it."""
        if what in self.reported:
            return False
        self.reported.add(what)
        return True


def _turn(
    index: _Index,
    digest: Digest,
    read_backs: Sequence[ReadBack],
    printed_errors: Mapping[int, Complaint],
) -> Turn:
    news = first_new(digest, index.known)
    is_longer = news < len(digest.history)
    silent = bool(digest.calls) and not digest.text
    conversation = _conversation(index, digest, news)
    before = conversation.before
    tools_so_far = index.tool_histories.get(id(before), _ToolHistory())
    turn = Turn(
        digest=digest,
        before=before,
        news=news,
        read_backs=tuple(read_backs),
        orphans=tuple(_orphans(index, digest, conversation, news)),
        missing=tuple(_missing(index, digest, conversation)),
        again=tuple(_repeated_calls(digest, conversation)) if is_longer else (),
        silent_calls=conversation.silent + 1 if is_longer and silent else 0,
        offered=tools_so_far.offered,
        lacks_tools=_lacks_tools(digest, conversation, tools_so_far),
        forced_again=tools_so_far.forced,
        attempts=_attempts(index, digest),
        complaints=tuple(_complaints(index, digest, before, news, read_backs, printed_errors)),
        continues=index.continuations.of(digest, news),
        shortened=index.continuations.shortened(digest, news),
        same=index.continuations.same(digest),
        reused=tuple(_reused(index, digest, conversation)),
    )
    index.known.update(digest.prefixes[news + 1 :])
    _add(index, turn, tools_so_far)
    return turn


def _conversation(index: _Index, digest: Digest, news: int) -> ConversationState:
    """Return the conversation's state after the history of `digest`."""
    history, prefixes = digest.history, digest.prefixes
    conversation = index.heads.pop(prefixes[news], None) if news else None
    if conversation is None:
        conversation = ConversationState()
        conversation.add(history, 0)
        shorter = prefixes[min(news, len(history) - 1) : 0 : -1]
        nearest = (index.ends.get(each) for each in shorter)
        conversation.last = next((each for each in nearest if each is not None), None)
    else:
        conversation.add(history, news)
    conversation.end_with(digest)
    if history:
        index.heads[prefixes[-1]] = conversation
    return conversation


def _add(index: _Index, turn: Turn, tools_so_far: _ToolHistory) -> None:
    digest = turn.digest
    index.continuations.add(digest)
    if digest.history:
        index.ends[digest.prefixes[-1]] = digest
    offers = _offers(digest)
    index.tool_histories[id(digest)] = _ToolHistory(
        offered=digest.exchange if offers else tools_so_far.offered,
        lacks_tools=not offers and (turn.lacks_tools or tools_so_far.lacks_tools),
        forced=tools_so_far.forced or turn.forced_to_loop,
    )
    for call in digest.calls:
        for call_id in call.ids:
            known = index.delivered.setdefault(call_id, deque(maxlen=_OWNERS))
            known.append(DeliveredCallRef(call=call, reply=digest))


def _offers(digest: Digest) -> bool:
    return bool(digest.tools) or digest.tools_elsewhere


def _lacks_tools(
    digest: Digest, conversation: ConversationState, tools_so_far: _ToolHistory
) -> bool:
    if _offers(digest) or digest.previous is not None or tools_so_far.lacks_tools:
        return False
    return conversation.uses_tools and tools_so_far.offered is not None


def _orphans(
    index: _Index, digest: Digest, conversation: ConversationState, news: int
) -> Iterator[OrphanResult]:
    """Yield new results without a call, unless the provider may store it."""
    fresh = digest.history[news:]
    kept = digest.previous is not None or conversation.by_reference
    for place, message in enumerate(fresh, news):
        call_id = message.call_id
        if kept or not call_id or call_id in conversation.owned:
            continue
        if index.first("orphan", call_id, message.text):
            found = _delivered(index, call_id, digest, conversation.before)
            yield OrphanResult(
                call_id=call_id,
                delivered=found,
                trimmed=call_id in index.owned or _is_front(digest.history, place),
                same_conversation=found is not None and _is_same_agent(digest, found.reply),
            )
    for call_id in conversation.twice:
        found = _delivered(index, call_id, digest, conversation.before)
        if found and _is_only_candidate(found) and index.first("twice", call_id):
            yield OrphanResult(call_id=call_id, delivered=found, trimmed=False, twice=True)
    for message in fresh:
        index.owned.update(message.owns)
        for call in message.calls:
            index.owned.update(each for each in (call.id, call.name) if each)


def _is_same_agent(digest: Digest, reply: Digest) -> bool:
    """Return whether the agent that got `reply` continues; another one sees less."""
    handed_on = digest.system != reply.system and digest.tools != reply.tools
    return goes_on_from(digest, reply) and not handed_on


def _is_only_candidate(delivered: DeliveredCallRef) -> bool:
    """Return whether the reply has no other call to which the same result could belong."""
    named = frozenset(delivered.call.answers_to)
    return sum(not named.isdisjoint(call.answers_to) for call in delivered.reply.calls) == 1


def _is_front(history: Sequence[HistoryMessage], place: int) -> bool:
    """Return whether only results come before the result at `place`."""
    return all(is_result(message) for message in history[:place])


def _delivered(
    index: _Index, call_id: str, digest: Digest, before: Digest | None
) -> DeliveredCallRef | None:
    """Return the delivered call that a result in `digest` names.

    A call of this conversation is preferred. One of another conversation counts only if its id is
    unique: random, and in no other reply. Without ids, it is a call of the previous reply.
    """
    owners = [
        each
        for each in index.delivered.get(call_id, ())
        if had_arrived(each.call.t_ns, each.reply, digest)
    ]
    for each in reversed(owners):
        if goes_on_from(digest, each.reply):
            return each
    if len(owners) == 1 and is_distinctive(call_id):
        return owners[0]
    if owners or before is None:
        return None
    named = (call for call in before.calls if not call.ids and call_id in call.answers_to)
    return next((DeliveredCallRef(call=call, reply=before) for call in named), None)


def _missing(
    index: _Index, digest: Digest, conversation: ConversationState
) -> Iterator[MissingResult]:
    for call in conversation.unanswered():
        key = call.id or call.name or ""
        if not conversation.by_reference and index.first("missing", key, call_key(call)):
            yield MissingResult(
                call=call, delivered=_delivered(index, key, digest, conversation.before)
            )


def _repeated_calls(
    digest: Digest, conversation: ConversationState
) -> Iterator[RepeatedIdenticalCall]:
    if not conversation.tallies:
        return
    for key, call in {call_key(call): call for call in reversed(digest.calls)}.items():
        tally = conversation.tallies.get(key)
        if tally is not None:
            yield RepeatedIdenticalCall(call=call, times=tally.times + 1, first=tally.first)


def _reused(index: _Index, digest: Digest, conversation: ConversationState) -> Iterator[ReusedId]:
    """Yield the new calls whose ids calls in the history have."""
    for call in digest.calls:
        for call_id in call.ids:
            if call_id in conversation.owned and index.first("reused", digest.prefixes[1], call_id):
                yield ReusedId(call=call, earlier=_earlier(index, digest, conversation, call_id))


def _earlier(
    index: _Index, digest: Digest, conversation: ConversationState, call_id: str
) -> DeliveredCallRef | None:
    """Return the conversation's delivered call of that id, or an equal re-parsed one."""
    found = conversation.delivered.get(call_id)
    if found is not None:
        return found
    calls = (call for message in digest.history for call in message.calls)
    repeated = {call_key(call) for call in calls if call.id == call_id}
    known = reversed(index.delivered.get(call_id, ()))
    return next((each for each in known if call_key(each.call) in repeated), None)


def _attempts(index: _Index, digest: Digest) -> tuple[Digest, ...]:
    if not digest.history:
        return ()
    key = (digest.tape, digest.path, digest.system, digest.prefixes[-1])
    failed = index.attempts.get(key)
    so_far = tuple(failed or ())
    if digest.failed:
        index.attempts.setdefault(key, deque(maxlen=_ATTEMPTS)).append(digest)
    elif failed is not None:
        del index.attempts[key]
    return so_far


def _complaints(
    index: _Index,
    digest: Digest,
    before: Digest | None,
    news: int,
    read_backs: Sequence[ReadBack],
    printed_errors: Mapping[int, Complaint],
) -> Iterator[Complaint]:
    pairs = RepeatedPairs(read_backs)
    is_new_reply = False  # whether a new message of the assistant comes before it
    for message in digest.history[news:]:
        is_new_reply = is_new_reply or message.role in ASSISTANT
        if message.error is None:
            continue
        if is_result(message):
            call = _delivered(index, message.call_id, digest, before) if message.call_id else None
            about: tuple[DeliveredCallRef, ...] = (call,) if call else ()
        else:
            about = _written(before) if is_new_reply else ()
        if about and index.first("failure", message.call_id or "", message.text):
            yield in_history(message.error, about, pairs)
    if id(digest) in printed_errors:
        yield printed_errors[id(digest)]


def _written(before: Digest | None) -> tuple[DeliveredCallRef, ...]:
    """Return the text calls of the previous reply, unless it has other calls, too.

    Applications that parse calls from text send results in user messages.
    """
    if before is None or before.calls:
        return ()
    return tuple(DeliveredCallRef(call=call, reply=before) for call in before.text_calls)
