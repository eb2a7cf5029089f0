"""The reduced form of an exchange, kept to compare it with later requests of the conversation."""

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from deltatape.model.exchange import Tap
from deltatape.model.finding import Confidence
from deltatape.model.reply import CallKind, CallStatus, Thought
from deltatape.model.request_summary import RepeatedCall
from deltatape.model.stream import Span
from deltatape.model.tape_summary import TapeSummary
from deltatape.model.tool_server import ServedCall

_FREE = frozenset({"auto", "none", "validated"})
_ANY = frozenset({"required", "any"})
ASSISTANT = frozenset({"assistant", "model"})
"""The roles of messages that repeat a reply."""
MAX_CONTENT = 16_384
"""How much of a message's text a digest keeps, in characters."""
_WRONG = frozenset({400, 409, 413, 422})
"""Statuses by which providers reject the content of a request."""


class ParserErrorKind(enum.StrEnum):
    """What a parser's error message reveals about the text that it was given."""

    NOTHING = "nothing"
    """It was empty."""
    CUT = "cut"
    """It ended too early, or was empty."""
    GLUED = "glued"
    """Something follows a complete value."""
    INVALID = "spoilt"
    """It is not JSON."""
    REFUSED = "refused"
    """It is JSON, but the tool does not accept it."""
    DROPPED = "dropped"
    """A call without id, name or arguments was left out."""


