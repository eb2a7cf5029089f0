"""S001: the stream ends without the event that says that it is whole."""

from collections.abc import Iterator
from typing import ClassVar

from deltatape.model.exchange import EndReason, Framing
from deltatape.model.finding import Blame, Confidence, Finding, Severity
from deltatape.rules._base import Claim, RuleContext, finding
from deltatape.rules._framing import STREAMS

_UPSTREAM_ENDED = frozenset(
    {EndReason.COMPLETE, EndReason.UPSTREAM_CLOSED, EndReason.UPSTREAM_RESET, EndReason.TIMEOUT}
)


class NoTerminalEvent:
    r"""The terminal event never came.

    ## What it does
    Reports a stream that upstream ended without the signal that its dialect ends with: the finish
    reason and `[DONE]`, `message_stop`, `response.completed`, `"done":true`. Silent if an error was
    sent instead (S005), and if it was the client or the recorder that stopped listening.

    ## Why is this bad
    Half an answer cannot be told from a whole one. Clients that treat the end of the body as
    success show a cut text or run a tool with cut arguments.

    ## Example
    ```
    data: {"choices":[{"index":0,"delta":{"content":"The answer is"}}]}\n\n
    (end of the body, in good order)
    ```

    ## Fix
    Ask the provider, or look into the gateway: some process gave up quietly. In the client, raise
    if the body ends before the terminal event.

    ## References
    - https://platform.openai.com/docs/api-reference/chat-streaming
    - https://github.com/CommandCodeAI/command-code/issues/785
    - https://github.com/langchain-ai/langchainjs/issues/11494
    """

    code: ClassVar[str] = "S001"
    name: ClassVar[str] = "no-terminal-event"
    severity: ClassVar[Severity] = Severity.ERROR

    def check(self, context: RuleContext) -> Iterator[Finding]:
        """See `Rule.check`."""
        reply, exchange = context.reply, context.exchange
        if reply.terminated or reply.error is not None or not context.successful:
            return
        if not context.recognised or context.stream.format not in STREAMS:
            return
        if exchange.timed and (not exchange.end or exchange.end.reason not in _UPSTREAM_ENDED):
            return
        finished = any(choice.finish_reason_raw for choice in reply.choices)
        last = context.stream.events[-1] if context.stream.events else None
        blame, confidence = _blame(context)
        reason = " (there was a finish reason, so the answer itself is whole)" if finished else ""
        yield finding(
            self,
            context,
            Claim(
                message=f"the stream ended without {reply.terminator}{reason}",
                hint="in the client, treat a body that ends before the terminal event as an error",
                blame=blame,
                confidence=confidence,
                severity=Severity.WARNING if finished else Severity.ERROR,
                event=last.number if last else None,
                place=last.place if last else None,
                evidence=last.data if last else "",
            ),
        )


def _blame(context: RuleContext) -> tuple[Blame | None, Confidence]:
    """An HTTP message that ended as announced leaves only those who wrote it."""
    exchange = context.exchange
    if not exchange.timed or exchange.response is None:
        return None, Confidence.POSSIBLE
    if exchange.cut:
        return Blame.TRANSPORT, Confidence.LIKELY
    if exchange.response.framing is Framing.CLOSE:
        return None, Confidence.POSSIBLE  # a broken connection looks the same
    return Blame.UPSTREAM, Confidence.PROVEN
