"""The events that an application streams to its own page.

These rules blame the upstream, which is the application in such streams; `diagnose` translates
that.

The events of the AI SDK are specified; those of other applications are not, and what looks wrong by
the common contract may be right by their own (`is_own_contract`). There only what no contract can
mean is proven, and what has another explanation is possible.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from deltatape.model.finding import Blame, Confidence, Excluded, Severity
from deltatape.model.reply import CallKind, CallStatus, Channel, Reply, ToolCall, ToolResult
from deltatape.model.stream import Place
from deltatape.printable import excerpt
from deltatape.rules.context import MOST_ALIKE, Claim, RuleContext, and_more, label, observed
from deltatape.rules.endings import unended
from deltatape.rules.rule import Subject, exchange_rule
from deltatape.wire.json_scan import ScanState, scan
from deltatape.wire.json_value import join_pairs, parse

_OWN = "app-events"


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFlaw:
    """A flaw of an application's event."""

    message: str
    event: int
    place: Place
    severity: Severity | None = None
    """None: the rule's own."""
    confidence: Confidence | None = None
    """The confidence for an application's own event format; None: possible."""
    excluded: tuple[Excluded, ...] = ()
    doubted: bool = False
    """Whether no specification speaks against an innocent explanation, either."""


def is_own_contract(context: RuleContext) -> bool:
    """Return whether the events are in the application's own format."""
    return context.reply.dialect == _OWN


def sure(context: RuleContext, own: Confidence | None = None) -> Confidence:
    """Return how certain a flaw is: as certain as the bytes under a specification, else `own`."""
    if not is_own_contract(context):
        return context.seen
    own = own or Confidence.POSSIBLE
    return max(own, context.seen, key=lambda each: each.rank)


def dies_in_call(context: RuleContext) -> bool:
    """Return whether the stream ended after a call, with neither a result nor an end event.

    If no call has a result, the page may run them all, and the stream may end with them.
    """
    events = context.stream.events
    last = events[-1].number if events else None
    starts = {call.start_event for _, call in context.calls()}
    reply = context.reply
    return last in starts and bool(reply.results) and not reply.terminated


def doubted(found: Claim, context: RuleContext) -> Claim:
    """Lower `found` to possible where the event format is the application's own.

    Likely where the stream dies within a call: no contract ends there.
    """
    if not is_own_contract(context) or found.blame is None:
        return found
    dies = dies_in_call(context)
    confidence = sure(context, Confidence.LIKELY if dies else None)
    return replace(found, confidence=confidence, excluded=DIES if dies else found.excluded)


DIES = (
    Excluded(
        "the protocol ends with the response body, or the page runs the tool",
        "earlier calls have results in this stream, which ends right after this call",
    ),
)


def flawed(context: RuleContext, flaws: Sequence[EventFlaw], hint: str) -> Iterator[Claim]:
    """Yield a finding per flaw, at most `MOST_ALIKE`; the last one counts the others."""
    for number, flaw in enumerate(flaws[:MOST_ALIKE], 1):
        event = context.event(flaw.event)
        yield Claim(
            message=f"{flaw.message}{and_more(number, len(flaws))}",
            hint=hint,
            blame=Blame.UPSTREAM,
            confidence=Confidence.POSSIBLE if flaw.doubted else sure(context, flaw.confidence),
            severity=flaw.severity,
            event=flaw.event,
            place=flaw.place,
            evidence=event.data if event else "",
            excluded=flaw.excluded,
        )


_FIELDS = ("name", "tool", "tool_name", "toolName", "function")
"""Fields with names of tools."""
_ASIDE = frozenset({"type", "event", "kind", "arguments", "args", "input", "parameters"})
"""Fields whose texts are not names."""
_NAMELESS = frozenset({CallStatus.NO_NAME, CallStatus.ORPHAN})


@exchange_rule("A001", "event-without-name", Severity.ERROR, about=Subject.APP_EVENTS)
def event_without_name(context: RuleContext) -> Iterator[Claim]:
    """Report an application's tool event that does not name the tool."""
    if not context.reply.from_app:
        return
    hint = "collect the provider's fragments by index; send a call when it is complete"
    calls = [
        EventFlaw(
            message=f"{label(call)} has no name: the app's page cannot tell which tool it calls",
            event=call.start_event,
            place=call.start,
            confidence=Confidence.PROVEN if (empty := _empty_field(context, call)) else None,
            excluded=_not_elsewhere(empty) if empty else (),
        )
        for _, call in context.calls()
        if call.status in _NAMELESS
    ]
    results = [
        EventFlaw(
            message=(
                "a result has neither a name nor an id: the app's page can only guess which"
                " call it belongs to"
            ),
            event=result.event,
            place=result.place,
            severity=Severity.WARNING,
        )
        for result in context.reply.results
        if not result.name and not result.call_id
    ]
    yield from flawed(context, calls, hint)
    yield from flawed(context, results, "give each result the name or id of its call")


