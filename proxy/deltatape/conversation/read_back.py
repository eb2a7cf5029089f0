"""Reading back: linking replies to the requests that repeat them, and comparing.

Most interfaces are stateless: a request repeats the conversation so far, the last reply included,
as the application understood it. A reply is linked to a later request whose history is that of the
reply's own request, message by message, followed by one assistant message (or several in a row).
Where histories are trimmed or edited, a call id that no other reply used links, too.

Accusing wrongly is worse than saying nothing. Hence:
- a message is judged once, in the first request that carries it, and a reply once: applications
  that shorten an old history later on are not accused;
- of several replies to the same history (retries, samples, regenerated answers, conversations
  that begin alike) one that fits exactly wins, then one whose ids appear; else nobody
  is accused;
- replies that broke off are never held against the application, nor is a request that ends with the
  message itself: that is a prefill, not a history.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from deltatape.conversation.pairing import Pairing, pair_calls
from deltatape.model.asked import RepeatedCall
from deltatape.model.digest import Digest, Heard, ReadBack
from deltatape.model.exchange import Tap
from deltatape.model.finding import Confidence
from deltatape.rules.repeated import is_derived, same_name

ASSISTANT = frozenset({"assistant", "model"})


def goes_on_without(reply: Digest, later: Iterable[Digest]) -> Digest | None:
    """The first of the `later` requests that goes on from the reply's history, but without it.

    That is no proof of anything: applications drop an answer when the user interrupts them.
    """
    place = len(reply.history)
    for digest in later:
        known = len(digest.history) > place and digest.prefixes[place] == reply.prefixes[-1]
        if place and known and digest.history[place].role not in ASSISTANT:
            return digest
    return None


def read_backs(digests: Iterable[Digest]) -> tuple[ReadBack, ...]:
    """Every reply that a later request repeats, rightly or wrongly, in the order of requests.

    What was taken in front of the application's own endpoint is no conversation with a model.
    """
    ledger = _Ledger()
    found: list[ReadBack] = []
    for digest in (each for each in digests if each.tap is Tap.PROVIDER):
        found += _in_request(ledger, digest)
        ledger.enter(digest)
    return tuple(found)


@dataclass(slots=True)
class _Ledger:
    """What is known while the requests go by."""

    by_history: dict[str, list[Digest]] = field(default_factory=dict)
    """Replies by the prefix hash of their request."""
    by_id: dict[str, list[Digest]] = field(default_factory=dict)
    """Replies by the ids of their calls."""
    judged: set[str] = field(default_factory=set)
    """Prefix hashes up to and including a message that has been judged."""
    settled: set[int] = field(default_factory=set)
    """Identities of the digests whose reply has been read back."""

    def enter(self, digest: Digest) -> None:
        if digest.history:
            self.by_history.setdefault(digest.prefixes[-1], []).append(digest)
        for call in digest.calls:
            for each in call.ids:
                self.by_id.setdefault(each, []).append(digest)

    def is_open(self, digest: Digest) -> bool:
        return id(digest) not in self.settled


@dataclass(frozen=True, slots=True, kw_only=True)
class _Block:
    """Assistant messages in a row, `later.history[start:end]`, and what follows them."""

    later: Digest
    start: int
    end: int

    @property
    def messages(self) -> Sequence[Heard]:
        return self.later.history[self.start : self.end]

    @property
    def calls(self) -> tuple[RepeatedCall, ...]:
        return tuple(call for message in self.messages for call in message.calls)

    @property
    def texts(self) -> frozenset[str]:
        return frozenset(message.text for message in self.messages if message.text)

    @property
    def further(self) -> tuple[RepeatedCall, ...]:
        rest = self.later.history[self.end :]
        return tuple(call for message in rest for call in message.calls)

    @property
    def answered(self) -> tuple[str, ...]:
        """The ids answered between this block and the next assistant message."""
        found = []
        for message in self.later.history[self.end :]:
            if message.role in ASSISTANT:
                break
            if message.call_id:
                found.append(message.call_id)
        return tuple(found)

    def ids(self) -> frozenset[str]:
        return frozenset(call.id for call in self.calls if call.id) | frozenset(self.answered)


def _blocks(digest: Digest) -> Iterator[_Block]:
    """The runs of assistant messages in a request's history; not one that ends the request."""
    start = None
    for place, message in enumerate(digest.history):
        if message.role in ASSISTANT:
            start = place if start is None else start
        elif start is not None:
            yield _Block(later=digest, start=start, end=place)
            start = None


