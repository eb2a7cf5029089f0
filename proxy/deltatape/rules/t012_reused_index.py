"""T012: several calls under one index."""

from collections.abc import Iterator
from typing import ClassVar

from deltatape.model.finding import Finding, Severity
from deltatape.rules._base import RuleContext, reported


class ReusedIndex:
    r"""Several calls share one index.

    ## What it does
    Reports a new call that begins under the index of another one.

    ## Why is this bad
    Clients that key by index join the arguments to `{"a":1}{"b":2}` and keep one name of the two:
    calls are lost, and what is left does not parse.

    ## Example
    ```
    {"tool_calls":[{"index":0,"id":"c1","function":{"name":"get","arguments":"{\"a\":1}"}}]}
    {"tool_calls":[{"index":0,"id":"c2","function":{"name":"put","arguments":"{\"b\":2}"}}]}
    ```

    ## Fix
    The server has to count. In the client, open a new call when a fragment brings another id.

    ## References
    - https://github.com/ollama/ollama/issues/15457
    - https://github.com/BerriAI/litellm/issues/33678
    - https://github.com/ai-dynamo/dynamo/issues/4723
    - https://github.com/unslothai/unsloth/issues/10059
    """

    code: ClassVar[str] = "T012"
    name: ClassVar[str] = "reused-index"
    severity: ClassVar[Severity] = Severity.ERROR

    def check(self, context: RuleContext) -> Iterator[Finding]:
        """See `Rule.check`."""
        return reported(
            self, context, "in the client, open a new call when a fragment brings another id"
        )
