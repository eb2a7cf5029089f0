"""W003: a byte order mark in front of the stream."""

from collections.abc import Iterator
from typing import ClassVar

from deltatape.model.finding import Finding, Severity
from deltatape.model.stream import AnomalyKind
from deltatape.rules._base import RuleContext
from deltatape.rules._framing import anomalies


class ByteOrderMark:
    r"""The stream starts with a byte order mark.

    ## What it does
    Reports the three bytes EF BB BF in front of the body.

    ## Why is this bad
    The standard of event streams allows and ignores one, but widely used clients do not: they take
    it for a part of the first field's name and lose the first event without a word. Parsers of JSON
    raise at it.

    ## Example
    ```
    \xef\xbb\xbfdata: {"choices":[{"index":0,"delta":{"role":"assistant"}}]}
    ```

    ## Fix
    Have the server, or the gateway that writes the body anew, leave it out.

    ## References
    - https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream
    """

    code: ClassVar[str] = "W003"
    name: ClassVar[str] = "byte-order-mark"
    severity: ClassVar[Severity] = Severity.WARNING

    def check(self, context: RuleContext) -> Iterator[Finding]:
        """See `Rule.check`."""
        return anomalies(
            self,
            context,
            AnomalyKind.BYTE_ORDER_MARK,
            "a byte order mark stands before the first event",
            "remove it at the server; clients lose the first event over it",
        )
