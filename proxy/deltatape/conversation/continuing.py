"""Which reply a request goes on from, and what the application made of that reply's text.

A request goes on from a reply if its history begins with all that the reply's own request had, and
what follows is new. A message is looked at once, in the first request that carries it: what an
application shortens later on is not held against it.

Linear in the number of exchanges and in the messages that are new in them: of many replies to the
same history only the latest are looked at, and of a history only what is new.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from deltatape.conversation.thread import is_result
from deltatape.model.digest import ASSISTANT, Digest, Heard
from deltatape.model.turn import Continuation, SameRequest, TextChange, Turn
from deltatape.rules.text_change import repeated_message, text_change

_MOST = 16
"""Replies to the same history that are looked at: a test suite asks the same a thousand times."""
_ANSWER = 20
"""Characters of an answer that a conversation can be about; shorter ones are labels."""
_USER = "user"


@dataclass(slots=True)
class _Asked:
    """Exchanges with the same request that were answered in full."""

    first: Digest
    last: Digest
    times: int = 1


@dataclass(slots=True)
class Continuations:
    """What is known while the requests go by."""

    _replies: dict[str, deque[Digest]] = field(default_factory=dict)
    """Replies by the hash of their request's messages."""
    _named: dict[str, Digest] = field(default_factory=dict)
    """Replies by what the provider calls them."""
    _settled: set[int] = field(default_factory=set)
    """The identities of replies that a request has repeated, rightly or wrongly."""
    _lost: dict[tuple[str, ...], set[str]] = field(default_factory=dict)
    """What was lost where a text was changed, by tape, system messages and way."""
    _unkept: dict[int, int] = field(default_factory=dict)
    """By the identity of a request, how many answers its history goes on without."""
    _before: dict[int, Digest] = field(default_factory=dict)
    """By the identity of a request without a system prompt, the reply that it goes on from, where
    that one's request had such a prompt."""
    _followed: dict[int, Digest] = field(default_factory=dict)
    """By the identity of such a request, the first one that goes on from the answer to it."""
    _answers: dict[tuple[str, str], Digest] = field(default_factory=dict)
    """Replies by the hashes of the question before them and of their text."""
    _asked: dict[tuple[object, ...], _Asked] = field(default_factory=dict)
    _again: set[str] = field(default_factory=set)
    """Hashes of the histories of requests that came more than once."""

    def of(self, digest: Digest, news: int) -> Continuation | None:
        """What `digest` goes on from; from the message `news` on, its history is new."""
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
        """The earlier requests that are the same as that of `digest`, if there are any."""
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
            now = before or _Asked(first=digest, last=digest, times=0)
            self._asked[key] = replace(now, last=digest, times=now.times + 1)
        return found

    def shortened(self, digest: Digest, news: int) -> Digest | None:
        """The latest reply that a history without its first messages repeats with its question.

        Of histories that begin as an earlier one did, `of` tells more.
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

    def enter(self, digest: Digest) -> None:
        """From now on, `digest` is a reply that requests may go on from."""
        if digest.history and len(digest.content) >= _ANSWER // 2:
            self._answers[digest.history[-1].text, digest.text] = digest
        if digest.history:
            kept = self._replies.setdefault(digest.prefixes[-1], deque(maxlen=_MOST))
            kept.append(digest)
        if digest.reply_id is not None:
            self._named[digest.reply_id] = digest

    def settled(self, turns: Sequence[Turn]) -> Iterator[Turn]:
        """The turns, each with what only later requests could tell of it."""
        beside = self._beside(turns)
        for turn in turns:
            later, found = self._followed.get(id(turn.digest)), turn.continues
            if later is None or found is None or id(turn.digest) in beside:
                yield turn
                continue
            back = later.system == self._before[id(turn.digest)].system
            yield replace(turn, continues=replace(found, followed=later.exchange, restored=back))

    def _beside(self, turns: Sequence[Turn]) -> set[int]:
        """The identities of requests without a system prompt that stand beside their conversation.

        Another request goes on from the same answer with the prompt, and knows nothing of them.
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
        reply = self._named.get(digest.previous or "")
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
        same_system = [each for each in near if each.system == digest.system]
        replies = same_system or near
        places = range(news, len(history))
        end = next((at for at in places if history[at].role not in ASSISTANT), len(history))
        if not replies or end == len(history):
            return None  # what ends with the assistant's words is to be gone on with, no history
        found = Continuation(replies=tuple(replies), start=news, end=end)
        if end > news:
            return self._compared(found, history[news:end])
        return replace(found, unkept=self._count_unkept(found, digest))

    def _compared(self, found: Continuation, messages: Sequence[Heard]) -> Continuation:
        """`found` with what `messages` make of the text of a reply."""
        texts = [each.content for each in messages if each.text]
        if len(texts) > 1:
            texts.append("".join(texts))
        hashes = {each.text for each in messages if each.text}
        exact = [each for each in found.replies if each.text in hashes]
        named = exact or found.replies
        open_ones = [each for each in named if id(each) not in self._settled]
        if len(named) == 1:
            self._settled.update(map(id, named))
        if len(exact) == 1 and len(exact[0].content.strip()) >= _ANSWER:
            copies = sum(each.text == exact[0].text for each in messages)
            if copies > 1 and open_ones:
                change = repeated_message(copies)
                return replace(found, replies=tuple(exact), change=change, changed=exact[0])
        called = [each for each in named if _calls_of(each, messages)]
        if exact or called or not texts:
            return replace(found, replies=tuple(called or named))
        changes = [
            (reply, change)
            for reply in open_ones
            for change in [_change(reply, texts)]
            if change is not None
        ]
        if len(changes) != 1 or any(_is_text(each, texts) for each in found.replies):
            return found
        ((reply, change),) = changes
        key = (reply.tape, reply.system, change.damage, change.where)
        lost = self._lost.setdefault(key, set())
        lost.add(change.lost.strip())
        self._settled.add(id(reply))
        return replace(found, change=change, changed=reply, times=len(lost))

    def _count_unkept(self, found: Continuation, digest: Digest) -> int:
        history, start = digest.history, found.start
        before = max((self._unkept.get(id(each), 0) for each in found.replies), default=0)
        kept = [each for each in found.replies if _is_answer(each) and each.system == digest.system]
        texts = [each.content.strip() for each in kept]
        fresh = [each for each in history[start:] if _is_users(each)]
        if not texts or len(fresh) < len(history) - start:
            return 0
        if any(text in message.content for text in texts for message in fresh):
            return 0
        if not before and not all(map(_is_users, history[:start])):
            return 0
        self._unkept[id(digest)] = before + 1
        return before + 1


