"""T023: the arguments of a call are shown as text, too."""

from collections.abc import Iterator
from typing import ClassVar

from deltatape.model.finding import Blame, Confidence, Finding, Severity
from deltatape.model.reply import CallStatus
from deltatape.rules._base import Claim, RuleContext, about_call, label

_SHORTEST = 8
"""Shorter arguments stand in many a text."""


class ArgumentsInText:
    r"""The text repeats the arguments of a call.

    ## What it does
    Reports calls whose arguments, an object with members, stand letter by letter in the text of
    the same answer.

    ## Why is this bad
    The user sees raw JSON, and histories carry the arguments twice. A server's parser passed on as
    text what it also understood as a call.

    ## Example
    ```
    {"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"city\":\"Gent\"}"}}]}}
    {"delta":{"content":"{\"city\":\"Gent\"}"}}
    ```

    ## Fix
    Report it to the server. In the client, show no text that is the arguments of a call.

    ## References
    - https://github.com/youssofal/MTPLX/issues/249
    """

    code: ClassVar[str] = "T023"
    name: ClassVar[str] = "arguments-in-text"
    severity: ClassVar[Severity] = Severity.WARNING

    def check(self, context: RuleContext) -> Iterator[Finding]:
        """See `Rule.check`."""
        for choice, call in context.calls():
            text = call.arguments.strip()
            if call.status is not CallStatus.COMPLETE or len(text) < _SHORTEST:
                continue
            if not text.startswith("{") or text not in choice.text:
                continue
            claim = Claim(
                message=f"the text of the answer repeats the arguments of {label(call)}",
                hint="in the client, show no text that is the arguments of a call",
                blame=Blame.UPSTREAM,
                confidence=Confidence.LIKELY,
                evidence=text,
            )
            yield about_call(self, context, call, claim)
