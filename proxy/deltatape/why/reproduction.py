"""What a test needs to reproduce an app's mistake: its codes and its exchanges."""

from collections.abc import Sequence

from deltatape.diagnose.digest import digests_of
from deltatape.diagnose.rebuild import analyse
from deltatape.model.exchange import Exchange
from deltatape.model.explanation import Explanation
from deltatape.model.finding import Blame, Severity
from deltatape.why.tape_context import are_linked

_ON_TAPE = frozenset({"D003", "D004", "C006", "C008", "C009"} | {"C018", "C019", "C020", "C021"})
"""Codes that need more of a tape than two exchanges: its log, its end, a row of turns."""

_UNTESTABLE = frozenset({"S005", "W006"})
"""Codes that even a correct app keeps against the tape, which has no answer to a corrected request,
and nothing behind the place where the app left."""


def mistakes(explanation: Explanation) -> tuple[str, ...]:
    """Return the codes of the app's mistakes that a test with this tape detects."""
    found = (each for each in explanation.findings if each.blame is Blame.APP)
    codes = {each.code for each in found if each.severity is not Severity.INFO}
    return tuple(sorted(codes - _UNTESTABLE))


def needed(explanation: Explanation, exchanges: Sequence[Exchange]) -> frozenset[int] | None:
    """Return the exchanges that reproduce `explanation`; None: the whole tape.

    These are the exchange itself, the earlier ones of its conversation, the one that repeats its
    reply, and those with the app's page meanwhile.
    """
    if explanation.repetition is None or {each.code for each in explanation.findings} & _ON_TAPE:
        return None
    by_number = {exchange.number: exchange for exchange in exchanges}
    chosen = by_number[explanation.exchange]
    later = by_number[explanation.repetition.exchange]
    beginning = {one for own in digests_of(analyse(chosen)) for one in own.prefixes}
    found = {chosen.number, later.number}
    for each in exchanges:
        if each.tap is not chosen.tap:
            needed_too = are_linked(chosen, each)
        else:
            before = each.request.t_ns < chosen.request.t_ns
            last = digests_of(analyse(each))[-1]
            needed_too = before and last.prefixes[-1] in beginning
        if needed_too:
            found.add(each.number)
    return frozenset(found)
