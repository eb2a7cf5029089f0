"""C015: the results of parallel calls stand at each other's calls."""

from collections.abc import Iterator
from typing import ClassVar

from deltatape.model.finding import Blame, Confidence, Excluded, Finding, Severity
from deltatape.model.turn import Turn
from deltatape.rules._conversation import TurnClaim, against, called_in, turn_finding
from deltatape.rules.settings import Settings


class ResultsSwapped:
    """The results of parallel calls are swapped.

    ## What it does
    Compares the results of several calls of one tool with the arguments of each. Tells it if at
    least two results name what only another call was asked for, and nothing of their own.

    ## Why is this bad
    The model takes the weather in Rome for that in Paris. Nothing on the wire is wrong.

    ## Innocent explanations
    - A result says nothing of its arguments, or speaks of other things, too.
    - A tool compares, and names what the other call was asked for.

    ## Example
    ```
    reply of #1:      get_weather {"city":"Rome"} (c1), get_weather {"city":"Paris"} (c2)
    request of #2:    {"role":"tool","tool_call_id":"c1","content":"Paris: 12 °C"}
                      {"role":"tool","tool_call_id":"c2","content":"Rome: 21 °C"}
    ```

    ## Fix
    Keep the id of a call with its task: the order in which tools end is not the order of the calls.

    ## References
    - https://platform.openai.com/docs/guides/function-calling
    - https://docs.anthropic.com/en/docs/agents-and-tools/tool-use/implement-tool-use
    """

    code: ClassVar[str] = "C015"
    name: ClassVar[str] = "results-swapped"
    severity: ClassVar[Severity] = Severity.ERROR

    def check(self, turn: Turn, settings: Settings) -> Iterator[Finding]:
        """See `TurnRule.check`."""
        del settings
        if not turn.swapped:
            return
        first = turn.swapped[0]
        calls = " and ".join(dict.fromkeys(called_in(each.call) for each in turn.swapped[:3]))
        yield turn_finding(
            self,
            turn,
            TurnClaim(
                message=f"the results of {calls} are swapped: each names what another call was"
                " asked for, and nothing of its own",
                hint="keep each call's id with its task: tools end in an order of their own",
                blame=Blame.APP,
                confidence=Confidence.LIKELY,
                severity=self.severity,
                evidence=f"the result for {first.call.call.id!r} speaks of"
                f" {first.about.call.arguments}",
                excluded=(
                    Excluded(
                        "a result speaks of other things, too",
                        "at least two of them name only the arguments of another call",
                    ),
                ),
                against=against(first.call, turn.digest),
            ),
        )
