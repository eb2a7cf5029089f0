"""T013: indexes of calls that do not start at 0."""

from collections.abc import Iterator
from typing import ClassVar

from deltatape.model.finding import Finding, Severity
from deltatape.rules._base import RuleContext, reported


class IndexNotZeroBased:
    """The indexes of the calls do not start at zero.

    ## What it does
    Reports replies whose first tool call has an index other than 0. Usually a gateway hands on the
    number of a content block in which text was the first.

    ## Why is this bad
    Clients that use the index as a position in a list raise an index error, official ones included.

    ## Example
    ```
    {"tool_calls":[{"index":1,"id":"c1","function":{"name":"f","arguments":"{}"}}]}    <- the first
    ```

    ## Fix
    The gateway has to count calls, not blocks. In the client, keep calls in a map keyed by index.

    ## References
    - https://github.com/BerriAI/litellm/issues/5231
    - https://github.com/aws-samples/bedrock-access-gateway/issues/134
    - https://github.com/labring/FastGPT/issues/5811
    """

    code: ClassVar[str] = "T013"
    name: ClassVar[str] = "index-not-zero-based"
    severity: ClassVar[Severity] = Severity.ERROR

    def check(self, context: RuleContext) -> Iterator[Finding]:
        """See `Rule.check`."""
        return reported(
            self, context, "in the client, keep calls in a map keyed by index, not in a list"
        )