def _empty_field(context: RuleContext, call: ToolCall) -> str:
    """Return the field that should hold the name and is empty; "" if there is none."""
    event = context.event(call.start_event)
    found = parse(event.data).value if event else None
    body = found if isinstance(found, dict) else {}
    texts = [value for key, value in body.items() if key not in _ASIDE and isinstance(value, str)]
    empty = (key for key in _FIELDS if key in body and not _has_text(body[key]))
    return next(empty, "") if not any(texts) else ""


def _has_text(value: object) -> bool:
    """Return whether the value may hold a name: text, or an object with text in it."""
    inner = value.values() if isinstance(value, dict) else (value,)
    return any(isinstance(each, str) and each for each in inner)


def _not_elsewhere(field: str) -> tuple[Excluded, ...]:
    return (
        Excluded(
            "the app's event format names the field differently",
            f"the field {field!r} of the event is empty, and the event has no other text",
        ),
    )


_WORDS = {bool: "a boolean", int: "the number", float: "the number", list: "a list"}


@exchange_rule("A002", "event-arguments-not-object", Severity.ERROR, about=Subject.APP_EVENTS)
def event_arguments_not_object(context: RuleContext) -> Iterator[Claim]:
    """Report an application's call event whose arguments are not an object."""
    if not context.reply.from_app:
        return
    flaws = [
        flaw
        for _, call in context.calls()
        if call.kind is not CallKind.CUSTOM and (flaw := _flaw(call)) is not None
    ]
    hint = "join the argument fragments by index and parse them once, at the end"
    yield from flawed(context, flaws, hint)


def _flaw(call: ToolCall) -> EventFlaw | None:
    """Return the flaw of the arguments; other rules report text that is not JSON."""
    what, severity, odd = _instead(call.arguments) if call.arguments else _missing(call)
    if not what:
        return None
    last = call.fragments[-1] if call.fragments else None
    return EventFlaw(
        message=f"the arguments of {label(call)} are {what}, not an object",
        event=last.event if last else call.start_event,
        place=last.place if last else call.start,
        severity=severity,
        confidence=Confidence.LIKELY if odd else None,
        excluded=(Excluded("the app's event format sends arguments as text", odd),) if odd else (),
    )


def _missing(call: ToolCall) -> tuple[str, Severity, str]:
    ended = call.status in {CallStatus.EMPTY_SUSPECT, CallStatus.NO_NAME}
    return "missing or null" if ended else "", Severity.WARNING, ""


def _instead(arguments: str) -> tuple[str, Severity, str]:
    """Describe what is there instead of an object, how serious it is, and what a contract says."""
    parsed = parse(arguments)
    value = parsed.value
    if parsed.error is not None or isinstance(value, dict):
        return "", Severity.ERROR, ""
    if not isinstance(value, str):
        what = f"{_WORDS.get(type(value), '')} {excerpt(arguments, 40)}"
        odd = "they are not text" if isinstance(value, bool | int | float) else ""
        return what.strip(), Severity.ERROR, odd
    if isinstance(parse(value).value, dict):
        return "a string that contains an object", Severity.WARNING, ""
    shown = f"the string {excerpt(repr(value), 60)}"
    if not value or scan(value).verdict is not ScanState.PREFIX:
        return shown, Severity.ERROR, ""
    begun = "the text is only the beginning of an object" if value.lstrip().startswith("{") else ""
    return f"{shown}, a fragment of JSON", Severity.ERROR, begun


@exchange_rule("A003", "call-without-result", Severity.ERROR, at_end=True)
def call_without_result(context: RuleContext) -> Iterator[Claim]:
    """Report a call that the application announced to its page without ever sending the result."""
    reply = context.reply
    if not reply.results_due or reply.error is not None or context.exchange.cut:
        return
    calls = [call for _, call in context.calls()]
    left, strays = _unpaired(calls, reply.results)
    silent = reply.terminated and not reply.results
    stray = f"; a result came for {strays[0]!r}, which matches no call" if strays else ""
    dies = dies_in_call(context)
    unpaired = {*map(id, left)}
    names = {call.name for call in calls if id(call) not in unpaired}
    flaws = [
        EventFlaw(
            message=f"{label(call)} never got a result{stray}",
            event=call.start_event,
            place=call.start,
            severity=Severity.WARNING if silent else Severity.ERROR,
            confidence=Confidence.LIKELY if dies or call.name in names else None,
            excluded=DIES if dies else _RESULTS_ARE_REPORTED if call.name in names else (),
            doubted=not dies and call.name not in names,
        )
        for call in left
    ]
    hint = "send a result for every call; if the tool fails, send the error as the result"
    yield from flawed(context, flaws, hint)


