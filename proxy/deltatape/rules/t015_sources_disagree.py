"""T015: one thing said in several places, and not the same."""

from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

from deltatape.model.finding import Finding, Severity
from deltatape.rules._base import RuleContext, reported


class SourcesDisagree:
    r"""A call is told in several places, and they say different things.

    ## What it does
    Reports calls whose arguments, name or presence differ between the places in which a dialect
    repeats them: the deltas, the event that ends them, the item that is done, the final response.
    Arguments that are equal as JSON do not differ, nor does what a limit cut, nor what is sent
    before the arguments are known. A warning for a text that differs, and for a call that the
    provider runs itself.

    ## Why is this bad
    Which of them runs depends on the client: one that joins deltas and one that waits for the end
    call the tool with different arguments, and both are right by the documentation.

    ## Example
    ```
    {"type":"response.function_call_arguments.delta","output_index":0,"delta":"{\"a\":"}
    {"type":"response.function_call_arguments.done","output_index":0,"arguments":"{\"a\":1}"}
    ```

    ## Fix
    The server or gateway has lost or rewritten something: mostly events between the two. In the
    client, take the arguments from the event that ends the call (`response.output_item.done`,
    `tool-input-available`), not from the deltas.

    ## References
    - https://platform.openai.com/docs/api-reference/responses-streaming
    - https://github.com/router-for-me/CLIProxyAPI/issues/2626
    """

    code: ClassVar[str] = "T015"
    name: ClassVar[str] = "sources-disagree"
    severity: ClassVar[Severity] = Severity.ERROR

    def check(self, context: RuleContext) -> Iterator[Finding]:
        """See `Rule.check`."""
        hint = "in the client, take the arguments from the event that ends the call, not the pieces"
        found = reported(self, context, hint)
        for seen, each in zip(context.observed(self.code), found, strict=False):
            yield replace(each, severity=Severity.WARNING) if seen.call is None else each
