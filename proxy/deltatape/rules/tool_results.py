"""Tool results: without their calls, missing, swapped, or not serialised."""

import re
from collections.abc import Iterator, Sequence

from deltatape.model.digest import DeliveredCall, HistoryMessage
from deltatape.model.finding import Blame, Confidence, Excluded, Severity
from deltatape.model.request_summary import RepeatedCall
from deltatape.model.turn import MissingResult, OrphanResult, Turn
from deltatape.printable import excerpt
from deltatape.rules._call_references import RequestSpans, against, call_label, names
from deltatape.rules.context import Claim
from deltatape.rules.rule import turn_rule
from deltatape.wire.json_value import read_object


@turn_rule("C004", "orphan-tool-result", Severity.ERROR)
def orphan_tool_result(turn: Turn) -> Iterator[Claim]:
    """Report a tool result whose call is not in the same request."""
    for orphan in turn.orphans:
        if orphan.trimmed and not turn.digest.refused:
            continue
        confidence = _orphan_confidence(turn, orphan)
        mild = confidence is Confidence.POSSIBLE or (orphan.twice and not turn.digest.refused)
        delivered = orphan.delivered
        yield Claim(
            message=_orphan_message(turn, orphan),
            hint=_orphan_hint(orphan),
            blame=Blame.APP,
            confidence=confidence,
            severity=Severity.WARNING if mild else None,
            evidence=f"result for {orphan.call_id!r}",
            against=against(*delivered) if delivered else None,
            excluded=_orphan_excluded(orphan) if confidence is Confidence.PROVEN else (),
        )


_ORPHAN = (
    "append the assistant's message with its calls to the history before the results, and keep"
    " their ids"
)
_TRIMMED = "when a history is shortened, drop a call and its result together"
_TWICE = "run a call once: either while it streams, or after it has ended; compare ids"


def _orphan_hint(orphan: OrphanResult) -> str:
    if orphan.twice:
        return _TWICE
    return _TRIMMED if orphan.trimmed else _ORPHAN


def _orphan_confidence(turn: Turn, orphan: OrphanResult) -> Confidence:
    refused = Confidence.LIKELY if turn.digest.refused else Confidence.POSSIBLE
    if orphan.twice or orphan.trimmed or orphan.delivered is None:
        return refused
    return Confidence.PROVEN if orphan.same_conversation else refused


def _orphan_excluded(orphan: OrphanResult) -> tuple[Excluded, ...]:
    reply = orphan.delivered.reply.exchange if orphan.delivered else 0
    return (
        Excluded(
            "the history was shortened at the beginning",
            f"all of the history of #{reply}, which delivered the call, is still there",
        ),
        Excluded(
            "the id belongs to another conversation, or to an example",
            f"#{reply} delivered the call to exactly this history",
        ),
    )


def _orphan_message(turn: Turn, orphan: OrphanResult) -> str:
    refused = f"; the provider rejected it ({turn.digest.status})" if turn.digest.refused else ""
    if orphan.delivered and orphan.twice:
        call = call_label(*orphan.delivered)
        return f"the request has a second result of {call}, which was delivered once{refused}"
    if orphan.delivered:
        of = f"{call_label(*orphan.delivered)}, but no assistant message in it has that call"
    else:
        shown = excerpt(orphan.call_id, 60)
        of = f"the call {shown!r}, which no assistant message in it has"
    trimmed = ": the history was cut off between the two" if orphan.trimmed else ""
    return f"the request has the result of {of}{trimmed}{refused}"


@turn_rule("C005", "missing-tool-result", Severity.ERROR)
def missing_tool_result(turn: Turn) -> Iterator[Claim]:
    """Report a call in the history without a result, although the history continues."""
    spans = RequestSpans(turn.digest)
    for missing in turn.missing:
        delivered = missing.delivered
        yield Claim(
            message=_missing_message(turn, missing),
            hint="answer every call before the history continues, if only with an error",
            blame=Blame.APP,
            confidence=_missing_confidence(turn),
            severity=None if turn.digest.refused else Severity.WARNING,
            excluded=_missing_excluded(turn),
            evidence=missing.call.arguments or "(no arguments)",
            against=against(*delivered, spans.of(missing.call)) if delivered else None,
        )


_ABOUT_CALLS = ("tool", "function", "call", "result")
"""A rejection that is about calls and their results has one of these."""


