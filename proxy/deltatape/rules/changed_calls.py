"""Calls whose arguments, name or id the application changes before it repeats or runs them."""

import json
import re
import unicodedata
from collections.abc import Hashable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from deltatape.model.digest import CallWithRepeat, DeliveredCall, Digest, HistoryMessage, ReadBack
from deltatape.model.finding import Blame, Confidence, Excluded, Severity, weaker
from deltatape.model.reply import CallStatus
from deltatape.model.request_summary import RepeatedCall
from deltatape.model.turn import Continuation, Turn
from deltatape.printable import count, excerpt
from deltatape.rules._call_references import (
    ClaimGrade,
    RequestSpans,
    against,
    call_label,
    was_delivered,
)
from deltatape.rules.context import Claim
from deltatape.rules.edits import Following, breaks_schema, explain
from deltatape.rules.repeated import (
    CLEAN,
    ArgumentsDamage,
    Relation,
    SiblingCalls,
    delivered_keys,
    differences,
    first_difference,
    is_derived,
    is_same_content,
    missing_characters,
    relation,
    repeated_keys,
    same_id,
    same_name,
    takes_deltas,
)
from deltatape.rules.rule import read_back_rule, turn_rule
from deltatape.wire.json_value import parse

_SHORT = 200
"""Shorter arguments are not left out of a history to save space, in characters."""
_OF_FRAGMENTS = frozenset({ArgumentsDamage.DECODED, ArgumentsDamage.TRIMMED})
"""Damage that leaves valid JSON, but is not an edit: it occurs at borders of fragments or reads."""
_UNLIKE_EDITS = frozenset({ArgumentsDamage.GLUED, ArgumentsDamage.TORN})
"""Damage that could be an edit, but one without a purpose."""
_LONG = 2000
"""Longer arguments may be shortened to save space, in characters."""


@read_back_rule("C002", "arguments-changed-by-app", Severity.ERROR)
def arguments_changed_by_app(read_back: ReadBack) -> Iterator[Claim]:
    """Report arguments that the application repeats differently from how they were delivered."""
    if not read_back.reply.whole:
        return
    changes = _Changes(read_back)
    spans = RequestSpans(read_back.later)
    for pair, found in changes.found:
        schema = read_back.reply.schemas.get(pair.delivered.name or "")
        related = relation(pair.delivered, pair.repetition, changes.siblings)
        grade = _graded(changes, pair, related, explain(found, schema, changes.following))
        yield Claim(
            message=_message(read_back, pair, found[0].path, grade.clause),
            hint=grade.hint,
            evidence=pair.repetition.arguments or "(no arguments)",
            severity=grade.severity,
            blame=grade.blame,
            against=against(pair.delivered, read_back.reply, spans.of(pair.repetition)),
            confidence=weaker(grade.confidence, read_back.confidence),
            excluded=grade.excluded,
        )


class _Changes:
    """The changed calls of a read-back, and what each of them is compared with."""

    def __init__(self, read_back: ReadBack) -> None:
        self.read_back = read_back
        compared = (
            (pair, differences(pair.delivered, pair.repetition))
            for pair in read_back.pairs
            if pair.delivered.status in CLEAN and was_delivered(read_back, pair.delivered)
        )
        self.found = [(pair, found) for pair, found in compared if found]
        self.siblings = SiblingCalls(read_back.reply.calls)
        self.following = Following(
            (message.content for message in read_back.following),
            (each for _, found in self.found for each in found),
        )

    @cached_property
    def latest(self) -> bool:
        return self.read_back.latest

    @cached_property
    def only_permuted(self) -> bool:
        """Whether only ids are permuted: every delivered call is there under another's id."""
        pairs = self.read_back.pairs
        delivered = sorted((each.delivered.name or "", each.delivered.arguments) for each in pairs)
        repeated = sorted((each.repetition.name or "", each.repetition.arguments) for each in pairs)
        return delivered == repeated


_FACT_HINT = "nothing to fix, unless the tool needs the value exactly as delivered"
_LOOK = (
    "find the code that changes the arguments between the reply and the next request: a"
    " review by a person, a validation, a rewrite of the history"
)
_DECODER = "decode the whole response with one incremental UTF-8 decoder, not each chunk separately"
_NO_EDIT = "somebody edited the arguments, or the framework validated them"


