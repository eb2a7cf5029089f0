"""What is kept of an exchange to compare it with later requests of the same conversation."""

from dataclasses import dataclass

from deltatape.model.asked import RepeatedCall
from deltatape.model.exchange import Tap
from deltatape.model.finding import Confidence
from deltatape.model.parser_error import ParserError
from deltatape.model.reply import CallKind, CallStatus
from deltatape.model.stream import Span
from deltatape.model.watch import Watch

_FREE = frozenset({"auto", "none", "validated"})
_WRONG = frozenset({400, 409, 413, 422})
"""Statuses with which providers refuse what is in a request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SaidCall:
    """A call as the wire delivered it, by the reference accumulator. See `ToolCall`."""

    index: int
    id: str | None
    ids: tuple[str, ...]
    name: str | None
    kind: CallKind
    arguments: str
    fragments: tuple[str, ...]
    status: CallStatus
    span: Span | None = None
    """From its first to its last byte in the response body; other calls may stand in between."""
    line: int | None = None
    """The tape line of the record that completes it."""

    @property
    def answers_to(self) -> tuple[str, ...]:
        """What its result names: its ids; in dialects without ids its name."""
        return self.ids or ((self.name,) if self.name else ())


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """A message of a request's history. `text` is a hash, "" if there is none but whitespace."""

    role: str
    text: str
    calls: tuple[RepeatedCall, ...]
    call_id: str | None
    error: ParserError | None = None
    """What a parser of the application says in it of JSON that it could not read. A user's message
    counts only where it is nothing else: so are calls in text answered."""
    owns: tuple[str, ...] = ()
    """See `Message.owns`."""

    @property
    def failure(self) -> str:
        """The text of `error`; "" if there is none."""
        return self.error.text if self.error else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    """One exchange, small: what its request repeats and what its reply says.

    Invariant: `prefixes` has one entry more than `history`; `prefixes[n]` stands for the first `n`
    messages. System messages are in neither: `system` stands for all of them.
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
    watch: Watch | None
    """How long the tape was watched; None: unknown."""
    tap: Tap
    """Which side of the application it was taken on."""
    path: str
    """Where the request went, without its query."""
    known: bool
    """Whether the request's history could be read: else nobody knows what it repeats."""
    dialect: str
    system: str
    history: tuple[Heard, ...]
    prefixes: tuple[str, ...]
    forced: bool
    """Whether the request leaves no choice but one tool: an answer in the form of a call."""
    whole: bool
    """Whether the reply is one answer that came to its regular end: its calls were to be run."""
    text: str
    """A hash of the reply's text, "" if there is none but whitespace."""
    calls: tuple[SaidCall, ...]
    results: tuple[str, ...]
    """The ids of the calls whose results the request brings after its last assistant message."""
    summary: str
    """One line: dialect, what the reply holds, how it ended."""
    tools: tuple[str, ...] = ()
    """The names of the tools that the request offers."""
    tools_elsewhere: bool = False
    """See `Asked.tools_elsewhere`."""
    tool_choice: str | None = None
    """See `Asked.tool_choice`."""
    status: int | None = None
    """Of the HTTP response, None if there was none."""
    error: str | None = None
    """See `Reply.error`."""
    small_talk: str = ""
    """The last message of the user, if it is nothing but small talk and the end of the history."""
    reply_id: str | None = None
    """What the provider calls the reply: later requests may name it as their `previous`."""
    previous: str | None = None
    """See `Asked.previous`."""
    text_calls: tuple[SaidCall, ...] = ()
    """The calls that the model wrote into its text."""
    asked_at: tuple[tuple[RepeatedCall, Span], ...] = ()
    """Where the arguments of the last calls in the history stand in the request's body."""
    failed: bool = False
    """Whether there is no answer: an error, or it broke off. False while it still comes."""

    @property
    def must_call(self) -> bool:
        """Whether the request leaves the model no choice but to call a tool."""
        return (self.tool_choice or "auto").lower() not in _FREE

    @property
    def refused(self) -> bool:
        """Whether the provider says that the request is wrong."""
        return self.status in _WRONG


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A delivered call and what the application made of it."""

    said: SaidCall
    heard: RepeatedCall


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadBack:
    """A reply, and the later request that repeats it as the application understood it."""

    reply: Digest
    later: Digest
    confidence: Confidence
    """How sure it is that this message repeats this reply."""
    pairs: tuple[Pair, ...]
    lost: tuple[SaidCall, ...]
    """Delivered calls that the request repeats nowhere."""
    extra: tuple[RepeatedCall, ...]
    """Calls in the repeated message that the wire did not deliver."""
    answered: tuple[str, ...]
    """The ids to which the request brings results, right after the message."""
    heard: tuple[RepeatedCall, ...] = ()
    """All calls of the repeated message, in its order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unanswered:
    """A reply with calls that no later request of its conversation repeats or answers."""

    reply: Digest
    until_ns: int
    """The last moment of which that is known."""
    alive_ns: int | None
    """The last moment after the reply at which the application is known to have lived."""
    alike: int
    """How many more there are on the tape, if the application answers no calls there at all."""
