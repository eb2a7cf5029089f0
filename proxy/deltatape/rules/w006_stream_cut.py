"""W006: the transport ended before the response was whole."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from deltatape.model.exchange import EndReason
from deltatape.model.finding import Blame, Confidence, Finding, Severity
from deltatape.model.reply import CallStatus
from deltatape.model.stream import Place, Span
from deltatape.rules._base import Claim, RuleContext, finding, label
from deltatape.rules._framing import is_torn


class StreamCut:
    r"""The connection ended before the response was whole.

    ## What it does
    Reports how and where the transport broke off: closed or reset by the upstream, left by the
    client, timed out, refused, or no longer watched because the recorder stopped or died. An ending
    that HTTP calls complete is never a cut, whatever is missing in the events (S001).

    ## Why is this bad
    What had arrived until then looks like an answer. Clients that take the end of the body for
    success show half a text, or run a tool with half of its arguments.

    ## Example
    ```
    data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"ci"
    (connection reset by the upstream, in the middle of an HTTP chunk)
    ```

    ## Fix
    A reset or a close in the middle of a message is the doing of the server or of something in
    between: look for idle timeouts of proxies about as long as the silence before. If the client
    left, look for its own timeout. In the client, treat every end without the terminal event
    as an error, and run no call of such a reply.

    ## References
    - https://www.rfc-editor.org/rfc/rfc9112#section-8
    - https://github.com/SamSaffron/term-llm/issues/955
    - https://github.com/NousResearch/hermes-agent/issues/80623
    """

    code: ClassVar[str] = "W006"
    name: ClassVar[str] = "stream-cut"
    severity: ClassVar[Severity] = Severity.ERROR

    def check(self, context: RuleContext) -> Iterator[Finding]:
        """See `Rule.check`."""
        if not context.exchange.cut:
            return
        end = context.exchange.end
        ending = _ENDINGS[end.reason if end else None]
        done = context.reply.terminated
        if done and ending.blame is Blame.APP:
            return  # clients leave when they have the terminal event: nobody lost anything
        detail = f" ({end.detail})" if end and end.detail else ""
        yield finding(
            self,
            context,
            Claim(
                message=f"{ending.what}{detail}{_where(context)}",
                hint=ending.hint,
                blame=ending.blame,
                confidence=_confidence(context, ending),
                severity=_severity(context, ending),
                place=_last_place(context),
                evidence=context.stream.body[-200:].decode("utf-8", "backslashreplace"),
            ),
        )


@dataclass(frozen=True, slots=True)
class _Ending:
    """What a way to end means."""

    what: str
    hint: str
    blame: Blame | None


_ENDINGS = {
    EndReason.UPSTREAM_CLOSED: _Ending(
        "the upstream closed the connection before the response was whole",
        "look for idle timeouts and restarts of servers and proxies between here and the provider",
        Blame.TRANSPORT,
    ),
    EndReason.UPSTREAM_RESET: _Ending(
        "the connection to the upstream was reset",
        "look for idle timeouts and restarts of servers and proxies between here and the provider",
        Blame.TRANSPORT,
    ),
    EndReason.TIMEOUT: _Ending(
        "the recorder gave up waiting for the upstream",
        "nothing came from the upstream: look at the network and at the provider's status",
        Blame.TRANSPORT,
    ),
    EndReason.REFUSED: _Ending(
        "there was no connection to the upstream",
        "check the upstream's address, DNS, the proxy settings and the certificate",
        Blame.TRANSPORT,
    ),
    EndReason.CLIENT_CLOSED: _Ending(
        "the client closed the connection",
        "if nobody pressed stop, look for a timeout or an exception in the application",
        Blame.APP,
    ),
    EndReason.STOPPED: _Ending(
        "the recorder was stopped while the response was still coming",
        "nothing is known of what came after: tape it again and let it finish",
        None,
    ),
    None: _Ending(
        "the tape breaks off: the recorder died before this response had ended",
        "nothing is known of what came after: tape it again",
        None,
    ),
}


def _half_calls(context: RuleContext) -> list[str]:
    return [label(call) for _, call in context.calls() if call.status is CallStatus.TRUNCATED]


def _where(context: RuleContext) -> str:
    """Where in the answer that was."""
    stream = context.stream
    if context.exchange.response is None:
        return ", before any response"
    if not stream.body:
        return ", before the first byte of the body"
    if context.reply.terminated:
        return ", after the terminal event: no part of the answer is missing"
    inside = ", in the middle of an event" if is_torn(stream) else ""
    if half := _half_calls(context):
        return f"{inside}, in the arguments of {' and '.join(half)}"
    if any(choice.finish_reason_raw for choice in context.reply.choices):
        return f"{inside}, after the finish reason"
    return f"{inside}, after {len(stream.events)} events and before the end of the answer"


def _severity(context: RuleContext, ending: _Ending) -> Severity:
    """Graver the more is missing, and never an error where only the watching ended."""
    if context.reply.terminated:
        return Severity.INFO
    if ending.blame is None:
        return Severity.WARNING
    if ending.blame is Blame.TRANSPORT or _half_calls(context):
        return Severity.ERROR
    finished = any(choice.finish_reason_raw for choice in context.reply.choices)
    return Severity.INFO if finished else Severity.WARNING


def _confidence(context: RuleContext, ending: _Ending) -> Confidence:
    """Between two events a provider that gave up looks like a network that did."""
    end = context.exchange.end
    if ending.blame is not Blame.TRANSPORT:
        return Confidence.PROVEN
    torn = is_torn(context.stream) or context.exchange.response is None
    reset = end is not None and end.reason in {EndReason.UPSTREAM_RESET, EndReason.REFUSED}
    return Confidence.PROVEN if reset or torn else Confidence.LIKELY


def _last_place(context: RuleContext) -> Place | None:
    """The end of what came, at the time at which the transport ended."""
    exchange, size = context.exchange, len(context.stream.body)
    last = exchange.reads[-1] if exchange.reads else None
    if exchange.end:
        return Place(span=Span(size, size), t_ns=exchange.end.t_ns, line=exchange.end.line)
    return Place(span=Span(size, size), t_ns=last.t_ns, line=last.line) if last else None
