"""S010: a call, or text, that comes after the finish reason."""

from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

from deltatape.model.finding import Blame, Excluded, Finding, Severity
from deltatape.model.reply import Choice, ToolCall
from deltatape.rules._base import Claim, RuleContext, about_call, finding, label
from deltatape.rules.evidence import excerpt
from deltatape.rules.finish import late_calls, late_text

_LOST = "a client that stops at the finish reason never gets it"
_ORDER = Excluded(
    "the recorder mixed up the order",
    "the tape holds the bytes in the order in which they were read from the provider",
)
_HABIT = Excluded(
    "the server repeats its finish reason on every event",
    "the events before the finish reason have none",
)


class CallAfterFinish:
    """A call, or text, comes in an event after the one with the finish reason.

    ## What it does
    Reports calls that are opened after the finish reason of their answer or whose arguments go on
    after it, and calls after the event that ends the stream: errors. Text there is a warning.

    ## Why is this bad
    The finish reason says that the answer is complete. Many clients stop reading there, or run the
    calls that they have: the late call never runs, and their next request does not repeat it. It
    looks as if the application had lost it.

    ## Innocent explanations
    - Usage and empty deltas follow the finish reason in many streams: they are no content.
    - Some servers put a finish reason on every event, and Gemini may put one on several: then only
      what follows the last one counts.

    ## Example
    ```
    data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}
    data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"c2","function":{...}}]}}]}
    data: [DONE]
    ```

    ## Fix
    The server should send the finish reason last. In the client, read to the end of the stream and
    only then run the calls.

    ## References
    - https://platform.openai.com/docs/api-reference/chat-streaming
    - https://docs.anthropic.com/en/docs/build-with-claude/streaming
    - https://platform.openai.com/docs/api-reference/responses-streaming
    """

    code: ClassVar[str] = "S010"
    name: ClassVar[str] = "call-after-finish"
    severity: ClassVar[Severity] = Severity.ERROR

    def check(self, context: RuleContext) -> Iterator[Finding]:
        """See `Rule.check`."""
        if context.reply.from_app:
            return
        for choice in context.reply.choices:
            for call in late_calls(choice):
                yield about_call(self, context, call, _about(context, choice, call))
            yield from self._text(context, choice)
        for seen in context.observed(self.code):
            claim = _claim(context, f"{seen.detail}; {_LOST}", seen.evidence)
            yield finding(self, context, replace(claim, event=seen.event, place=seen.place))

    def _text(self, context: RuleContext, choice: Choice) -> Iterator[Finding]:
        last = late_text(choice)
        if last is None or any(seen.event == last.event for seen in context.observed("S006")):
            return  # where the dialect has no place for it, that is told already
        told = f"text comes {_after(choice)}, in event {last.event}; {_LOST}"
        claim = _claim(context, told, last.carrier.data)
        warning = replace(claim, severity=Severity.WARNING)
        yield finding(self, context, replace(warning, event=last.event, place=last.carrier.place))


def _about(context: RuleContext, choice: Choice, call: ToolCall) -> Claim:
    opened = call.start_event > (choice.finish_event or 0)
    event = call.start_event if opened else call.fragments[-1].event
    told = "is opened" if opened else "goes on"
    after = f"{told} {_after(choice)}, in event {event}"
    place = call.start if opened else call.fragments[-1].place
    return replace(_claim(context, f"{label(call)} {after}; {_LOST}", ""), event=event, place=place)


def _after(choice: Choice) -> str:
    reason = next(word for event, word in choice.finishes if event == choice.finish_event)
    return f"after the finish reason {excerpt(reason, 40)!r} of event {choice.finish_event}"


def _claim(context: RuleContext, message: str, evidence: str) -> Claim:
    return Claim(
        message=message,
        hint="show the provider this tape: calls belong before the finish reason; in the client,"
        " read to the end of the stream before running the calls",
        blame=Blame.UPSTREAM,
        confidence=context.seen,
        evidence=evidence,
        excluded=(_ORDER, _HABIT) if context.exchange.timed else (),
    )
