"""C005: a call in the history that no result follows, although the history goes on."""

from collections.abc import Iterator
from typing import ClassVar

from deltatape.model.finding import Blame, Confidence, Excluded, Finding, Severity
from deltatape.model.turn import Missing, Turn
from deltatape.rules._conversation import TurnClaim, against, called_in, names, turn_finding
from deltatape.rules.settings import Settings


class MissingToolResult:
    """A request goes on after a call without its result.

    ## What it does
    Looks for the result of every call in a request's history, by its id, or by the tool's name
    where calls have no ids. A history that ends with the call is left alone, and so is one with
    results that name no call. It is proven, and an error, if the provider refused the request
    for its calls or results; else possible.

    A call is reported once, in the first request that goes on without its result.

    ## Why is this bad
    Most providers refuse such a request, and with it the rest of the conversation: the call stays
    in the history. Others let the model guess what the tool said.

    ## Innocent explanations
    - The user spoke before the tool was ready: the application goes on without its result.
    - The tool runs on, and its result comes later.
    - The provider runs the tool itself, or takes a history without the result.

    ## Example
    ```
    {"role":"assistant","tool_calls":[{"id":"c1", ...}, {"id":"c2", ...}]}
    {"role":"tool","tool_call_id":"c1","content":"13 °C"}
    {"role":"user","content":"And?"}
    ```

    ## Fix
    Answer every call before anything else follows, if only with an error or with "cancelled by the
    user". If a call is not to be answered, leave it out of the history.

    ## References
    - https://platform.openai.com/docs/guides/function-calling
    - https://docs.anthropic.com/en/docs/agents-and-tools/tool-use/implement-tool-use
    - https://github.com/BerriAI/litellm/issues/33678
    """

    code: ClassVar[str] = "C005"
    name: ClassVar[str] = "missing-tool-result"
    severity: ClassVar[Severity] = Severity.ERROR

    def check(self, turn: Turn, settings: Settings) -> Iterator[Finding]:
        """See `TurnRule.check`."""
        del settings
        for missing in turn.missing:
            delivered = missing.delivered
            yield turn_finding(
                self,
                turn,
                TurnClaim(
                    message=_message(turn, missing),
                    hint="answer every call before the history goes on, if only with an error",
                    blame=Blame.APP,
                    confidence=_confidence(turn),
                    severity=self.severity if turn.digest.refused else Severity.WARNING,
                    excluded=_excluded(turn),
                    evidence=missing.call.arguments or "(no arguments)",
                    against=against(delivered, turn.digest, missing.call) if delivered else None,
                ),
            )


_WORDS = ("tool", "function", "call", "result")
"""One of them stands in a refusal that is about calls and their results."""


def _is_refused_for_it(turn: Turn) -> bool:
    error = (turn.digest.error or "").lower()
    return turn.digest.refused and any(word in error for word in _WORDS)


def _confidence(turn: Turn) -> Confidence:
    if _is_refused_for_it(turn):
        return Confidence.PROVEN
    return Confidence.LIKELY if turn.digest.refused else Confidence.POSSIBLE


def _excluded(turn: Turn) -> tuple[Excluded, ...]:
    if not turn.digest.refused:
        return ()
    refused = f"it refused the request with {turn.digest.status}"
    return (Excluded("the provider takes a history without the result", refused),)


def _message(turn: Turn, missing: Missing) -> str:
    if missing.delivered:
        call = called_in(missing.delivered)
    else:
        call = f"a call ({names(missing.call.name, missing.call.id)})"
    status = turn.digest.status
    if turn.digest.refused:
        then = f"; the provider refused the request ({status})"
    else:
        then = "; this provider took it" if status is not None and not turn.digest.failed else ""
    return f"the history goes on after {call} without its result{then}"
