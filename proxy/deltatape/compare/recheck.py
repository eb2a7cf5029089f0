"""Compare a recorded exchange with the answer to the same request today.

A model answers in other words each time, so words are reported, not judged. What can break an
application is judged: the status, the framing, the kinds of events, their fields and types, defects
of the stream, whether the model calls tools, and the ending.

Missing or new fields count only where both answers have the same parts: an answer without calls has
no fields of calls. Speed is reported, not judged.
"""

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from deltatape.compare.comparable_events import is_deep
from deltatape.compare.compare import compare_exchanges
from deltatape.compare.values import Comparison, SpacingDifference
from deltatape.diagnose.check import check_analysis
from deltatape.diagnose.rebuild import Analysis
from deltatape.model.exchange import EndReason, Exchange, Source, header
from deltatape.model.finding import Finding, Severity
from deltatape.model.reply import Reply
from deltatape.model.rule_settings import Settings
from deltatape.model.stream import Event, Format
from deltatape.rules.finish import finish_of
from deltatape.wire.json_value import parse

_ERROR = 400
_OF_TIME = ("D", "W007")
"""Findings about how fast it was."""
_SPACINGS = frozenset(
    {
        SpacingDifference.EVENT_LINE,
        SpacingDifference.RETRY_LINE,
        SpacingDifference.LINE_ENDS,
        SpacingDifference.JSON,
        SpacingDifference.FIELDS,
    }
)
"""Left out: what differs each time (ids of events, the number of keep-alives) or is reported
elsewhere (an undispatched rest with the ending, the format on its own)."""
_FAREWELLS = ("deprecation", "sunset", "warning")
"""Header fields that announce the end of an API (RFC 8594, RFC 9745)."""


class Aspect(enum.StrEnum):
    """What differs."""

    STATUS = "status"
    ERROR = "error"
    CONTENT_TYPE = "content-type"
    FRAMING = "framing"
    """How HTTP delimits the body."""
    FORMAT = "format"
    """How the body is framed into events."""
    DIALECT = "dialect"
    ENDING = "ending"
    ANSWER = "answer"
    """What the answer consists of: text, reasoning, calls."""
    FINISH = "finish"
    EVENT = "event"
    """A kind of event that is new or gone."""
    FIELD = "field"
    SPACING = "spelling"
    """How events with the same content are written: line ends, comments, spaces."""
    FINDING = "finding"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseDrift:
    """A difference. A side is empty if it lacks the aspect."""

    aspect: Aspect
    what: str
    """The event, field or finding that differs; "" if the aspect alone tells."""
    recorded: str
    today: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecheckedExchange:
    """An exchange, and the answer to the same request today."""

    drifts: tuple[ResponseDrift, ...]
    """Differences that can break an application, from the framing to the content."""
    notes: tuple[str, ...]
    """Differences that are normal between two runs."""
    comparison: Comparison


@dataclass(frozen=True, slots=True, kw_only=True)
class Recheck:
    """A recorded exchange, and the result of asking again."""

    recorded: Exchange
    today: RecheckedExchange | None
    """None: there is nothing to compare with."""
    passed_over: str = ""
    """Why the request was not sent."""
    problem: str = ""
    """Why sending failed, or brought no answer."""
    left_out: tuple[str, ...] = ()
    """Header fields that were masked on the tape and not sent."""


def compare_today(recorded: Analysis, today: Analysis, settings: Settings) -> RecheckedExchange:
    """Return how `today`, the answer to the request of `recorded`, differs."""
    comparison = compare_exchanges(recorded, today)
    return RecheckedExchange(
        drifts=tuple(_drifts(comparison, settings)),
        notes=tuple(_notes(recorded, today, comparison)),
        comparison=comparison,
    )


def _drifts(comparison: Comparison, settings: Settings) -> Iterator[ResponseDrift]:
    recorded, today = comparison.left, comparison.right
    yield from _of_http(recorded.exchange, today.exchange)
    if not recorded.exchange.response or not today.exchange.response:
        return
    errors = [side.reply.error or "" for side in (recorded, today)]
    yield from _drift(Aspect.ERROR, *errors)
    if any(errors):
        return  # an error has no form to compare
    formats = (recorded.stream.format, today.stream.format)
    yield from _drift(Aspect.FORMAT, *formats)
    dialects = (recorded.reply.dialect, today.reply.dialect)
    yield from _drift(Aspect.DIALECT, *dialects)
    if is_part(recorded.exchange):
        return
    yield from _of_reply(recorded.reply, today.reply)
    if formats[0] == formats[1] and dialects[0] == dialects[1]:
        yield from _of_shape(recorded, today)
        yield from _of_spacing(comparison)
    yield from _of_findings(recorded, today, settings)


