"""T011: fragments of calls without an index."""

from collections.abc import Iterator
from typing import ClassVar

from deltatape.model.finding import Finding, Severity
from deltatape.rules._base import RuleContext, reported


class MissingIndex:
    r"""Fragments of tool calls have no index.

    ## What it does
    Reports fragments without the `index` that says which call they continue.

    ## Why is this bad
    Clients that key by index raise a type error, drop the fragments, or join all calls into one.

    ## Example
    ```
    {"tool_calls":[{"id":"c1","function":{"name":"f","arguments":"{\"a\":"}}]}
    {"tool_calls":[{"function":{"arguments":"1}"}}]}
    ```

    ## Fix
    The server has to send an index. In the client, match by id, else continue the last open call.

    ## References
    - https://github.com/ollama/ollama/issues/7881
    - https://github.com/AstrBotDevs/AstrBot/issues/6692
    - https://github.com/EricLBuehler/mistral.rs/issues/1507
    - https://github.com/openai/openai-python/issues/3246
    """

    code: ClassVar[str] = "T011"
    name: ClassVar[str] = "missing-index"
    severity: ClassVar[Severity] = Severity.ERROR

    def check(self, context: RuleContext) -> Iterator[Finding]:
        """See `Rule.check`."""
        return reported(
            self, context, "in the client, match by id, else continue the last open call"
        )
