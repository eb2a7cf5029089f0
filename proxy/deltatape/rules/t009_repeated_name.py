"""T009: the full name of a call in more than one event."""

from collections.abc import Iterator
from typing import ClassVar

from deltatape.model.finding import Finding, Severity
from deltatape.rules._base import RuleContext, reported


class RepeatedName:
    """The name of a call comes more than once.

    ## What it does
    Reports calls whose whole name is repeated in later events.

    ## Why is this bad
    Clients that join the pieces of a name, as official ones do, get "get_weatherget_weather" and
    look for a tool of that name.

    ## Example
    ```
    {"tool_calls":[{"index":0,"id":"c1","function":{"name":"get_weather","arguments":""}}]}
    {"tool_calls":[{"index":0,"function":{"name":"get_weather","arguments":"{}"}}]}
    ```

    ## Fix
    The server should send the name once. In the client, keep the first name and ignore equal ones.

    ## References
    - https://github.com/NousResearch/hermes-agent/issues/8259
    - https://github.com/Sliverkiss/workbuddy2api/issues/82
    - https://github.com/bytedance/deer-flow/issues/654
    """

    code: ClassVar[str] = "T009"
    name: ClassVar[str] = "repeated-name"
    severity: ClassVar[Severity] = Severity.ERROR

    def check(self, context: RuleContext) -> Iterator[Finding]:
        """See `Rule.check`."""
        return reported(
            self, context, "in the client, keep the first name of a call and ignore equal ones"
        )
