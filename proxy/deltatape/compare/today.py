"""What a provider does differently today: a recorded exchange and the same request asked again.

A model says other words each time, so words are told and not judged. Judged is what an application
can stumble over: the status, how the answer is framed, which kinds of events and fields there are
and of which type, what is wrong with the stream, whether the model calls tools, how it ends.

Fields that are missing or new say something only where both answers bring the same: an answer
without calls has no fields of calls. How fast it was is told and not judged either; rules about
time belong to the day.
"""

import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from deltatape.compare.compare import compare_exchanges
from deltatape.compare.shape import PRESENT, shape_changes, shape_of
from deltatape.compare.values import Comparison, Spacing
from deltatape.diagnose.check import check_analysis
from deltatape.diagnose.rebuild import Analysis
from deltatape.model.exchange import EndReason, Exchange, Source, header
from deltatape.model.finding import Finding, Severity
from deltatape.model.reply import Choice, Reply
from deltatape.rules.finish import finish_of
from deltatape.rules.settings import Settings

_ERROR = 400
_OF_TIME = ("D", "W007")
"""Findings about how fast it was."""
_SPACINGS = frozenset(
    {Spacing.EVENT_LINE, Spacing.RETRY_LINE, Spacing.LINE_ENDS, Spacing.JSON, Spacing.FIELDS}
)
"""Not among them: what differs each time (ids of events, how many keep-alives), what the ending
tells (an undispatched rest), what is told for itself (the format)."""
_FAREWELLS = ("deprecation", "sunset", "warning")
"""Fields in which an answer says that it will not be given for ever (RFC 8594, RFC 9745)."""


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
    """How events are written that say the same: line ends, comments, spaces."""
    FINDING = "finding"


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """Something that is not as it was. An empty side: there was, or is, nothing of it."""

    aspect: Aspect
    what: str
    """Which event, field or finding; "" where the aspect says it."""
    recorded: str
    today: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Today:
    """An exchange, and what became of the same request today."""

    drifts: tuple[Drift, ...]
    """What an application can stumble over, from the outside to the inside."""
    notes: tuple[str, ...]
    """What differs as it does each time."""
    comparison: Comparison


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A recorded exchange, and what asking again gave."""

    recorded: Exchange
    today: Today | None
    """None: there is nothing to compare with."""
    passed_over: str = ""
    """Why it was not to be asked."""
    problem: str = ""
    """Why it could not be asked, or gave no answer."""
    left_out: tuple[str, ...] = ()
    """Header fields that were masked on the tape and not sent."""


def compare_today(recorded: Analysis, today: Analysis, settings: Settings) -> Today:
    """What `today`, the answer to the request of `recorded`, has that is different."""
    comparison = compare_exchanges(recorded, today)
    return Today(
        drifts=tuple(_drifts(comparison, settings)),
        notes=tuple(_notes(recorded, today, comparison)),
        comparison=comparison,
    )


def _drifts(comparison: Comparison, settings: Settings) -> Iterator[Drift]:
    recorded, today = comparison.left, comparison.right
    yield from _of_http(recorded.exchange, today.exchange)
    if not recorded.exchange.response or not today.exchange.response:
        return
    errors = [side.reply.error or "" for side in (recorded, today)]
    yield from _drift(Aspect.ERROR, *errors)
    if any(errors):
        return  # what is no answer has no form of one
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


def _drift(aspect: Aspect, recorded: str, today: str, what: str = "") -> Iterator[Drift]:
    if recorded != today:
        yield Drift(aspect=aspect, what=what, recorded=recorded, today=today)


def _of_http(recorded: Exchange, today: Exchange) -> Iterator[Drift]:
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
    """Whether a recorded answer is only its beginning, for a reason that is not the provider's."""
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


def _of_reply(recorded: Reply, today: Reply) -> Iterator[Drift]:
    yield from _drift(Aspect.ANSWER, _parts(recorded), _parts(today))
    words = [choice.finish_reason_raw or "" for choice in (recorded.choices[0], today.choices[0])]
    if finish_of(recorded.choices[0]) is not finish_of(today.choices[0]):
        yield from _drift(Aspect.FINISH, *words)


def _parts(reply: Reply) -> str:
    """`text, calls`: what an answer consists of."""
    first = reply.choices[0]
    parts = [name for name, there in _contents(first) if there]
    return ", ".join(parts) or "nothing"


def _contents(choice: Choice) -> tuple[tuple[str, bool], ...]:
    return (
        ("text", bool(choice.text)),
        ("reasoning", bool(choice.reasoning)),
        ("refusal", bool(choice.refusal)),
        ("calls", bool(choice.tool_calls)),
        ("the provider's own calls", bool(choice.server_calls)),
    )


def _of_shape(recorded: Analysis, today: Analysis) -> Iterator[Drift]:
    alike = _parts(recorded.reply) == _parts(today.reply)
    for change in shape_changes(shape_of(recorded), shape_of(today)):
        if not alike and not (change.left and change.right):
            continue
        aspect = Aspect.FIELD if change.path else Aspect.EVENT
        what = f"{change.kind}: {change.path}" if change.path else change.kind
        yield from _drift(aspect, change.left, change.right, what)


def _of_spacing(comparison: Comparison) -> Iterator[Drift]:
    recorded, today = (
        PRESENT if side.stream.comments else "" for side in (comparison.left, comparison.right)
    )
    yield from _drift(Aspect.SPACING, recorded, today, "comments")
    for framed in comparison.framing:
        if framed.what in _SPACINGS:
            yield from _drift(Aspect.SPACING, framed.left, framed.right, framed.what)


def _of_findings(recorded: Analysis, today: Analysis, settings: Settings) -> Iterator[Drift]:
    before, now = (_findings(side, settings) for side in (recorded, today))
    for code in sorted(before.keys() ^ now.keys()):
        gone, new = before.get(code), now.get(code)
        finding = gone or new
        assert finding is not None
        yield Drift(
            aspect=Aspect.FINDING,
            what=f"{code} {finding.name}",
            recorded=gone.message if gone else "",
            today=new.message if new else "",
        )


def _findings(side: Analysis, settings: Settings) -> dict[str, Finding]:
    """The first of each code, those about time and mere remarks left out."""
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
        yield from _words(recorded.reply, today.reply)
    for name in _FAREWELLS:
        response = today.exchange.response
        value = header(response.headers, name) if response else None
        if value is not None:
            yield f"the answer says {name}: {value.decode('latin-1')}"


def _words(recorded: Reply, today: Reply) -> Iterator[str]:
    before, now = recorded.choices[0], today.choices[0]
    if before.text != now.text:
        yield f"text: {len(before.text)} characters, today {len(now.text)}"
    names = [_called(choice) for choice in (before, now)]
    if names[0] != names[1]:
        yield f"calls: {names[0]}; today {names[1]}"
    elif [call.arguments for call in before.tool_calls] != [c.arguments for c in now.tool_calls]:
        yield "the same calls with other arguments"
    if recorded.model != today.model:
        yield f"model: {recorded.model or 'none'}, today {today.model or 'none'}"


def _called(choice: Choice) -> str:
    names: Sequence[str] = [call.name or "(no name)" for call in choice.tool_calls]
    return ", ".join(names) or "none"
