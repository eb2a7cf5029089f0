"""W005: a stream was asked for, something else came under a status of success."""

from collections.abc import Iterator
from typing import ClassVar

from deltatape.model.exchange import header
from deltatape.model.finding import Blame, Finding, Severity
from deltatape.model.stream import Format, Place, Span
from deltatape.rules._base import Claim, RuleContext, finding
from deltatape.rules._framing import STREAMS, is_undecoded


class NotAStream:
    """A stream was asked for, and the answer is none.

    ## What it does
    Reports a successful response that is no stream to a request that asks for one: a whole JSON
    document, a page of HTML, or nothing at all. Streams are server-sent events, JSON lines, a JSON
    array of objects, and Amazon's binary messages.

    ## Why is this bad
    Stream readers find no event in it and end without error and without a word: the application
    goes silent under status 200.

    ## Example
    ```
    POST /v1/chat/completions   {"stream": true, ...}
    200 OK
    content-type: text/html

    <html>Sign in to continue</html>
    ```

    ## Fix
    Look at who answered: a proxy's sign-in page, a wrong path, a gateway that does not stream this
    model. In the client, check the content type before reading events.

    ## References
    - https://html.spec.whatwg.org/multipage/server-sent-events.html#sse-processing-model
    """

    code: ClassVar[str] = "W005"
    name: ClassVar[str] = "not-a-stream"
    severity: ClassVar[Severity] = Severity.ERROR

    def check(self, context: RuleContext) -> Iterator[Finding]:
        """See `Rule.check`."""
        exchange, stream = context.exchange, context.stream
        if not context.asked.stream or not context.successful or exchange.response is None:
            return
        if stream.format in STREAMS if stream.body else exchange.cut:
            return  # a stream, or a body that never came because of a cut
        if is_undecoded(stream):
            return
        media = header(exchange.response.headers, "content-type")
        kind = media.decode("latin-1") if media else "no content type"
        what = "one JSON document" if stream.format is Format.JSON else "something else"
        yield finding(
            self,
            context,
            Claim(
                message=f"a stream was asked for, {what if stream.body else 'an empty body'} came"
                f" ({kind}, {len(stream.body)} bytes): stream readers find no event in it",
                hint="look at who answered: a sign-in page, a wrong path, no streaming here",
                blame=Blame.UPSTREAM,
                confidence=context.seen,
                place=Place(
                    Span(0, len(stream.body)), exchange.response.t_ns, exchange.response.line
                ),
                evidence=stream.body[:400].decode("utf-8", "backslashreplace"),
            ),
        )
