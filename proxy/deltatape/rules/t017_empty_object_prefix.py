"""T017: an empty object in front of the arguments."""

from collections.abc import Iterator
from typing import ClassVar

from deltatape.model.finding import Finding, Severity
from deltatape.rules._base import RuleContext, reported


class EmptyObjectPrefix:
    r"""An empty object stands in front of the arguments.

    ## What it does
    Reports calls whose first fragment is `{}` and whose real arguments follow. A gateway
    translates the start of a call, which has an empty input, into a fragment.

    ## Why is this bad
    Joined as the protocol says they give `{}{"a":1}`, which does not parse. Clients that run a
    call as soon as its arguments parse run it with `{}`.

    ## Example
    ```
    {"tool_calls":[{"index":0,"id":"c1","function":{"name":"f","arguments":"{}"}}]}
    {"tool_calls":[{"index":0,"function":{"arguments":"{\"a\":1}"}}]}
    ```

    ## Fix
    Repair the gateway. In the client, parse only when the call has ended.

    ## References
    - https://github.com/BerriAI/litellm/issues/4537
    - https://github.com/openai/openai-agents-js/issues/712
    """

    code: ClassVar[str] = "T017"
    name: ClassVar[str] = "empty-object-prefix"
    severity: ClassVar[Severity] = Severity.ERROR

    def check(self, context: RuleContext) -> Iterator[Finding]:
        """See `Rule.check`."""
        return reported(
            self, context, "repair the gateway; in the client, parse only when the call has ended"
        )
