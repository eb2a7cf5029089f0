"""C004: a tool result whose call is nowhere in the same request."""

from collections.abc import Iterator
from typing import ClassVar

from deltatape.model.finding import Blame, Confidence, Excluded, Finding, Severity
from deltatape.model.turn import Orphan, Turn
from deltatape.rules._conversation import TurnClaim, against, called_in, turn_finding
from deltatape.rules.evidence import excerpt
from deltatape.rules.settings import Settings


class OrphanToolResult:
    """A request brings the result of a call that no assistant message in it owns.

    ## What it does
    Looks for the call of every tool result in the same request, by its id, or by the tool's name
    where calls have no ids. It is proven that the application left the call out if a reply of this
    very conversation delivered it; else the history may have lost it before the tape began. Where
    the history looks as if it had been cut off in front, that is reported only if the provider
    refused the request. Nothing is reported where the provider keeps the history.

    A second result to a call that the wire delivered once has no call either: the tool was run
    twice, or its result was kept twice. That is possible only, unless the provider refused it. A
    result is reported once, in the first request that brings it.

    ## Why is this bad
    The model never sees that it called the tool. It ignores the result and calls again, for ever;
    or the provider refuses the request.

    ## Innocent explanations
    - The history was shortened in front, between the call and its result.
    - The call belongs to another conversation, or to an example in the prompt, with the same id.
    - A result came in two messages: `pending` first, then the answer.
    - The provider keeps the history, and has the call.

    ## Example
    ```
    reply of #1:      {"id":"c1","name":"list_directory"}
    request of #2:    [{"role":"user", ...}, {"role":"tool","tool_call_id":"c1", ...}]
    ```

    ## Fix
    Append the assistant's message with all of its calls to the history first, then one result for
    each of them. When a history is shortened, drop a call and its result together.

    ## References
    - https://platform.openai.com/docs/guides/function-calling
    - https://docs.anthropic.com/en/docs/agents-and-tools/tool-use/implement-tool-use
    - https://github.com/langchain-ai/langchain/issues/26894
    """

    code: ClassVar[str] = "C004"
    name: ClassVar[str] = "orphan-tool-result"
    severity: ClassVar[Severity] = Severity.ERROR

    def check(self, turn: Turn, settings: Settings) -> Iterator[Finding]:
        """See `TurnRule.check`."""
        del settings
        for orphan in turn.orphans:
            if orphan.trimmed and not turn.digest.refused:
                continue
            confidence = _confidence(turn, orphan)
            mild = confidence is Confidence.POSSIBLE or (orphan.twice and not turn.digest.refused)
            delivered = orphan.delivered
            yield turn_finding(
                self,
                turn,
                TurnClaim(
                    message=_message(turn, orphan),
                    hint=_hint(orphan),
                    blame=Blame.APP,
                    confidence=confidence,
                    severity=Severity.WARNING if mild else self.severity,
                    evidence=f"result for {orphan.call_id!r}",
                    against=against(delivered, turn.digest) if delivered else None,
                    excluded=_excluded(orphan) if confidence is Confidence.PROVEN else (),
                ),
            )


_HINT = (
    "append the assistant's message with its calls to the history before the results, and keep"
    " their ids"
)
_TRIMMED = "when a history is shortened, drop a call and its result together"
_TWICE = "run a call once: either while it streams or when it has ended, told apart by its id"


def _hint(orphan: Orphan) -> str:
    if orphan.twice:
        return _TWICE
    return _TRIMMED if orphan.trimmed else _HINT


def _confidence(turn: Turn, orphan: Orphan) -> Confidence:
    refused = Confidence.LIKELY if turn.digest.refused else Confidence.POSSIBLE
    if orphan.twice or orphan.trimmed or orphan.delivered is None:
        return refused
    return Confidence.PROVEN if orphan.same_conversation else refused


def _excluded(orphan: Orphan) -> tuple[Excluded, ...]:
    reply = orphan.delivered.reply.exchange if orphan.delivered else 0
    return (
        Excluded(
            "the history was shortened in front",
            f"all of the history of #{reply}, which delivered the call, is still there",
        ),
        Excluded(
            "the id is another conversation's, or an example's",
            f"#{reply} delivered the call to just this history",
        ),
    )


def _message(turn: Turn, orphan: Orphan) -> str:
    refused = f"; the provider refused it ({turn.digest.status})" if turn.digest.refused else ""
    if orphan.delivered and orphan.twice:
        call = called_in(orphan.delivered)
        return (
            f"the request brings a second result of {call}, which the wire delivered once{refused}"
        )
    if orphan.delivered:
        of = f"{called_in(orphan.delivered)}, but no assistant message in it has that call"
    else:
        shown = excerpt(orphan.call_id, 60)
        of = f"the call {shown!r}, which no assistant message in it has"
    trimmed = ": the history was cut off between the two" if orphan.trimmed else ""
    return f"the request brings the result of {of}{trimmed}{refused}"
