"""W001: the body ends before the blank line that dispatches its last event."""

from collections.abc import Iterator
from typing import ClassVar

from deltatape.model.finding import Blame, Confidence, Finding, Severity
from deltatape.model.stream import AnomalyKind
from deltatape.rules._base import Claim, RuleContext, finding


class UnterminatedEvent:
    r"""The last event has no blank line after it.

    ## What it does
    Reports an event stream whose body ends inside an event: the empty line that dispatches it never
    came. Silent where the transport was cut, because then the cut is the defect (W006).

    ## Why is this bad
    The standard tells clients to discard such an event. Some do, some do not: the last piece of an
    answer, or the finish reason, exists for one client and not for another.

    ## Example
    ```
    data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n
    data: [DONE]\n          <- the body ends here, without the empty line
    ```

    ## Fix
    The server has to send an empty line after each event, the last one included. A client that must
    live with it can flush its buffer when the body ends.

    ## References
    - https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation
    - https://github.com/fastrepl/anarlog/pull/6872
    """

    code: ClassVar[str] = "W001"
    name: ClassVar[str] = "unterminated-event"
    severity: ClassVar[Severity] = Severity.ERROR

    def check(self, context: RuleContext) -> Iterator[Finding]:
        """See `Rule.check`."""
        if context.exchange.cut:
            return
        for anomaly in context.stream.anomalies:
            if anomaly.kind is not AnomalyKind.UNTERMINATED_EVENT:
                continue
            start, end = anomaly.place.span
            # A pasted stream easily loses its last empty line, and a sentinel carries nothing.
            harmless = not context.exchange.timed or "{" not in _pending_data(context)
            yield finding(
                self,
                context,
                Claim(
                    message=f"the body ends inside an event, after {end - start} bytes of it:"
                    " clients that keep to the standard discard it",
                    hint="end each event with an empty line; in the client, flush at the end",
                    blame=Blame.UPSTREAM if context.exchange.timed else None,
                    confidence=Confidence.LIKELY,
                    severity=Severity.WARNING if harmless else Severity.ERROR,
                    event=anomaly.event,
                    place=anomaly.place,
                    evidence=context.stream.body[start:end].decode("utf-8", "backslashreplace"),
                ),
            )


def _pending_data(context: RuleContext) -> str:
    return context.stream.pending.data if context.stream.pending else ""
