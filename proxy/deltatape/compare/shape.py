"""The form of a stream without its content: which kinds of events, with which fields of which type.

Two answers to the same question have other words, but the same form as long as the provider speaks
as it did. What a model or an application filled in freely (arguments of calls, schemas of tools,
metadata) has no form that would be the provider's, so nothing below it counts.

Paths are from the root of an event's JSON, as in `match.json_path.parse_path`: an array's places
are one, `*`. Bounded: a hostile body costs at most `MOST_FIELDS` paths.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from deltatape.compare.volatile import is_deep
from deltatape.diagnose.rebuild import Analysis
from deltatape.model.stream import Event, Format
from deltatape.wire.json_value import parse

MOST_FIELDS = 2000
"""Of one stream; what comes beyond is not looked at."""

_FREE = frozenset(
    {
        "args",
        "arguments",
        "input",
        "json",
        "json_schema",
        "metadata",
        "parameters",
        "response_schema",
        "schema",
        "tools",
    }
)
_NAMES = ("type", "event_type", "object")
"""Keys whose value says what an event is, where its framing does not."""
_MESSAGE = "message"
_SHORT = 20
_NULL = "null"
PRESENT = "present"
"""What is said of something that has no type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeChange:
    """Something of the form that is new, gone, or another. An empty side: it is not there."""

    kind: str
    """Of the event."""
    path: str
    """Of the field; "": the event itself."""
    left: str
    right: str


Shape = Mapping[str, Mapping[str, frozenset[str]]]
"""By kind of event the types of each field."""


def shape_of(analysis: Analysis) -> Shape:
    """The form of the response of an exchange."""
    found: dict[str, dict[str, set[str]]] = {}
    left = MOST_FIELDS
    for event in analysis.stream.events:
        value = parse(event.data).value
        fields = found.setdefault(_kind(event, value, analysis.stream.format), {})
        if is_deep(value):
            continue
        for path, type_ in _fields("", value):
            if path not in fields:
                left -= 1
                if left < 0:
                    break
            fields.setdefault(path, set()).add(type_)
    return {
        kind: {path: frozenset(types) for path, types in fields.items()}
        for kind, fields in found.items()
    }


def shape_changes(left: Shape, right: Shape) -> tuple[ShapeChange, ...]:
    """How `right` differs: events first, then fields, each in the order in which they came.

    What is below something new or gone is not told again. `null` fits every type.
    """
    events = [
        ShapeChange(
            kind=kind,
            path="",
            left=PRESENT if kind in left else "",
            right=PRESENT if kind in right else "",
        )
        for kind in dict.fromkeys((*left, *right))
        if kind not in left or kind not in right
    ]
    fields = [
        change
        for kind in left
        if kind in right
        for change in _field_changes(kind, left[kind], right[kind])
    ]
    return (*events, *fields)


def _kind(event: Event, value: object, format_: Format) -> str:
    if event.type != _MESSAGE:
        return event.type
    if isinstance(value, dict):
        said = next((value[name] for name in _NAMES if isinstance(value.get(name), str)), None)
        return str(said) if said else "document" if format_ is Format.JSON else "event"
    return event.data if len(event.data) <= _SHORT else "text"


def _fields(path: str, value: object) -> Iterator[tuple[str, str]]:
    """Each path below `value` with its type, from the outer to the inner."""
    if isinstance(value, dict):
        front = f"{path}." if path else ""
        for key, each in value.items():
            yield f"{front}{key}", _type(each)
            if key not in _FREE:
                yield from _fields(f"{front}{key}", each)
    elif isinstance(value, list):
        for each in value:
            yield f"{path}.*", _type(each)
            yield from _fields(f"{path}.*", each)


def _type(value: object) -> str:
    match value:
        case None:
            return _NULL
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case dict():
            return "object"
        case list():
            return "array"
        case _:
            return "string"


def _field_changes(
    kind: str, left: Mapping[str, frozenset[str]], right: Mapping[str, frozenset[str]]
) -> Iterator[ShapeChange]:
    told: set[str] = set()
    for path in dict.fromkeys((*left, *right)):
        one, other = left.get(path, frozenset()), right.get(path, frozenset())
        if _alike(one, other):
            continue
        parent = path.rpartition(".")[0]
        if parent in told:
            told.add(path)
            continue
        if not one or not other:
            told.add(path)
        yield ShapeChange(kind=kind, path=path, left=_types(one), right=_types(other))


def _alike(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether one side has seen nothing that the other's types exclude."""
    if not one or not other:
        return False
    real, others = one - {_NULL}, other - {_NULL}
    return not real or not others or not real.isdisjoint(others)


def _types(types: frozenset[str]) -> str:
    return " or ".join(sorted(types))
