"""A request and its reply within their conversation, in bounded form."""

import enum
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from deltatape.model.digest import (
    ASSISTANT,
    DeliveredCall,
    Digest,
    HistoryMessage,
    ParserError,
    ReadBack,
)
from deltatape.model.finding import Confidence, Excluded
from deltatape.model.request_summary import RepeatedCall


class DeliveredCallRef(NamedTuple):
    """A call and the reply that delivered it."""

    call: DeliveredCall
    reply: Digest


@dataclass(frozen=True, slots=True, kw_only=True)
class OrphanResult:
    """A tool result without an open call in the same request."""

    call_id: str
    delivered: DeliveredCallRef | None
    """The call, if a reply on the tape delivered it."""
    trimmed: bool
    """Whether it looks as if the call had been cut off in front: the history begins with the
    result, or an earlier request still had the call."""
    twice: bool = False
    """Whether the call is there, and has its result already."""
    same_conversation: bool = False
    """Whether the request continues exactly the history that the call was delivered to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingResult:
    """A call in a history that continues without the call's result."""

    call: RepeatedCall
    delivered: DeliveredCallRef | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatedIdenticalCall:
    """A call of the reply that the conversation already contains."""

    call: DeliveredCall
    times: int
    """How often since the user last spoke, this time included."""
    first: int | None
    """The exchange that delivered it first, if that is on the tape."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReusedId:
    """A call of the reply whose id is already used by a call in the request's history."""

    call: DeliveredCall
    earlier: DeliveredCallRef | None
    """The call that had it before, if a reply of the conversation delivered it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Complaint:
    """A parser's error message, and the calls that it may be about."""

    error: ParserError
    logged: bool
    """Whether the application printed it; else the request carries it."""
    t_ns: int | None
    """When it was printed."""
    about: tuple[DeliveredCallRef, ...]
    """The call that the message answers; of a printed one, all of the reply before it."""
    repeated: RepeatedCall | None
    """The request's repetition of that call, if it is known and differs."""
    sure: bool
    """Whether it can be about no other reply."""
    unread: str = ""
    """For a call without argument bytes, the evidence that the application could not parse them, as
    a clause; "" without evidence: a tool may have read an empty text elsewhere."""


