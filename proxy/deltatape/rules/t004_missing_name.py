"""T004: a call that names no tool."""

from collections.abc import Iterator
from typing import ClassVar

from deltatape.model.finding import Blame, Finding, Severity
from deltatape.model.reply import CallStatus
from deltatape.rules._base import Claim, RuleContext, about_call, label


class MissingName:
    r"""A call has no name.

    ## What it does
    Reports calls whose name never came, and fragments of arguments that belong to no call. What an
    application tells its page is A001's.

    ## Why is this bad
    Nobody can know which tool to run. Clients drop such a call without a word, or register a tool
    called "".

    ## Example
    ```
    {"tool_calls":[{"index":0,"id":"c1","function":{"arguments":"{\"a\":1}"}}]}
    ```

    ## Fix
    The server has to send the name with the first fragment of a call. In the client, answer with an
    error instead of dropping the call.

    ## References
    - https://github.com/vercel/ai/issues/15879
    - https://github.com/jjang-ai/vmlx/issues/244
    - https://github.com/dyedd/lens/issues/49
    """

    code: ClassVar[str] = "T004"
    name: ClassVar[str] = "missing-name"
    severity: ClassVar[Severity] = Severity.ERROR

    def check(self, context: RuleContext) -> Iterator[Finding]:
        """See `Rule.check`."""
        for _, call in context.calls():
            nameless = call.status in {CallStatus.NO_NAME, CallStatus.ORPHAN}
            if not nameless or context.reply.from_app:
                continue
            orphan = call.status is CallStatus.ORPHAN
            what = "is a fragment of arguments that belongs to no call" if orphan else "has no name"
            yield about_call(
                self,
                context,
                call,
                Claim(
                    message=f"{label(call)} {what}: nobody can know which tool to run",
                    hint="the server has to send the name with the first fragment of a call",
                    blame=Blame.UPSTREAM,
                    confidence=context.seen,
                ),
            )
