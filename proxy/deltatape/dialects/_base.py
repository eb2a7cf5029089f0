"""What a dialect is: how it claims an exchange, reads its request and rebuilds its reply.

A dialect is stateless; what a reply needs while it arrives lives in its `Reducer`. Both are pure
and raise on no input: whatever the wire got wrong becomes an `Observation`, a call's status or a
repair. What others than its reducer need to know of it are its `Traits`. A new dialect is one
module or package and its entry in `DIALECTS`; no dialect imports another one.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

from deltatape.dialects._delta_fast_path import DeltaFastPath
from deltatape.dialects._json import Frame
from deltatape.dialects._traits import Traits
from deltatape.model.reply import Reply
from deltatape.model.request_summary import RequestSummary
from deltatape.model.stream import Event, Format


@dataclass(frozen=True, slots=True, kw_only=True)
class Hints:
    """What a response shows of its dialect."""

    format: Format
    headers: str
    """The names of the response's header fields, in lower case, between line feeds; not of those
    whose value is masked."""
    first: tuple[Mapping[str, object], ...]
    """The JSON objects among the first events."""
    types: tuple[str, ...]
    """The types of the first events."""
    members: frozenset[str] = field(init=False)
    """Of all of `first`: who needs one that is not among them need not look into any."""
    kinds: frozenset[str] = field(init=False)
    """What they call their `type`, where that is a string."""

    def __post_init__(self) -> None:
        """Look once for all that ask: everybody does, of every exchange."""
        kinds = (one.get("type") for one in self.first)
        object.__setattr__(self, "members", frozenset().union(*self.first))
        object.__setattr__(self, "kinds", frozenset(k for k in kinds if isinstance(k, str)))


class Reducer(Protocol):
    """Rebuilds one reply from its events."""

    @property
    def alike(self) -> DeltaFastPath:
        """What it learns from events about those that follow. See `feed_all`."""

    def feed(self, event: Event, frame: Frame | None = None) -> None:
        """Takes the next event; an answer that is not streamed is one event, the JSON document.

        Args:
            event: the event.
            frame: the object with members that it carries, if somebody has read it already.
        """

    def finish(self, *, cut: bool) -> Reply:
        """The reply, judged. To be called once, after the last event.

        Args:
            cut: whether the transport is known to have ended early.
        """


def feed_all(
    reducer: Reducer, events: Iterable[Event], frames: Sequence[Frame | None] = ()
) -> None:
    """What feeding each of `events` to `reducer` does, in less time.

    Args:
        reducer: takes them.
        events: all of a body, each at the place that its number says.
        frames: what the first of them carry, as far as somebody has read it already.
    """
    feed, alike, waiting, known = reducer.feed, reducer.alike, iter(events), len(frames)
    event = next(waiting, None)
    while event is not None:
        number = event.number
        feed(event, frames[number] if number < known else None)
        event = alike.run(event, waiting) if alike.learned else next(waiting, None)


class Dialect(Protocol):
    """A provider's language on the wire."""

    name: ClassVar[str]
    traits: ClassVar[Traits]
    """What is true of it for those who write, change or judge its streams."""

    def claims(self, hints: Hints) -> bool:
        """Whether the response is of this dialect, and of no other."""

    def serves(self, path: str) -> bool:
        """Whether requests to `path`, without query, are answered in this dialect.

        Asked only where the response does not tell: an error, an empty body.
        """

    def read_request(self, body: bytes, path: str) -> RequestSummary:
        """What the request asks for; `NOTHING_ASKED` if it cannot be read.

        Args:
            body: its body.
            path: the path of its target, which names model and method for some providers.
        """

    def reducer(self, asked: RequestSummary) -> Reducer:
        """A reducer for the answer to `asked`."""
