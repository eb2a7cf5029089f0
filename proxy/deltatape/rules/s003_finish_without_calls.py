"""S003: the finish reason announces calls that are not there."""

from collections.abc import Iterator
from typing import ClassVar

from deltatape.model.exchange import EndReason
from deltatape.model.finding import Blame, Finding, Severity
from deltatape.rules._base import Claim, RuleContext, finding
from deltatape.rules.finish import Finish, finish_of


class FinishWithoutCalls:
    """The finish reason says tool calls, and there is none.

    ## What it does
    Reports replies that end with the word for tool calls without having carried any.

    ## Why is this bad
    The client waits for, or answers, calls that do not exist: the agent hangs, or sends a history
    that the provider refuses. Usually a server's parser found the beginning of a call in the
    model's text and lost the rest.

    ## Example
    ```
    data: {"choices":[{"index":0,"delta":{"role":"assistant"},"finish_reason":null}]}
    data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}
    ```

    ## Fix
    In the client, ask again when a reply promises calls and has none. Look at the text and the
    reasoning: the call may have leaked into them.

    ## References
    - https://github.com/vllm-project/vllm/issues/53255
    - https://github.com/anomalyco/opencode/issues/5139
    - https://github.com/vllm-project/vllm/issues/44326
    """

    code: ClassVar[str] = "S003"
    name: ClassVar[str] = "finish-without-calls"
    severity: ClassVar[Severity] = Severity.ERROR

    def check(self, context: RuleContext) -> Iterator[Finding]:
        """See `Rule.check`."""
        last = context.stream.events[-1] if context.stream.events else None
        for choice in context.reply.choices:
            if choice.tool_calls or finish_of(choice) is not Finish.TOOLS:
                continue
            yield finding(
                self,
                context,
                Claim(
                    message=f"the finish reason is {choice.finish_reason_raw!r},"
                    f" but the reply has no tool call{_left(context)}",
                    hint="ask again; look whether the call leaked into the text or the reasoning",
                    blame=Blame.UPSTREAM,
                    confidence=context.seen,
                    event=last.number if last else None,
                    place=last.place if last else None,
                    evidence=choice.text or choice.reasoning or choice.finish_reason_raw or "",
                ),
            )


def _left(context: RuleContext) -> str:
    """That the client left then, as a clause: a call that came later is not on the tape."""
    end = context.exchange.end
    if end is None or end.reason is not EndReason.CLIENT_CLOSED:
        return ""
    return " before it; the client left here, so that one that came later would be lost to it"
