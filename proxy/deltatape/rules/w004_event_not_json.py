"""W004: an event whose data is not JSON where the dialect has nothing but JSON."""

from collections.abc import Iterator
from typing import ClassVar

from deltatape.model.finding import Finding, Severity
from deltatape.rules._base import RuleContext, reported
from deltatape.rules.loss import is_left


class EventNotJson:
    """An event's data is not JSON.

    ## What it does
    Reports events that cannot be parsed although the dialect sends JSON in each of them, apart from
    its own sentinels such as `[DONE]`.

    ## Why is this bad
    Clients parse each event; most raise, and the whole answer is lost at this event. What is in it
    tells where it comes from: a comment sent as data, two objects in one event, two streams mixed
    into each other, a page of HTML from a proxy.

    ## Example
    ```
    data: : KEEP-ALIVE
    data: {"choices":[]}{"choices":[]}
    data: {"choices":[{"index":0,"delta":{"content":"Hel..adata: {"choices":[]}
    ```

    ## Fix
    Repair the server or the gateway that writes such events. A client can skip what does not parse,
    but then it does not know what it lost.

    ## References
    - https://github.com/mnfst/llm-gateway/issues/2053
    - https://github.com/anomalyco/opencode/issues/8282
    - https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream
    """

    code: ClassVar[str] = "W004"
    name: ClassVar[str] = "event-not-json"
    severity: ClassVar[Severity] = Severity.ERROR

    def check(self, context: RuleContext) -> Iterator[Finding]:
        """See `Rule.check`."""
        hint = "look at the evidence: it tells which server or gateway wrote it"
        last = len(context.stream.events) - 1
        for each in reported(self, context, hint):
            if not (each.event == last and is_left(context.exchange)):
                yield each  # what a client leaves is cut anywhere
