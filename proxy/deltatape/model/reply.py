"""The assistant message rebuilt from an exchange."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from deltatape.model.stream import Event, Place


class CallStatus(enum.StrEnum):
    """What a correct client can do with a rebuilt call."""

    COMPLETE = "complete"
    EMPTY_OK = "empty_ok"
    """No argument bytes, and the tool's schema requires none: run it with `{}`."""
    EMPTY_SUSPECT = "empty_suspect"
    """No argument bytes, and arguments are required or the schema is unknown."""
    TRUNCATED = "truncated"
    MALFORMED = "malformed"
    NOT_OBJECT = "not_object"
    DOUBLE_ENCODED = "double_encoded"
    EXTRA_DATA = "extra_data"
    NO_NAME = "no_name"
    ORPHAN = "orphan"
    """Fragments that belong to no call: no name, no id, nothing open to continue."""


class CallKind(enum.StrEnum):
    """What a call's payload is."""

    FUNCTION = "function"
    CUSTOM = "custom"
    """Free text in `arguments`, not JSON."""
    LEGACY = "legacy"
    """`function_call`, the predecessor of `tool_calls`."""
    SERVER = "server"
    """The provider runs it itself: web search, code execution."""
    BUILT_IN = "built-in"
    """The provider defines it and the application runs it: a shell, a computer, patches. It has no
    name on the wire but its type."""
    MCP = "mcp"
    """The provider runs it on an MCP server."""
    TEXT = "text"
    """Written by the model into its text."""


NOT_OURS = frozenset({CallKind.SERVER, CallKind.MCP, CallKind.BUILT_IN})
"""Calls of tools that the application did not define."""


class Channel(enum.StrEnum):
    """The kinds of text that a model produces."""

    TEXT = "text"
    """The text that is shown to the user."""
    REASONING = "reasoning"
    REFUSAL = "refusal"


@dataclass(frozen=True, slots=True, kw_only=True)
class Thought:
    """Signed reasoning, which a later request has to send back.

    A thinking block, a reasoning item, or the signature that replaces it next to a call.
    """

    signature: str
    """A signature of its text, or its encrypted content; "" if there is none."""
    text: str = ""
    """Its readable part, if a request repeats it."""
    id: str | None = None


class Fragment(NamedTuple):
    """A piece of a call's arguments and the event that carried it."""

    text: str
    carrier: Event

    @property
    def event(self) -> int:
        return self.carrier.number

    @property
    def place(self) -> Place:
        return self.carrier.place


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A tool call as a correct client should execute it.

    `arguments` is exact text, never normalised: `""` stays `""`, an object on the wire is its
    exact slice. `arguments_raw` is the plain concatenation of what the wire carried.
    """

    index: int
    """Place among the reply's calls, from 0."""
    wire_index: int | None
    id: str | None
    ids: tuple[str, ...]
    """Every different id that the wire gave this call, in order."""
    name: str | None
    kind: CallKind
    arguments: str
    arguments_raw: str
    status: CallStatus
    repairs: tuple[str, ...]
    """Finding codes of what had to be mended, without repeats, in order."""
    fragments: tuple[Fragment, ...]
    start: Place
    """The event that opened the call."""
    start_event: int


class TextFragment(NamedTuple):
    """A piece of text, never empty, and the event that carried it."""

    channel: Channel
    text: str
    carrier: Event

    @property
    def event(self) -> int:
        return self.carrier.number