class ParserError(NamedTuple):
    """An error message of a JSON parser, classified."""

    parser: str
    """The parser whose wording it is: `V8's JSON.parse`."""
    means: ParserErrorKind
    text: str
    """The message from its start, escaped, at most 200 characters."""
    about_call: bool
    """Whether the text around it speaks of a tool call or its arguments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveredCall:
    """A call as it was delivered, reduced from a `ToolCall` to what later requests may repeat.

    Digests of whole tapes are held at once, so it has no events and places.
    """

    index: int
    id: str | None
    ids: tuple[str, ...]
    name: str | None
    kind: CallKind
    arguments: str
    fragments: tuple[str, ...]
    status: CallStatus
    span: Span | None = None
    """From its first to its last byte in the response body; other calls may lie in between."""
    line: int | None = None
    """The tape line of the record that completes it."""
    torn: tuple[int, ...] = ()
    """The places of the fragments in which a network read ended within a character's bytes."""
    t_ns: int | None = None
    """When its last byte had been passed to the client; None without times."""
    after_finish: bool = False
    """Whether it began after the finish reason: clients that stop there never see it."""

    @property
    def answers_to(self) -> tuple[str, ...]:
        """What a result may refer to: the ids; in dialects without ids the name."""
        return self.ids or ((self.name,) if self.name else ())


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryMessage:
    """A message of a request's history. `text` is a hash, "" for whitespace or nothing."""

    role: str
    text: str
    calls: tuple[RepeatedCall, ...]
    call_id: str | None
    error: ParserError | None = None
    """A JSON parser's error in it. In a user's message it counts only if there is no other text:
    that is how applications answer text calls."""
    owns: tuple[str, ...] = ()
    """See `Message.owns`."""
    content: str = ""
    """Its text, at most `MAX_CONTENT` characters of it."""
    thoughts: tuple[Thought, ...] = ()
    """See `Message.thoughts`."""
    digest: str = ""
    """See `Message.digest`."""

    @property
    def failure(self) -> str:
        return self.error.text if self.error else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    """A reduced exchange: what its request repeats and what its reply contains.

    Invariant: `prefixes` has one entry more than `history`; `prefixes[n]` identifies the first `n`
    messages. System messages are in neither: `system` identifies all of them.
    """

    tape: str
    exchange: int
    id: str
    line: int | None
    """The tape line of the request."""
    t_ns: int | None
    """When the request came; None without times."""
    end_ns: int | None
    """When the response ended; None if unknown."""
    end_line: int | None
    """The tape line of that ending."""
    watch: TapeSummary | None
    """How long the tape was watched; None: unknown."""
    tap: Tap
    """The side of the application on which it was recorded."""
    path: str
    """Where the request went, without its query."""
    stream: bool = False
    """Whether the request asks for a stream."""
    left: bool = False
    """Whether the client closed the connection before the response had ended."""
    known: bool
    """Whether the request's history could be read; if not, it is unknown what it repeats."""
    dialect: str
    system: str
    history: tuple[HistoryMessage, ...]
    prefixes: tuple[str, ...]
    forced: bool
    """Whether the tool choice forces a single tool, so that the call is the structured answer."""
    whole: bool
    """Whether the reply is a single answer with a normal end, so that its calls should be run."""
    text: str
    """A hash of the reply's text, "" if there is none but whitespace."""
    calls: tuple[DeliveredCall, ...]
    results: tuple[str, ...]
    """The ids of the calls whose results the request brings after its last assistant message."""
    summary: str
    """One line: the dialect, the content of the reply, its ending."""
    tools: tuple[str, ...] = ()
    """The names of the tools that the request offers."""
    tools_elsewhere: bool = False
    """See `RequestSummary.tools_elsewhere`."""
    tool_choice: str | None = None
    """See `RequestSummary.tool_choice`."""
    status: int | None = None
    """The status of the HTTP response, None if there was none."""
    error: str | None = None
    """See `Reply.error`."""
    wait_s: float = 0
    """How long the client is to wait before it asks again, as `retry-after` says; 0: nothing is
    said."""
    small_talk: str = ""
    """The user's message that ends the history, if it is only small talk."""
    reply_id: str | None = None
    """The provider's id of the reply: later requests may name it as their `previous`."""
    previous: str | None = None
    """See `RequestSummary.previous`."""
    text_calls: tuple[DeliveredCall, ...] = ()
    """The calls that the model wrote into its text."""
    asked_at: tuple[tuple[RepeatedCall, Span], ...] = ()
    """The spans of the last calls' arguments in the request's body."""
    failed: bool = False
    """Whether there is no complete answer: an error, or a cut. False while it is in progress."""
    content: str = ""
    """The reply's text, at most `MAX_CONTENT` characters of it."""
    content_ends: tuple[int, ...] = ()
    """Where in `content` each delivered fragment ends, ascending. None if the text came at once, or
    in several parts: an application may keep one of these alone."""
    torn: tuple[int, ...] = ()
    """Fragments, by their place in `content_ends`, in which a network read ended in the middle of
    a character."""
    model: str | None = None
    """The model that the request asks for."""
    instructed: bool = False
    """Whether the request has system messages."""
    instructions: bool = False
    """See `RequestSummary.instructions`."""
    schemas: Mapping[str, Mapping[str, object]] = field(default_factory=dict, hash=False)
    """JSON Schemas of the tools that the reply calls, by name, as the request offers them."""
    called_ns: int | None = None
    """When the first event with a part of a call had arrived; None without times or calls."""
    said_ns: int | None = None
    """When the last event of the reply arrived; None without times or events."""
    limited: bool = False
    """Whether the reply ended by a limit or a filter."""
    lossy: bool = False
    """Whether the recorder lost some of the exchange, or did not see its end."""
    reported: bool = False
    """See `Exchange.reported`."""
    thoughts: tuple[Thought, ...] = ()
    """See `Choice.thoughts`; of a reply with calls, as below."""
    signed_text: str | None = None
    """See `Choice.signed_text`."""
    thinking: bool | None = None
    """See `RequestSummary.thinking`."""
    store: bool | None = None
    """See `RequestSummary.store`."""
    served: tuple[ServedCall, ...] = ()
    """The calls that a tool server was asked for, where the exchange is with one."""
    listed: tuple[str, ...] = ()
    """The tools that it lists there."""

    @property
    def must_call(self) -> bool:
        """Whether the request forces the model to call a tool."""
        return (self.tool_choice or "auto").lower() not in _FREE

    @property
    def forced_name(self) -> bool:
        """Whether the tool choice names one tool."""
        return (self.tool_choice or "auto").lower() not in _FREE | _ANY

    @property
    def refused(self) -> bool:
        """Whether the provider rejected the request as wrong."""
        return self.status in _WRONG


