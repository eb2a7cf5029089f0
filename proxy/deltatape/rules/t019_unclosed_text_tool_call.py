"""T019: a tool call in the text that does not end."""

from collections.abc import Iterator
from typing import ClassVar

from deltatape.model.finding import Blame, Confidence, Finding, Severity
from deltatape.model.reply import Channel, Choice, TextCall
from deltatape.rules._base import Claim, RuleContext, about_call
from deltatape.rules._in_text import is_told_of, where
from deltatape.rules.finish import Finish, finish_of
from deltatape.wire.json_value import parse


class UnclosedTextToolCall:
    r"""A tool call in the text is not closed.

    ## What it does
    Reports calls in the text whose closing tag did not come or, in notations without one, whose
    arguments are cut off. It is a warning if the arguments are whole and only the tag is missing,
    and information in the reasoning. Unlike T018 it also holds where calls in the text are the
    application's own protocol.

    ## Why is this bad
    A parser that waits for the closing tag waits for ever: the call is lost without an error, or
    its markup is shown. One that does not wait runs half a call.

    ## Example
    ```
    {"delta":{"content":"<tool>{\"tool_name\": \"read_file\", \"arguments\": {\"path\":"}}
    {"delta":{},"finish_reason":"length"}
    ```

    ## Fix
    See what ended it: a limit of tokens (S009), the transport (W006), a stop sequence that is the
    closing tag itself. In the client, at the end of the stream give up an open call with an error
    that the model sees.

    ## References
    - https://github.com/raullenchai/Rapid-MLX/issues/448
    - https://github.com/vllm-project/vllm/issues/31207
    - https://docs.vllm.ai/en/latest/features/tool_calling.html
    """

    code: ClassVar[str] = "T019"
    name: ClassVar[str] = "unclosed-text-tool-call"
    severity: ClassVar[Severity] = Severity.ERROR

    def check(self, context: RuleContext) -> Iterator[Finding]:
        """See `Rule.check`."""
        for choice in context.reply.choices:
            for written in choice.text_calls:
                if not written.closed:
                    claim = _claim(context, choice, written)
                    yield about_call(self, context, written.call, claim)


def _claim(context: RuleContext, choice: Choice, written: TextCall) -> Claim:
    call = written.call
    whole = call.name is not None and parse(call.arguments).error is None
    missing = "its arguments are whole, the closing tag is missing" if whole else "it is cut off"
    why, blame, confidence = _cause(context, choice)
    severity = Severity.WARNING if whole else Severity.ERROR
    if written.channel is Channel.REASONING:
        severity = Severity.INFO
    if context.asked.tools and is_told_of(context.asked, written):
        severity, blame = Severity.INFO, None
        why = f"{why}; the request speaks of the notation, so the text may only be about it"
    return Claim(
        message=f"{where(written)} is not closed: {missing}; {why}",
        hint="do not run it; give up an open call with an error when the stream ends",
        blame=blame,
        confidence=confidence,
        severity=severity,
    )


def _cause(context: RuleContext, choice: Choice) -> tuple[str, Blame | None, Confidence]:
    """What ended the text, who did that, and how sure that is."""
    reason = choice.finish_reason_raw
    if finish_of(choice) in {Finish.LENGTH, Finish.FILTER}:
        return f"the provider cut the reply (finish reason {reason!r})", None, Confidence.PROVEN
    if reason is not None:
        return "the reply went on to its regular end", Blame.UPSTREAM, Confidence.LIKELY
    if context.exchange.cut:
        return "the stream was cut", None, Confidence.LIKELY
    return "the stream ended without a finish reason", None, Confidence.LIKELY