def _graded(
    changes: _Changes, pair: CallWithRepeat, related: Relation | None, edit: str | None
) -> ClaimGrade:
    """Grade how sure it is that the code that joins fragments made the change."""
    if takes_deltas(pair.delivered, pair.repetition):
        return ClaimGrade(
            (
                "these are its deltas as delivered; the event that ends the call has other"
                " arguments (T015)"
            ),
            "take the arguments from the event that ends the call, if there is one",
            Confidence.PROVEN,
            severity=Severity.INFO,
            blame=None,
        )
    if related is None:
        return _of_values(pair, edit)
    damage, original = related.damage, pair.delivered
    if damage in (ArgumentsDamage.EMPTIED, ArgumentsDamage.EMPTY_OBJECT):
        return _of_nothing(changes, pair, related, edit)
    if damage is ArgumentsDamage.OTHER_CALL and changes.only_permuted:
        return ClaimGrade(related.clause, _LOOK, Confidence.POSSIBLE, severity=Severity.WARNING)
    valid = parse(pair.repetition.arguments).error is None and damage is not ArgumentsDamage.ENCODED
    if valid and edit is not None and damage not in _OF_FRAGMENTS | _UNLIKE_EDITS:
        return _fact(edit)
    because = f"{related.clause}; an edit does not produce this"
    if damage is ArgumentsDamage.CUT and len(original.arguments) > _SHORT:
        whole = len(original.arguments) > _LONG
        doubt = Confidence.POSSIBLE if whole else Confidence.LIKELY
        elided = Excluded(
            "the app keeps only the beginning of long arguments",
            f"they have only {len(original.arguments)} characters, and no marker replaces the rest",
        )
        return ClaimGrade(related.clause, related.hint, doubt, () if whole else (elided,))
    if valid and related.like_edit:
        return ClaimGrade(
            related.clause, related.hint, Confidence.POSSIBLE, severity=Severity.WARNING
        )
    if valid and damage not in _OF_FRAGMENTS:
        exactly = Excluded(_NO_EDIT, f"{related.clause}, character by character")
        return ClaimGrade(related.clause, related.hint, Confidence.LIKELY, (exactly,))
    excluded = (
        Excluded(_NO_EDIT, because),
        Excluded(
            "the arguments were left out to save space",
            "the remaining text does not mark an omission:"
            f" {excerpt(pair.repetition.arguments, 40)!r}",
        ),
        Excluded(
            "the call was not yet complete when the request was sent",
            f"its last fragment had arrived, on line {original.line}",
        ),
    )
    return ClaimGrade(related.clause, related.hint, Confidence.PROVEN, excluded)


def _of_nothing(
    changes: _Changes, pair: CallWithRepeat, related: Relation, edit: str | None
) -> ClaimGrade:
    """Grade arguments that were emptied; shortened histories look the same."""
    original = pair.delivered
    if edit is not None:
        return _fact(edit)
    short = len(original.arguments) <= _SHORT
    if not (short and changes.latest):
        return ClaimGrade(related.clause, _LOOK, Confidence.POSSIBLE, severity=Severity.WARNING)
    room = Excluded(
        "old or long arguments were left out to save space",
        f"it is the latest call, and has {count(len(original.arguments), 'character')}",
    )
    broken = breaks_schema(
        changes.read_back.reply.schemas.get(original.name or ""), pair.repetition.arguments
    )
    if related.damage is ArgumentsDamage.EMPTY_OBJECT:
        needs = (
            (
                Excluded(
                    _NO_EDIT,
                    ("the tool's schema requires members that an empty object does not have"),
                ),
            )
            if broken
            else ()
        )
        return ClaimGrade(related.clause, related.hint, Confidence.LIKELY, (room, *needs))
    text = Excluded(_NO_EDIT, "an edit does not turn an object into empty text, which is not JSON")
    return ClaimGrade(related.clause, related.hint, Confidence.PROVEN, (room, text))


def _of_values(pair: CallWithRepeat, edit: str | None) -> ClaimGrade:
    """Grade two values that differ where no fragment explains the difference."""
    if edit is not None:
        return _fact(edit)
    gone = _undecoded(pair.delivered.arguments, pair.repetition.arguments)
    if gone:
        return ClaimGrade(
            f"{gone}, which happens when chunks of the response are decoded separately",
            _DECODER,
            Confidence.POSSIBLE,
            severity=Severity.WARNING,
        )
    return ClaimGrade(
        "no fragment of the reply explains the change: the app may have made it on purpose",
        _LOOK,
        Confidence.POSSIBLE,
        severity=Severity.WARNING,
    )


