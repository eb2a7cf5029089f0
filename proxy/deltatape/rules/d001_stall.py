"""D001: a long time without progress."""

from collections.abc import Iterator
from typing import ClassVar

from deltatape.model.exchange import EndReason
from deltatape.model.finding import Blame, Confidence, Excluded, Finding, Severity
from deltatape.model.stream import Format
from deltatape.rules._base import NS, Claim, RuleContext, finding, label
from deltatape.rules._lag import lags
from deltatape.rules.progress import (
    NOT_WATCHED,
    Phase,
    Silence,
    not_watched,
    place_of,
    silence_after_result,
    silences,
)
from deltatape.rules.words import count

ALIVE = (
    Excluded("the recorder was held up", "keep-alives passed through it meanwhile"),
    Excluded("the connection was broken", "keep-alives came over it meanwhile"),
)
"""Why a silence with signs of life is that of whoever sent these."""
_QUIET = 0.7
"""Signs of life prove something if they came within the silence, not at its edges."""
_ENDS = {
    EndReason.COMPLETE: "the response ended",
    EndReason.UPSTREAM_CLOSED: "the upstream closed the connection",
    EndReason.UPSTREAM_RESET: "the connection was reset",
    EndReason.CLIENT_CLOSED: "the client gave up",
    EndReason.TIMEOUT: "the recorder gave up",
    EndReason.REFUSED: "the connection failed",
    EndReason.STOPPED: "the recorder was stopped",
}


class Stall:
    r"""The answer made no progress for a long time.

    ## What it does
    Reports times without progress, 10 s or longer by default, with their phase: `before-first`,
    `in-text`, `in-arguments`, `after-call` (a call was whole, nothing followed), `before-end`
    (after the finish reason). Keep-alive comments, roles and empty deltas are no progress; the
    message counts them. The time between the last progress and the end of the exchange counts,
    too. An answer that comes in one piece because no stream was asked for has a minute. A request
    with tool results that is never answered is D004.

    Silence is known only while the recorder watched: it writes `idle` every 5 s while nothing
    comes. A time of more than 10 s without any record was not watched, and a silence that is long
    only by such a time is a remark that blames nobody.

    ## Why is this bad
    Users see a frozen application, idle timeouts of clients and proxies strike. A timer that every
    event resets never notices, because keep-alives go on.

    ## Innocent explanations
    - The recorder was held up, by a disk that hung or a Ctrl-Z: then it wrote no `idle` records.
    - The client took nothing, so that nothing more could come: then it is the app's.
    - The recorder was killed: then it ends the silence, and nobody is blamed.
    - The model thinks, or a queue is long: no error of anybody's before a minute.

    ## Example
    ```
    12.1 s  {"tool_calls":[{"index":0,"function":{"name":"write_file","arguments":""}}]}
    12.1 s to 73.4 s   : keep-alive (4 times)
    73.4 s  {"tool_calls":[{"index":0,"function":{"arguments":"{\"path\": ...
    ```

    ## Fix
    In arguments: the provider holds them back until they are whole; ask for fine-grained streaming
    of tool arguments, or allow for it in your timeouts. Before the first event: a long prompt, a
    reasoning model, a queue. In the client, time progress instead of bytes, and tell the user what
    is being waited for.

    ## References
    - https://github.com/BerriAI/litellm/issues/32004
    - https://github.com/vercel/ai/issues/19695
    """

    code: ClassVar[str] = "D001"
    name: ClassVar[str] = "stall"
    severity: ClassVar[Severity] = Severity.WARNING

    def check(self, context: RuleContext) -> Iterator[Finding]:
        """See `Rule.check`."""
        if not context.exchange.timed:
            return
        other = silence_after_result(context)
        for silence in silences(context, int(context.settings.stall_s * NS)):
            if silence == other or _is_awaited(context, silence):
                continue
            blame, confidence = _blame(context, silence)
            yield finding(
                self,
                context,
                Claim(
                    message=_message(context, silence),
                    hint=_hint(context, silence),
                    blame=blame,
                    confidence=confidence,
                    severity=_severity(context, silence),
                    event=silence.after.number if silence.after else None,
                    place=place_of(silence),
                    evidence=silence.after.data if silence.after else "",
                    excluded=ALIVE if confidence is Confidence.PROVEN else (),
                ),
            )


