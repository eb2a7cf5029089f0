"""T018: a tool call in the text, where nobody runs it."""

from collections.abc import Iterator
from typing import ClassVar

from deltatape.model.finding import Blame, Confidence, Finding, Severity
from deltatape.model.reply import Channel, Choice, TextCall
from deltatape.rules._base import Claim, RuleContext, about_call
from deltatape.rules._in_text import (
    is_asked_for,
    is_followed,
    is_structured,
    is_told_of,
    where,
)


class ToolCallInText:
    r"""The model wrote a tool call into its text instead of making it.

    ## What it does
    Reports whole calls in the text, in any of the known notations of models. It is an error if the
    tool was offered, the reply has no such tool call, and nothing but calls follows: the call is
    lost. Otherwise (the call came as a tool call too, the tool was not offered) it is a warning. In
    the reasoning it is information: models think about calls that they do not make. So it is where
    the text goes on after the call, or a message of the request has the notation: then the text may
    be about calls, and nobody is accused. What stands in code is no call.

    Silent where calls in the text are the application's own protocol: the request declares no
    tools, and either the notation is the generic `<tool>{...}</tool>` or the opening tag stands in
    the request's messages.

    ## Why is this bad
    Servers turn what a model writes into tool calls. If the parser misses one, the user sees the
    markup, the finish reason says "stop", and the agent ends without having done anything.

    ## Innocent explanations
    - The text explains or quotes the notation: prose goes on behind the call, or the question or
      the instructions have it.
    - The application asks for calls in its text, and runs them itself.

    ## Example
    ```
    {"delta":{"content":"<tool_call>{\"name\": \"get_weather\", \"arguments\": {}}"}}
    {"delta":{"content":"</tool_call>"},"finish_reason":"stop"}
    ```

    ## Fix
    Set the tool parser of the server to the model's notation (vLLM: `--tool-call-parser`), and use
    the model's own chat template. Never run a call that stands in the reasoning.

    ## References
    - https://github.com/ollama/ollama/issues/17742
    - https://github.com/QwenLM/qwen-code/issues/10692
    - https://github.com/NousResearch/hermes-agent/issues/24534
    - https://docs.vllm.ai/en/latest/features/tool_calling.html
    """

    code: ClassVar[str] = "T018"
    name: ClassVar[str] = "tool-call-in-text"
    severity: ClassVar[Severity] = Severity.ERROR

    def check(self, context: RuleContext) -> Iterator[Finding]:
        """See `Rule.check`."""
        for choice in context.reply.choices:
            for written in choice.text_calls:
                if written.closed and not is_asked_for(context.asked, written):
                    claim = _claim(context, choice, written)
                    yield about_call(self, context, written.call, claim)


def _claim(context: RuleContext, choice: Choice, written: TextCall) -> Claim:
    if written.channel is Channel.REASONING:
        return Claim(
            message=f"{where(written)}: the model thinks of a call",
            hint="do not execute it",
            blame=None,
            confidence=Confidence.POSSIBLE,
            severity=Severity.INFO,
        )
    if is_structured(choice, written):
        return Claim(
            message=f"{where(written)} came as a tool call too",
            hint="run it once; do not show the markup",
            blame=Blame.UPSTREAM,
            confidence=Confidence.LIKELY,
            severity=Severity.WARNING,
        )
    if context.asked.tool(written.call.name) is None:
        none = "though the request offers no tools"
        known = "is none of the request's tools" if context.asked.tools else f"came {none}"
        return Claim(
            message=f"{where(written)} {known}; the reply has no such tool call",
            hint="offer the tools in the request, or look for the prompt that asks for such calls",
            blame=Blame.MODEL if context.asked.tools else None,
            confidence=Confidence.POSSIBLE,
            severity=Severity.WARNING,
        )
    if is_followed(choice, written) or is_told_of(context.asked, written):
        return Claim(
            message=f"{where(written)} is of an offered tool; the text may only be about it:"
            " it goes on behind the call, or the request speaks of the notation",
            hint="nothing to do if the answer explains calls; else set the server's tool parser",
            blame=None,
            confidence=Confidence.POSSIBLE,
            severity=Severity.INFO,
        )
    return Claim(
        message=f"{where(written)} is of an offered tool, and the reply has no such tool call:"
        " the server's tool parser missed it",
        hint="set the server's tool parser to this notation, and use the model's chat template",
        blame=Blame.UPSTREAM,
        confidence=Confidence.LIKELY,
    )
