"""W010: bytes in the body that are no part of any message, or a message that was changed."""

from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

from deltatape.model.finding import Finding, Severity
from deltatape.model.stream import AnomalyKind, Format
from deltatape.rules._base import RuleContext
from deltatape.rules._framing import anomalies

_REPLACEMENT = "\ufffd".encode()
_AS_TEXT = "somebody read the body as text and wrote it back: have that proxy pass bytes"


class CorruptMessage:
    r"""The body holds bytes where a message should be that are none.

    ## What it does
    Reports, in Amazon's binary event streams, messages whose checksum does not fit, whose headers
    cannot be read, and bytes between messages that begin none; in a streamed JSON array, what is
    neither an element nor the comma between two, and data behind the array. Such bytes are no part
    of the rebuilt answer; what follows them is.

    ## Why is this bad
    Clients raise there, and the rest of the answer is lost to them. A checksum that does not fit
    proves that somebody changed the message after it was made.

    ## Example
    ```
    \x00\x00\x00\xa4...{"delta":{"text":"caf\xef\xbf\xbd"}}...      <- one byte became three
    [{"candidates":[...]}
    upstream connect error
    ,{"candidates":[...]}]
    ```

    ## Fix
    Look at the evidence. U+FFFD (EF BF BD) in a binary stream means that a proxy read the body as
    text: have it pass bytes. Other text shows who wrote into the stream.

    ## References
    - https://smithy.io/2.0/aws/amazon-eventstream.html
    - https://www.rfc-editor.org/rfc/rfc8259#section-5
    """

    code: ClassVar[str] = "W010"
    name: ClassVar[str] = "corrupt-message"
    severity: ClassVar[Severity] = Severity.ERROR

    def check(self, context: RuleContext) -> Iterator[Finding]:
        """See `Rule.check`."""
        binary = context.stream.format is Format.EVENTSTREAM
        as_text = binary and any(_REPLACEMENT in each for each in _bad_bytes(context))
        hint = _AS_TEXT if as_text else "the evidence tells who wrote into the stream"
        for found in anomalies(self, context, AnomalyKind.BAD_MESSAGE, "corrupt", hint):
            # A file of binary messages may well have been damaged on its way here.
            yield found if context.exchange.timed else replace(found, blame=None)


def _bad_bytes(context: RuleContext) -> Iterator[bytes]:
    for anomaly in context.stream.anomalies:
        if anomaly.kind is AnomalyKind.BAD_MESSAGE:
            yield context.stream.body[slice(*anomaly.place.span)]
