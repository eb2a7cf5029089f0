"""C001: a call that was delivered and that the application does not repeat."""

from collections.abc import Iterator
from typing import ClassVar

from deltatape.model.digest import ReadBack, SaidCall
from deltatape.model.finding import Confidence, Finding, Severity
from deltatape.rules._conversation import AppClaim, app_finding, called
from deltatape.rules.repeated import CLEAN
from deltatape.rules.words import count


class CallLostByApp:
    """The application lost a call that was delivered whole.

    ## What it does
    Compares the calls of a reply with those that the application's next request repeats: most
    interfaces are stateless, so the request carries the reply as the application understood it.
    Reports each call that was whole on the wire and is not repeated.

    ## Why is this bad
    The tool never runs, the model never gets its result. Wire and provider are in order: the
    mistake is in the code that collects the call.

    ## Example
    ```
    reply of #1:      calls get_weather (c1), get_time (c2)
    request of #2:    {"role":"assistant","tool_calls":[{"id":"c2", ...}]}
    ```

    ## Fix
    Keep one entry per `index`, not one for "the current call"; open it with the first fragment,
    with or without arguments; keep all of them until the stream has ended, whatever its finish
    reason is.

    ## References
    - https://platform.openai.com/docs/guides/function-calling
    - https://github.com/langchain4j/langchain4j/issues/4921
    - https://github.com/ranxianglei/billion-context/issues/432
    """

    code: ClassVar[str] = "C001"
    name: ClassVar[str] = "call-lost-by-app"
    severity: ClassVar[Severity] = Severity.ERROR

    def check(self, read_back: ReadBack) -> Iterator[Finding]:
        """See `ConversationRule.check`."""
        if not read_back.reply.whole:
            return
        for call in read_back.lost:
            if call.status not in CLEAN:
                continue
            yield app_finding(
                self,
                read_back,
                AppClaim(
                    message=f"{called(read_back, call)} was delivered whole, but the app does not"
                    f" repeat it: {_instead(read_back)}",
                    hint=_hint(read_back),
                    evidence=call.arguments or "(no argument bytes)",
                    severity=_severity(read_back),
                    said=call,
                ),
            )


def _severity(read_back: ReadBack) -> Severity:
    doubtful = read_back.confidence is Confidence.POSSIBLE
    return Severity.WARNING if doubtful else Severity.ERROR


def _instead(read_back: ReadBack) -> str:
    kept = [pair.said.index for pair in read_back.pairs]
    if kept:
        places = ", ".join(str(index) for index in sorted(kept))
        return f"of {len(read_back.reply.calls)} calls it repeats only call {places}"
    if read_back.extra:
        return f"it repeats {count(len(read_back.extra), 'call')} that the wire did not deliver"
    return "its message has no call at all"


def _hint(read_back: ReadBack) -> str:
    calls: tuple[SaidCall, ...] = read_back.reply.calls
    kept = {pair.said.index for pair in read_back.pairs}
    if kept == {calls[-1].index}:
        return "only the last call survived: keep one entry per index instead of a current call"
    if kept == {calls[0].index}:
        return "only the first call survived: read every entry of tool_calls, and every index"
    return "keep one entry per index, and keep it whatever the finish reason is"