def _undecoded(delivered: str, repeated: str) -> str:
    """Return a clause that a decoder lost characters; "" if nothing suggests it.

    Only some non-ASCII characters are missing, and others of the same script are there: a filter
    would have removed these, too.
    """
    one, other = (
        json.dumps(parse(text).value, ensure_ascii=False, sort_keys=True)
        for text in (delivered, repeated)
    )
    gone = missing_characters(one, other)
    kept = {char for char in other if not char.isascii()}
    if not gone:
        return ""
    scripts = {_script(char) for char in gone}
    alike = {char for char in kept if _script(char) in scripts}
    if scripts != {_script(char) for char in alike}:
        return ""
    return f"{min(gone)!r} is missing, but similar characters are there ({min(alike)!r})"


def _script(char: str) -> str:
    """Return the first word of a character's Unicode name, such as `LATIN` or `CJK`."""
    return unicodedata.name(char, "").partition(" ")[0]


def _fact(edit: str) -> ClaimGrade:
    return ClaimGrade(edit, _FACT_HINT, Confidence.PROVEN, severity=Severity.INFO, blame=None)


def _message(read_back: ReadBack, pair: CallWithRepeat, path: str, why: str) -> str:
    original, repetition = (
        excerpt(pair.delivered.arguments, 80),
        excerpt(pair.repetition.arguments, 80),
    )
    extra = len(read_back.extra)
    more = f"; it also repeats {count(extra, 'call')} that the model never made" if extra else ""
    return (
        f"{call_label(pair.delivered, read_back.reply)} was delivered with {original!r},"
        f" but the app repeats {repetition!r}"
        f" (first difference at {path}){': ' if why else ''}{why}{more}"
    )


_ERROR = re.compile(
    r"error|exception|fail|invalid|incomplete|incorrect|malformed|truncat|cut ?off|broke"
    r"|interrupt|cancel|abort|denied|reject|refus|missing|required|unable|could ?n[o']t|can ?not"
    r"|can't|did ?n[o']t|was ?n[o']t|not |no result|never|retry|again|unknown|unexpected|limit"
    r"|too long|parse|traceback|skipp|stopped|fehler|erreur|\u9519\u8bef|\u5931\u8d25"
    r"|\u30a8\u30e9\u30fc",
    re.IGNORECASE,
)
"""Words of a result which says that nothing was run: better too many than too few."""
_WORD = re.compile(r"\w+")


@turn_rule("C016", "broken-call-executed", Severity.ERROR)
def broken_call_executed(turn: Turn) -> Iterator[Claim]:
    """Report a call that was cut off and run all the same."""
    found = turn.continues
    if found is None or found.stored:
        return
    history = turn.digest.history
    repeated = [call for each in history[found.start : found.end] for call in each.calls]
    results = {each.call_id: each for each in history[found.end :] if each.call_id}
    for reply, call in _broken(found):
        again = _named(call, repeated)
        result = next((results[each] for each in call.answers_to if each in results), None)
        if again is None or result is None or not _may_have_run(again, result):
            continue
        if not _is_completed(call, again) or _came_otherwise(again, found, reply):
            continue
        yield _run_anyway(turn, call, reply, again, result)


_AGAIN = {True: "ask again with a higher limit", False: "send the request again"}
"""What else to do, by whether a limit cut the call."""


def _run_anyway(
    turn: Turn, call: DeliveredCall, reply: Digest, again: RepeatedCall, result: HistoryMessage
) -> Claim:
    ended = "stopped" if reply.whole else "was cut off"
    if reply.limited:
        ended = "hit the output limit"
    shown = excerpt(again.arguments, 80)
    said = excerpt(result.content, 60)
    guessed = _holds_some(call, again)
    return Claim(
        message=f"{call_label(call, reply)} {ended} in the middle of its arguments; the app"
        + (
            f" completed them to {shown} and ran the call"
            if guessed
            else f" repeats it with {shown} and the result {said!r}: it may have run the call"
        ),
        hint=(
            f"return an error for a call that was cut, or {_AGAIN[reply.limited]}; never run"
            " repaired JSON"
        ),
        blame=Blame.APP,
        confidence=Confidence.LIKELY if guessed else Confidence.POSSIBLE,
        severity=None if guessed else Severity.WARNING,
        evidence=again.arguments,
        against=against(call, reply, RequestSpans(turn.digest).of(again)),
        excluded=(
            Excluded("the app answered the call with an error", f"its result is {said!r}"),
            Excluded(
                "another attempt delivered the complete call",
                (
                    "no other reply to this request on the tape has it, and the app's call has the"
                    " id of the cut one"
                ),
            ),
        )
        if guessed
        else (),
    )


