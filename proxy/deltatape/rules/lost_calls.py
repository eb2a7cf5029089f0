"""Calls that were delivered and that the application does not repeat."""

from collections.abc import Iterator

from deltatape.model.digest import DeliveredCall, HistoryMessage, ReadBack
from deltatape.model.finding import Confidence, Excluded, Severity, weaker
from deltatape.model.reply import CallStatus
from deltatape.model.request_summary import RepeatedCall
from deltatape.printable import count, excerpt
from deltatape.rules._call_references import ClaimGrade, against, call_label, was_delivered
from deltatape.rules.complaints import is_untrue, is_untrue_of_call
from deltatape.rules.context import Claim
from deltatape.rules.edits import breaks_schema
from deltatape.rules.repeated import CLEAN, ArgumentsDamage, leaves, relation
from deltatape.rules.rule import read_back_rule
from deltatape.wire.json_value import canonical, parse

_KNOWN_AT_LEAST = 3
"""Shorter values are not searched for in texts: they occur everywhere. In characters."""


@read_back_rule("C001", "call-lost-by-app", Severity.ERROR)
def call_lost_by_app(read_back: ReadBack) -> Iterator[Claim]:
    """Report a call that was delivered and that the application does not repeat."""
    if not read_back.reply.whole:
        return
    for call in read_back.lost:
        if call.status not in CLEAN or not was_delivered(read_back, call):
            continue
        if _is_repeated_otherwise(read_back, call):
            continue
        grade = _graded(read_back, call)
        yield Claim(
            message=(
                f"{call_label(call, read_back.reply)} was delivered complete, but the next"
                " request of the app does not have it:"
                f" {_instead(read_back)}{grade.clause and f'; {grade.clause}'}"
            ),
            hint=grade.hint,
            evidence=call.arguments or "(no argument bytes)",
            severity=grade.severity,
            against=against(call, read_back.reply, read_back.later),
            blame=grade.blame,
            confidence=weaker(grade.confidence, read_back.confidence),
            excluded=grade.excluded,
        )


_LAST = "only the last call was kept: keep one entry per index instead of one current call"
_FIRST = "if all calls should run, read every entry of tool_calls, and every index"
_ALL = "keep one entry per index, whatever the finish reason is"
_LOOK = (
    "check how the app handles a reply with calls: a filter, a denial, an early return; if"
    " it drops the call on purpose, ignore this finding"
)
_DROPPED = "the app dropped the call on purpose"
_DENIED = "a person or a filter denied the call"
_ONE = "the app runs one call at a time"


def _graded(read_back: ReadBack, call: DeliveredCall) -> ClaimGrade:
    if call.after_finish:
        return ClaimGrade(
            (
                "it came after the finish reason: a client that stops reading there never sees"
                " it (S010)"
            ),
            (
                "read the stream to its terminal event; the provider should not send calls"
                " after the finish reason"
            ),
            Confidence.PROVEN,
            severity=Severity.INFO,
            blame=None,
        )
    if set(call.answers_to) & set(read_back.answered) and call.ids:
        has = Excluded(_DROPPED, "the request has the result of the call")
        return ClaimGrade("", _ALL, Confidence.PROVEN, (has,))
    torn = _torn(read_back, call)
    if torn:
        return ClaimGrade("", _ALL, Confidence.PROVEN, (Excluded(_DROPPED, torn),))
    otherwise = _otherwise(read_back, call)
    if otherwise:
        clause = f"{otherwise}, so it may have been dropped on purpose"
        return ClaimGrade(clause, _LOOK, Confidence.POSSIBLE, severity=Severity.INFO)
    error = read_back.printed
    if error and is_untrue(error, read_back.lost) and is_untrue_of_call(error, read_back.lost):
        printed = f"after this reply the app printed {excerpt(error.text, 100)!r}"
        excluded = Excluded(_DROPPED, printed)
        return ClaimGrade("", _hint_by_place(read_back), Confidence.LIKELY, (excluded,))
    line = next((line for each, line in read_back.reported_lost if each in call.ids), "")
    if line:
        lost = Excluded(_DROPPED, f"after this reply the app printed {line!r}")
        return ClaimGrade(
            f"the app printed {line!r}", _hint_by_place(read_back), Confidence.LIKELY, (lost,)
        )
    if read_back.habits.broken:
        torn_elsewhere = Excluded(
            _DROPPED, f"the app breaks other calls, too: {read_back.habits.broken}"
        )
        return ClaimGrade("", _hint_by_place(read_back), Confidence.LIKELY, (torn_elsewhere,))
    if read_back.pairs:
        return _of_several(read_back, call)
    follows = "a user message follows" if _user_follows(read_back) else ""
    return ClaimGrade(
        f"{follows + ', ' if follows else ''}so it may have been dropped on purpose",
        _LOOK,
        Confidence.POSSIBLE,
        severity=Severity.WARNING,
    )


