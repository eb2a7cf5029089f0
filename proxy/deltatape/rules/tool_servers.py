"""Calls that MCP servers were asked for: what came between the model, the server and the history.

Three witnesses: the call that the model made, the call that the server was asked for, and the
result that the application sends back. Who stands between two of them changed what differs.
"""

import json
import re
from collections.abc import Iterator, Sequence

from deltatape.model.digest import (
    ASSISTANT,
    CallWithServer,
    DeliveredCall,
    HistoryMessage,
    ReadBack,
)
from deltatape.model.finding import Blame, Confidence, Excluded, Severity, weaker
from deltatape.model.request_summary import RepeatedCall
from deltatape.model.tool_server import ServedCall
from deltatape.printable import count, excerpt
from deltatape.rules._call_references import ClaimGrade, against, call_label, was_delivered
from deltatape.rules.context import Claim
from deltatape.rules.edits import Following, breaks_schema, explain
from deltatape.rules.repeated import (
    ABSENT,
    CLEAN,
    Difference,
    Relation,
    SiblingCalls,
    differences,
    first_difference,
    misdecoded,
    relation,
)
from deltatape.rules.rule import read_back_rule
from deltatape.wire.json_value import parse

_NS = 1_000_000_000
_SHOWN = 80
_EXACT = 2**53
"""Beyond it, a double does not tell an integer from its neighbours."""
_FINITE = 10**300
"""Beyond it, there are hardly any doubles."""


def _asked(read_back: ReadBack) -> Iterator[CallWithServer]:
    """Yield calls that came whole, before the request that brings their results."""
    for each in read_back.with_server if read_back.reply.whole else ():
        if each.delivered.status in CLEAN and was_delivered(read_back, each.delivered):
            yield each


def _claim(read_back: ReadBack, call: DeliveredCall, message: str, grade: ClaimGrade) -> Claim:
    """Return a claim about a call; the grade's clause is its evidence."""
    return Claim(
        message=message,
        hint=grade.hint,
        evidence=grade.clause,
        severity=grade.severity,
        blame=grade.blame,
        against=against(call, read_back.reply),
        confidence=weaker(grade.confidence, read_back.confidence),
        excluded=grade.excluded,
    )


# Arguments.

_PLACEHOLDER = re.compile(r"\$\{|\{\{|<[A-Za-z_]+>|%[A-Z_]+%|\$[A-Z_]{2,}")
"""What clients fill in: `${API_KEY}`, `{{user}}`, `<secret>`."""
_EDITED = "somebody edited the arguments, or the client fills in or validates them"
_HINT = "pass the arguments of the model's call on as they were parsed, all of them, once"


@read_back_rule("C023", "arguments-changed-for-tool-server", Severity.ERROR)
def arguments_changed_for_tool_server(read_back: ReadBack) -> Iterator[Claim]:
    """Report arguments that a tool server was given differently from how the model wrote them."""
    for each in _asked(read_back):
        if not each.served:
            continue
        served = each.served[-1]
        found = differences(each.delivered, _as_repeated(served))
        if not found or _is_told(read_back, each.delivered, served):
            continue
        grade = _graded_change(read_back, each, served, found)
        if grade is not None:
            yield _claim(
                read_back,
                each.delivered,
                f"{call_label(each.delivered, read_back.reply)} was delivered with"
                f" {excerpt(each.delivered.arguments, _SHOWN)!r}, but the app asked the tool server"
                f" for {served.name} with {excerpt(served.arguments, _SHOWN)!r} in"
                f" #{served.exchange} (first difference at {found[0].path})",
                grade,
            )


def _as_repeated(served: ServedCall) -> RepeatedCall:
    return RepeatedCall(id=None, name=served.name, arguments=served.arguments)


def _is_told(read_back: ReadBack, delivered: DeliveredCall, served: ServedCall) -> bool:
    """Return whether the history says what the server was asked: others rules judge that."""
    repeated = (pair.repetition for pair in read_back.pairs if pair.delivered is delivered)
    return any(
        parse(each.arguments.strip() or "{}").value == parse(served.arguments).value
        for each in repeated
    )


