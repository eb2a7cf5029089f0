"""S002: there are calls, but the finish reason denies it."""

from collections.abc import Iterator
from typing import ClassVar

from deltatape.model.finding import Blame, Finding, Severity
from deltatape.model.reply import CallKind, Choice
from deltatape.rules._base import Claim, RuleContext, finding
from deltatape.rules.finish import Finish, finish_of
from deltatape.rules.words import count

_FREE_CHOICES = frozenset({None, "auto", "required"})


class FinishReasonMismatch:
    """The reply has tool calls, and its finish reason says that it has none.

    ## What it does
    Reports replies that carry tool calls and end with the word for a normal end: `stop` instead of
    `tool_calls`, `end_turn` instead of `tool_use`. Silent where that is the rule: if the request
    forces one named tool, and in dialects without a word for tool calls.

    ## Why is this bad
    Many clients look at the finish reason to decide whether to run tools. They take this reply
    for a final answer: the loop ends, the tools never run, the user sees nothing.

    ## Example
    ```
    data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","function":{...}}]}}]}
    data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}
    ```

    ## Fix
    In the client, let the presence of calls decide and read the finish reason as a remark only.

    ## References
    - https://platform.openai.com/docs/api-reference/chat-streaming
    - https://github.com/googleapis/python-genai/issues/2868
    - https://github.com/ollama/ollama/issues/7963
    - https://github.com/vllm-project/vllm/issues/9209
    """

    code: ClassVar[str] = "S002"
    name: ClassVar[str] = "finish-reason-mismatch"
    severity: ClassVar[Severity] = Severity.ERROR

    def check(self, context: RuleContext) -> Iterator[Finding]:
        """See `Rule.check`."""
        asked = context.asked
        if not context.reply.tool_word:
            return
        if asked.tool_choice not in _FREE_CHOICES:
            return
        for choice in context.reply.choices:
            if finish_of(choice) is not Finish.STOP or not _calls(choice):
                continue
            if _said_tools(context, choice):
                continue
            last = context.stream.events[-1] if context.stream.events else None
            yield finding(
                self,
                context,
                Claim(
                    message=f"the finish reason is {choice.finish_reason_raw!r}, but the reply has"
                    f" {count(_calls(choice), 'tool call')}",
                    hint="in the client, run the calls that are there, whatever the reason says",
                    blame=Blame.UPSTREAM,
                    confidence=context.seen,
                    event=last.number if last else None,
                    place=last.place if last else None,
                    evidence=choice.finish_reason_raw or "",
                ),
            )


def _calls(choice: Choice) -> int:
    return sum(call.kind is not CallKind.LEGACY for call in choice.tool_calls)


def _said_tools(context: RuleContext, choice: Choice) -> bool:
    """Whether an earlier finish reason was the right one; the later one is S004's business."""
    return any(seen.choice == choice.index for seen in context.observed("S004"))
