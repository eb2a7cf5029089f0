"""C018: the same request again, although it had been answered."""

from collections.abc import Iterator
from typing import ClassVar

from deltatape.model.finding import Against, Blame, Confidence, Finding, Severity
from deltatape.model.turn import SameRequest, Turn
from deltatape.rules._base import NS
from deltatape.rules._conversation import TurnClaim, turn_finding
from deltatape.rules.evidence import excerpt
from deltatape.rules.settings import Settings

_TWICE = 2
_SOON = 0.05


class RequestRepeated:
    """The same was asked again, although it had been answered in full.

    ## What it does
    Looks for requests with the same model, system prompt, history and tools as one before, whose
    answer came to its regular end. Told the second time, and each time that the number has doubled.
    Attempts after a failure are no repetition: see C008.

    It is a fact, for there are many reasons to ask twice. Only where the request brings tool
    results, the answer to the first had ended, and the requests before it were not repeated as
    well, may it be the application: one step of an agent is seldom taken twice on purpose.

    ## Why is this bad
    The answer is paid for twice, and tools that it calls may run twice. A handler that is bound
    twice, an effect that runs twice in development mode, or a retry in two layers shows up so.

    ## Innocent explanations
    - Several answers are wanted: best of n, a vote, "regenerate".
    - The same prompt is asked side by side, in a test suite, a benchmark or a warm-up.
    - The whole conversation is run again.
    - The client failed on the answer, or lost it, and asks again.
    - A cache of prompts is being tried.

    ## Example
    ```
    #2    12 messages, the last a tool result: answered in full, finish_reason stop
    #3    the same 12 messages
    ```

    ## Fix
    If it is not meant: send a request in one place only, and make that place wait for its answer.

    ## References
    - https://react.dev/reference/react/StrictMode
    - https://docs.stripe.com/api/idempotent_requests
    """

    code: ClassVar[str] = "C018"
    name: ClassVar[str] = "request-repeated"
    severity: ClassVar[Severity] = Severity.INFO

    def check(self, turn: Turn, settings: Settings) -> Iterator[Finding]:
        """See `TurnRule.check`."""
        del settings
        same, digest = turn.same, turn.digest
        if same is None or same.times & (same.times - 1):
            return
        step = bool(digest.results) and same.ended and same.times == _TWICE and not same.rerun
        first = same.first
        yield turn_finding(
            self,
            turn,
            TurnClaim(
                message=_told(turn, same),
                hint="if it is not meant: ask in one place only, and wait for the answer",
                blame=Blame.APP if step else None,
                confidence=Confidence.POSSIBLE if step else Confidence.PROVEN,
                severity=Severity.WARNING if step else self.severity,
                evidence=digest.history[-1].content if digest.history else "",
                against=Against(
                    tape=first.tape,
                    exchange=first.exchange,
                    line=first.line,
                    span=None,
                    asked=None,
                    evidence=excerpt(first.summary),
                ),
            ),
        )


def _told(turn: Turn, same: SameRequest) -> str:
    first, digest = same.first, turn.digest
    results = " with the same tool results" if digest.results else ""
    if same.times > _TWICE:
        return f"the same request{results} came {same.times} times, first as #{first.exchange}"
    when = "after it had been answered in full" if same.ended else "before its answer had ended"
    waited = ""
    if digest.t_ns is not None and first.t_ns is not None:
        seconds = (digest.t_ns - first.t_ns) / NS
        waited = f" {seconds:.1f} s later" if seconds >= _SOON else " at once"
    return f"the request of #{first.exchange} came again{results}{waited}, {when}"