def digest_at(digests: Sequence[Digest], exchange: int, line: int | None) -> Digest:
    """Return the digest of an exchange; of several, the last that had begun on a line of the tape.

    Args:
        digests: the digests of one tape, in the order of their requests.
        exchange: its number; there is such an exchange.
        line: where something was found.
    """
    own = [each for each in digests if each.exchange == exchange]
    begun = (each for each in reversed(own) if line and each.line and each.line <= line)
    return next(begun, own[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class CallWithRepeat:
    """A delivered call and the app's repetition of it."""

    delivered: DeliveredCall
    repetition: RepeatedCall


@dataclass(frozen=True, slots=True, kw_only=True)
class CallWithServer:
    """A delivered call, and what tool servers on the tape were asked for it."""

    delivered: DeliveredCall
    tool: str
    """What its server calls the tool."""
    served: tuple[ServedCall, ...] = ()
    """In order; several where the application tries again."""
    unclear: bool = False
    """Whether the server was asked for calls of this tool that may be this one."""
    before: bool = False
    """Whether a server was asked for the same earlier, so that the answer may be remembered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallHabits:
    """How the application treats calls elsewhere on the same tape."""

    keeps_several: bool = False
    """Whether it repeats another reply with several calls, all of them."""
    keeps: frozenset[str] = frozenset()
    """The tools whose calls it repeats from other replies."""
    broken: str = ""
    """Evidence that it loses calls or parts of them, as a clause; "" if there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadBack:
    """A reply, and the later request that repeats it as the application understood it."""

    reply: Digest
    later: Digest
    confidence: Confidence
    """How certain it is that this message repeats this reply."""
    pairs: tuple[CallWithRepeat, ...]
    lost: tuple[DeliveredCall, ...]
    """Delivered calls that the request repeats nowhere."""
    extra: tuple[RepeatedCall, ...]
    """Calls in the repeated message that the wire did not deliver."""
    answered: tuple[str, ...]
    """The ids of the results that follow the message directly."""
    repeated_calls: tuple[RepeatedCall, ...] = ()
    """All calls of the repeated message, in its order."""
    start: int = 0
    """`later.history[start:end]` repeats the reply; empty where the provider keeps the history."""
    end: int = 0
    habits: CallHabits = CallHabits()
    printed: ParserError | None = None
    """A parser error that the application printed between the reply and the request, if it cannot
    be about another reply."""
    with_server: tuple[CallWithServer, ...] = ()
    """The calls of tools that a tool server on the tape has."""
    reported_lost: tuple[tuple[str, str], ...] = ()
    """Ids of calls that the application reported as lost, each with the printed line."""

    @property
    def following(self) -> tuple[HistoryMessage, ...]:
        """The history messages after the repeated reply."""
        return self.later.history[self.end :]

    @property
    def latest(self) -> bool:
        """Whether the request directly answers this reply: no assistant message follows it."""
        return all(each.role not in ASSISTANT for each in self.following)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unanswered:
    """A reply with calls that no later request of its conversation repeats or answers."""

    reply: Digest
    until_ns: int
    """Until when the reply is known to be unanswered."""
    alive_ns: int | None
    """When the application was last known to run, after the reply."""
    others: int
    """How many more such replies there are, if the application answers no calls on this tape."""
    answers_tools: bool = False
    """Whether the application answers calls of each of these tools elsewhere on the tape."""
    complaint: str = ""
    """The parser's error about these calls that it printed, although they are whole; "" without."""
    thrown: str = ""
    """The printed exception that ended the application afterwards; "" without one."""
