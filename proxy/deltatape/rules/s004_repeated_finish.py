"""S004: more than one finish reason."""

from collections.abc import Iterator
from typing import ClassVar

from deltatape.model.finding import Finding, Severity
from deltatape.rules._base import RuleContext, reported


class RepeatedFinish:
    """A reply has more than one finish reason.

    ## What it does
    Reports a second finish reason for the same choice, equal or not.

    ## Why is this bad
    Clients that keep the last word forget the first: `tool_calls`, then `stop`, and the calls are
    dropped. Clients that end at the first one miss what comes between.

    ## Example
    ```
    data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}
    data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}
    ```

    ## Fix
    In the client, let the presence of calls decide. The server should send one finish reason.

    ## References
    - https://github.com/RayBytes/ChatMock/issues/114
    - https://github.com/BerriAI/litellm/issues/2195
    """

    code: ClassVar[str] = "S004"
    name: ClassVar[str] = "repeated-finish"
    severity: ClassVar[Severity] = Severity.WARNING

    def check(self, context: RuleContext) -> Iterator[Finding]:
        """See `Rule.check`."""
        return reported(
            self, context, "let the presence of calls decide, not the last finish reason"
        )
