"""A004: an application's stream that does not say where it ends, or says so too early."""

from collections.abc import Iterator
from typing import ClassVar

from deltatape.model.finding import Finding, Severity
from deltatape.rules._app import doubted
from deltatape.rules._base import RuleContext, reported
from deltatape.rules._ending import unended


class MissingOrEarlyDone:
    r"""The last event of the application's stream is missing, or comes too early.

    ## What it does
    Looks at the stream of the application's own endpoint (`record --app`, or a pasted one). Reports
    a stream that ended without the event that ends it (`done` or `error`; `finish` and `[DONE]`),
    and text, calls or results after `done`. Silent if the transport was cut (W006), and if it was
    the page or the recorder that stopped listening.

    ## Why is this bad
    Without the event the page waits, or takes half an answer for a whole one. A page that stops
    reading at `done` loses what comes behind it.

    ## Innocent explanations
    - The application's contract ends with the end of the body, and has no such event.
    - It sends `done` at the end of each step, and goes on.
    - It tells of a title, of sources or of usage after `done`, which the page wants so.

    ## Example
    ```
    data: {"type":"tool_call","name":null,"arguments":10}
    (end of the body, in good order)
    ```

    ## Fix
    In the application, send `done` once, after everything else, and `error` in the handler of every
    exception. An end without either means that something raised: look into the application's log.

    ## References
    - https://html.spec.whatwg.org/multipage/server-sent-events.html#authoring-notes
    - https://ai-sdk.dev/docs/ai-sdk-ui/stream-protocol
    """

    code: ClassVar[str] = "A004"
    name: ClassVar[str] = "missing-or-early-done"
    severity: ClassVar[Severity] = Severity.ERROR

    def check(self, context: RuleContext) -> Iterator[Finding]:
        """See `Rule.check`."""
        hint = "send done after everything else, and error in the handler of every exception"
        found = [*reported(self, context, "send done once, after everything else")]
        if context.reply.from_app:
            found = [*unended(self, context, hint), *found]
        for each in found:
            yield doubted(each, context)
