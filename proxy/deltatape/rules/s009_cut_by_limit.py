"""S009: the answer was cut off by a limit or a filter."""

from collections.abc import Iterator
from typing import ClassVar

from deltatape.model.finding import Confidence, Finding, Severity
from deltatape.model.reply import CallStatus, Choice
from deltatape.rules._base import Claim, RuleContext, finding, label
from deltatape.rules.finish import Finish, finish_of

_HALF = frozenset({CallStatus.TRUNCATED, CallStatus.MALFORMED, CallStatus.EMPTY_SUSPECT})


class CutByLimit:
    r"""The provider cut the answer off: a limit of tokens, or a filter.

    ## What it does
    Reports replies whose finish reason says that they are not whole. An error if a tool call was
    cut by it, else a warning.

    ## Why is this bad
    The stream is perfect, the answer is not. Clients that do not look at the finish reason run a
    tool with half of its arguments, or with a repaired guess at them.

    ## Example
    ```
    {"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"a"}}]}}
    {"delta":{},"finish_reason":"length"}
    ```

    ## Fix
    Raise the limit of output tokens, or ask for less at once. In the client, never run calls of a
    reply that was cut.

    ## References
    - https://platform.openai.com/docs/guides/structured-outputs
    - https://github.com/vllm-project/vllm/issues/46303
    """

    code: ClassVar[str] = "S009"
    name: ClassVar[str] = "cut-by-limit"
    severity: ClassVar[Severity] = Severity.WARNING

    def check(self, context: RuleContext) -> Iterator[Finding]:
        """See `Rule.check`."""
        for choice in context.reply.choices:
            end = finish_of(choice)
            if end is Finish.LENGTH:
                yield self._cut(context, choice, "the limit of output tokens")
            elif end is Finish.FILTER:
                yield self._cut(context, choice, "a filter of the provider")

    def _cut(self, context: RuleContext, choice: Choice, by: str) -> Finding:
        half = [label(call) for call in choice.tool_calls if call.status in _HALF]
        what = (
            f"in the arguments of {' and '.join(half)}" if half else "before the answer was whole"
        )
        last = context.stream.events[-1] if context.stream.events else None
        return finding(
            self,
            context,
            Claim(
                message=f"{by} cut the reply {what} (finish reason {choice.finish_reason_raw!r})",
                hint="raise the limit of output tokens or ask for less; run no call of a cut reply",
                blame=None,
                confidence=Confidence.PROVEN,
                severity=Severity.ERROR if half else Severity.WARNING,
                event=last.number if last else None,
                place=last.place if last else None,
                evidence=choice.finish_reason_raw or "",
            ),
        )