def _graded_change(
    read_back: ReadBack, call: CallWithServer, served: ServedCall, found: Sequence[Difference]
) -> ClaimGrade | None:
    """Grade a change; None: clients make such ones on purpose."""
    texts = [(one.delivered, one.repeated) for one in found]
    if any(_is_rounded(*pair) for pair in texts):
        excluded = Excluded(_EDITED, "the number is the nearest that a double can hold")
        hint = "read integers of more than 53 bits as integers, not as floating-point numbers"
        return ClaimGrade(served.arguments, hint, Confidence.PROVEN, (excluded,))
    damaged = [
        isinstance(one, str) and isinstance(other, str) and misdecoded(one, other)
        for one, other in texts
    ]
    if all(damaged):
        excluded = Excluded(_EDITED, "characters outside ASCII are damaged, and nothing else is")
        hint = "decode and write the arguments as UTF-8, in one piece"
        return ClaimGrade(served.arguments, hint, Confidence.PROVEN, (excluded,))
    schema = read_back.reply.schemas.get(call.delivered.name or "")
    if served.arguments == "{}":
        return _of_nothing(served, is_broken=bool(breaks_schema(schema, "{}")))
    following = Following(_own_words(read_back, served), found)
    if _is_on_purpose(call.delivered, served, found) or explain(found, schema, following):
        return None
    if any(other is ABSENT for _, other in texts):
        return ClaimGrade(
            f"{served.arguments}: the client may leave out arguments on purpose",
            _HINT,
            Confidence.POSSIBLE,
            severity=Severity.INFO,
        )
    as_asked = any(
        pair.delivered is call.delivered
        and first_difference(pair.delivered, pair.repetition) is None
        for pair in read_back.pairs
    )
    if not as_asked:
        return ClaimGrade(served.arguments, _HINT, Confidence.POSSIBLE, severity=Severity.WARNING)
    related = _related(read_back, call.delivered, served)
    if related is None:
        return ClaimGrade(
            f"{served.arguments}: the app may change values on purpose",
            _HINT,
            Confidence.POSSIBLE,
            severity=Severity.WARNING,
        )
    told = Excluded(
        "a person or a hook edited the call",
        f"{related.clause}, and the history tells the model that its call ran as it was made",
    )
    return ClaimGrade(
        served.arguments, _HINT, Confidence.LIKELY, (told,), severity=Severity.WARNING
    )


def _related(read_back: ReadBack, call: DeliveredCall, served: ServedCall) -> Relation | None:
    """Return how the arguments derive from the fragments of the reply, written as models do."""
    siblings = SiblingCalls(read_back.reply.calls)
    compact = json.dumps(parse(served.arguments).value, ensure_ascii=False, separators=(",", ":"))
    written = (
        RepeatedCall(id=None, name=served.name, arguments=text)
        for text in (compact, served.arguments)
    )
    found = (relation(call, each, siblings) for each in written)
    return next((each for each in found if each is not None), None)


def _own_words(read_back: ReadBack, served: ServedCall) -> Iterator[str]:
    """Yield what the application says after a call: results without the words of the server."""
    for message in read_back.following:
        said = message.content
        for text in filter(None, (*(served.texts or ()), served.structured)):
            said = said.replace(text, "")
        yield said


def _of_nothing(served: ServedCall, *, is_broken: bool) -> ClaimGrade:
    if not is_broken:
        return ClaimGrade(served.arguments, _HINT, Confidence.POSSIBLE, severity=Severity.WARNING)
    filtered = Excluded(
        "the client leaves out arguments that the tool does not take",
        "the tool's schema in the request requires some, and all are gone",
    )
    return ClaimGrade(served.arguments, _HINT, Confidence.PROVEN, (filtered,))


def _is_rounded(one: object, other: object) -> bool:
    """Return whether a long integer has become its neighbour."""
    if not (isinstance(one, int) and isinstance(other, int | float)) or one == other:
        return False
    return _EXACT < abs(one) < _FINITE and float(one) == float(other)


def _is_on_purpose(
    delivered: DeliveredCall, served: ServedCall, found: Sequence[Difference]
) -> bool:
    """Return whether a client is known to make such a change: it adds, wraps, or fills in."""
    if all(one.delivered is ABSENT for one in found):
        return True
    value, asked = parse(delivered.arguments).value, parse(served.arguments).value
    if isinstance(asked, dict) and value in asked.values():
        return True
    changed = [one for one in found if one.delivered is not ABSENT]
    return all(_is_filled_in(one.delivered, one.repeated) for one in changed)


def _is_filled_in(one: object, other: object) -> bool:
    """Return whether a text was resolved: a placeholder, or a path relative to some folder."""
    if not (isinstance(one, str) and isinstance(other, str)):
        return False
    bare = re.sub(r"^(?:\./|~/|/)+", "", one.strip()).rstrip("/.")
    resolved = other.rstrip("/").endswith(bare) and len(other) >= len(bare)
    return resolved or _PLACEHOLDER.search(one) is not None