def _holds_some(call: DeliveredCall, again: RepeatedCall) -> bool:
    """Return whether the arguments were made of what was delivered.

    Others, `{}` mostly, stand in its place where an API requires valid JSON: whether the result is
    an error then depends on its words, which may be of any language.
    """
    return not set(_WORD.findall(call.arguments)).isdisjoint(_WORD.findall(again.arguments))


def _broken(found: Continuation) -> Iterator[tuple[Digest, DeliveredCall]]:
    """Yield the incomplete calls with the digests of their replies."""
    for reply in found.replies:
        if reply.lossy:
            continue
        for call in reply.calls:
            empty = call.status is CallStatus.EMPTY_SUSPECT and call is reply.calls[-1]
            if call.status is CallStatus.TRUNCATED or (empty and (reply.limited or reply.failed)):
                yield reply, call


def _named(call: DeliveredCall, repeated: Sequence[RepeatedCall]) -> RepeatedCall | None:
    """Return the one repeated call with the id and the name of `call`."""
    same = [each for each in repeated if each.id in call.ids and each.name == call.name]
    return same[0] if len(same) == 1 else None


def _may_have_run(again: RepeatedCall, result: HistoryMessage) -> bool:
    """Return whether the arguments can be run and the result does not say that they were not."""
    whole = parse(again.arguments.strip() or "{}").error is None
    return whole and not _ERROR.search(result.content)


def _is_completed(call: DeliveredCall, again: RepeatedCall) -> bool:
    """Return whether the arguments hold more than what was delivered, or a placeholder."""
    return again.arguments.strip() != call.arguments.strip() or not call.arguments.strip()


def _came_otherwise(again: RepeatedCall, found: Continuation, but: Digest) -> bool:
    """Return whether another reply to the same request has exactly this call."""
    others = (call for each in found.replies if each is not but for call in each.calls)
    return any(each.name == again.name and again.id in each.ids for each in others)


@read_back_rule("C003", "identity-changed-by-app", Severity.ERROR)
def identity_changed_by_app(read_back: ReadBack) -> Iterator[Claim]:
    """Report a call that the application repeats under another name or id."""
    if not read_back.reply.whole:
        return
    spans, answered = RequestSpans(read_back.later), frozenset(read_back.answered)
    for pair in read_back.pairs:
        changes = [*_name_changes(pair, read_back), *_id_changes(pair, answered)]
        if not changes or not was_delivered(read_back, pair.delivered):
            continue
        works = same_name(pair.delivered, pair.repetition) and pair.repetition.id in answered
        surest = min((each.confidence for each in changes), key=lambda each: each.rank)
        yield Claim(
            message=(
                f"the next request repeats {call_label(pair.delivered, read_back.reply)} with"
                f" {' and '.join(each.clause for each in changes)}"
                f"{', and so does its result' if works else ''}"
            ),
            hint=_HINTS[surest],
            evidence=f"id {pair.repetition.id!r}, name {pair.repetition.name!r}",
            severity=Severity.WARNING if works else Severity.ERROR,
            blame=Blame.APP,
            against=against(pair.delivered, read_back.reply, spans.of(pair.repetition)),
            confidence=weaker(surest, read_back.confidence),
            excluded=tuple(one for each in changes for one in each.excluded),
        )
    yield from _twins(read_back, spans)


def _twins(read_back: ReadBack, spans: RequestSpans) -> Iterator[Claim]:
    """Report a call repeated twice: once as it streamed, and once as it ended."""
    if not read_back.extra:
        return
    kept = _Kept(read_back)
    for repetition in read_back.extra:
        original = kept.equal(repetition)
        if original is None:
            continue
        yield Claim(
            message=(
                f"the next request repeats {call_label(original, read_back.reply)} twice, the"
                f" second time with {_change('id', original.id or '', repetition.id or '')}"
            ),
            hint="run a call once: either while it streams, or after it has ended",
            evidence=f"id {repetition.id!r}, name {repetition.name!r}",
            severity=Severity.WARNING,
            blame=Blame.APP,
            against=against(original, read_back.reply, spans.of(repetition)),
            confidence=Confidence.POSSIBLE,
        )


