"""S001: the stream ends without the event that says that it is whole."""

from collections.abc import Iterator
from typing import ClassVar

from deltatape.model.finding import Finding, Severity
from deltatape.rules._base import RuleContext
from deltatape.rules._ending import unended


class NoTerminalEvent:
    r"""The terminal event never came.

    ## What it does
    Reports a stream that upstream ended without the signal that its dialect ends with: the finish
    reason and `[DONE]`, `message_stop`, `response.completed`, `"done":true`. Silent if an error was
    sent instead (S005), and if it was the client or the recorder that stopped listening. Of the
    events that an application streams to its page A004 tells.

    ## Why is this bad
    Half an answer cannot be told from a whole one. Clients that treat the end of the body as
    success show a cut text or run a tool with cut arguments.

    ## Innocent explanations
    - The gateway never sends the last event: with a finish reason the answer is whole, and this is
      a warning, likely at most.
    - The client or the recorder stopped listening, or an error came in its place: silent.
    - The recorder lost the event: then X002 says so, and this is left out.
    - The body ends with the connection (HTTP/1.0): a broken one looks the same, nobody is blamed.

    ## Example
    ```
    data: {"choices":[{"index":0,"delta":{"content":"The answer is"}}]}\n\n
    (end of the body, in good order)
    ```

    ## Fix
    Ask the provider, or look into the gateway: some process gave up quietly. In the client, raise
    if the body ends before the terminal event.

    ## References
    - https://platform.openai.com/docs/api-reference/chat-streaming
    - https://github.com/CommandCodeAI/command-code/issues/785
    - https://github.com/langchain-ai/langchainjs/issues/11494
    """

    code: ClassVar[str] = "S001"
    name: ClassVar[str] = "no-terminal-event"
    severity: ClassVar[Severity] = Severity.ERROR

    def check(self, context: RuleContext) -> Iterator[Finding]:
        """See `Rule.check`."""
        hint = (
            "in the client, treat a body that ends before the terminal event as an error, and ask"
            " again; show the provider this tape if it stays so"
        )
        if not context.reply.from_app:
            yield from unended(self, context, hint)