# Calls that no server was asked for.

_NOT_RUN = re.compile(
    r"error|exception|fail|invalid|denied|den(?:y|ies)|reject|refus|declin|cancel|abort|interrupt"
    r"|approv|permission|allowed|block|polic|hook|skip|disabled|unavailable|not |n't|never|no "
    r"|unable|retry|again|limit|time.?d? ?out|unknown|missing|required|duplicate|already|cached?"
    r"|background|pending|queued|started|placeholder|stub|omitted|removed|cleared|elided|\.\.\.",
    re.IGNORECASE,
)
"""Words of results that say that the call did not run, or not yet; better too many than too few."""


@read_back_rule("C024", "tool-server-not-asked", Severity.ERROR)
def tool_server_not_asked(read_back: ReadBack) -> Iterator[Claim]:
    """Report a call of a server's tool that has a result although no server was asked."""
    for each in _asked(read_back):
        if each.served or each.unclear or each.before:
            continue
        result = _result(read_back, each.delivered)
        if result is None or not result.content.strip() or _NOT_RUN.search(result.content):
            continue
        yield _claim(
            read_back,
            each.delivered,
            f"{call_label(each.delivered, read_back.reply)} has a result in the history, but no"
            f" tool server on the tape was asked for {each.tool}",
            ClaimGrade(
                result.content,
                "if this is not intended: find where the app answers the call without the tool"
                " server: a stub, a tool of the same name, a result kept from elsewhere",
                Confidence.POSSIBLE,
                severity=Severity.WARNING,
            ),
        )


def _result(read_back: ReadBack, call: DeliveredCall) -> HistoryMessage | None:
    """Return the result of a call in the history; None if there is none, or several."""
    found = []
    for message in read_back.following:
        if message.role in ASSISTANT:
            break
        if message.call_id in call.answers_to:
            found.append(message)
    return found[0] if len(found) == 1 else None


# Results.

_SHORT = 200
"""Longer texts are shortened and summarised, in characters."""
_ALIKE = 0.5
"""How many of the words of the shorter text a text that was made of it has at least."""
_REMARK = re.compile(
    r"\*{3}|redact|mask|\[[A-Z_ ]{3,}\]|schema|valid|polic|guard|block|hook|den(?:ied|y)|permission"
    r"|user|cancel|interrupt|approv|reject|time.?d? ?out|truncat|omitted|cleared|removed|elided"
    r"|too (?:long|large|big)|saved|stored|written|see |file|limit|summar|cached?|image|binary",
    re.IGNORECASE,
)
"""Words of texts that replace a result on purpose."""
_WORDS = re.compile(r"\w+")
_CONTENT = "take the texts of the server's result, and send them back under the id of their call"


@read_back_rule("C025", "tool-result-changed-by-app", Severity.ERROR)
def tool_result_changed_by_app(read_back: ReadBack) -> Iterator[Claim]:
    """Report a result in the history that is not what the tool server answered."""
    every = [one for each in read_back.with_server for one in each.served]
    for each in _asked(read_back):
        result = _result(read_back, each.delivered)
        answers = [one for one in each.served if one.texts is not None]
        if result is None or not answers or any(_is_open(one, read_back) for one in answers):
            continue
        if any(_is_in(one, result.content) for one in answers):
            continue
        served = answers[-1]
        others = [one for one in every if one not in each.served]
        grade = _graded_result(read_back, served, result.content, others)
        if grade is not None:
            yield _claim(
                read_back,
                each.delivered,
                f"the tool server answered {call_label(each.delivered, read_back.reply)} with"
                f" {excerpt(' '.join(served.texts or ()), _SHOWN)!r} in #{served.exchange}, but the"
                f" history of the app says {excerpt(result.content, _SHOWN)!r}",
                grade,
            )


def _is_open(served: ServedCall, read_back: ReadBack) -> bool:
    """Return whether an application may use an answer in an unknown way.

    Errors are told in many words, other contents than texts are shown otherwise, and what comes
    late is told no more.
    """
    late = _lateness(served, read_back)
    return served.failed or served.other or not any(served.texts or ()) or late > 0


def _lateness(served: ServedCall, read_back: ReadBack) -> int:
    """Return how long after the request with its result an answer came, in nanoseconds."""
    asked, answered = read_back.later.t_ns, served.answered_ns
    return answered - asked if asked is not None and answered is not None else 0


