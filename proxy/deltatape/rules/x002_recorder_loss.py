"""X002: the tape lacks some of the exchange."""

from collections.abc import Iterator
from typing import ClassVar

from deltatape.model.finding import Confidence, Finding, Severity
from deltatape.model.stream import Place, Span
from deltatape.rules._base import Claim, RuleContext, finding
from deltatape.rules.loss import Loss, loss_of
from deltatape.rules.words import count


class RecorderLoss:
    """The recorder lost some of this exchange: the tape is not what was delivered.

    ## What it does
    Reports exchanges of which records are missing: the recorder counted them when they could not be
    written, or the answer on the tape has fewer bytes than were handed to taping. Where bytes of
    the answer are missing, findings that a missing byte may have caused are left out, and this one
    names them. What does not depend on a missing byte is still reported: an error that upstream
    sent, a limit that ended the answer, a reset connection.

    An exchange without an ending, which a killed recorder leaves, is W006.

    ## Why is this bad
    The application got every byte; only the tape did not. Read as if it were whole, such a tape
    shows broken arguments and missing ends, and accuses whoever sent them.

    ## Example
    ```
    ... read of 66 bytes, not written: No space left on device
    [130,1,"end",{"reason":"complete","bytes":1024, ... "recorder":{"lost_records":1,...}}]
    ```

    ## Fix
    Make room on the disk, or record to one that keeps up (`--to FOLDER`), and tape it again.
    `deltatape fsck` says what a tape lacks as a whole.

    ## References
    - https://man7.org/linux/man-pages/man2/write.2.html
    """

    code: ClassVar[str] = "X002"
    name: ClassVar[str] = "recorder-loss"
    severity: ClassVar[Severity] = Severity.WARNING

    def check(self, context: RuleContext) -> Iterator[Finding]:
        """See `Rule.check`."""
        loss, exchange = loss_of(context.exchange), context.exchange
        if loss is None:
            return
        end, size = exchange.end, len(context.stream.body)
        at_end = Place(span=Span(size, size), t_ns=end.t_ns, line=end.line) if end else None
        yield finding(
            self,
            context,
            Claim(
                message=_message(loss),
                hint="make room on the disk, or record to one that keeps up (--to FOLDER), and tape"
                " it again",
                blame=None,
                confidence=Confidence.PROVEN,
                place=at_end,
            ),
        )


def _message(loss: Loss) -> str:
    records = count(loss.records, "record") if loss.records else "records"
    why = f" ({loss.error})" if loss.error else ""
    lacks = f"the tape lacks {records} of this exchange{why}"
    if loss.body_bytes:
        return f"{lacks}, with {loss.body_bytes} of the {count(loss.of, 'byte')} of the answer"
    return lacks if loss.answer else f"{lacks}; all bytes of the answer were looked at"
