"""S007: the numbers of the events have a gap."""

from collections.abc import Iterator
from typing import ClassVar

from deltatape.model.finding import Finding, Severity
from deltatape.rules._base import RuleContext, reported


class SequenceGap:
    """The sequence numbers of the events do not follow each other.

    ## What it does
    Reports the first event whose number is not the one before it plus one, in dialects that number
    their events. A stream may begin with any number: one that was resumed does.

    ## Why is this bad
    Events are missing, twice there or out of order between the provider and here. What they said is
    lost without any other trace: a piece of the arguments, a whole call.

    ## Example
    ```
    {"type":"response.output_text.delta","sequence_number":7,"delta":"Hel"}
    {"type":"response.output_text.delta","sequence_number":9,"delta":"world"}
    ```

    ## Fix
    Find out which gateway drops events: those whose type it does not know, most likely. Clients
    that resume a stream (`starting_after`) should compare the numbers.

    ## References
    - https://platform.openai.com/docs/api-reference/responses-streaming
    - https://platform.openai.com/docs/guides/background
    """

    code: ClassVar[str] = "S007"
    name: ClassVar[str] = "sequence-gap"
    severity: ClassVar[Severity] = Severity.WARNING

    def check(self, context: RuleContext) -> Iterator[Finding]:
        """See `Rule.check`."""
        return reported(self, context, "look for the gateway that drops or repeats events")