def _squeezed(text: str) -> str:
    return " ".join(text.split())


def _is_in(served: ServedCall, content: str) -> bool:
    """Return whether a result in the history may be made of the answer.

    It may be a part of it, have more around it, be written as JSON, be reformatted, or summarised.
    """
    plain = _squeezed(content)
    texts = [each for each in (*(served.texts or ()), served.structured) if each.strip()]
    for text in texts:
        spelled = (text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1])
        if any(_squeezed(each) in plain for each in spelled):
            return True
        if plain and plain.strip('"') in _squeezed(text):
            return True
    if any(misdecoded(text.strip(), content.strip()) for text in texts):
        return False
    words = {each.lower() for text in texts for each in _WORDS.findall(text)}
    kept = {each.lower() for each in _WORDS.findall(content)}
    return len(words & kept) >= _ALIKE * max(1, min(len(words), len(kept)))


def _graded_result(
    read_back: ReadBack, served: ServedCall, content: str, others: Sequence[ServedCall]
) -> ClaimGrade | None:
    """Grade a result that has little of the answer; None: it may be so on purpose."""
    texts = served.texts or ()
    whole = " ".join(texts)
    if any(misdecoded(each.strip(), content.strip()) for each in texts):
        damaged = Excluded(
            "the app rewrites results", "characters outside ASCII are damaged, and nothing else is"
        )
        hint = "read what the server writes as UTF-8, in one piece"
        return ClaimGrade(content, hint, Confidence.PROVEN, (damaged,))
    other = next(
        (one for one in others if _squeezed(content) == _squeezed(" ".join(one.texts or ()))), None
    )
    if other is not None and content.strip():
        same = Excluded(
            "the server answered both calls alike",
            f"it answered this one with {excerpt(whole, 60)!r}",
        )
        hint = "keep the id of each call with its request to the server: answers come in any order"
        return ClaimGrade(
            f"{content}: that is its answer to {other.name} in #{other.exchange}",
            hint,
            Confidence.PROVEN,
            (same,),
        )
    if len(whole) > _SHORT or not read_back.latest or _REMARK.search(content):
        return None
    if content.strip():
        return ClaimGrade(content, _CONTENT, Confidence.POSSIBLE, severity=Severity.WARNING)
    replaced = Excluded(
        "the app shortens results, or leaves them out to save space",
        f"it is the latest result, the answer has only {count(len(whole), 'character')}, and"
        " nothing stands in its place",
    )
    return ClaimGrade("(empty)", _CONTENT, Confidence.LIKELY, (replaced,))


# The server's own failures.

_LEFT = "the client ended the server, or left it"
_NO_ANSWER = {
    "upstream_closed": "ended",
    "upstream_reset": "reset the connection",
    "refused": "could not be reached",
    "timeout": "had not answered when it was given up",
}


@read_back_rule("C026", "tool-server-failed", Severity.WARNING)
def tool_server_failed(read_back: ReadBack) -> Iterator[Claim]:
    """Report a call that its tool server answered with an error, late, or never."""
    for each in _asked(read_back):
        if not each.served:
            continue
        served = each.served[-1]
        severity, what = _failure(served, read_back)
        ended = served.texts is None
        if what:
            yield _claim(
                read_back,
                each.delivered,
                f"the tool server {what}: {call_label(each.delivered, read_back.reply)}, asked as"
                f" {served.name} in #{served.exchange}; neither the model nor the app is the cause",
                ClaimGrade(
                    " ".join(served.texts or ()) or served.arguments,
                    "look at what the tool server prints, and at the call that it was asked for",
                    Confidence.LIKELY if ended else Confidence.PROVEN,
                    (
                        Excluded(
                            _LEFT,
                            "it had neither closed the server's input nor cancelled the call",
                        ),
                    )
                    if ended
                    else (),
                    severity=severity,
                    blame=Blame.TOOL_SERVER if ended else None,
                ),
            )


def _failure(served: ServedCall, read_back: ReadBack) -> tuple[Severity, str]:
    """Return how grave a failure of a server is, and what it did; "" if nothing failed."""
    if served.texts is None:
        ended = _NO_ANSWER.get(served.ending, "")
        return Severity.WARNING, ended and f"{ended} without an answer"
    late = _lateness(served, read_back)
    if late > 0:
        return Severity.INFO, f"answered {late / _NS:.1f} s after the app went on without it"
    said = excerpt(" ".join(served.texts), _SHOWN)
    return Severity.INFO, f"answered with an error ({said})" if served.failed else ""