def _had_ended(reply: Digest, later: Digest) -> bool:
    """Whether the reply had ended when the request came, as far as is known."""
    if reply.tape != later.tape or reply.end_ns is None or later.t_ns is None:
        return True
    return reply.end_ns <= later.t_ns


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
    found = (text_change(reply.content, reply.content_ends, each, reply.torn) for each in texts)
    return next((each for each in found if each is not None), None)


def _calls_of(reply: Digest, messages: Sequence[Heard]) -> bool:
    """Whether one of the messages has a call of the reply, by its id and name."""
    said = {(each, call.name) for call in reply.calls for each in (call.ids or (None,))}
    return any((call.id, call.name) in said for each in messages for call in each.calls)


def _is_text(reply: Digest, texts: Sequence[str]) -> bool:
    """Whether one of the texts, or all of them joined, is that of the reply."""
    bare = reply.content.strip()
    return any(each.strip() == bare for each in texts)


def _is_users(message: Heard) -> bool:
    return message.role == _USER and not is_result(message)


def _is_answer(reply: Digest) -> bool:
    """Whether the reply is text that a conversation could go on about."""
    plain = reply.content.strip()
    whole = reply.whole and not reply.lossy and not reply.calls
    return whole and len(plain) >= _ANSWER and plain[0] not in "{["
