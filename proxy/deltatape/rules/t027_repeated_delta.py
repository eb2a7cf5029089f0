"""T027: the same piece of a call's arguments twice in a row."""

from collections.abc import Iterator
from operator import itemgetter
from typing import ClassVar

from deltatape.model.asked import ToolSpec
from deltatape.model.finding import Blame, Confidence, Finding, Severity
from deltatape.model.reply import CallStatus, ToolCall
from deltatape.rules._base import Claim, RuleContext, about_call, label
from deltatape.rules._forensics import (
    HINT,
    Damage,
    Trace,
    concerned,
    excluded_by,
    fits,
    has_twins,
    proof_of_twin,
    repeated,
    runs_of,
)
from deltatape.wire.json_value import join_pairs, parse

_TOLD_ALREADY = frozenset({"T014", "T015", "T017"})
"""Repairs that explain repeated pieces."""
_FEWEST_LETTERS = 3
_SHORTEST = 4
"""Characters that a piece without any other sign has to have to be worth a word."""
_LITERALS = frozenset({"true", "false", "null"})
_TRIES = 64
_TEXT = itemgetter(0)
"""Of a fragment: quicker than its attribute, where every healthy call is asked."""


class RepeatedDelta:
    r"""Two deltas in a row bring the same piece of a call's arguments, and the result is JSON.

    ## What it does
    Reports calls whose arguments are whole although a fragment, or a run of fragments, comes twice
    in a row. A warning if the two events have a number or a padding in common that servers make
    anew for each event (proven), or if the tool's schema allows the arguments only without the
    repetition (likely). Else it is a fact, told of pieces of four characters and more: a text may
    repeat itself. Arguments that the repetition
    breaks are T002, T003 and T016.

    ## Why is this bad
    The tool runs with a wrong value, and no parser complains: a name twice, a line twice in a file.

    ## Innocent explanations
    - The model repeats a word, a line, an item: then nothing but the text is the same.
    - Blanks, digits, rulers, brackets and literals repeat by nature: no word of them.

    ## Example
    ```
    {"tool_calls":[{"index":0,"function":{"arguments":" by the sea"}}]}
    {"tool_calls":[{"index":0,"function":{"arguments":" by the sea"}}]}
    ```

    ## Fix
    The provider or a gateway sent an event twice, after it connected anew or from two workers:
    record on both sides of the gateway to see which. Remove no repetition blindly in the client.

    ## References
    - https://github.com/lidge-jun/opencodex/issues/361
    - https://github.com/diegosouzapw/OmniRoute/pull/3762
    """

    code: ClassVar[str] = "T027"
    name: ClassVar[str] = "repeated-delta"
    severity: ClassVar[Severity] = Severity.WARNING

    def check(self, context: RuleContext) -> Iterator[Finding]:
        """See `Rule.check`."""
        for _, call in context.calls():
            if call.status is not CallStatus.COMPLETE or len(call.fragments) == 1:
                continue
            texts = [*map(_TEXT, call.fragments)]
            if has_twins(texts) and _TOLD_ALREADY.isdisjoint(call.repairs):
                claim = _claim(context, call, texts)
                if claim is not None:
                    yield about_call(self, context, call, claim)


def _claim(context: RuleContext, call: ToolCall, texts: list[str]) -> Claim | None:
    tool = context.asked.tool(call.name)
    refused = fits(call.arguments, tool, context.settings) is False
    places = [place for _, place in zip(range(_TRIES), runs_of(texts), strict=False)]
    fact: Trace | None = None
    for start, end in reversed(places):
        if _repeats_by_nature("".join(texts[start:end])):
            continue
        found = Trace(
            damage=Damage.DOUBLED,
            start=start,
            end=end,
            fits=refused and _allowed_without(texts, start, end, tool, context),
            proof=proof_of_twin(call.fragments, start, end, context.stream.events),
        )
        if found.proof or found.fits:
            return _damaged(context, call, found)
        if sum(map(len, texts[start:end])) >= _SHORTEST:
            fact = fact or found
    return _doubtful(call, fact) if fact else None


def _damaged(context: RuleContext, call: ToolCall, found: Trace) -> Claim:
    without = ": only without that are they what the tool's schema allows" if found.fits else ""
    return Claim(
        message=f"in the arguments of {label(call)}, {repeated(found, call.fragments)}"
        f"{without}{f'; {found.proof}' if found.proof else ''}",
        hint=HINT,
        blame=Blame.UPSTREAM,
        confidence=context.seen if found.proof else Confidence.LIKELY,
        event=concerned(found, call.fragments).event,
        place=concerned(found, call.fragments).place,
        excluded=excluded_by(found),
    )


def _doubtful(call: ToolCall, found: Trace) -> Claim:
    return Claim(
        message=f"in the arguments of {label(call)}, {repeated(found, call.fragments)}: sent twice,"
        " or meant so",
        hint="compare the value with what the tool should get; nothing else speaks for a defect",
        blame=None,
        confidence=Confidence.POSSIBLE,
        severity=Severity.INFO,
        event=concerned(found, call.fragments).event,
        place=concerned(found, call.fragments).place,
    )


def _allowed_without(
    texts: list[str], start: int, end: int, tool: ToolSpec | None, context: RuleContext
) -> bool:
    """Whether the arguments without the repetition are what the schema allows."""
    text = join_pairs("".join([*texts[:start], *texts[end:]]))
    whole = isinstance(parse(text).value, dict)
    return whole and fits(text, tool, context.settings) is True


def _repeats_by_nature(text: str) -> bool:
    """Whether `text` is what data and code repeat: blanks, digits, rulers, items of a list."""
    words = "".join(character if character.isalpha() else " " for character in text).split()
    if sum(map(len, words)) < _FEWEST_LETTERS or len(set("".join(words))) == 1:
        return True
    return _LITERALS.issuperset(words)
