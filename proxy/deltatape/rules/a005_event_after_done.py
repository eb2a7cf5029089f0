"""A005: an application's event after the one that ended its stream."""

from collections.abc import Iterator
from typing import ClassVar

from deltatape.model.finding import Finding, Severity
from deltatape.rules._app import doubted
from deltatape.rules._base import RuleContext, reported


class EventAfterDone:
    """Something follows the end of the application's stream.

    ## What it does
    Looks at the stream of the application's own endpoint (`record --app`, or a pasted one). Reports
    events after `done` or `error` that carry nothing of the answer: a second `done`, an `error`
    after it, a type that is not in the contract. Text, calls and results are A004. The sentinel
    `[DONE]` may follow.

    ## Why is this bad
    Exactly one event ends a stream. A page that handles each of them shows the answer twice, or an
    error over an answer that was whole; a page that stops at the first never sees the others.

    ## Innocent explanations
    - The application ends each of its steps with `done`, and the stream with the last of them.
    - Types that are not in the contract are its own business: metadata that the page reads last.

    ## Example
    ```
    data: {"type":"done","content":"It is 13 degrees."}
    data: {"type":"error","content":"generator didn't stop"}
    ```

    ## Fix
    In the application, return after `done` and `error`, and send metadata before them. Look at
    `finally` blocks and at callers that send an end of their own.

    ## References
    - https://html.spec.whatwg.org/multipage/server-sent-events.html#authoring-notes
    """

    code: ClassVar[str] = "A005"
    name: ClassVar[str] = "event-after-done"
    severity: ClassVar[Severity] = Severity.WARNING

    def check(self, context: RuleContext) -> Iterator[Finding]:
        """See `Rule.check`."""
        hint = "return after done and error; send metadata before them"
        return (doubted(each, context) for each in reported(self, context, hint))