_RESULTS_ARE_REPORTED = (
    Excluded(
        "the page runs the tool, or the app does not stream results",
        "another call of the same tool has its result in this stream",
    ),
)


def _unpaired(
    calls: Sequence[ToolCall], results: Sequence[ToolResult]
) -> tuple[Sequence[ToolCall], Sequence[str]]:
    """Return the calls without a result, and the id or name of each result without a call."""
    left = dict(enumerate(calls))
    by_id: dict[str, dict[int, ToolCall]] = {"": {}}
    for place, call in left.items():
        for call_id in call.ids or ("",):
            by_id.setdefault(call_id, {})[place] = call
    strays = []
    for result in results:
        # A result with an id fits no call that has others.
        groups = [by_id.get(result.call_id, {}), by_id[""]] if result.call_id else [left]
        first = (
            next((place for place, call in group.items() if _fits(call, result)), None)
            for group in groups
        )
        mine = min((place for place in first if place is not None), default=None)
        if mine is not None:
            for call_id in left.pop(mine).ids or ("",):
                del by_id[call_id][mine]
        elif result.call_id or result.name:
            strays.append(result.call_id or result.name or "")
    return [*left.values()], strays


def _fits(call: ToolCall, result: ToolResult) -> bool:
    """Return whether `result` belongs to `call`: by id where both have one, else by name."""
    if call.start_event > result.event:
        return False
    if call.ids and result.call_id:
        return result.call_id in call.ids
    return not call.name or not result.name or call.name == result.name


@exchange_rule("A004", "missing-or-early-done", Severity.ERROR, at_end=True)
def missing_or_early_done(context: RuleContext) -> Iterator[Claim]:
    """Report an application's stream without an end event, or with one that comes too early."""
    hint = "send done last, and send error from every exception handler"
    found = [*observed(context, "A004", "send done once, as the last event")]
    if context.reply.from_app:
        found = [*unended(context, hint), *found]
    for each in found:
        yield doubted(each, context)


@exchange_rule("A005", "event-after-done", Severity.WARNING, about=Subject.OBSERVATIONS)
def event_after_done(context: RuleContext) -> Iterator[Claim]:
    """Report an application's event after the one that ended its stream."""
    hint = "return after sending done or error; send metadata earlier"
    return (doubted(each, context) for each in observed(context, "A005", hint))


@exchange_rule("A006", "text-differs-from-done", Severity.WARNING, about=Subject.APP_EVENTS)
def text_differs_from_done(context: RuleContext) -> Iterator[Claim]:
    """Report an application's stream whose last event has other text than its fragments."""
    reply = context.reply
    recited, text = reply.repeated_text, reply.text.strip()
    if not reply.from_app or recited is None:
        return
    final = recited.strip()
    if final in {text, _text_at_the_end(reply).strip()}:
        return
    last = context.event(reply.terminal_event)
    cut = bool(final) and (text.startswith(final) or text.endswith(final))
    yield Claim(
        message=(
            f"{len(reply.text)} characters of text were streamed, but the last event"
            f" has {len(recited)}: {_relation(text, final)}"
        ),
        hint="collect the text where it is sent, across all requests to the provider",
        blame=Blame.UPSTREAM,
        confidence=sure(context, Confidence.LIKELY if cut else None),
        excluded=_IS_A_PART if cut else (),
        severity=None if final else Severity.ERROR,
        at=last,
        evidence=recited or (last.data if last else ""),
    )


_IS_A_PART = (
    Excluded(
        "done has other content in this event format", "its text is part of the streamed text"
    ),
)


def _text_at_the_end(reply: Reply) -> str:
    """Return the text after the last call or result."""
    events = [call.start_event for call in reply.tool_calls]
    last = max([*events, *(result.event for result in reply.results)], default=-1)
    pieces = (one for one in reply.choices[0].pieces if one.channel is Channel.TEXT)
    return join_pairs("".join(one.text for one in pieces if one.event > last))


def _relation(text: str, final: str) -> str:
    if not final:
        return "its text is empty"
    if text.startswith(final):
        return "it is only the beginning of the streamed text"
    if text.endswith(final):
        return "it is only the end of the streamed text"
    if final.startswith(text):
        return "it continues where the streamed text ends"
    at = next(
        place for place, (one, other) in enumerate(zip(text, final, strict=False)) if one != other
    )
    return f"they differ from character {at} on"
