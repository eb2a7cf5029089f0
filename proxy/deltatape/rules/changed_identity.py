"""Calls that the application repeats under another name or id."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from deltatape.model.digest import CallWithRepeat, ReadBack
from deltatape.model.finding import Blame, Confidence, Excluded, Severity, weaker
from deltatape.model.request_summary import RepeatedCall
from deltatape.model.turn import DeliveredCallRef
from deltatape.printable import excerpt
from deltatape.rules._call_references import against, called, was_delivered
from deltatape.rules.context import Claim
from deltatape.rules.repeated import first_difference, is_derived, same_id, same_name
from deltatape.rules.rule import read_back_rule


@read_back_rule("C003", "identity-changed-by-app", Severity.ERROR)
def identity_changed_by_app(read_back: ReadBack) -> Iterator[Claim]:
    """Report a call that the application repeats under another name or id."""
    if not read_back.reply.whole:
        return
    for pair in read_back.pairs:
        changes = [*_name_changes(pair, read_back), *_id_changes(pair, read_back)]
        if not changes or not was_delivered(read_back, pair.delivered):
            continue
        works = (
            same_name(pair.delivered, pair.repetition) and pair.repetition.id in read_back.answered
        )
        surest = min((each.confidence for each in changes), key=lambda each: each.rank)
        yield Claim(
            message=(
                f"the next request repeats {called(read_back, pair.delivered)} with"
                f" {' and '.join(each.says for each in changes)}"
                f"{', and so does its result' if works else ''}"
            ),
            hint=_HINTS[surest],
            evidence=f"id {pair.repetition.id!r}, name {pair.repetition.name!r}",
            severity=Severity.WARNING if works else Severity.ERROR,
            blame=Blame.APP,
            against=against(
                DeliveredCallRef(call=pair.delivered, reply=read_back.reply),
                read_back.later,
                pair.repetition,
            ),
            confidence=weaker(surest, read_back.confidence),
            excluded=tuple(one for each in changes for one in each.excluded),
        )
    yield from _twins(read_back)


def _twins(read_back: ReadBack) -> Iterator[Claim]:
    """Report a call repeated twice: once as it streamed, and once as it ended."""
    for repetition in read_back.extra:
        original = next(
            (pair.delivered for pair in read_back.pairs if _is_copy(pair, repetition)), None
        )
        if original is None:
            continue
        yield Claim(
            message=(
                f"the next request repeats {called(read_back, original)} twice, the second"
                f" time with {_change('id', original.id or '', repetition.id or '')}"
            ),
            hint="run a call once: either while it streams, or after it has ended",
            evidence=f"id {repetition.id!r}, name {repetition.name!r}",
            severity=Severity.WARNING,
            blame=Blame.APP,
            against=against(
                DeliveredCallRef(call=original, reply=read_back.reply), read_back.later, repetition
            ),
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

    says: str
    confidence: Confidence
    excluded: tuple[Excluded, ...] = ()


def _is_copy(pair: CallWithRepeat, repetition: RepeatedCall) -> bool:
    """Return whether `repetition` has the content of the call that stands for the delivered one."""
    same = (
        same_name(pair.delivered, repetition)
        and first_difference(pair.delivered, repetition) is None
    )
    return same and first_difference(pair.delivered, pair.repetition) is None


def _name_changes(pair: CallWithRepeat, read_back: ReadBack) -> list[_Change]:
    """Return the changes of the name; frameworks repair unknown or misspelled ones."""
    if same_name(pair.delivered, pair.repetition):
        return []
    original, repetition = pair.delivered.name or "", pair.repetition.name or ""
    says = _change("name", original, repetition)
    if _times(original, repetition) > 1:
        never = Excluded(_REPAIR, "no tool's name is the delivered name repeated")
        return [_Change(says, Confidence.PROVEN, (never,))]
    offered = read_back.reply.tools
    if not repetition:
        needs = Excluded(_REPAIR, "the app repeats the call without a name")
        return [_Change(says, Confidence.LIKELY, (needs,))]
    if (offered and original not in offered) or _bare(original) == _bare(repetition):
        return []
    return [_Change(says, Confidence.POSSIBLE)]


def _bare(name: str) -> str:
    """Strip prefixes, case and punctuation: `functions.get_Weather` becomes `getweather`."""
    last = re.split(r"[.:/]|__", name)[-1]
    return _BREAKS.sub("", last).casefold()


def _id_changes(pair: CallWithRepeat, read_back: ReadBack) -> list[_Change]:
    """Return the changes of the id; a foreign one may be the app's or another reply's.

    So may one that the application made of the delivered one on purpose: its result says so.
    """
    original, repetition = pair.delivered.id or "", pair.repetition.id or ""
    if same_id(pair.delivered, pair.repetition):
        return []
    says = _change("id", original, repetition)
    if _times(original, repetition) > 1:
        never = Excluded(_REPAIR, "no framework creates an id by repeating the delivered one")
        return [_Change(says, Confidence.PROVEN, (never,))]
    if repetition in read_back.answered or (
        repetition and not is_derived(pair.delivered, pair.repetition)
    ):
        return []
    if set(pair.delivered.ids) & set(read_back.answered):
        apart = Excluded(_REPAIR, f"its result carries {excerpt(original, 60)!r}")
        return [_Change(says, Confidence.LIKELY, (apart,))]
    return [_Change(says, Confidence.POSSIBLE)]


def _times(original: str, repetition: str) -> int:
    """Return how many copies of `original` make up `repetition`; 0 if it is anything else."""
    times = len(repetition) // len(original) if original else 0
    return times if repetition == original * times else 0


def _change(what: str, original: str, repetition: str) -> str:
    times = _times(original, repetition)
    repeated = f" (the original {times} times)" if times > 1 else ""
    shown = repr(excerpt(repetition, 80)) if repetition else "empty"
    return f"the {what} {shown} instead of {excerpt(original, 80)!r}{repeated}"
