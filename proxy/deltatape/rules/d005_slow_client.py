"""D005: a client that takes the answer later than it comes."""

from collections.abc import Iterator
from typing import ClassVar

from deltatape.model.finding import Blame, Confidence, Finding, Severity
from deltatape.model.stream import Place, Span
from deltatape.rules._base import NS, Claim, RuleContext, finding
from deltatape.rules._lag import lags


class SlowClient:
    """The client read more slowly than the upstream sent.

    ## What it does
    Reports bytes that had been read from the upstream and waited for the client to take them, if
    the longest wait is over a second.

    ## Why is this bad
    The delay that the user feels is the application's, not the provider's: something in it blocks
    between two reads. If it goes on, the upstream is slowed down, too, and may close the
    connection.

    ## Example
    ```
    4.210 s  read from the upstream up to byte 81920
    9.873 s  delivered to the client up to byte 81920
    ```

    ## Fix
    Look at what the application does for each event: a synchronous write, a database, a render of
    the whole text. Read in one task, process in another.

    ## References
    - https://html.spec.whatwg.org/multipage/server-sent-events.html#authoring-notes
    """

    code: ClassVar[str] = "D005"
    name: ClassVar[str] = "slow-client"
    severity: ClassVar[Severity] = Severity.WARNING

    def check(self, context: RuleContext) -> Iterator[Finding]:
        """See `Rule.check`."""
        found = lags(context.exchange) if context.exchange.timed else ()
        worst = max(found, key=lambda lag: lag.end_ns - lag.start_ns, default=None)
        if worst is None:
            return
        seconds = (worst.end_ns - worst.start_ns) / NS
        if seconds < context.settings.slow_client_s:
            return
        offset = worst.offset
        # What was delivered is counted as sent, spans in the body after content-coding.
        coded = len(context.stream.body) != len(context.exchange.body)
        shown = 0 if coded else offset
        yield finding(
            self,
            context,
            Claim(
                message=f"the client took byte {offset} of the body {seconds:.1f} s after it came",
                hint="look at what the application does between two reads",
                blame=Blame.APP,
                confidence=Confidence.PROVEN,
                place=Place(span=Span(shown, shown), t_ns=worst.end_ns, line=worst.line),
            ),
        )
