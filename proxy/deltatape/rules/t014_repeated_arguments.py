"""T014: arguments sent again: cumulative, or once more at the end."""

from collections.abc import Iterator
from typing import ClassVar

from deltatape.model.finding import Finding, Severity
from deltatape.rules._base import RuleContext, reported


class RepeatedArguments:
    r"""Arguments are sent more than once.

    ## What it does
    Reports fragments that start with all that was sent before (cumulative), and a last event that
    repeats the whole call.

    ## Why is this bad
    Joined as the protocol says they give `{"a":{"a":1}` or `{"a":1}{"a":1}`, which no client can
    run.

    ## Example
    ```
    {"tool_calls":[{"index":0,"function":{"arguments":"{\"a\":"}}]}
    {"tool_calls":[{"index":0,"function":{"arguments":"{\"a\":1}"}}]}
    ```

    ## Fix
    The server has to send what is new, and only that. Do not remove overlaps blindly in the client:
    that damages arguments which repeat themselves by right.

    ## References
    - https://github.com/NousResearch/hermes-agent/issues/35718
    - https://github.com/icoretech/codex-pooler/issues/193
    - https://github.com/veryfront/veryfront-code/issues/1079
    """

    code: ClassVar[str] = "T014"
    name: ClassVar[str] = "repeated-arguments"
    severity: ClassVar[Severity] = Severity.ERROR

    def check(self, context: RuleContext) -> Iterator[Finding]:
        """See `Rule.check`."""
        return reported(
            self,
            context,
            "the server has to send only what is new; do not remove overlaps blindly in the client",
        )
