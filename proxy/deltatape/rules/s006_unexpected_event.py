"""S006: an event that the dialect's grammar has no place for."""

from collections.abc import Iterator
from typing import ClassVar

from deltatape.model.finding import Finding, Severity
from deltatape.rules._base import RuleContext, reported


class UnexpectedEvent:
    """An event has no place where it stands.

    ## What it does
    Reports events and values outside the dialect's grammar: an unknown shape, a delta after the
    terminal event, an empty finish reason in the middle of the stream.

    ## Why is this bad
    Every client does something else with them. An empty finish reason, for one, ends the stream at
    the first delta for clients that only ask whether the field is null.

    ## Example
    ```
    data: {"choices":[{"index":0,"delta":{"content":"Hel"},"finish_reason":""}]}
    ```

    ## Fix
    The server should keep to the grammar. In the client, ignore what is unknown and take only
    non-empty finish reasons for the end.

    ## References
    - https://platform.openai.com/docs/api-reference/chat-streaming
    - https://github.com/adolfousier/opencrabs/issues/1499
    """

    code: ClassVar[str] = "S006"
    name: ClassVar[str] = "unexpected-event"
    severity: ClassVar[Severity] = Severity.WARNING

    def check(self, context: RuleContext) -> Iterator[Finding]:
        """See `Rule.check`."""
        return reported(self, context, "in the client, ignore what the dialect does not define")
