"""Find the reply that a request continues, and compare that reply's text.

A request goes on from a reply if its history begins with all that the reply's own request had, and
what follows is new. A message is looked at once, in the first request that carries it: what an
application shortens later on is not held against it.

Linear in the number of exchanges and in the messages that are new in them: of many replies to the
same history only the latest are looked at, and of a history only what is new.
"""

import hashlib
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from deltatape.model.digest import ASSISTANT, DeliveredCall, Digest, HistoryMessage
from deltatape.model.request_summary import RepeatedCall
from deltatape.model.turn import Continuation, DeliveredCallRef, SameRequest, TextChange, Turn
from deltatape.rules.text_change import repeated_message, text_change
from deltatape.wire.json_value import canonical

_USER = "user"
_MOST = 16
"""How many replies to the same history are compared: a test suite may ask the same 1000 times."""
_ANSWER = 20
"""The shortest answer that a conversation can continue, in characters; shorter ones are labels."""


# The state of a conversation, built from the histories that its requests repeat.
#
# An agent sends its whole history each time, so each message is added once, from a request that
# continues where the last one ended. The state keeps what later messages are compared with:
# which calls there were, which have no result yet, and which calls came again since the user spoke.

_RESULT = frozenset({"tool", "function"})
_REFERENCE = "item_reference"


def call_key(call: DeliveredCall | RepeatedCall) -> str:
    """Return a key that is equal for calls of the same tool with equal JSON arguments."""
    text = f"{call.name}\0{canonical(call.arguments) or call.arguments.strip()}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def had_arrived(arrived_ns: int | None, reply: Digest, later: Digest) -> bool:
    """Return whether a part of `reply` is known to have arrived when the request came."""
    if reply.tape != later.tape or arrived_ns is None or later.t_ns is None:
        return True
    return arrived_ns <= later.t_ns


def first_new(digest: Digest, known: Collection[str]) -> int:
    """Return the index of the first message that is in no earlier history.

    Args:
        digest: the digest of a request.
        known: hashes of the first messages of every earlier history.
    """
    prefixes = digest.prefixes
    return next((at for at in range(len(digest.history), 0, -1) if prefixes[at] in known), 0)


def is_result(message: HistoryMessage) -> bool:
    """Return whether a message is a tool result; `call_id` is None where results name no call."""
    return message.call_id is not None or message.role in _RESULT


@dataclass(slots=True)
class CallCounts:
    """How often a call was made, and the exchange that delivered it first, if known."""

    times: int = 0
    first: int | None = None


