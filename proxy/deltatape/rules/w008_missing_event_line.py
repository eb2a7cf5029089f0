"""W008: server-sent events of a dialect that names its events come without their names."""

from collections.abc import Iterator
from typing import ClassVar

from deltatape.model.finding import Finding, Severity
from deltatape.model.stream import Format
from deltatape.rules._base import RuleContext, reported


class MissingEventLine:
    r"""Events have no `event:` line.

    ## What it does
    Reports streams of a dialect in which every event has a name of its own, where the events come
    with nothing but their data. Once per stream, at the first such event.

    ## Why is this bad
    Clients choose by the name what to do with an event. Official ones, anthropic-python among them,
    skip events without one: the stream is read to its end, and no message comes out of it.

    ## Example
    ```
    data: {"type":"message_start","message":{"id":"msg_1","role":"assistant","content":[]}}
    ```

    ## Fix
    The gateway that writes the stream anew has to keep the event lines. In the client, go by the
    `type` in the data, which is always there.

    ## References
    - https://docs.anthropic.com/en/docs/build-with-claude/streaming
    - https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation
    """

    code: ClassVar[str] = "W008"
    name: ClassVar[str] = "missing-event-line"
    severity: ClassVar[Severity] = Severity.WARNING

    def check(self, context: RuleContext) -> Iterator[Finding]:
        """See `Rule.check`."""
        if context.stream.format is Format.SSE:
            yield from reported(
                self,
                context,
                "have the gateway keep the event lines, or go by the type in the data",
            )
