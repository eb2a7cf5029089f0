"""W007: all events at once, after a long silence."""

from collections.abc import Iterator
from typing import ClassVar

from deltatape.model.finding import Blame, Confidence, Finding, Severity
from deltatape.rules._base import NS, Claim, RuleContext, finding


class BufferedBurst:
    """The whole stream arrived in one burst.

    ## What it does
    Reports streams of many events that came all together after a long wait. Measured from the
    request's departure to the first event, against the time from the first to the last event.

    ## Why is this bad
    Somebody collected the answer and passed it on when it was whole: the user sees nothing for as
    long as the model writes, and idle timeouts strike in the meantime.

    ## Example
    ```
    0.000 s  request
    8.120 s  first of 240 events
    8.131 s  last of them
    ```

    ## Fix
    Switch buffering off wherever the stream passes: `proxy_buffering off` for nginx, or the
    header `X-Accel-Buffering: no` from your own server, no compression of event streams at a CDN,
    flush after each event in your own servers. Some providers also hold back the arguments of a
    tool call until they are whole; then there is nothing to switch off.

    ## References
    - https://nginx.org/en/docs/http/ngx_http_proxy_module.html#proxy_buffering
    - https://github.com/ggml-org/llama.cpp/issues/20872
    - https://github.com/dstackai/dstack/issues/4269
    - https://github.com/BerriAI/litellm/issues/29557
    """

    code: ClassVar[str] = "W007"
    name: ClassVar[str] = "buffered-burst"
    severity: ClassVar[Severity] = Severity.WARNING

    def check(self, context: RuleContext) -> Iterator[Finding]:
        """See `Rule.check`."""
        exchange, events, settings = context.exchange, context.stream.events, context.settings
        if not exchange.timed or len(events) < settings.burst_events:
            return
        asked_ns = exchange.sent.t_ns if exchange.sent else exchange.request.t_ns
        wait_ns = events[0].t_ns - asked_ns
        burst_ns = events[-1].t_ns - events[0].t_ns
        if wait_ns < settings.burst_wait_s * NS or burst_ns > settings.burst_share * wait_ns:
            return
        yield finding(
            self,
            context,
            Claim(
                message=f"{len(events)} events came within {burst_ns / NS:.3f} s after"
                f" {wait_ns / NS:.1f} s of silence, in {len(exchange.reads)} reads:"
                " somebody upstream collected the stream",
                hint="switch off response buffering and compression wherever the stream passes",
                blame=Blame.UPSTREAM,
                confidence=Confidence.LIKELY,
                event=events[0].number,
                place=events[0].place,
                evidence=events[0].data,
            ),
        )