@dataclass(slots=True)
class ConversationState:
    """The state of a conversation after the messages read so far."""

    owned: set[str] = field(default_factory=set)
    """Ids and names of all calls."""
    tallies: dict[str, CallCounts] = field(default_factory=dict)
    """Calls since the user last spoke, by `call_key`."""
    silent: int = 0
    """Replies in a row that called tools without any text, since the user last spoke."""
    last: Digest | None = None
    """The exchange whose request brought the last messages."""
    before: Digest | None = None
    """The one before that."""
    by_reference: bool = False
    """Whether the history names messages that it does not hold."""
    uses_tools: bool = False
    delivered: dict[str, DeliveredCallRef] = field(default_factory=dict)
    """The delivered calls of its replies, by id; of several with one id, the latest."""
    twice: list[str] = field(default_factory=list)
    """Calls for which the latest messages bring a second result."""
    _closed: set[str] = field(default_factory=set)
    """Ids whose calls all have a result."""
    _open: dict[str, list[tuple[int, RepeatedCall]]] = field(default_factory=dict)
    """Calls without a result, with their place, by the id or name that a result would have."""
    _run_start: int | None = None
    """The start of the assistant messages at the end of the history."""
    _run_content: tuple[bool, bool] = (False, False)
    """Whether these messages have calls, and whether they have text."""
    _counted: set[str] = field(default_factory=set)
    """Keys of calls of the current reply that `tallies` has counted."""
    _counted_on_wire: bool = False
    """Whether the delivered reply was counted; the messages that repeat it are then skipped."""
    _results: bool = False
    """Whether results have come since the assistant's last message."""
    _user: bool = False
    """Whether the user has spoken since then."""

    def add(self, history: Sequence[HistoryMessage], start: int) -> None:
        """Read the messages of a history from `start` on; the earlier ones are known."""
        self._counted_on_wire = False
        self.twice = []
        if start and self.last is not None and start < len(history):
            self._add_delivered(self.last)
        for place in range(start, len(history)):
            message = history[place]
            if message.role in ASSISTANT:
                self._add_assistant(message, place)
            else:
                self._add_other(message)
        self._start_question()

    def end_with(self, digest: Digest) -> None:
        """Record that the conversation now ends with the history of `digest`."""
        if self.last is None or self.last.prefixes[-1] != digest.prefixes[-1]:
            self.before = self.last
        self.last = digest

    def unanswered(self) -> Iterator[RepeatedCall]:
        """Yield the calls that the history continues without, each once."""
        for key, calls in list(self._open.items()):
            left = []
            for place, call in calls:
                if self._run_start is not None and place >= self._run_start:
                    left.append((place, call))
                else:
                    yield call
            if left:
                self._open[key] = left
            else:
                del self._open[key]

    def _add_delivered(self, reply: Digest) -> None:
        """Count the delivered calls, whatever the application makes of them."""
        self._counted = set()
        for call in reply.calls:
            self.delivered.update(
                (call_id, DeliveredCallRef(call=call, reply=reply)) for call_id in call.ids
            )
        if reply.calls or reply.text:
            self._counted_on_wire = True
            self._count_silent(calls=bool(reply.calls), text=bool(reply.text))
        self._count(reply.calls, reply.exchange)

    def _add_assistant(self, message: HistoryMessage, place: int) -> None:
        if self._run_start is None:
            self._start_question()
            self._run_start = place
            self._run_content = (False, False)
        self.owned.update(message.owns)
        for call in message.calls:
            self.uses_tools = True
            self.owned.update(each for each in (call.id, call.name) if each)
            key = call.id or call.name or ""
            self._open.setdefault(key, []).append((place, call))
            self._closed.discard(key)
        calls, text = self._run_content
        self._run_content = (calls or bool(message.calls), text or bool(message.text))
        self._count(message.calls, None)

    def _add_other(self, message: HistoryMessage) -> None:
        if self._run_start is not None and not self._counted_on_wire:
            self._count_silent(calls=self._run_content[0], text=self._run_content[1])
        self._run_start = None
        self._counted_on_wire = False
        self._counted = set()
        if is_result(message):
            self.uses_tools = self._results = True
            self._close(message.call_id)
        elif message.role == _USER:
            self._user = True
        elif message.role == _REFERENCE:
            self.by_reference = True

    def _close(self, call_id: str | None) -> None:
        """Close the call of a result; a result without an id may be for any call."""
        if call_id is None:
            self._open.clear()
            self._closed.clear()
            return
        if call_id in self._closed:
            self.twice.append(call_id)
            return
        calls = self._open.get(call_id)
        if calls is None:
            # Results may use the name of the tool as id.
            open_calls = ((key, call) for key, calls in self._open.items() for _, call in calls)
            call_id = next((key for key, call in open_calls if call.name == call_id), "")
            calls = self._open.get(call_id)
        if calls is not None:
            left = [(place, call) for place, call in calls if call.id is None][1:]
            self._open[call_id] = left
            if not left:
                del self._open[call_id]
                self._closed.add(call_id)

    def _count(self, calls: Iterable[DeliveredCall | RepeatedCall], exchange: int | None) -> None:
        for call in calls:
            key = call_key(call)
            if key in self._counted:
                continue
            self._counted.add(key)
            tally = self.tallies.setdefault(key, CallCounts())
            tally.times += 1
            tally.first = tally.first if tally.times > 1 else exchange

    def _count_silent(self, *, calls: bool, text: bool) -> None:
        if text:
            self.silent = 0
        elif calls:
            self.silent += 1

    def _start_question(self) -> None:
        """Start a new question, unless results came along: clients put notes there."""
        if self._user and not self._results:
            self.tallies.clear()
            self.silent = 0
        self._user = self._results = False


@dataclass(slots=True)
class _EqualRequests:
    """Exchanges with the same request that were answered completely."""

    first: Digest
    last: Digest
    times: int = 1