def _drift(aspect: Aspect, recorded: str, today: str, what: str = "") -> Iterator[ResponseDrift]:
    if recorded != today:
        yield ResponseDrift(aspect=aspect, what=what, recorded=recorded, today=today)


def _of_http(recorded: Exchange, today: Exchange) -> Iterator[ResponseDrift]:
    yield from _drift(Aspect.STATUS, _status(recorded), _status(today))
    if _is_error(recorded) or _is_error(today):
        return
    yield from _drift(Aspect.CONTENT_TYPE, _media(recorded), _media(today))
    if recorded.source is Source.GATEWAY and recorded.response and today.response:
        # Other taps do not see how the provider framed it.
        yield from _drift(Aspect.FRAMING, recorded.response.framing, today.response.framing)
    if recorded.timed and not is_part(recorded):
        yield from _drift(Aspect.ENDING, _ending(recorded), _ending(today))


def is_part(exchange: Exchange) -> bool:
    """Return whether a recorded answer was cut, other than by the provider."""
    if exchange.end is None:
        return exchange.timed
    return exchange.end.reason in (EndReason.CLIENT_CLOSED, EndReason.STOPPED)


def _is_error(exchange: Exchange) -> bool:
    return exchange.response is None or exchange.response.status >= _ERROR


def _status(exchange: Exchange) -> str:
    if exchange.response is None:
        return f"no answer ({_ending(exchange)})"
    return str(exchange.response.status)


def _media(exchange: Exchange) -> str:
    assert exchange.response is not None
    value = header(exchange.response.headers, "content-type") or b""
    return value.decode("latin-1").partition(";")[0].strip().lower()


def _ending(exchange: Exchange) -> str:
    return exchange.end.reason if exchange.end else "none"


def _of_reply(recorded: Reply, today: Reply) -> Iterator[ResponseDrift]:
    yield from _drift(Aspect.ANSWER, _parts(recorded), _parts(today))
    words = [choice.finish_reason_raw or "" for choice in (recorded.choices[0], today.choices[0])]
    if finish_of(recorded.choices[0]) is not finish_of(today.choices[0]):
        yield from _drift(Aspect.FINISH, *words)


def _parts(reply: Reply) -> str:
    """Return what an answer consists of: `text, calls`."""
    first = reply.choices[0]
    parts = {
        "text": first.text,
        "reasoning": first.reasoning,
        "refusal": first.refusal,
        "calls": first.tool_calls,
        "the provider's own calls": first.server_calls,
    }
    return ", ".join(name for name, value in parts.items() if value) or "nothing"


def _of_shape(recorded: Analysis, today: Analysis) -> Iterator[ResponseDrift]:
    alike = _parts(recorded.reply) == _parts(today.reply)
    for change in shape_changes(shape_of(recorded), shape_of(today)):
        if not alike and not (change.left and change.right):
            continue
        aspect = Aspect.FIELD if change.path else Aspect.EVENT
        what = f"{change.kind}: {change.path}" if change.path else change.kind
        yield from _drift(aspect, change.left, change.right, what)


def _of_spacing(comparison: Comparison) -> Iterator[ResponseDrift]:
    recorded, today = (
        PRESENT if side.stream.comments else "" for side in (comparison.left, comparison.right)
    )
    yield from _drift(Aspect.SPACING, recorded, today, "comments")
    for framed in comparison.framing:
        if framed.what in _SPACINGS:
            yield from _drift(Aspect.SPACING, framed.left, framed.right, framed.what)


def _of_findings(
    recorded: Analysis, today: Analysis, settings: Settings
) -> Iterator[ResponseDrift]:
    before, now = (_findings(side, settings) for side in (recorded, today))
    for code in sorted(before.keys() ^ now.keys()):
        gone, new = before.get(code), now.get(code)
        finding = gone or new
        assert finding is not None
        yield ResponseDrift(
            aspect=Aspect.FINDING,
            what=f"{code} {finding.name}",
            recorded=gone.message if gone else "",
            today=new.message if new else "",
        )


