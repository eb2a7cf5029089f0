"""C003: a call that the application repeats under another name or id."""

from collections.abc import Iterator
from typing import ClassVar

from deltatape.model.asked import RepeatedCall
from deltatape.model.digest import Pair, ReadBack, SaidCall
from deltatape.model.finding import Confidence, Finding, Severity
from deltatape.rules._conversation import AppClaim, app_finding, called
from deltatape.rules.evidence import excerpt
from deltatape.rules.repeated import first_difference, is_derived, same_id, same_name


class IdentityChangedByApp:
    """The application repeats a call under another name or id.

    ## What it does
    Compares name and id of each delivered call with those that the application's next request
    repeats. An application may give calls ids of its own, as long as their results carry them, too:
    that is no finding. A call that comes back twice, the second time under another id, is one.

    ## Why is this bad
    A tool of another name runs, or none. A result for an id that the provider never gave is refused
    or ignored.

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
            changes = [*_name_changes(pair), *_id_changes(pair, read_back)]
            if not changes:
                continue
            works = same_name(pair.said, pair.heard) and pair.heard.id in read_back.answered
            yield app_finding(
                self,
                read_back,
                AppClaim(
                    message=f"{called(read_back, pair.said)} comes back with"
                    f" {' and '.join(changes)}{', its result too' if works else ''}",
                    hint="take id and name from the first fragment that has them, append nothing",
                    evidence=f"id {pair.heard.id!r}, name {pair.heard.name!r}",
                    severity=Severity.WARNING if works else Severity.ERROR,
                    said=pair.said,
                    heard=pair.heard,
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
                ),
            )


def _is_copy(pair: Pair, heard: RepeatedCall) -> bool:
    """Whether `heard` says the same as the call that stands for the delivered one."""
    same = same_name(pair.said, heard) and first_difference(pair.said, heard) is None
    return same and first_difference(pair.said, pair.heard) is None


def _name_changes(pair: Pair) -> list[str]:
    if same_name(pair.said, pair.heard):
        return []
    return [_change("name", pair.said.name or "", pair.heard.name or "")]


def _id_changes(pair: Pair, read_back: ReadBack) -> list[str]:
    """An id with nothing of the delivered one may be the application's, or another reply's.

    So may one that the application made of the delivered one on purpose, to have it unique.
    """
    heard, answered = pair.heard.id or "", pair.heard.id in read_back.answered
    if same_id(pair.said, pair.heard) or (answered and _is_extended(pair.said, heard)):
        return []
    own = heard and not is_derived(pair.said, pair.heard)
    if own and (answered or read_back.confidence is not Confidence.PROVEN):
        return []
    return [_change("id", pair.said.id or "", heard)]


def _is_extended(said: SaidCall, heard: str) -> bool:
    """Whether `heard` is a delivered id with something other than itself around it."""
    return any(each in heard and heard.replace(each, "") for each in said.ids)


def _change(what: str, said: str, heard: str) -> str:
    times = len(heard) // len(said) if said else 0
    repeated = f" (the original {times} times)" if times > 1 and heard == said * times else ""
    shown = repr(excerpt(heard, 80)) if heard else "empty"
    return f"the {what} {shown} instead of {excerpt(said, 80)!r}{repeated}"
