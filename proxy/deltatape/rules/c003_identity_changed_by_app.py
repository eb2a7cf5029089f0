"""C003: a call that the application repeats under another name or id."""

import re
from collections.abc import Iterator
from typing import ClassVar, NamedTuple

from deltatape.model.asked import RepeatedCall
from deltatape.model.digest import Pair, ReadBack
from deltatape.model.finding import Confidence, Excluded, Finding, Severity, weaker
from deltatape.rules._conversation import AppClaim, app_finding, called, was_delivered
from deltatape.rules.evidence import excerpt
from deltatape.rules.repeated import first_difference, is_derived, same_id, same_name


class IdentityChangedByApp:
    """The application repeats a call under another name or id.

    ## What it does
    Compares name and id of each delivered call with those that the application's next request
    repeats. It is proven where a name or an id is the delivered one several times over: later
    fragments were appended to it. It is likely where an id was cut or extended and the result
    carries another one, so that call and result no longer belong together. An application may give
    calls ids of its own, as long as their results carry them, too: that is no finding. A call that
    comes back twice, the second time under another id, is possible only.

    ## Why is this bad
    A tool of another name runs, or none. A result for an id that the provider never gave is refused
    or ignored.

    ## Innocent explanations
    - The framework repairs a name that the model got wrong: `Bash` for `bash`, or a tool that was
      not offered for one that was.
    - The application gives calls ids of its own, or cuts and extends ids to what the next provider
      takes, and its results carry the same ones.
    - The application ran an equal call itself.

    ## Example
    ```
    reply of #1:      {"id":"c1","name":"get_weather"}
    request of #2:    {"id":"c1c1c1","name":"get_weatherget_weather"}
    ```

    ## Fix
    Take id and name from the first fragment that has them; do not append later ones.

    ## References
    - https://platform.openai.com/docs/guides/function-calling
    - https://github.com/mcp-use/mcp-use/issues/2593
    - https://github.com/rbb-dev/Open-WebUI-OpenRouter-pipe/issues/54
    """

    code: ClassVar[str] = "C003"
    name: ClassVar[str] = "identity-changed-by-app"
    severity: ClassVar[Severity] = Severity.ERROR

    def check(self, read_back: ReadBack) -> Iterator[Finding]:
        """See `ConversationRule.check`."""
        if not read_back.reply.whole:
            return
        for pair in read_back.pairs:
            changes = [*_name_changes(pair, read_back), *_id_changes(pair, read_back)]
            if not changes or not was_delivered(read_back, pair.said):
                continue
            works = same_name(pair.said, pair.heard) and pair.heard.id in read_back.answered
            surest = min((each.confidence for each in changes), key=lambda each: each.rank)
            yield app_finding(
                self,
                read_back,
                AppClaim(
                    message=f"{called(read_back, pair.said)} comes back with"
                    f" {' and '.join(each.says for each in changes)}"
                    f"{', its result too' if works else ''}",
                    hint=_HINTS[surest],
                    evidence=f"id {pair.heard.id!r}, name {pair.heard.name!r}",
                    severity=Severity.WARNING if works else Severity.ERROR,
                    said=pair.said,
                    heard=pair.heard,
                    confidence=weaker(surest, read_back.confidence),
                    excluded=tuple(one for each in changes for one in each.excluded),
                ),
            )
        yield from self._twins(read_back)

    def _twins(self, read_back: ReadBack) -> Iterator[Finding]:
        """Copies of delivered calls: one made while they streamed, and one when they had ended."""
        for heard in read_back.extra:
            said = next((pair.said for pair in read_back.pairs if _is_copy(pair, heard)), None)
            if said is None:
                continue
            yield app_finding(
                self,
                read_back,
                AppClaim(
                    message=f"{called(read_back, said)} comes back twice, the second time with"
                    f" {_change('id', said.id or '', heard.id or '')}",
                    hint="run a call once: either while it streams or when it has ended",
                    evidence=f"id {heard.id!r}, name {heard.name!r}",
                    severity=Severity.WARNING,
                    said=said,
                    heard=heard,
                    confidence=Confidence.POSSIBLE,
                ),
            )


_HINTS = {
    Confidence.PROVEN: "take id and name from the first fragment that has them, append nothing",
    Confidence.LIKELY: "keep the id of a call as it came, in the call and in its result",
    Confidence.POSSIBLE: "look at what renames the call between the reply and the next request",
}
_REPAIR = "the framework repairs names, or has ids of its own"
_BREAKS = re.compile(r"[\W_]+")


class _Change(NamedTuple):
    """What became of a name or an id, and how sure it is that this is a mistake."""

    says: str
    confidence: Confidence
    excluded: tuple[Excluded, ...] = ()


def _is_copy(pair: Pair, heard: RepeatedCall) -> bool:
    """Whether `heard` says the same as the call that stands for the delivered one."""
    same = same_name(pair.said, heard) and first_difference(pair.said, heard) is None
    return same and first_difference(pair.said, pair.heard) is None


def _name_changes(pair: Pair, read_back: ReadBack) -> list[_Change]:
    """A name that was not offered, or is spelled otherwise, is repaired by frameworks."""
    if same_name(pair.said, pair.heard):
        return []
    said, heard = pair.said.name or "", pair.heard.name or ""
    says = _change("name", said, heard)
    if _times(said, heard) > 1:
        never = Excluded(_REPAIR, "no tool has a name that is the delivered one several times over")
        return [_Change(says, Confidence.PROVEN, (never,))]
    offered = read_back.reply.tools
    if not heard:
        needs = Excluded(_REPAIR, "it repeats the call without any name")
        return [_Change(says, Confidence.LIKELY, (needs,))]
    if (offered and said not in offered) or _bare(said) == _bare(heard):
        return []
    return [_Change(says, Confidence.POSSIBLE)]


def _bare(name: str) -> str:
    """A name without prefixes, case and punctuation: `functions.get_Weather` is `getweather`."""
    last = re.split(r"[.:/]|__", name)[-1]
    return _BREAKS.sub("", last).casefold()


def _id_changes(pair: Pair, read_back: ReadBack) -> list[_Change]:
    """An id with nothing of the delivered one may be the application's, or another reply's.

    So may one that the application made of the delivered one on purpose: its result says so.
    """
    said, heard = pair.said.id or "", pair.heard.id or ""
    if same_id(pair.said, pair.heard):
        return []
    says = _change("id", said, heard)
    if _times(said, heard) > 1:
        never = Excluded(_REPAIR, "nobody makes an id of the delivered one several times over")
        return [_Change(says, Confidence.PROVEN, (never,))]
    if heard in read_back.answered or (heard and not is_derived(pair.said, pair.heard)):
        return []
    if set(pair.said.ids) & set(read_back.answered):
        apart = Excluded(_REPAIR, f"its result carries {excerpt(said, 60)!r}")
        return [_Change(says, Confidence.LIKELY, (apart,))]
    return [_Change(says, Confidence.POSSIBLE)]


def _times(said: str, heard: str) -> int:
    """How often `heard` is `said`, one after the other; 0 if it is anything else."""
    times = len(heard) // len(said) if said else 0
    return times if heard == said * times else 0


def _change(what: str, said: str, heard: str) -> str:
    times = _times(said, heard)
    repeated = f" (the original {times} times)" if times > 1 else ""
    shown = repr(excerpt(heard, 80)) if heard else "empty"
    return f"the {what} {shown} instead of {excerpt(said, 80)!r}{repeated}"
