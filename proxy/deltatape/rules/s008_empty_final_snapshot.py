"""S008: the event that should list everything lists nothing."""

from collections.abc import Iterator
from typing import ClassVar

from deltatape.model.finding import Finding, Severity
from deltatape.rules._base import RuleContext, reported


class EmptyFinalSnapshot:
    """The final event, which repeats the whole answer, has none of it.

    ## What it does
    Reports a terminal event whose list of output items is empty although items were streamed. A
    warning: one backend does so in every answer, and clients that speak with it collect the items
    as they come.

    ## Why is this bad
    The helpers of the official SDKs give out what the final event lists. They see an answer without
    calls and raise nothing: the agent stops, and everything on the wire looks right.

    ## Example
    ```
    {"type":"response.output_item.done","item":{"type":"function_call","call_id":"call_1",...}}
    {"type":"response.completed","response":{"status":"completed","output":[]}}
    ```

    ## Fix
    The gateway should fill in the items. In the client, collect them from
    `response.output_item.done` and use the final event for status and usage only.

    ## References
    - https://github.com/router-for-me/CLIProxyAPI/issues/2626
    - https://github.com/open-webui/open-webui/issues/27800
    - https://github.com/mcowger/plexus/issues/644
    """

    code: ClassVar[str] = "S008"
    name: ClassVar[str] = "empty-final-snapshot"
    severity: ClassVar[Severity] = Severity.WARNING

    def check(self, context: RuleContext) -> Iterator[Finding]:
        """See `Rule.check`."""
        hint = "in the client, collect the items from response.output_item.done"
        return reported(self, context, hint)
