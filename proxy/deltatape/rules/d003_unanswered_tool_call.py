"""D003: calls that were delivered, and a silence after them."""

from collections.abc import Iterator
from typing import ClassVar

from deltatape.model.digest import SaidCall, Unanswered
from deltatape.model.finding import Blame, Confidence, Excluded, Finding, Severity
from deltatape.model.watch import CHILD_EXIT, Watch
from deltatape.rules._base import MAX_MESSAGE, NS, escaped
from deltatape.rules._thrown import crashed
from deltatape.rules.evidence import excerpt
from deltatape.rules.settings import Settings
from deltatape.rules.words import count


class UnansweredToolCall:
    """Tool calls arrived whole, and the application never came back with their results.

    ## What it does
    Reports replies whose calls were to be run, if no later request on the tape answers them,
    repeats them or goes on with their conversation, and the recorder watched for 30 s or longer
    after the reply. It says how long was watched and what ended that. An application that exited
    with an error is reported however soon that was.

    Silence is proven only while the recorder was watching: up to the last record of the tape. A
    reply of which the tape lacks something, and one after which it lacks an exchange, is none of
    these: the answer may be what is missing. It is
    never proof of a loss. `likely` means that the application lived on; `possible`, that the tape
    does not tell, or that the application answers no calls at all: some take them as their output,
    so that is reported once for a tape. From five minutes on it is an error if the application
    lived on.

    ## Why is this bad
    This is the dead zone: no tool runs, nobody answers the user, and nothing is wrong on the wire.

    ## Innocent explanations
    - The application takes calls as its output, waits for a person, or has ended. Possible.
    - The recorder lost the request that answers, or some of the reply (X002). Silent.
    - The tool takes long, or the user went away. Likely at most.

    ## Example
    ```
    reply of #1:      call web_search (call_g9ms), finish tool_calls
    app's log:        Filtering out malformed tool call (missing id or name)
    watched 42.0 s:   no request
    ```

    ## Fix
    Look at what the application does between the end of the stream and its next request: a filter
    on id or name, a finish reason it waits for, an exception that nobody sees, a tool that never
    returns. Answer every call, if only with an error.

    ## References
    - https://platform.openai.com/docs/guides/function-calling
    - https://github.com/mcp-use/mcp-use/issues/2593
    - https://github.com/docker/docker-agent/issues/2992
    """

    code: ClassVar[str] = "D003"
    name: ClassVar[str] = "unanswered-tool-call"
    severity: ClassVar[Severity] = Severity.WARNING

    def check(self, silence: Unanswered, settings: Settings) -> Iterator[Finding]:
        """See `SilenceRule.check`."""
        reply = silence.reply
        watch, end_ns = reply.watch, reply.end_ns
        if watch is None or end_ns is None:
            return
        watched_s = (silence.until_ns - end_ns) / NS
        if watched_s < settings.unanswered_s and not crashed(watch):
            return
        confidence = _confidence(silence, end_ns, settings)
        long = watched_s >= settings.unanswered_error_s and confidence is Confidence.LIKELY
        long |= bool(silence.thrown)
        yield Finding(
            code=self.code,
            name=self.name,
            severity=Severity.ERROR if long else Severity.WARNING,
            blame=Blame.APP,
            confidence=confidence,
            message=excerpt(_message(silence, watch, watched_s), MAX_MESSAGE),
            hint=_CRASH if silence.thrown else _HABIT if silence.alike else _HINT,
            tape=reply.tape,
            line=reply.end_line,
            exchange=reply.exchange,
            event=None,
            span=None,
            t_ns=end_ns,
            evidence=excerpt(reply.calls[0].arguments or "(no argument bytes)"),
            excluded=escaped(_excluded(silence)),
        )


_HINT = (
    "look at what the app does after a reply with calls: a filter on id or name, a finish reason it"
    " waits for, a swallowed exception, a tool that never returns"
)
_HABIT = (
    "the app answers no calls on this tape: if it takes calls as its output, all is well; else "
    + _HINT
)


_CRASH = (
    "the app ended by an error of its own before it could answer: the traceback on the tape says"
    " where; if that is where it parses the arguments, what it parsed is not what was delivered"
)


def _excluded(silence: Unanswered) -> tuple[Excluded, ...]:
    if not silence.thrown:
        return ()
    ended = f"it printed {excerpt(silence.thrown, 100)!r} and ended with an error"
    return (Excluded("the app takes calls as its output, or waits for a person", ended),)


def _confidence(silence: Unanswered, end_ns: int, settings: Settings) -> Confidence:
    """Likely if the application lived as long as it should have taken to answer."""
    alive_s = (silence.alive_ns - end_ns) / NS if silence.alive_ns is not None else 0.0
    lived = alive_s >= settings.unanswered_s
    if silence.thrown:
        return Confidence.LIKELY
    return Confidence.LIKELY if lived and not silence.alike else Confidence.POSSIBLE


def _message(silence: Unanswered, watch: Watch, watched_s: float) -> str:
    calls = silence.reply.calls
    names = ", ".join(_label(call) for call in calls[:3])
    more = f" and {len(calls) - 3} more" if len(calls) > 3 else ""  # noqa: PLR2004 - as above
    were = "was" if len(calls) == 1 else "were"
    others = f"{silence.alike} later {'reply' if silence.alike == 1 else 'replies'}"
    alike = f"; the same goes for {others}" if silence.alike else ""
    came = f"{count(len(calls), 'call')} ({names}{more}) {were} delivered whole, and"
    if silence.thrown:
        thrown = excerpt(silence.thrown, 160)
        return (
            f"{came} then, without a further request, the app printed {thrown!r} and exited with"
            f" {watch.exit_code}"
        )
    if crashed(watch):
        ended = f"the app exited with {watch.exit_code}, {watched_s:.1f} s later"
        return f"{came} no request followed before {ended}{alike}"
    silent = f"no request followed for {watched_s:.1f} s of watched silence"
    return f"{came} {silent}; {_then(watch)}{alike}"


def _label(call: SaidCall) -> str:
    return excerpt(call.name or call.id or f"call {call.index}", 60)


def _then(watch: Watch) -> str:
    """What ended the watching."""
    if watch.stop is None:
        return "it still goes on" if watch.recording else "then the tape breaks off"
    if watch.stop == CHILD_EXIT and watch.exit_code is not None:
        return f"then the app exited with {watch.exit_code}"
    return f"then the recorder stopped ({excerpt(watch.stop, 60)})"
