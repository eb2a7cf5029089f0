"""A request in terms that all dialects share."""

from collections.abc import Mapping
from dataclasses import dataclass

from deltatape.model.reply import Thought

_MAY_ANSWER = frozenset({"auto", "none", "validated"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """A tool offered to the model; `parameters` is its JSON Schema, None if it has none."""

    name: str
    parameters: Mapping[str, object] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatedCall:
    """A tool call in the request's history: an earlier reply as the application understood it."""

    id: str | None
    name: str | None
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message of the request's history.

    `digest` is a hash of the message as canonical JSON; `call_id` is set on tool results.
    """

    role: str
    text: str
    calls: tuple[RepeatedCall, ...]
    call_id: str | None
    digest: str
    owns: tuple[str, ...] = ()
    """Ids of calls that are not in `calls`, since the application did not define the tool; results
    may name them."""
    thoughts: tuple[Thought, ...] = ()
    """The signed thoughts, or their replacements."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerFormat:
    """A requirement that the answer is JSON."""

    schema: Mapping[str, object] | None
    """The JSON Schema that it is to fit, if there is one."""
    promised: bool
    """Whether the interface promises it, as strict modes do; else it is up to the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestSummary:
    """A parsed request. `known` is False if the body cannot be read."""

    known: bool
    model: str | None
    stream: bool
    tools: tuple[ToolSpec, ...]
    tool_choice: str | None
    """`auto`, `none`, `required`, or the name of the forced tool."""
    history: tuple[Message, ...]
    tools_elsewhere: bool = False
    """Whether the model was also offered tools that the request does not name: a toolset of the
    provider, a stored prompt."""
    previous: str | None = None
    """The id of the stored reply or conversation that the request goes on from, where the provider
    keeps the history: then `history` holds only what is new."""
    instructions: bool = False
    """Whether a system message of `history` stands beside the history: who goes on from a stored
    reply does not get it from the provider."""

    answer: AnswerFormat | None = None
    """None where the answer may be any text, or stop sequences may cut it."""
    thinking: bool | None = None
    """Whether the request turns thinking on or off; None where it does not say, or leaves it to
    the model."""
    store: bool | None = None
    """Whether it asks the provider to keep the reply; None where it does not say."""
    one_call: bool = False
    """Whether the request forbids several calls in one reply."""

    @property
    def must_call(self) -> bool:
        """Whether the tool choice forces a call."""
        return (self.tool_choice or "auto").lower() not in _MAY_ANSWER

    def tool(self, name: str | None) -> ToolSpec | None:
        """Return the offered tool called `name`, if any."""
        return next((tool for tool in self.tools if tool.name == name), None)


NOTHING_ASKED = RequestSummary(
    known=False, model=None, stream=False, tools=(), tool_choice=None, history=()
)
"""The summary of a request that was not recorded or cannot be read."""