@dataclass(slots=True)
class Continuations:
    """The replies that requests may continue, updated request by request."""

    _replies: dict[str, deque[Digest]] = field(default_factory=dict)
    """Replies by the hash of their request's messages."""
    _by_reply_id: dict[str, Digest] = field(default_factory=dict)
    """Replies by the provider's id (`previous_response_id`)."""
    _matched: set[int] = field(default_factory=set)
    """The identities of replies that a request has repeated, rightly or wrongly."""
    _lost: dict[tuple[str, ...], set[str]] = field(default_factory=dict)
    """The parts that changed texts lost, by tape, system messages and kind of change."""
    _unkept: dict[int, int] = field(default_factory=dict)
    """By the identity of a request, how many answers its history lacks."""
    _before: dict[int, Digest] = field(default_factory=dict)
    """By the identity of a request that lost the system prompt, the reply that it continues."""
    _followed: dict[int, Digest] = field(default_factory=dict)
    """By the identity of such a request, the first request that continues its answer."""
    _answers: dict[tuple[str, str], Digest] = field(default_factory=dict)
    """Replies by the hashes of their question and their text."""
    _asked: dict[tuple[object, ...], _EqualRequests] = field(default_factory=dict)
    _again: set[str] = field(default_factory=set)
    """Hashes of the histories of requests that came more than once."""

    def of(self, digest: Digest, news: int) -> Continuation | None:
        """Return the reply that `digest` continues; messages from `news` on are new."""
        found = self._stored(digest) if digest.previous else self._repeated(digest, news)
        if found is None:
            return None
        reply = found.reply
        if reply.instructed and not digest.instructed:
            self._before[id(digest)] = reply
        if id(reply) in self._before and found.end > found.start:
            self._followed.setdefault(id(reply), digest)
        return found

    def same(self, digest: Digest) -> SameRequest | None:
        """Return the earlier requests equal to that of `digest`, if there are any."""
        if not digest.known:
            return None
        key = _request(digest)
        before = self._asked.get(key)
        found = None
        if before is not None:
            ended = _had_ended(before.last, digest)
            rerun = not self._again.isdisjoint(digest.prefixes[:-1])
            found = SameRequest(
                first=before.first, times=before.times + 1, ended=ended, rerun=rerun
            )
            self._again.add(digest.prefixes[-1])
        if digest.whole and not digest.lossy and (digest.text or digest.calls):
            now = before or _EqualRequests(first=digest, last=digest, times=0)
            self._asked[key] = replace(now, last=digest, times=now.times + 1)
        return found

    def shortened(self, digest: Digest, news: int) -> Digest | None:
        """Return the latest reply that a shortened history repeats with its question.

        Of histories that begin as an earlier one did, `of` is more precise.
        """
        history = digest.history
        if news or digest.previous is not None:
            return None
        for place in range(len(history) - 2, 0, -1):
            question, answer = history[place - 1], history[place]
            if answer.role in ASSISTANT and question.role == _USER:
                found = self._answers.get((question.text, answer.text))
                if found is not None and _had_ended(found, digest):
                    return found
        return None

    def add(self, digest: Digest) -> None:
        """Add `digest` to the replies that requests may continue."""
        if digest.history and len(digest.content) >= _ANSWER // 2:
            self._answers[digest.history[-1].text, digest.text] = digest
        if digest.history:
            kept = self._replies.setdefault(digest.prefixes[-1], deque(maxlen=_MOST))
            kept.append(digest)
        if digest.reply_id is not None:
            self._by_reply_id[digest.reply_id] = digest

    def with_followers(self, turns: Sequence[Turn]) -> Iterator[Turn]:
        """Yield the turns, with the facts that only later requests show."""
        parallel = self._parallel(turns)
        for turn in turns:
            later, found = self._followed.get(id(turn.digest)), turn.continues
            if later is None or found is None or id(turn.digest) in parallel:
                yield turn
                continue
            back = later.system == self._before[id(turn.digest)].system
            yield replace(turn, continues=replace(found, followed=later.exchange, restored=back))

    def _parallel(self, turns: Sequence[Turn]) -> set[int]:
        """Return the requests that lost the system prompt, but are a side branch of a conversation.

        The main branch has the prompt and continues from the same reply with other messages.
        """
        strays: dict[int, dict[str, list[Digest]]] = {}
        for turn in turns:
            digest, found = turn.digest, turn.continues
            if id(digest) in self._followed and found is not None and not found.stored:
                by_start = strays.setdefault(found.end, {})
                by_start.setdefault(digest.prefixes[found.end], []).append(digest)
        lengths = list(strays.items())[:_MOST]
        return {
            id(stray)
            for turn in turns
            if turn.digest.instructed
            for end, by_start in lengths
            if end < len(turn.digest.history)
            for stray in by_start.get(turn.digest.prefixes[end], ())
            if turn.digest.prefixes[end + 1] != stray.prefixes[end + 1]
            and turn.digest.system == self._before[id(stray)].system
        }

    def _stored(self, digest: Digest) -> Continuation | None:
        reply = self._by_reply_id.get(digest.previous or "")
        if reply is None or not _had_ended(reply, digest):
            return None
        return Continuation(replies=(reply,), start=0, end=0, stored=True)

    def _repeated(self, digest: Digest, news: int) -> Continuation | None:
        history = digest.history
        if not 0 < news < len(history):
            return None
        near = [
            each
            for each in self._replies.get(digest.prefixes[news], ())
            if _had_ended(each, digest)
        ]
        same_system = [reply for reply in near if reply.system == digest.system]
        replies = same_system or near
        places = range(news, len(history))
        end = next((at for at in places if history[at].role not in ASSISTANT), len(history))
        if not replies or end == len(history):
            return None  # a prefilled answer, which the model is to continue
        found = Continuation(replies=tuple(replies), start=news, end=end)
        if end > news:
            return self._compared(found, history[news:end])
        return replace(found, unkept=self._count_unkept(found, digest))

    def _compared(self, found: Continuation, messages: Sequence[HistoryMessage]) -> Continuation:
        """Return `found` with the comparison of the reply's text with `messages`."""
        texts = [message.content for message in messages if message.text]
        if len(texts) > 1:
            texts.append("".join(texts))
        hashes = {message.text for message in messages if message.text}
        exact = [reply for reply in found.replies if reply.text in hashes]
        named = exact or found.replies
        open_ones = [reply for reply in named if id(reply) not in self._matched]
        if len(named) == 1:
            self._matched.update(map(id, named))
        if len(exact) == 1 and len(exact[0].content.strip()) >= _ANSWER:
            copies = sum(message.text == exact[0].text for message in messages)
            if copies > 1 and open_ones:
                change = repeated_message(copies)
                return replace(found, replies=tuple(exact), change=change, changed=exact[0])
        called = [reply for reply in named if _calls_of(reply, messages)]
        if exact or called or not texts:
            return replace(found, replies=tuple(called or named))
        changes = [
            (reply, change)
            for reply in open_ones
            for change in [_change(reply, texts)]
            if change is not None
        ]
        if len(changes) != 1 or any(_is_text(reply, texts) for reply in found.replies):
            return found
        ((reply, change),) = changes
        key = (reply.tape, reply.system, change.damage, change.where)
        lost = self._lost.setdefault(key, set())
        lost.add(change.lost.strip())
        self._matched.add(id(reply))
        return replace(found, change=change, changed=reply, times=len(lost))

    def _count_unkept(self, found: Continuation, digest: Digest) -> int:
        history, start = digest.history, found.start
        before = max((self._unkept.get(id(reply), 0) for reply in found.replies), default=0)
        kept = [
            reply for reply in found.replies if _is_answer(reply) and reply.system == digest.system
        ]
        texts = [each.content.strip() for each in kept]
        fresh = [message for message in history[start:] if _is_users(message)]
        if not texts or len(fresh) < len(history) - start:
            return 0
        if any(text in message.content for text in texts for message in fresh):
            return 0
        if not before and not all(map(_is_users, history[:start])):
            return 0
        self._unkept[id(digest)] = before + 1
        return before + 1


