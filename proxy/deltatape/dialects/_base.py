"""The interface of a dialect: detect a response, summarize its request, rebuild its reply.

A dialect is one provider's streaming API. It is stateless: the state of one reply is in its
`Reducer`. Both do no I/O and raise no exception for any input: a defect of the stream becomes an
`Observation`, a status of the tool call, or a repair.

`mutate` and `vary` write streams by them, `suspects` reads streams as clients do, `record` repeats
requests.

To add a dialect, write one module or package and add it to `DIALECTS`. No dialect imports another.
"""

import enum
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol, TypeAlias

from deltatape.dialects._delta_fast_path import DeltaFastPath
from deltatape.dialects._errors import openai_error
from deltatape.dialects._json import Frame
from deltatape.dialects._reply import DialectPolicy
from deltatape.model.exchange import Headers
from deltatape.model.reply import Reply
from deltatape.model.request_summary import RequestSummary
from deltatape.model.stream import Event, Format

ErrorDocument: TypeAlias = Callable[[int, str], Mapping[str, object]]
"""Makes the body of an answer from the status of an error and its message."""
ErrorEvent: TypeAlias = Callable[[int, str, Format], tuple[str, Mapping[str, object]]]
"""Makes the name ("" for none) and the data of an event from the status of an error, its message,
and the format of the stream that it breaks off."""


class EventShape(enum.Enum):
    """The form of a dialect's events; one implementation per form can read and change them."""

    CHAT = "chat"
    """Deltas of choices, calls as entries of `tool_calls`."""
    ITEMS = "items"
    """Output items that are added, filled and done."""
    MESSAGES = "messages"
    """Content blocks that start, grow and stop, each event with a type."""
    CONVERSE = "converse"
    """Content blocks whose events are named by the framing."""
    COHERE = "cohere"
    """Calls that start, grow and end beside text."""
    CANDIDATES = "candidates"
    """Whole responses with a part of the content each, calls in one piece."""
    LINES = "lines"
    """A message per line, calls in one piece."""
    PARTS = "parts"
    """Parts of a page's message, each with an id."""
    APP = "app"
    """An application's own events."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Errors:
    """How a dialect writes errors."""

    document: ErrorDocument = openai_error
    """An error instead of an answer."""
    event: ErrorEvent | None = None
    """An error in the middle of an answer; None: the document in an event without a name."""
    headers: Callable[[int], Headers] | None = None
    """Additional header fields of an answer with an error status."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """Facts about a dialect besides how it is read. The defaults fit an unknown dialect."""

    provider: str = ""
    """The provider in `providers.PROVIDERS` whose key a request needs, if the host tells none."""
    shape: EventShape | None = None
    """None if only its reducer knows its events."""
    formats: frozenset[Format] = frozenset({Format.SSE, Format.JSON})
    """How its answers are framed."""
    policy: DialectPolicy = field(default_factory=DialectPolicy)
    """The guarantees of the API about calls."""
    shared_paths: tuple[str, ...] = ()
    """Ends of paths that it serves and that applications also use for their own endpoints."""
    errors: Errors = field(default_factory=Errors)

    # Parts of a stream.
    delta_keys: frozenset[str] = frozenset()
    """Members whose value is a piece of a text or of arguments, of any length."""
    closing_keys: frozenset[str] = frozenset()
    """Members beside a piece that are about the whole answer, such as a finish reason."""
    running_keys: frozenset[str] = frozenset()
    """Objects beside a piece that do not belong to it, such as usage so far."""
    whole_types: tuple[str, ...] = ()
    """Suffixes of the types of events that repeat earlier pieces."""
    ping: tuple[str, str] | None = None
    """Type and data of an event without content that may come at any time."""
    named_events: bool = False
    """Whether clients tell the events by the framing's name of them, not by their data alone."""
    late_usage: bool = False
    """Whether the usage may come in an event of its own, without choices, after the finish reason,
    if the request wants it."""
    strict: bool = False
    """Whether its clients refuse members that they do not know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hints:
    """The parts of a response by which dialects are detected."""

    format: Format
    headers: str
    """The names of the response's header fields, in lower case, each between line feeds. Fields
    with a masked value are left out."""
    first: tuple[Mapping[str, object], ...]
    """The JSON objects among the first events."""
    types: tuple[str, ...]
    """The types of the first events."""
    members: frozenset[str] = field(init=False)
    """The keys of all objects in `first`: a quick test before looking into each object."""
    kinds: frozenset[str] = field(init=False)
    """The values of `type` of the objects in `first`, where they are strings."""

    def __post_init__(self) -> None:
        """Compute both sets once: every dialect reads them, for every exchange."""
        kinds = (one.get("type") for one in self.first)
        object.__setattr__(self, "members", frozenset().union(*self.first))
        object.__setattr__(self, "kinds", frozenset(k for k in kinds if isinstance(k, str)))


class Reducer(Protocol):
    """Rebuild one reply from its events: `feed` each event, then `finish` once."""

    @property
    def fast_path(self) -> DeltaFastPath:
        """The fast path for runs of similar deltas, used by `feed_all`."""

    def feed(self, event: Event, frame: Frame | None = None) -> None:
        """Add the next event. A response that is not streamed is one event: the JSON document.

        Args:
            event: the event.
            frame: the JSON object in its data, if it is already parsed and not empty.
        """

    def finish(self, *, cut: bool) -> Reply:
        """Return the reply with the status of each tool call. Call it once, after the last event.

        Args:
            cut: whether the transport is known to have ended early.
        """


def feed_all(
    reducer: Reducer, events: Iterable[Event], frames: Sequence[Frame | None] = ()
) -> None:
    """Feed all `events` to `reducer`: the same result as `feed` for each, but faster.

    Args:
        reducer: the reducer.
        events: all events of a body; each event's number is its position.
        frames: the parsed JSON objects of the first events, where they are already parsed.
    """
    feed, fast_path, waiting, known = reducer.feed, reducer.fast_path, iter(events), len(frames)
    event = next(waiting, None)
    while event is not None:
        number = event.number
        feed(event, frames[number] if number < known else None)
        event = fast_path.run(event, waiting) if fast_path.learned else next(waiting, None)


class Dialect(Protocol):
    """One provider's streaming API: its requests, events and replies."""

    name: ClassVar[str]
    traits: ClassVar[Traits]
    """A description for code that writes, changes or judges streams of this dialect."""

    def claims(self, hints: Hints) -> bool:
        """Return whether the response is of this dialect, and of no other."""

    def serves(self, path: str) -> bool:
        """Return whether this dialect serves requests to `path` (without the query).

        Used only if no dialect claims the response: an error, an empty body.
        """

    def read_request(self, body: bytes, path: str) -> RequestSummary:
        """Return model, tools and history of a request; `NOTHING_ASKED` if it is not readable.

        Args:
            body: the body of the request.
            path: the path of its target; with some providers it names model and method.
        """

    def reducer(self, request: RequestSummary) -> Reducer:
        """Return a new reducer for the reply to `request`."""
