"""W001: the body ends before the blank line that dispatches its last event."""

from collections.abc import Iterator
from typing import ClassVar

from deltatape.model.finding import Blame, Confidence, Finding, Severity
from deltatape.model.stream import Anomaly, AnomalyKind, Format
from deltatape.rules._base import Claim, RuleContext, finding

_INSIDE = {
    Format.SSE: "inside an event, after {} bytes of it: clients that keep to the standard"
    " discard it",
    Format.NDJSON: "inside a line, after {} bytes of it: they are no JSON value, clients raise",
    Format.JSON_ARRAY: "inside an element, after {} bytes of it: clients discard it or raise",
    Format.EVENTSTREAM: "inside a message, after {} bytes of it: clients discard it or raise",
}
_UNCLOSED = "before the end of the array: clients that parse it as a whole raise"


class UnterminatedEvent:
    r"""The last event is not terminated.

    ## What it does
    Reports a stream whose body ends inside an event: the empty line that dispatches a server-sent
    event never came, the last line is no whole JSON value, an array or one of its elements is not
    closed, a binary message is shorter than it says. Silent where the transport was cut, because
    then the cut is the defect (W006).

    ## Why is this bad
    The standard of server-sent events tells clients to discard such an event. Some do, some do not:
    the last piece of an answer, or the finish reason, exists for one client and not for another.
    In other streams the piece is lost, or the client raises.

    ## Example
    ```
    data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n
    data: [DONE]\n          <- the body ends here, without the empty line
    ```

    ## Fix
    The server has to end each event, the last one included: an event stream's with an empty line. A
    client that must live with it can flush its buffer when the body ends.

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
            yield finding(
                self,
                context,
                Claim(
                    message=f"the body ends {_where(context, anomaly).format(end - start)}",
                    hint="end each event, server-sent ones with an empty line; clients can flush",
                    blame=Blame.UPSTREAM if context.exchange.timed else None,
                    confidence=Confidence.LIKELY,
                    severity=_severity(context, anomaly),
                    event=anomaly.event,
                    place=anomaly.place,
                    evidence=context.stream.body[start:end].decode("utf-8", "backslashreplace"),
                ),
            )


def _where(context: RuleContext, anomaly: Anomaly) -> str:
    """Where the body ends, with a place for how many bytes of the event there are."""
    return _UNCLOSED if _is_between(context, anomaly) else _INSIDE[context.stream.format]


def _severity(context: RuleContext, anomaly: Anomaly) -> Severity:
    """A pasted stream easily loses its end, and a sentinel or a bracket carries nothing."""
    stream = context.stream
    data = stream.pending.data if stream.pending else ""
    sentinel = stream.format is Format.SSE and "{" not in data
    harmless = not context.exchange.timed or sentinel or _is_between(context, anomaly)
    return Severity.WARNING if harmless else Severity.ERROR


def _is_between(context: RuleContext, anomaly: Anomaly) -> bool:
    """Whether nothing but the end of an array is missing."""
    return context.stream.format is Format.JSON_ARRAY and anomaly.event is None