def _findings(side: Analysis, settings: Settings) -> dict[str, Finding]:
    """Return the first finding of each code, except those about time or of severity info."""
    found: dict[str, Finding] = {}
    for finding in check_analysis(side, settings):
        if finding.severity is not Severity.INFO and not finding.code.startswith(_OF_TIME):
            found.setdefault(finding.code, finding)
    return found


def _notes(recorded: Analysis, today: Analysis, comparison: Comparison) -> Iterator[str]:
    if is_part(recorded.exchange):
        ending = _ending(recorded.exchange)
        yield f"the recorded answer is only a part ({ending}): how it would have gone on is unknown"
    elif comparison.equal:
        yield "the same answer, event by event"
    elif not recorded.reply.error and not today.reply.error:
        yield from _content_notes(recorded.reply, today.reply)
    for name in _FAREWELLS:
        response = today.exchange.response
        value = header(response.headers, name) if response else None
        if value is not None:
            yield f"the answer says {name}: {value.decode('latin-1')}"


def _content_notes(recorded: Reply, today: Reply) -> Iterator[str]:
    before, now = recorded.choices[0], today.choices[0]
    if before.text != now.text:
        yield f"text: {len(before.text)} characters, today {len(now.text)}"
    names = [
        ", ".join(call.name or "(no name)" for call in choice.tool_calls) or "none"
        for choice in (before, now)
    ]
    if names[0] != names[1]:
        yield f"calls: {names[0]}; today {names[1]}"
    elif [call.arguments for call in before.tool_calls] != [c.arguments for c in now.tool_calls]:
        yield "the same calls with other arguments"
    if recorded.model != today.model:
        yield f"model: {recorded.model or 'none'}, today {today.model or 'none'}"


# The form of a stream without its content: the kinds of events, their fields and types.
#
# Two answers to the same question differ in their words, but not in their form, unless the provider
# changed its API. Values that a model or an application fills in freely (arguments of calls,
# schemas of tools, metadata) say nothing about the API: fields below them are ignored.
#
# Paths are from the root of an event's JSON, as in `match.json_path.parse_path`: an array's places
# are one, `*`. Bounded: a hostile body costs at most `MOST_FIELDS` paths.

MOST_FIELDS = 2000
"""Per stream; fields beyond are ignored."""
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
"""Keys whose value tells the type of an event, if its framing does not."""
_MESSAGE = "message"
_SHORT = 20
_NULL = "null"
PRESENT = "present"
"""The type of an event that has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeChange:
    """A field or event that is new, missing, or of another type. A side is empty if it lacks it."""

    kind: str
    """The kind of the event."""
    path: str
    """The path of the field; "": the event itself."""
    left: str
    right: str


Shape = Mapping[str, Mapping[str, frozenset[str]]]
"""By kind of event the types of each field."""


def shape_of(analysis: Analysis) -> Shape:
    """Return the form of the response of an exchange."""
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
    """Return how `right` differs: events first, then fields, each in the order in which they came.

    What is below something new or missing is not reported. `null` fits every type.
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
        name = next((value[key] for key in _NAMES if isinstance(value.get(key), str)), None)
        return str(name) if name else "document" if format_ is Format.JSON else "event"
    return event.data if len(event.data) <= _SHORT else "text"


def _fields(path: str, value: object) -> Iterator[tuple[str, str]]:
    """Yield each path below `value` with its type, from the outer to the inner."""
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
    reported: set[str] = set()
    for path in dict.fromkeys((*left, *right)):
        one, other = left.get(path, frozenset()), right.get(path, frozenset())
        if _alike(one, other):
            continue
        parent = path.rpartition(".")[0]
        if parent in reported:
            reported.add(path)
            continue
        if not one or not other:
            reported.add(path)
        yield ShapeChange(kind=kind, path=path, left=_types(one), right=_types(other))


def _alike(one: frozenset[str], other: frozenset[str]) -> bool:
    """Return whether both sides' types can belong to the same field."""
    if not one or not other:
        return False
    real, others = one - {_NULL}, other - {_NULL}
    return not real or not others or not real.isdisjoint(others)


def _types(types: frozenset[str]) -> str:
    return " or ".join(sorted(types))
