"""T021: a name in pieces, or after the arguments have begun."""

from collections.abc import Iterator
from typing import ClassVar

from deltatape.model.finding import Finding, Severity
from deltatape.rules._base import RuleContext, reported


class SplitOrLateName:
    """The name of a call comes in pieces or late.

    ## What it does
    Reports calls whose name is spread over several events, or comes after the first arguments.

    ## Why is this bad
    Clients that take the first or the last piece for the name look for a tool that does not exist;
    others refuse a call that begins without a name.

    ## Example
    ```
    {"tool_calls":[{"index":0,"id":"c1","function":{"name":"get_wea","arguments":""}}]}
    {"tool_calls":[{"index":0,"function":{"name":"ther","arguments":"{}"}}]}
    ```

    ## Fix
    The server should send the whole name in the first event of a call. In the client, wait for the
    end of the call before looking up the tool, and check the joined name against the offered ones.

    ## References
    - https://github.com/continuedev/continue/issues/5849
    - https://github.com/vercel/ai/issues/15879
    - https://github.com/OpenRouterTeam/ai-sdk-provider/issues/118
    """

    code: ClassVar[str] = "T021"
    name: ClassVar[str] = "split-or-late-name"
    severity: ClassVar[Severity] = Severity.ERROR

    def check(self, context: RuleContext) -> Iterator[Finding]:
        """See `Rule.check`."""
        return reported(self, context, "in the client, look up the tool at the end of the call")