@dataclass(frozen=True, slots=True, kw_only=True)
class TextCall:
    """A tool call that the model wrote into its text, which a server or client must parse."""

    family: str
    """The notation: `hermes`, `kimi-k2`."""
    channel: Channel
    closed: bool
    """Whether the closing tag arrived, or the end of the arguments."""
    start: int
    """Where its opening tag starts in the channel's text, in characters."""
    end: int
    call: ToolCall
    """`kind` is TEXT; `arguments_raw` and the fragments are the text with its tags."""
    junk: str = ""
    """Stray text between its complete JSON and its closing tag."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One answer of a response; there are several if the request has `n` > 1."""

    index: int
    text: str
    reasoning: str
    refusal: str
    tool_calls: tuple[ToolCall, ...]
    """The calls that the application must run and answer."""
    finish_reason_raw: str | None
    """The last one on the wire; None if there was none."""
    finish_detail: str | None = None
    """A detail of the provider: the reason why a response is `incomplete`."""
    finishes: tuple[tuple[int, str], ...] = ()
    """Every finish reason on the wire, after the number of its event."""
    server_calls: tuple[ToolCall, ...] = ()
    """Calls of tools that the application did not define; the provider runs them, unless they are
    BUILT_IN."""
    text_calls: tuple[TextCall, ...] = ()
    pieces: tuple[TextFragment, ...] = ()
    """The fragments of text, reasoning and refusal, in order."""
    media: bool = False
    """Whether the answer has other media than text: an image, audio."""
    thoughts: tuple[Thought, ...] = ()
    """The thoughts that a later request with these calls must repeat unchanged."""
    signed_text: str | None = None
    """The text that their signatures cover; None in dialects where they cover none."""
    finish_event: int | None = None
    """The event after which nothing of the answer should come: the first with a finish reason, or
    the last where the wire repeats them."""

    @property
    def every_call(self) -> tuple[ToolCall, ...]:
        """The application's calls, the provider's own, and those written into the text."""
        return (*self.tool_calls, *self.server_calls, *(one.call for one in self.text_calls))


class ToolResult(NamedTuple):
    """A tool result inside the stream: the application that streams ran the tool itself."""

    call_id: str | None
    name: str | None
    event: int
    place: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """A defect that a dialect noticed, under the code of the rule that reports it."""

    code: str
    detail: str
    """One sentence: what, with the value seen."""
    evidence: str
    event: int | None
    place: Place | None
    choice: int = 0
    call: int | None = None
    """Index among the choice's calls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The assistant message rebuilt from an exchange. Properties are about the first choice."""

    dialect: str
    choices: tuple[Choice, ...]
    """In the order of their index; at least one, which is empty if the stream has none."""
    usage: Mapping[str, object] | None
    model: str | None
    error: str | None
    """The message of an error frame or error answer."""
    terminated: bool
    """Whether the dialect's terminal signal arrived."""
    terminator: str
    """The name of that signal: `finish_reason and [DONE]`."""
    observations: tuple[Observation, ...]
    terminal_event: int | None = None
    """The event with that signal, if it is a single event."""
    tool_word: bool = False
    """Whether the dialect has a special finish reason for replies with calls: clients that wait for
    it stop if it is missing. Other dialects end such replies with any normal one."""
    from_app: bool = False
    """Whether an application wrote the stream for its page, not a provider."""
    results: tuple[ToolResult, ...] = ()
    """In wire order."""
    results_due: bool = False
    """Whether the result of each call must follow in the same stream."""
    repeated_text: str | None = None
    """The whole text, as the terminal event of such a stream repeats it."""
    id: str | None = None
    """The provider's id of this answer."""

    @property
    def text(self) -> str:
        """The visible text."""
        return self.choices[0].text

    @property
    def reasoning(self) -> str:
        """The reasoning text, where the provider shows it."""
        return self.choices[0].reasoning

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls, in the order in which they were opened."""
        return self.choices[0].tool_calls

    @property
    def server_calls(self) -> tuple[ToolCall, ...]:
        """The calls of tools that the application did not define."""
        return self.choices[0].server_calls

    @property
    def text_calls(self) -> tuple[TextCall, ...]:
        """The calls that the model wrote into its text."""
        return self.choices[0].text_calls

    @property
    def finish_reason_raw(self) -> str | None:
        """The provider's own finish reason."""
        return self.choices[0].finish_reason_raw
