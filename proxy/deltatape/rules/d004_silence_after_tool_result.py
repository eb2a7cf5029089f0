"""D004: the application sent the results of its tools, and nothing came back."""

from collections.abc import Iterator
from typing import ClassVar

from deltatape.model.exchange import EndReason
from deltatape.model.finding import Blame, Confidence, Finding, Severity
from deltatape.model.stream import Place, Span
from deltatape.rules._base import NS, Claim, RuleContext, finding
from deltatape.rules.d001_stall import ALIVE
from deltatape.rules.progress import NOT_WATCHED, Silence, not_watched, silence_after_result
from deltatape.rules.words import count

_MS = 1_000_000


class SilenceAfterToolResult:
    """The application sent the results of its tools, and no answer came.

    ## What it does
    Reports requests that end with tool results and got no text, no call and no error for 10 s or
    longer while the recorder watched, up to their end or up to now. Says by both clocks when the
    request left for the upstream, how long that was silent, and how long the client waited. An
    answer that came late is a stall (D001), one that came and says nothing is D002.

    Silence is known only while the recorder was watching: a crash of the recorder ends it, and a
    time of more than 10 s without any record, not even `idle`, was not watched (see D001).

    ## Why is this bad
    The tools have run, perhaps with effects, and the user gets nothing. It looks like a loop or a
    crash of the application, which did its part.

    ## Innocent explanations
    - The recorder was held up, by a disk that hung or a Ctrl-Z: then it wrote no `idle` records.
    - The client left early, by its own timeout or because its user did: then upstream may have
      answered a moment later.
    - The recorder was killed: then it ends the silence, and nobody is blamed.

    ## Example
    ```
    0.000 s   request: 5 messages, the last one {"role":"tool","tool_call_id":"c1", ...}
    0.140 s   sent to the upstream
    5.1 s, 10.1 s, 15.1 s ...   still watching, nothing came
    60.0 s    the client closed the connection
    ```

    ## Fix
    Ask again with the same history: the results are in it, no tool has to run twice. Set a timeout
    for the first byte that is shorter than your users' patience, and say what is waited for. Large
    tool results make long prompts: shorten them.

    ## References
    - https://platform.openai.com/docs/guides/function-calling
    - https://github.com/BerriAI/litellm/issues/32004
    """

    code: ClassVar[str] = "D004"
    name: ClassVar[str] = "silence-after-tool-result"
    severity: ClassVar[Severity] = Severity.ERROR

    def check(self, context: RuleContext) -> Iterator[Finding]:
        """See `Rule.check`."""
        silence = silence_after_result(context)
        if silence is None:
            return
        blame, confidence = _blame(context, silence)
        yield finding(
            self,
            context,
            Claim(
                message=_message(context, silence),
                hint=_hint(context, silence),
                blame=blame,
                confidence=confidence,
                severity=None if _is_known(context, silence) else Severity.INFO,
                place=_place(context, silence),
                excluded=ALIVE if confidence is Confidence.PROVEN else (),
            ),
        )


def _is_known(context: RuleContext, silence: Silence) -> bool:
    """Whether the recorder watched for long enough of it."""
    return silence.watched_ns >= context.settings.after_result_s * NS


def _hint(context: RuleContext, silence: Silence) -> str:
    if not _is_known(context, silence):
        return NOT_WATCHED
    if context.exchange.sent is None:
        return "check the upstream's address, DNS, the proxy settings and the network"
    return (
        "ask again with the same history, the tools need not run again; in the client, limit the"
        " time to the first byte"
    )


def _blame(context: RuleContext, silence: Silence) -> tuple[Blame | None, Confidence]:
    """Signs of life prove whose silence it was; a client that leaves early may just be hasty."""
    exchange = context.exchange
    if not _is_known(context, silence):
        return None, Confidence.POSSIBLE
    if exchange.sent is None and exchange.response is None:
        return Blame.TRANSPORT, Confidence.POSSIBLE
    if silence.comments or silence.idle_events:
        return Blame.UPSTREAM, Confidence.LIKELY if silence.unwatched_ns else Confidence.PROVEN
    if exchange.end is None and not exchange.open:
        return None, Confidence.POSSIBLE
    left = exchange.end is not None and exchange.end.reason is EndReason.CLIENT_CLOSED
    if left and silence.end_ns - silence.start_ns < context.settings.stall_error_s * NS:
        return Blame.APP, Confidence.POSSIBLE
    watched = any(silence.start_ns < at <= silence.end_ns for at in exchange.idle_ns)
    likely = exchange.response is not None or watched
    return Blame.UPSTREAM, Confidence.LIKELY if likely else Confidence.POSSIBLE


def _message(context: RuleContext, silence: Silence) -> str:
    exchange = context.exchange
    start_ns = exchange.request.t_ns
    if exchange.sent:
        gone = f"left {_seconds(exchange.sent.t_ns - start_ns)} after it came"
    else:
        gone = "never left" if exchange.response is None else "left"
    status = f"status {exchange.response.status} and then " if exchange.response else ""
    return (
        f"the request with tool results {gone}; {status}nothing came from the upstream for"
        f" {_seconds(silence.end_ns - silence.start_ns)}{_signs(context, silence)}"
        f"{not_watched(silence)}; {_client(context, silence)}"
    )


def _signs(context: RuleContext, silence: Silence) -> str:
    """What was heard meanwhile, of the upstream and of the recorder."""
    watched = sum(silence.start_ns < at <= silence.end_ns for at in context.exchange.idle_ns)
    signs = [
        count(number, what)
        for number, what in (
            (silence.comments, "keep-alive comment"),
            (silence.idle_events, "empty event"),
            (watched, "idle record"),
        )
        if number
    ]
    return f" ({', '.join(signs)})" if signs else ""


def _client(context: RuleContext, silence: Silence) -> str:
    """The other clock: what the client did, and when that was."""
    exchange = context.exchange
    waited = _seconds(silence.end_ns - exchange.request.t_ns)
    if exchange.end is None:
        ongoing = "it still goes on" if exchange.open else "then the tape breaks off"
        return f"the client had waited {waited}, {ongoing}"
    if exchange.end.reason is EndReason.CLIENT_CLOSED:
        return f"the client gave up after {waited}"
    return f"the client was still there {waited} after its request, {_ENDS[exchange.end.reason]}"


_ENDS = {
    EndReason.COMPLETE: "when the response ended",
    EndReason.UPSTREAM_CLOSED: "when the upstream closed the connection",
    EndReason.UPSTREAM_RESET: "when the connection was reset",
    EndReason.TIMEOUT: "when the recorder gave up",
    EndReason.REFUSED: "when the connection failed",
    EndReason.STOPPED: "when the recorder was stopped",
}


def _seconds(ns: int) -> str:
    return f"{ns / NS:.1f} s" if ns >= NS else f"{ns // _MS} ms"


def _place(context: RuleContext, silence: Silence) -> Place:
    """Where the silence begins: at the request on its way."""
    return Place(span=Span(0, 0), t_ns=silence.start_ns, line=context.exchange.request.line)