def _of_several(read_back: ReadBack, call: DeliveredCall) -> ClaimGrade:
    """Grade a lost call whose siblings are repeated, weighing a mistake against a choice."""
    calls = read_back.reply.calls
    kept = {pair.delivered.index for pair in read_back.pairs}
    tools = {pair.delivered.name for pair in read_back.pairs} | read_back.habits.keeps
    only_last = kept == {calls[-1].index}
    hint = _hint_by_place(read_back)
    refused = call.status is CallStatus.EMPTY_SUSPECT or breaks_schema(
        read_back.reply.schemas.get(call.name or ""), call.arguments
    )
    excluded = []
    if call.name in tools and not refused:
        excluded.append(Excluded(_DENIED, f"it keeps other calls of {call.name or 'this tool'}"))
    if read_back.habits.keeps_several:
        excluded.append(Excluded(_ONE, "elsewhere on the tape it repeats several calls of a reply"))
    elif only_last:
        excluded.append(
            Excluded(
                _ONE, ("it keeps the last call; an app that runs one at a time takes the first")
            )
        )
    likely = len(excluded) > 1 or (only_last and len(calls) > 2 and not refused)  # noqa: PLR2004
    if likely:
        return ClaimGrade("", hint, Confidence.LIKELY, tuple(excluded))
    return ClaimGrade(
        "it may have been dropped on purpose, by a filter or a limit of one call at a time",
        f"{hint}; if the app drops it on purpose, ignore this finding",
        Confidence.POSSIBLE,
        severity=Severity.WARNING,
    )


def _hint_by_place(read_back: ReadBack) -> str:
    """Return what to change, by which of the calls survived."""
    calls = read_back.reply.calls
    kept = {pair.delivered.index for pair in read_back.pairs}
    if kept == {calls[-1].index}:
        return _LAST
    return _FIRST if kept == {calls[0].index} else _ALL


def _torn(read_back: ReadBack, call: DeliveredCall) -> str:
    """Return where the fragments of `call` are instead, as a clause; "" if they are nowhere."""
    pieces = {piece for piece in call.fragments if piece}
    broken = [each for each in read_back.extra if _is_piece(each, pieces)]
    if broken:
        return f"{count(len(broken), 'call')} that it repeats instead contain its fragments"
    for pair in read_back.pairs:
        if call.arguments and pair.repetition.arguments != pair.delivered.arguments:
            found = relation(pair.delivered, pair.repetition, read_back.reply.calls)
            if found and found.damage is ArgumentsDamage.MIXED:
                return f"{found.clause}, in what the app repeats as call {pair.delivered.index}"
    return ""


def _is_piece(call: RepeatedCall, pieces: set[str]) -> bool:
    """Return whether a repeated call is one fragment of the delivered one and invalid JSON."""
    return call.arguments in pieces and parse(call.arguments).error is not None


def _user_follows(read_back: ReadBack) -> bool:
    following = read_back.following
    return bool(following) and following[0].role == "user" and not following[0].call_id


def _is_repeated_otherwise(read_back: ReadBack, call: DeliveredCall) -> bool:
    """Return whether the message has an equal call or a text with the call's id."""
    wanted = _content(call)
    if any(_content(each) == wanted for each in read_back.repeated_calls):
        return True
    known = [each for each in call.ids if len(each) > _KNOWN_AT_LEAST]
    near = read_back.later.history[read_back.start :]
    return any(each in message.content for message in near for each in known)


def _otherwise(read_back: ReadBack, call: DeliveredCall) -> str:
    """Describe where else in the request the call may be; "" if it is nowhere."""
    history, wanted = read_back.later.history, _content(call)
    if any(_content(each) == wanted for message in history for each in message.calls):
        return "the history has an equal call"
    if any(_mentions_call(message, call) for message in history[read_back.start :]):
        return "a text in the request mentions it"
    return ""


def _content(call: DeliveredCall | RepeatedCall) -> tuple[str | None, str]:
    return call.name, canonical(call.arguments.strip() or "{}") or call.arguments


def _mentions_call(message: HistoryMessage, call: DeliveredCall) -> bool:
    """Return whether a message mentions the call's name with a value of its arguments."""
    text = message.content
    if not call.name or call.name not in text:
        return False
    values = [each for each in leaves(call.arguments) if len(each) >= _KNOWN_AT_LEAST]
    return not values or any(each in text for each in values)


def _instead(read_back: ReadBack) -> str:
    kept = [pair.delivered.index for pair in read_back.pairs]
    if kept:
        places = ", ".join(str(index) for index in sorted(kept))
        return f"of {len(read_back.reply.calls)} calls, the request has only call {places}"
    if read_back.extra:
        return f"instead it has {count(len(read_back.extra), 'call')} that the model never made"
    return "its assistant message has no call at all"
