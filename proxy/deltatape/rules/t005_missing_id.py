"""T005: a call without an id, where the dialect has ids."""

from collections.abc import Iterator
from typing import ClassVar

from deltatape.model.finding import Finding, Severity
from deltatape.rules._base import RuleContext, reported


class MissingId:
    r"""A call has no id.

    ## What it does
    Reports calls whose id never came, in dialects that have ids. `function_call`, the predecessor
    of tool calls, has none.

    ## Why is this bad
    The tool's result refers to the call by its id. Some clients drop the call, some invent an id,
    some send the result for `null`, which the provider refuses one turn later.

    ## Example
    ```
    {"tool_calls":[{"index":0,"function":{"name":"f","arguments":"{}"}}]}
    ```

    ## Fix
    The server has to send an id. In the client, make one up and use it for the call and its result.

    ## References
    - https://github.com/BerriAI/litellm/issues/33223
    - https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/830
    """

    code: ClassVar[str] = "T005"
    name: ClassVar[str] = "missing-id"
    severity: ClassVar[Severity] = Severity.ERROR

    def check(self, context: RuleContext) -> Iterator[Finding]:
        """See `Rule.check`."""
        hint = "in the client, make an id up and use it for the call and its result"
        return reported(self, context, hint)