def _in_request(ledger: _Ledger, digest: Digest) -> Iterator[ReadBack]:
    for block in _blocks(digest):
        key = digest.prefixes[block.end]
        if key in ledger.judged:
            continue
        ledger.judged.add(key)
        read_back = _judge(ledger, block)
        if read_back:
            ledger.settled.add(id(read_back.reply))
            yield read_back


def _judge(ledger: _Ledger, block: _Block) -> ReadBack | None:
    same_history = ledger.by_history.get(block.later.prefixes[block.start], [])
    same_system = [each for each in same_history if each.system == block.later.system]
    candidates = [each for each in same_system or same_history if _could_be(each, block)]
    for reply in candidates:
        pairing = _pair(reply, block)
        if pairing.identical and (reply.calls or reply.text in block.texts or not reply.text):
            return _read_back(reply, block, pairing, Confidence.PROVEN)
    named = _named(ledger, block, candidates)
    if named:
        return _read_back(named, block, _pair(named, block), _of_named(named, block, candidates))
    left = [each for each in candidates if ledger.is_open(each)]
    if len(left) != 1:
        return None
    pairing = _pair(left[0], block)
    confidence = _of_only(left[0], block, pairing)
    if confidence is Confidence.PROVEN and not (same_system and len(candidates) == 1):
        confidence = Confidence.LIKELY
    return _read_back(left[0], block, pairing, confidence) if confidence else None


def _could_be(reply: Digest, block: _Block) -> bool:
    """Whether the reply says anything and had ended when the request came, as far as is known."""
    if not (reply.whole or reply.calls or reply.text):
        return False
    later = block.later
    if reply.tape != later.tape or reply.end_ns is None or later.t_ns is None:
        return True
    return reply.end_ns <= later.t_ns or bool(_ids(reply) & block.ids())


def _pair(reply: Digest, block: _Block) -> Pairing:
    return pair_calls(reply.calls, block.calls, block.further)


def _named(ledger: _Ledger, block: _Block, candidates: Sequence[Digest]) -> Digest | None:
    """The one reply, not read back yet, whose call ids the message or its results repeat."""
    ids = block.ids()
    near = [each for each in candidates if _ids(each) & ids]
    if len(near) == 1:
        return near[0] if ledger.is_open(near[0]) else None
    owners = [ledger.by_id.get(each, []) for each in {call.id for call in block.calls if call.id}]
    if near or candidates or not owners or any(len(replies) != 1 for replies in owners):
        return None
    first = owners[0][0]
    same = all(replies[0] is first for replies in owners)
    return first if same and ledger.is_open(first) else None


def _ids(reply: Digest) -> frozenset[str]:
    return frozenset(each for call in reply.calls for each in call.answers_to)


def _of_named(reply: Digest, block: _Block, candidates: Sequence[Digest]) -> Confidence:
    """Ids name the reply; the same history, or an answered call, proves that it is repeated."""
    near = any(each is reply for each in candidates)
    proven = near or bool(_ids(reply) & frozenset(block.answered))
    return Confidence.PROVEN if proven else Confidence.LIKELY


def _of_only(reply: Digest, block: _Block, pairing: Pairing) -> Confidence | None:
    """How sure it is that a message without any of its ids repeats the only reply that is left.

    None: better say nothing.
    """
    if not reply.calls or (reply.forced and not block.calls):
        return None  # a forced call is an answer in the form of a call: it may be kept as a text
    if any(call.id for call in block.calls):
        if any(is_derived(pair.said, pair.heard) for pair in pairing.pairs):
            return Confidence.PROVEN
        named = pairing.pairs and all(same_name(pair.said, pair.heard) for pair in pairing.pairs)
        return Confidence.LIKELY if named and not pairing.extra else None
    if block.calls or block.texts <= {reply.text}:
        return Confidence.PROVEN
    return Confidence.POSSIBLE


def _read_back(reply: Digest, block: _Block, pairing: Pairing, confidence: Confidence) -> ReadBack:
    return ReadBack(
        reply=reply,
        later=block.later,
        confidence=confidence,
        pairs=pairing.pairs,
        lost=pairing.lost,
        extra=pairing.extra,
        answered=block.answered,
        heard=block.calls,
    )