def _had_ended(reply: Digest, later: Digest) -> bool:
    return had_arrived(reply.end_ns, reply, later)


def _request(digest: Digest) -> tuple[object, ...]:
    return (
        digest.tape,
        digest.path,
        digest.model,
        digest.system,
        digest.prefixes[-1],
        digest.tools,
        digest.tool_choice,
        digest.previous,
    )


def _change(reply: Digest, texts: Sequence[str]) -> TextChange | None:
    if not reply.whole or reply.lossy or not reply.content_ends:
        return None
    found = (text_change(reply.content, reply.content_ends, text, reply.torn) for text in texts)
    return next((each for each in found if each is not None), None)


def _calls_of(reply: Digest, messages: Sequence[HistoryMessage]) -> bool:
    """Return whether one of the messages has a call of the reply, by its id and name."""
    delivered = {(each, call.name) for call in reply.calls for each in (call.ids or (None,))}
    return any((call.id, call.name) in delivered for message in messages for call in message.calls)


def _is_text(reply: Digest, texts: Sequence[str]) -> bool:
    """Return whether one of the texts, or all of them joined, is that of the reply."""
    bare = reply.content.strip()
    return any(text.strip() == bare for text in texts)


def _is_users(message: HistoryMessage) -> bool:
    return message.role == _USER and not is_result(message)


def _is_answer(reply: Digest) -> bool:
    """Return whether the reply is a text that a conversation could continue."""
    plain = reply.content.strip()
    whole = reply.whole and not reply.lossy and not reply.calls
    return whole and len(plain) >= _ANSWER and plain[0] not in "{["