def _is_refused_for_it(turn: Turn) -> bool:
    error = (turn.digest.error or "").lower()
    return turn.digest.refused and any(word in error for word in _ABOUT_CALLS)


def _missing_confidence(turn: Turn) -> Confidence:
    if _is_refused_for_it(turn):
        return Confidence.PROVEN
    return Confidence.LIKELY if turn.digest.refused else Confidence.POSSIBLE


def _missing_excluded(turn: Turn) -> tuple[Excluded, ...]:
    if not turn.digest.refused:
        return ()
    refused = f"it rejected the request with {turn.digest.status}"
    return (Excluded("the provider accepts a history without the result", refused),)


def _missing_message(turn: Turn, missing: MissingResult) -> str:
    if missing.delivered:
        call = call_label(*missing.delivered)
    else:
        call = f"a call ({names(missing.call.name, missing.call.id)})"
    status = turn.digest.status
    if turn.digest.refused:
        then = f"; the provider rejected the request ({status})"
    else:
        then = (
            "; this provider accepted it" if status is not None and not turn.digest.failed else ""
        )
    return f"the history continues after {call} without its result{then}"


@turn_rule("C015", "results-swapped", Severity.ERROR)
def results_swapped(turn: Turn) -> Iterator[Claim]:
    """Report results of parallel calls that are assigned to each other's calls."""
    if not turn.swapped:
        return
    first = turn.swapped[0]
    calls = " and ".join(dict.fromkeys(call_label(*each.call) for each in turn.swapped[:3]))
    sure = all(each.named >= _NAMED for each in turn.swapped)
    yield Claim(
        message=(
            f"the results of {calls} {'are' if sure else 'may be'} swapped: each mentions the"
            " arguments of the other call, and none of its own"
        ),
        hint="keep the id of each call with its task: tools finish in any order",
        blame=Blame.APP,
        confidence=Confidence.LIKELY if sure else Confidence.POSSIBLE,
        severity=None if sure else Severity.WARNING,
        evidence=f"the result for {first.call.call.id!r} mentions {first.about.call.arguments}",
        excluded=(
            Excluded(
                "a result mentions other things, and not what it is about",
                f"{first.named} earlier results of the tool name their own arguments, and none"
                " does not",
            ),
        )
        if sure
        else (),
        against=against(*first.call),
    )


_NAMED = 2
"""How many results show that a tool names what it was asked for."""
_LONGEST = 400
"""The longest such text, in characters."""
_ADDRESS = r"at 0x[0-9a-fA-F]{4,}"
_REPRS = (
    # JavaScript
    (re.compile(r"\[object [A-Z]\w*\](?:, ?\[object [A-Z]\w*\])*"), "an object turned into text"),
    (re.compile(r"Promise \{.*\}", re.DOTALL), "a promise that nobody awaited"),
    # Python
    (re.compile(rf"<coroutine object .+ {_ADDRESS}>"), "a coroutine that was not awaited"),
    (re.compile(r"<_?(?:asyncio\.)?(?:Task|Future) .+>", re.DOTALL), "a task that was not awaited"),
    (
        re.compile(rf"<(?:async_)?generator object .+ {_ADDRESS}>"),
        "a generator that was not consumed",
    ),
    (re.compile(r"<(?:bound method|function) .+>", re.DOTALL), "a function that was not called"),
    (re.compile(rf"<[\w.]+(?: object)? {_ADDRESS}>"), "an object without a text representation"),
    (re.compile(r"<Response \[\d{3}\]>"), "a response instead of its body"),
    # Ruby, Java, .NET
    (
        re.compile(r"#<[A-Z][\w:]*(?::0x[0-9a-f]+)?(?: .*)?>", re.DOTALL),
        "an object turned into text",
    ),
    (re.compile(r"(?:[a-z]\w*\.)+[A-Z][\w$]*@[0-9a-f]{5,8}"), "an object turned into text"),
    (
        re.compile(r"System\.(?:\w+\.)*\w+`\d\[.+\]", re.DOTALL),
        "a .NET object turned into text",
    ),
)
_VAGUE = re.compile(r"undefined|NaN")
"""Texts that tools without a result, and calculators, return on purpose."""
_RUNS_CODE = re.compile(
    r"code|python|javascript|node|ruby|eval|exec|run|shell|bash|repl|interpret|script|notebook"
    r"|jupyter|terminal|command|console|sandbox|sql|query|read|file|fetch|open|http|curl|cat\b"
    r"|grep|pytest|logs|docs|brows|crawl|scrap",
    re.IGNORECASE,
)
"""Names of tools whose results may be any foreign text."""
_CODE = re.compile(r"[\w\]]\(|=>|console\.|;\\n|\bdef \b|\bawait \b|\bimport \b|\breturn\b")
"""Arguments that hold code."""


