"""Errors of the application's parsers about calls that were delivered whole."""

import re
from collections.abc import Iterator, Mapping, Sequence

from deltatape.model.digest import DeliveredCall, ParserError, ParserErrorKind
from deltatape.model.finding import Blame, Confidence, Excluded, Severity
from deltatape.model.reply import CallKind, CallStatus
from deltatape.model.turn import Complaint, Turn
from deltatape.printable import count, excerpt
from deltatape.rules._call_references import RequestSpans, against, call_label
from deltatape.rules.context import Claim
from deltatape.rules.parser_errors import in_message
from deltatape.rules.repeated import SiblingCalls, relation
from deltatape.rules.rule import turn_rule
from deltatape.rules.tool_results import returns_anything
from deltatape.wire.json_value import parse

_WORD = re.compile(r"[\w.:-]*\w")
"""A word that may be an id or the name of a tool."""
_WHOLE = frozenset({CallStatus.COMPLETE, CallStatus.EMPTY_OK})


def is_untrue(error: ParserError, about: Sequence[DeliveredCall]) -> bool:
    """Return whether each of the calls has what the parser reports as missing.

    A tool's own refusal may be justified.
    """
    if error.means is ParserErrorKind.REFUSED:
        return False
    return all(
        call.status in _WHOLE
        and (error.means is not ParserErrorKind.DROPPED or bool(call.name))
        and not _has_broken_deltas(call)
        for call in about
    )


def _has_broken_deltas(call: DeliveredCall) -> bool:
    """Return whether the deltas are invalid JSON that the last event corrected."""
    if call.kind is CallKind.TEXT:
        return False
    joined = "".join(call.fragments)
    return bool(joined) and joined != call.arguments and parse(joined).error is not None


def is_untrue_of_call(
    error: ParserError, about: Sequence[DeliveredCall], *, unread: bool = False
) -> bool:
    """Return whether a false error can be about nothing but the calls themselves.

    It mentions them or their arguments; or a parser got no text, there were no argument bytes, and
    the application could not read that (`unread`). If an argument is itself broken JSON, the tool
    may have parsed it.
    """
    speaks = error.about_call or (unread and is_of_nothing(error, about))
    return speaks and not any(map(_holds_broken_json, about))


def is_of_nothing(error: ParserError, about: Sequence[DeliveredCall]) -> bool:
    """Return whether a parser was given no text and no argument bytes were delivered."""
    nothing = error.means in (ParserErrorKind.NOTHING, ParserErrorKind.CUT)
    return nothing and all(not call.arguments for call in about)


def _holds_broken_json(call: DeliveredCall) -> bool:
    value = parse(call.arguments.strip() or "{}").value
    texts = value.values() if isinstance(value, Mapping) else ()
    return any(
        isinstance(text, str) and text.lstrip()[:1] in ("{", "[") and parse(text).error is not None
        for text in texts
    )


@turn_rule("C009", "app-error-in-history", Severity.ERROR)
def app_error_in_history(turn: Turn) -> Iterator[Claim]:
    """Report a parser error of the application about a call that was delivered complete."""
    spans = RequestSpans(turn.digest)
    siblings: dict[int, SiblingCalls] = {}
    for complaint in turn.complaints:
        error = complaint.error
        if not is_untrue(error, [each.call for each in complaint.about]):
            continue
        first = complaint.about[0]
        if id(first.reply) not in siblings:
            siblings[id(first.reply)] = SiblingCalls(first.reply.calls)
        confidence = _confidence(complaint, siblings[id(first.reply)], turn)
        delivered_nothing = is_of_nothing(error, [each.call for each in complaint.about])
        yield Claim(
            message=_message(complaint),
            hint=_NO_ARGUMENT_BYTES if delivered_nothing else _HINTS[error.means],
            blame=Blame.APP,
            confidence=confidence,
            severity=_SEVERITIES[confidence],
            printed_ns=complaint.t_ns,
            evidence=error.text,
            against=against(*first, spans.of(complaint.repeated)),
            excluded=_excluded(complaint, confidence),
        )


