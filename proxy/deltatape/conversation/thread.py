"""A conversation as its histories tell it: what each new message adds to what was there before.

An agent sends all of its history again each time, so a thread takes each message once, from a
request that goes on where the last one ended. It keeps what later messages may be held against:
which calls there were, which have no result yet, and which calls came again since the user spoke.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from deltatape.model.asked import RepeatedCall
from deltatape.model.digest import ASSISTANT, Digest, Heard, SaidCall
from deltatape.model.turn import Delivered
from deltatape.wire.json_value import canonical

_RESULT = frozenset({"tool", "function"})
_USER = "user"
_REFERENCE = "item_reference"


def call_key(call: SaidCall | RepeatedCall) -> str:
    """The same for calls of the same tool with the same arguments, however these are spelled."""
    text = f"{call.name}\0{canonical(call.arguments) or call.arguments.strip()}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def is_result(message: Heard) -> bool:
    """Whether a message brings a tool's result; `call_id` is None where results name no call."""
    return message.call_id is not None or message.role in _RESULT


@dataclass(slots=True)
class Tally:
    """How often a call was made, and the exchange that delivered it first, if known."""

    times: int = 0
    first: int | None = None


@dataclass(slots=True)
class Thread:
    """The state of a conversation after the messages that it has taken."""

    owned: set[str] = field(default_factory=set)
    """Ids and names of all calls."""
    tallies: dict[str, Tally] = field(default_factory=dict)
    """Calls since the user last spoke, by `call_key`."""
    silent: int = 0
    """Replies in a row that called tools and said nothing, since the user last spoke."""
    last: Digest | None = None
    """The exchange whose request brought the last messages."""
    before: Digest | None = None
    """The one before that."""
    by_reference: bool = False
    """Whether the history names messages that it does not hold."""
    uses_tools: bool = False
    delivered: dict[str, Delivered] = field(default_factory=dict)
    """The calls of its replies on the wire, by their ids; of several with an id the latest."""
    twice: list[str] = field(default_factory=list)
    """Calls to which the messages taken last bring a result that has been there already."""
    _closed: set[str] = field(default_factory=set)
    """What results named that answered their last call."""
    _open: dict[str, list[tuple[int, RepeatedCall]]] = field(default_factory=dict)
    """Calls without a result, with their place, by what a result would name."""
    _block: int | None = None
    """Where the messages of the assistant begin that the history ends with."""
    _heard: tuple[bool, bool] = (False, False)
    """Whether these have calls, and text."""
    _counted: set[str] = field(default_factory=set)
    """Keys of the calls of the same reply that are in `tallies` already."""
    _told: bool = False
    """Whether the wire has said already what the next messages of the assistant amount to."""
    _results: bool = False
    """Whether results have come since the assistant's last message."""
    _user: bool = False
    """Whether the user has spoken since then."""

    def take(self, history: Sequence[Heard], start: int) -> None:
        """Take the messages of a history from `start` on; the thread has had those before."""
        self._told = False
        self.twice = []
        if start and self.last is not None and start < len(history):
            self._deliver(self.last)
        for place in range(start, len(history)):
            message = history[place]
            if message.role in ASSISTANT:
                self._say(message, place)
            else:
                self._answer(message)
        self._hear_user()

    def enter(self, digest: Digest) -> None:
        """The thread now ends with the history of `digest`."""
        if self.last is None or self.last.prefixes[-1] != digest.prefixes[-1]:
            self.before = self.last
        self.last = digest

    def unanswered(self) -> Iterator[RepeatedCall]:
        """The calls that the history goes on without, each once: it does not end with them."""
        for key, calls in list(self._open.items()):
            left = []
            for place, call in calls:
                if self._block is not None and place >= self._block:
                    left.append((place, call))
                else:
                    yield call
            if left:
                self._open[key] = left
            else:
                del self._open[key]

    def _deliver(self, reply: Digest) -> None:
        """What the wire said counts, whatever the application makes of it."""
        self._counted = set()
        for call in reply.calls:
            self.delivered.update((each, Delivered(call=call, reply=reply)) for each in call.ids)
        if reply.calls or reply.text:
            self._told = True
            self._speak(calls=bool(reply.calls), text=bool(reply.text))
        self._count(reply.calls, reply.exchange)

    def _say(self, message: Heard, place: int) -> None:
        if self._block is None:
            self._hear_user()
            self._block = place
            self._heard = (False, False)
        self.owned.update(message.owns)
        for call in message.calls:
            self.uses_tools = True
            self.owned.update(each for each in (call.id, call.name) if each)
            key = call.id or call.name or ""
            self._open.setdefault(key, []).append((place, call))
            self._closed.discard(key)
        calls, text = self._heard
        self._heard = (calls or bool(message.calls), text or bool(message.text))
        self._count(message.calls, None)

    def _answer(self, message: Heard) -> None:
        if self._block is not None and not self._told:
            self._speak(calls=self._heard[0], text=self._heard[1])
        self._block = None
        self._told = False
        self._counted = set()
        if is_result(message):
            self.uses_tools = self._results = True
            self._close(message.call_id)
        elif message.role == _USER:
            self._user = True
        elif message.role == _REFERENCE:
            self.by_reference = True

    def _close(self, call_id: str | None) -> None:
        """A result came; one that names no call may be any call's."""
        if call_id is None:
            self._open.clear()
            self._closed.clear()
            return
        if call_id in self._closed:
            self.twice.append(call_id)
            return
        calls = self._open.get(call_id)
        if calls is None:
            call_id = next((key for key, each in self._open.items() if _named(each, call_id)), "")
            calls = self._open.get(call_id)
        if calls is not None:
            left = [one for one in calls if one[1].id is None][1:]
            self._open[call_id] = left
            if not left:
                del self._open[call_id]
                self._closed.add(call_id)

    def _count(self, calls: Iterable[SaidCall | RepeatedCall], exchange: int | None) -> None:
        for call in calls:
            key = call_key(call)
            if key in self._counted:
                continue
            self._counted.add(key)
            tally = self.tallies.setdefault(key, Tally())
            tally.times += 1
            tally.first = tally.first if tally.times > 1 else exchange

    def _speak(self, *, calls: bool, text: bool) -> None:
        if text:
            self.silent = 0
        elif calls:
            self.silent += 1

    def _hear_user(self) -> None:
        """What the user says along with results is no new question: clients put notes there."""
        if self._user and not self._results:
            self.tallies.clear()
            self.silent = 0
        self._user = self._results = False


def _named(calls: Sequence[tuple[int, RepeatedCall]], name: str) -> bool:
    """Whether any of the calls is of the tool `name`: results may name that instead of an id."""
    return any(call.name == name for _, call in calls)
