"""Events of no particular wire format, their replies, and streams with wrong values."""

import json
from collections.abc import Iterator, Mapping, Sequence

from deltatape.dialects import Dialect
from deltatape.model.reply import Reply
from deltatape.model.request_summary import NOTHING_ASKED, RequestSummary, ToolSpec
from deltatape.model.stream import Event

WRONG: tuple[object, ...] = (
    None,
    True,
    7,
    -1.5,
    "",
    "x",
    [],
    {},
    [1],
    [{}],
    {"a": 1},
    [[]],
    "\ud800",
)
"""A value of every type."""


def event_of(
    data: str = "", kind: str = "message", number: int = 0, *, exception: bool = False
) -> Event:
    """An event whose bytes, time and line all follow from its number."""
    return Event(
        number=number,
        type=kind,
        data=data,
        id="",
        retry=None,
        start=number,
        end=number + 1,
        t_ns=number,
        line=number + 1,
        exception=exception,
    )


def events(
    *frames: object, types: Sequence[str] = (), exceptions: Sequence[int] = ()
) -> list[Event]:
    """Events that carry `frames`: objects, or texts that are sent as they are.

    Args:
        frames: what they carry.
        types: their types; "message" if not given.
        exceptions: the numbers of those that the framing calls errors.
    """
    return [
        event_of(
            frame if isinstance(frame, str) else json.dumps(frame, ensure_ascii=True),
            types[number] if types else "message",
            number,
            exception=number in exceptions,
        )
        for number, frame in enumerate(frames)
    ]


def reduced(
    dialect: Dialect,
    fed: Sequence[Event],
    asked: RequestSummary = NOTHING_ASKED,
    *,
    cut: bool = False,
) -> Reply:
    """The reply of a dialect to `fed`."""
    reducer = dialect.reducer(asked)
    for event in fed:
        reducer.feed(event)
    return reducer.finish(cut=cut)


def offering(name: str, *required: str) -> RequestSummary:
    """A request that offers one tool, with parameters that it requires."""
    tool = ToolSpec(name=name, parameters={"type": "object", "required": list(required)})
    return RequestSummary(
        known=True, model=None, stream=True, tools=(tool,), tool_choice=None, history=()
    )


def codes(reply: Reply) -> list[str]:
    """The codes of the observations, in order."""
    return [seen.code for seen in reply.observations]


def details(reply: Reply, code: str) -> list[str]:
    """The details of the observations of `code`."""
    return [seen.detail for seen in reply.observations if seen.code == code]


def spoilt(frames: Sequence[Mapping[str, object]]) -> Iterator[list[object]]:
    """`frames` with every value of every type in place of every value, one at a time."""
    for number, frame in enumerate(frames):
        for other in _spoilt(frame):
            yield [*frames[:number], other, *frames[number + 1 :]]


def _spoilt(value: object) -> Iterator[object]:
    yield from WRONG
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield {name: one for name, one in value.items() if name != key}
            for other in _spoilt(inner):
                yield {**value, key: other}
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            for other in _spoilt(inner):
                yield [*value[:place], other, *value[place + 1 :]]
