"""T003: arguments that end too early."""

from collections.abc import Iterator
from typing import ClassVar

from deltatape.model.exchange import EndReason
from deltatape.model.finding import Blame, Confidence, Finding, Severity
from deltatape.model.reply import CallStatus, Choice, ToolCall
from deltatape.rules._base import Claim, RuleContext, about_call, label
from deltatape.rules.finish import Finish, finish_of
from deltatape.rules.words import count


class TruncatedArguments:
    r"""The arguments of a call end too early.

    ## What it does
    Reports calls whose joined arguments are the beginning of a JSON value and no more, and calls
    whose stream ended before anything said that they were complete.

    ## Why is this bad
    "Unexpected end of JSON input" at best. Libraries that complete partial JSON turn `{"path":"/a`
    into a valid object, and the tool runs with a wrong value without any error.

    ## Example
    ```
    {"tool_calls":[{"index":0,"function":{"arguments":"{\"city\":"}}]}
    (nothing more for this call)
    ```

    ## Fix
    See what ended it: a limit of tokens (S009), the transport (W006), a stream without its terminal
    event (S001); if the reply ended in good order, the server lost the rest. In the client, never
    complete partial JSON for execution.

    ## References
    - https://github.com/vllm-project/vllm/issues/32152
    - https://github.com/vllm-project/vllm/issues/46303
    - https://github.com/NousResearch/hermes-agent/issues/80623
    """

    code: ClassVar[str] = "T003"
    name: ClassVar[str] = "truncated-arguments"
    severity: ClassVar[Severity] = Severity.ERROR

    def check(self, context: RuleContext) -> Iterator[Finding]:
        """See `Rule.check`."""
        for choice, call in context.calls():
            if call.status is not CallStatus.TRUNCATED:
                continue
            why, blame, confidence = _cause(context, choice)
            yield about_call(
                self,
                context,
                call,
                Claim(
                    message=f"{_extent(call)}: {why}",
                    hint="run no such call and complete no partial JSON; ask again, and show the"
                    " provider this tape if it stays so",
                    blame=blame,
                    confidence=confidence,
                    severity=Severity.WARNING if blame is Blame.APP else Severity.ERROR,
                ),
            )


def _extent(call: ToolCall) -> str:
    if not call.fragments:
        return f"no arguments of {label(call)} came"
    pieces = count(len(call.fragments), "fragment")
    return f"the arguments of {label(call)} end after {len(call.arguments)} characters in {pieces}"


def _cause(context: RuleContext, choice: Choice) -> tuple[str, Blame | None, Confidence]:
    """What ended the call, who did that, and how sure that is."""
    end = finish_of(choice)
    if end in {Finish.LENGTH, Finish.FILTER}:
        word = repr(choice.finish_reason_raw)
        return f"the provider cut the reply (finish reason {word})", None, Confidence.PROVEN
    if context.reply.error is not None:
        return "upstream sent an error", Blame.UPSTREAM, context.seen
    if choice.finish_reason_raw is not None:
        return "the reply went on to its regular end", Blame.UPSTREAM, context.seen
    if not context.exchange.cut:
        blame = Blame.UPSTREAM if context.exchange.timed else None
        return "the stream ended without a finish reason", blame, Confidence.LIKELY
    ended = context.exchange.end
    if ended is None or ended.reason is EndReason.STOPPED:
        return "the recorder stopped watching", None, Confidence.POSSIBLE
    if ended.reason is EndReason.CLIENT_CLOSED:
        return "the client closed the connection", Blame.APP, Confidence.PROVEN
    return "the transport was cut", Blame.TRANSPORT, Confidence.LIKELY