class TextDamage(enum.StrEnum):
    """How a repeated text differs from the delivered one."""

    LOST = "lost"
    """Fragments are missing."""
    DOUBLED = "doubled"
    """Fragments, or all of it, are there twice."""
    ORDER = "order"
    """Fragments are in another order."""
    ENCODING = "encoding"
    """Bytes of characters were decoded wrongly, or apart from each other."""
    TRIMMED = "trimmed"
    """White space at the ends of fragments is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextChange:
    """How an application changed a reply's text, by the delivered fragments."""

    damage: TextDamage
    clause: str
    """The end of a sentence that begins with `the app repeats the text of #1`."""
    where: str
    """The fragments concerned: `first`, `last`, `all`. The same in two replies of one
    conversation is not a coincidence."""
    confidence: Confidence
    excluded: tuple[Excluded, ...]
    lost: str = ""
    """The fragments that are missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Continuation:
    """A request that continues from a reply: its history starts with the reply's own history."""

    replies: tuple[Digest, ...]
    """The replies to exactly these messages that had ended when the request came, preferably with
    the same system messages. Several after retries, or if several were sampled."""
    start: int
    """Where in the request's history the assistant's next messages begin."""
    end: int
    """Where these end; `start` if there are none."""
    stored: bool = False
    """Whether the provider keeps the history: then the request repeats nothing of it."""
    change: TextChange | None = None
    """How the text of the reply was repeated."""
    changed: Digest | None = None
    """The reply whose text that was."""
    times: int = 0
    """How many replies so far were changed in just this way, this one included; those that lost the
    same words count once: a word may be removed on purpose."""
    followed: int | None = None
    """The first later exchange that repeats the answer to this one and continues from it."""
    restored: bool = False
    """Whether that one has the system prompt that this one lacks, and the one before had."""
    unkept: int = 0
    """How many answers in a row the history lacks between user messages, this one included."""

    @property
    def reply(self) -> Digest:
        """The last of the replies."""
        return self.replies[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class SameRequest:
    """An earlier exchange with the same request, answered in full."""

    first: Digest
    """The first of them."""
    times: int
    """How many there are, this one included."""
    ended: bool
    """Whether the answer before this one had ended when this one was requested."""
    rerun: bool
    """Whether an earlier request of the same conversation came again, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MisplacedMessage:
    """A message that belongs to another conversation: a reply, or a call's result."""

    donor: Digest
    """The exchange whose reply it is, or whose call it answers."""
    own: Digest | None
    """The exchange whose reply belongs there, or whose call should be answered."""
    place: int
    """The position of the message in the request's history."""
    call: DeliveredCall | None = None
    """The call of `donor` that it answers; None: it is the reply itself."""
    exchanged: bool = False
    """Whether the other conversation has this one's reply in return."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SwappedResult:
    """A result attached to `call` that names the arguments of another call."""

    call: DeliveredCallRef
    about: DeliveredCallRef
    named: int = 0
    """How many earlier results of the tool name their own arguments, if all do; 0 otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """An exchange within its conversation.

    Reports are about messages that no earlier request carried: each request repeats all earlier
    messages.
    """

    digest: Digest
    before: Digest | None
    """The nearest earlier exchange whose history this one continues."""
    news: int
    """The position of the first message that no earlier request has."""
    read_backs: tuple[ReadBack, ...]
    """The earlier replies that this request repeats first."""
    orphans: tuple[OrphanResult, ...]
    missing: tuple[MissingResult, ...]
    again: tuple[RepeatedIdenticalCall, ...]
    silent_calls: int
    """How many replies in a row, including this one, called tools without any text."""
    offered: int | None
    """The exchange of the same conversation that offered tools last before this one."""
    lacks_tools: bool
    """Whether it is the first one since then without tools, but with calls or results."""
    forced_again: bool
    """Whether an earlier request of the conversation forced the model to loop, too."""
    attempts: tuple[Digest, ...]
    """The latest exchanges before this one with the same request, all failed."""
    complaints: tuple[Complaint, ...]
    foreign: tuple[MisplacedMessage, ...] = ()
    """New messages that belong to another conversation."""
    swapped: tuple[SwappedResult, ...] = ()
    """New results that are swapped."""
    continues: Continuation | None = None
    """The reply that the request continues, if it has new messages."""
    shortened: Digest | None = None
    """The reply that the history repeats with its question, but without earlier messages."""
    same: SameRequest | None = None
    reused: tuple[ReusedId, ...] = ()
    """The reply's calls with ids that the conversation already has, each id once."""

    @property
    def forced_to_loop(self) -> bool:
        """Whether the request brings tool results and forces another call.

        False if a tool that was never called may end the run, if a result reports an error of the
        call, or if the user has asked something new.
        """
        digest = self.digest
        if not (digest.must_call and digest.results and digest.calls and self.again):
            return False
        last = digest.history[-1]
        if last.role == "user" and last.call_id is None:
            return False
        if any(_COMPLAINS.search(each.content) for each in _results(digest)):
            return False
        called = {call.name for heard in digest.history for call in heard.calls}
        open_tools = (digest.tool_choice,) if digest.forced_name else digest.tools
        return not digest.tools_elsewhere and all(name in called for name in open_tools)


_COMPLAINS = re.compile(
    r"\b(?:error|invalid|validation|fail(?:ed|ure)?|missing|required|retry|try again|fix|correct"
    r"|wrong|not allowed|must be|expected|denied|rejected)\b",
    re.IGNORECASE,
)


def _results(digest: Digest) -> Sequence[HistoryMessage]:
    """Return the messages after the assistant's last one."""
    history = digest.history
    start = len(history)
    while start and history[start - 1].role not in ASSISTANT:
        start -= 1
    return history[start:]