_HINTS = {
    Confidence.PROVEN: (
        "take id and name from the first fragment that has them; do not append later ones"
    ),
    Confidence.LIKELY: "keep the id of a call as delivered, in the call and in its result",
    Confidence.POSSIBLE: (
        "find the code that renames the call between the reply and the next request"
    ),
}
_REPAIR = "the framework corrects names, or assigns its own ids"
_BREAKS = re.compile(r"[\W_]+")


class _Change(NamedTuple):
    """A change to a name or an id, and how sure it is that this is a mistake."""

    clause: str
    confidence: Confidence
    excluded: tuple[Excluded, ...] = ()


class _Kept:
    """The delivered calls whose arguments the application repeats unchanged."""

    def __init__(self, read_back: ReadBack) -> None:
        self._calls = [
            pair.delivered
            for pair in read_back.pairs
            if first_difference(pair.delivered, pair.repetition) is None
        ]
        self._first: dict[Hashable, int] = {}
        """The place of the first one with a key."""
        self._masked: list[int] = []
        for place, call in enumerate(self._calls):
            keys, masked = delivered_keys(call)
            for key in keys:
                self._first.setdefault(key, place)
            if masked:
                self._masked.append(place)

    def equal(self, repetition: RepeatedCall) -> DeliveredCall | None:
        """Return the first of them with the content of `repetition`."""
        keys, masked = repeated_keys(repetition)
        known = (self._first[key] for key in keys if key in self._first)
        end = min(known, default=len(self._calls))
        for place in range(end) if masked else self._masked:
            if place >= end:
                break
            if is_same_content(self._calls[place], repetition):
                return self._calls[place]
        return self._calls[end] if end < len(self._calls) else None


def _name_changes(pair: CallWithRepeat, read_back: ReadBack) -> list[_Change]:
    """Return the changes of the name; frameworks repair unknown or misspelled ones."""
    if same_name(pair.delivered, pair.repetition):
        return []
    original, repetition = pair.delivered.name or "", pair.repetition.name or ""
    clause = _change("name", original, repetition)
    if _times(original, repetition) > 1:
        never = Excluded(_REPAIR, "no tool's name is the delivered name repeated")
        return [_Change(clause, Confidence.PROVEN, (never,))]
    offered = read_back.reply.tools
    if not repetition:
        needs = Excluded(_REPAIR, "the app repeats the call without a name")
        return [_Change(clause, Confidence.LIKELY, (needs,))]
    if (offered and original not in offered) or _bare(original) == _bare(repetition):
        return []
    return [_Change(clause, Confidence.POSSIBLE)]


def _bare(name: str) -> str:
    """Strip prefixes, case and punctuation: `functions.get_Weather` becomes `getweather`."""
    last = re.split(r"[.:/]|__", name)[-1]
    return _BREAKS.sub("", last).casefold()


def _id_changes(pair: CallWithRepeat, answered: frozenset[str]) -> list[_Change]:
    """Return the changes of the id; a foreign one may be the app's or another reply's.

    An id that the application derived from the delivered one on purpose appears in its result, too.
    """
    original, repetition = pair.delivered.id or "", pair.repetition.id or ""
    if same_id(pair.delivered, pair.repetition):
        return []
    clause = _change("id", original, repetition)
    if _times(original, repetition) > 1:
        never = Excluded(_REPAIR, "no framework creates an id by repeating the delivered one")
        return [_Change(clause, Confidence.PROVEN, (never,))]
    if repetition in answered or (repetition and not is_derived(pair.delivered, pair.repetition)):
        return []
    if not answered.isdisjoint(pair.delivered.ids):
        apart = Excluded(_REPAIR, f"its result carries {excerpt(original, 60)!r}")
        return [_Change(clause, Confidence.LIKELY, (apart,))]
    return [_Change(clause, Confidence.POSSIBLE)]


def _times(original: str, repetition: str) -> int:
    """Return how many copies of `original` make up `repetition`; 0 if it is anything else."""
    times = len(repetition) // len(original) if original else 0
    return times if repetition == original * times else 0


def _change(what: str, original: str, repetition: str) -> str:
    times = _times(original, repetition)
    repeated = f" ({times} copies of the original)" if times > 1 else ""
    shown = repr(excerpt(repetition, 80)) if repetition else "empty"
    return f"the {what} {shown} instead of {excerpt(original, 80)!r}{repeated}"