_HINTS = {
    Phase.BEFORE_FIRST: "a long prompt, a reasoning model or a queue; show the user that you wait",
    Phase.IN_TEXT: "in the client, time progress instead of bytes, and offer to ask again",
    Phase.IN_ARGUMENTS: "ask for fine-grained streaming of arguments, or allow for it in timeouts",
    Phase.AFTER_CALL: "the call was whole: a client may run it when the finish reason is there",
    Phase.BEFORE_END: "end at the terminal event instead of waiting for the end of the body",
}


def _hint(context: RuleContext, silence: Silence) -> str:
    if not _is_known(context, silence):
        return NOT_WATCHED
    if context.reply.from_app and silence.phase is Phase.AFTER_CALL:
        return "the tool takes that long, or hangs: tell the page that it runs, and limit its time"
    return _HINTS[silence.phase]


def _is_awaited(context: RuleContext, silence: Silence) -> bool:
    """Whether the whole answer came after it, and no stream was asked for."""
    if silence.open or context.asked.stream or not context.asked.known:
        return False
    short = silence.end_ns - silence.start_ns < context.settings.stall_error_s * NS
    return short and context.stream.format is Format.JSON


def _message(context: RuleContext, silence: Silence) -> str:
    seconds = (silence.end_ns - silence.start_ns) / NS
    where = f" of {label(silence.call)}" if silence.call else ""
    between = [
        count(number, what)
        for number, what in (
            (silence.comments, "keep-alive comment"),
            (silence.idle_events, "empty event"),
        )
        if number
    ]
    noise = f", with {' and '.join(between)} in between" if between else ""
    then = _then(context, silence)
    unseen = not_watched(silence)
    return f"no progress for {seconds:.1f} s ({silence.phase}{where}){noise}{unseen}; {then}"


def _then(context: RuleContext, silence: Silence) -> str:
    if not silence.open:
        return "then it went on"
    if context.exchange.open:
        return "and it still goes on"
    end = context.exchange.end
    return f"then {_ENDS[end.reason]}" if end else "then the tape ends"


def _severity(context: RuleContext, silence: Silence) -> Severity:
    """An answer that never went on, or came later than common timeouts, is an error."""
    if not _is_known(context, silence):
        return Severity.INFO
    long = silence.watched_ns >= context.settings.stall_error_s * NS
    if silence.open and not context.reply.terminated:
        return Severity.ERROR
    return Severity.ERROR if long and silence.phase is not Phase.BEFORE_END else Severity.WARNING


def _blame(context: RuleContext, silence: Silence) -> tuple[Blame | None, Confidence]:
    """Keep-alives prove a living connection; a client that takes nothing stops the reading."""
    if not _is_known(context, silence):
        return None, Confidence.POSSIBLE
    half = (silence.end_ns - silence.start_ns) / 2
    for lag in lags(context.exchange):
        shared = min(lag.end_ns, silence.end_ns) - max(lag.start_ns, silence.start_ns)
        if shared >= half:
            return Blame.APP, Confidence.LIKELY
    if silence.quiet_ns <= _QUIET * (silence.end_ns - silence.start_ns):
        return Blame.UPSTREAM, Confidence.LIKELY if silence.unwatched_ns else Confidence.PROVEN
    if context.exchange.end is None and silence.open and not context.exchange.open:
        return None, Confidence.POSSIBLE
    return Blame.UPSTREAM, Confidence.LIKELY


def _is_known(context: RuleContext, silence: Silence) -> bool:
    """Whether the recorder watched for long enough of it."""
    return silence.watched_ns >= context.settings.stall_s * NS
