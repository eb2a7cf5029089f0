"""W009: a body that its content coding does not fit."""

from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

from deltatape.model.finding import Finding, Severity
from deltatape.model.stream import AnomalyKind
from deltatape.rules._base import RuleContext
from deltatape.rules._framing import anomalies


class BadContentCoding:
    """The body cannot be decompressed, or only a part of it.

    ## What it does
    Reports a body that is not what its `content-encoding` says, that is damaged, of an unknown
    coding, or larger than what deltatape unpacks of an untrusted body.

    ## Why is this bad
    A client that decodes by the header fails with an error of its decompressor, or sees garbage.
    Behind the damage nothing can be said about the answer.

    ## Example
    ```
    200 OK
    content-encoding: gzip

    data: {"choices":[...]}         <- plain text under the name of gzip
    ```

    ## Fix
    Look for a proxy that unpacks bodies and forgets the header, or packs them twice. Asking with
    `accept-encoding: identity` shows whether compression is the culprit.

    ## References
    - https://www.rfc-editor.org/rfc/rfc9110#section-8.4
    """

    code: ClassVar[str] = "W009"
    name: ClassVar[str] = "bad-content-coding"
    severity: ClassVar[Severity] = Severity.ERROR

    def check(self, context: RuleContext) -> Iterator[Finding]:
        """See `Rule.check`."""
        hint = "ask with accept-encoding: identity; look for a proxy that changes the body"
        yield from anomalies(
            self, context, AnomalyKind.BAD_CONTENT_CODING, "the body cannot be decoded", hint
        )
        limit = "the analysis stops at a limit; the tape has all of the body"
        for found in anomalies(self, context, AnomalyKind.TOO_LARGE, "not all was read", limit):
            yield replace(found, severity=Severity.WARNING, blame=None)