_NO_ARGUMENT_BYTES = "use {} where no argument bytes came: this tool requires nothing"
_HINTS = {
    ParserErrorKind.NOTHING: (
        "append every fragment, the first one too; use {} where no argument bytes came"
    ),
    ParserErrorKind.CUT: (
        "append every fragment to the entry of its index; parse once, when the call is complete"
    ),
    ParserErrorKind.GLUED: (
        "keep one entry per call, and parse it once, when it is complete (a call in text: after"
        " its closing tag)"
    ),
    ParserErrorKind.INVALID: "parse the arguments once, unchanged, when the call is complete",
    ParserErrorKind.REFUSED: "pass the arguments to the tool unchanged",
    ParserErrorKind.DROPPED: "keep id and name from the event that opens the call, by its index",
}
_SEVERITIES = {
    Confidence.PROVEN: Severity.ERROR,
    Confidence.LIKELY: Severity.WARNING,
    Confidence.POSSIBLE: Severity.INFO,
}


def _confidence(complaint: Complaint, siblings: SiblingCalls, turn: Turn) -> Confidence:
    if _is_torn(complaint, siblings):
        return Confidence.PROVEN
    calls = [each.call for each in complaint.about]
    likely = is_untrue_of_call(complaint.error, calls, unread=bool(complaint.unread))
    likely &= complaint.sure and not _may_be_output(complaint, turn)
    return Confidence.LIKELY if likely else Confidence.POSSIBLE


def _may_be_output(complaint: Complaint, turn: Turn) -> bool:
    """Return whether the error may be what a tool ran or read: a test's output, a page, a log."""
    if complaint.logged or complaint.unread:
        return False
    results = [message for message in turn.digest.history if message.call_id]
    for call in (each.call for each in complaint.about if returns_anything(each.call)):
        texts = [each.content for each in results if each.call_id in call.answers_to]
        if texts and not any(_mentions(text, call) for text in texts):
            return True
    return False


def _mentions(content: str, call: DeliveredCall) -> bool:
    """Return whether a result has its call's id or arguments, or the tool's name at the error."""
    if call.arguments and call.arguments in content:
        return True
    if not set(_WORD.findall(content)).isdisjoint(call.ids):
        return True
    lines = (line for line in content.splitlines() if in_message(line) is not None)
    return any(call.name in _WORD.findall(line) for line in lines)


def _is_torn(complaint: Complaint, siblings: SiblingCalls) -> bool:
    """Return whether the request repeats the call with fragments lost, doubled or mixed."""
    first, repeated = complaint.about[0], complaint.repeated
    if repeated is None:
        return False
    return relation(first.call, repeated, siblings) is not None


def _excluded(complaint: Complaint, confidence: Confidence) -> tuple[Excluded, ...]:
    other = "the tool failed to parse something else"
    if confidence is Confidence.PROVEN:
        torn = "the request does not repeat the call with the delivered arguments"
        return (Excluded(other, torn),)
    if confidence is Confidence.LIKELY:
        mentions = "the error mentions the call's arguments"
        return (Excluded(other, mentions if complaint.error.about_call else complaint.unread),)
    return ()


def _message(complaint: Complaint) -> str:
    first = complaint.about[0]
    more = len(complaint.about) - 1
    calls = call_label(*first) + (f" and {count(more, 'more call')}" if more else "")
    were = "were" if more else "was"
    shown = excerpt(first.call.arguments, 80)
    arguments = f": {shown!r}" if shown else ", without arguments, which this tool allows"
    reports = "the app printed an error" if complaint.logged else "the app reports an error"
    text = excerpt(complaint.error.text, 100)
    repeated = complaint.repeated
    became = f"; the app turned it into {excerpt(repeated.arguments, 80)!r}" if repeated else ""
    return (
        f"{reports} of {complaint.error.parser}, {text!r}, but {calls} {were} delivered"
        f" complete{arguments}{became}"
    )