@turn_rule("C017", "result-not-serialised", Severity.ERROR)
def result_not_serialised(turn: Turn) -> Iterator[Claim]:
    """Report a tool result that is the name of an object instead of its content."""
    history = turn.digest.history
    calls: _KnownCalls | None = None
    for place in range(turn.news, len(history)):
        message = history[place]
        if message.call_id is None or not message.text:
            continue
        text = _inner(message.content)
        what = _what_it_names(text)
        if what:
            calls = calls or _KnownCalls(history)
            call = calls.answered_at(place) or _delivered(turn, message.call_id)
            yield _unserialised(message, text, what, call)


def _unserialised(result: HistoryMessage, text: str, what: str, call: RepeatedCall | None) -> Claim:
    name = call.name if call and call.name else result.call_id or "a tool"
    if _VAGUE.fullmatch(text) or (call is not None and _may_be_output(call, text)):
        blame, confidence, severity = None, Confidence.POSSIBLE, Severity.INFO
    else:
        blame, severity = Blame.APP, None
        confidence = Confidence.LIKELY if call is not None else Confidence.POSSIBLE
    because = f"{excerpt(name, 60)} takes no code, and this is all of its result"
    return Claim(
        message=f"the result of {excerpt(name, 60)} is {excerpt(text, 80)!r}: {what}",
        hint="await the tool, and serialise what it returns (JSON.stringify, json.dumps)",
        blame=blame,
        confidence=confidence,
        severity=severity,
        evidence=result.content,
        excluded=(Excluded("the tool printed this text", because),)
        if confidence is Confidence.LIKELY
        else (),
    )


def _inner(content: str) -> str:
    """Return the text of a result, which some APIs and applications wrap in an object."""
    text = content.strip()
    if len(text) > _LONGEST:
        return text
    if text[0] == '"' and text[-1] == '"':
        return text[1:-1].strip()
    wrapped = read_object(text) if text[0] == "{" else None
    values = list(wrapped.values()) if wrapped else []
    return values[0].strip() if len(values) == 1 and isinstance(values[0], str) else text


def _what_it_names(text: str) -> str:
    """Return the kind of object that the text names; "" if it is not such a name."""
    if len(text) > _LONGEST:
        return ""
    if _VAGUE.fullmatch(text):
        return "no value"
    return next((what for form, what in _REPRS if form.fullmatch(text)), "")


class _KnownCalls:
    """The calls that results answer, message by message: asked for in the order of the history."""

    def __init__(self, history: Sequence[HistoryMessage]) -> None:
        self._history = history
        self._by_id: dict[str | None, RepeatedCall] = {}
        """By id and by name, the last calls before the place that was asked for."""
        self._place = 0

    def answered_at(self, place: int) -> RepeatedCall | None:
        """Return the call that the result at `place` answers, from the messages just before it."""
        for message in self._history[self._place : place]:
            if message.call_id is None and not message.calls and message.text:
                self._by_id.clear()
            for call in message.calls:
                self._by_id |= {call.id: call, call.name: call}
        self._place = place
        return self._by_id.get(self._history[place].call_id)


def _delivered(turn: Turn, call_id: str) -> RepeatedCall | None:
    """Return the call as it was delivered, where the provider stores the history."""
    calls = turn.continues.reply.calls if turn.continues and turn.continues.stored else ()
    found = next((call for call in calls if call_id in call.answers_to), None)
    if found is None:
        return None
    return RepeatedCall(id=call_id, name=found.name, arguments=found.arguments)


def _may_be_output(call: RepeatedCall, text: str) -> bool:
    """Return whether the tool may have found this very text, or run code that prints it."""
    return returns_anything(call) or text in call.arguments


def returns_anything(call: DeliveredCall | RepeatedCall) -> bool:
    """Return whether the tool may run or read something, so that its result may be any text."""
    return bool(_RUNS_CODE.search(call.name or "") or _CODE.search(call.arguments))
