"""T010: the id of a call repeated or changed."""

from collections.abc import Iterator
from typing import ClassVar

from deltatape.model.finding import Finding, Severity
from deltatape.rules._base import RuleContext, reported


class UnstableId:
    """The id of a call is repeated or changes.

    ## What it does
    Reports calls whose later fragments carry an id again, the same one or another.

    ## Why is this bad
    Clients that join ids answer with one that nobody sent (`c1c1c1`); clients that open a call
    per id tear it to pieces. The provider then refuses the tool's result.

    ## Example
    ```
    {"tool_calls":[{"index":0,"id":"c1","function":{"name":"f","arguments":""}}]}
    {"tool_calls":[{"index":0,"id":"c2","function":{"arguments":"{}"}}]}
    ```

    ## Fix
    The server should send the id once. In the client, key fragments by index and keep the first id.

    ## References
    - https://github.com/JetBrains/koog/issues/2052
    - https://github.com/AstrBotDevs/AstrBot/issues/7735
    - https://github.com/poolsideai/pool/issues/9
    """

    code: ClassVar[str] = "T010"
    name: ClassVar[str] = "unstable-id"
    severity: ClassVar[Severity] = Severity.ERROR

    def check(self, context: RuleContext) -> Iterator[Finding]:
        """See `Rule.check`."""
        return reported(
            self, context, "in the client, key fragments by index and keep the first id"
        )
