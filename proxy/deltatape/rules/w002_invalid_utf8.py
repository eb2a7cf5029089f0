"""W002: bytes that are not UTF-8."""

from collections.abc import Iterator
from typing import ClassVar

from deltatape.model.finding import Finding, Severity
from deltatape.model.stream import AnomalyKind
from deltatape.rules._base import RuleContext
from deltatape.rules._framing import anomalies


class InvalidUtf8:
    r"""The stream holds bytes that are not UTF-8.

    ## What it does
    Reports bytes that no decoder can turn into characters. A character that is merely cut by a read
    is whole on the wire and is not reported: only what is wrong in the body itself.

    ## Why is this bad
    Event streams and JSON are UTF-8 by definition. Clients put U+FFFD there, or raise in the middle
    of the answer. Usually a tokenizer's half character was flushed too early.

    ## Example
    ```
    data: {"choices":[{"index":0,"delta":{"content":"caf\xc3"}}]}
    ```

    ## Fix
    The server must hold back an incomplete character until its rest is there.

    ## References
    - https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream
    - https://github.com/ggml-org/llama.cpp/issues/28926
    """

    code: ClassVar[str] = "W002"
    name: ClassVar[str] = "invalid-utf8"
    severity: ClassVar[Severity] = Severity.WARNING

    def check(self, context: RuleContext) -> Iterator[Finding]:
        """See `Rule.check`."""
        return anomalies(
            self,
            context,
            AnomalyKind.INVALID_UTF8,
            "not UTF-8",
            "the server must not cut characters; in the client, decode with replacement",
        )
