"""S005: the provider says that something went wrong."""

from collections.abc import Iterator
from typing import ClassVar

from deltatape.model.finding import Blame, Confidence, Finding, Severity
from deltatape.model.stream import Place, Span
from deltatape.rules._base import Claim, RuleContext, finding

_CLIENT_ERROR = 400
_SERVER_ERROR = 500
# The request was in order; the server could or would not just then.
_NOT_THE_REQUEST = frozenset({408, 409, 425, 429})


class ErrorEvent:
    """An error, as an event of the stream or as the whole answer.

    ## What it does
    Reports errors that upstream tells: an error event in a stream that began with status 200, and
    every answer with a status of 400 or more, with its message.

    ## Why is this bad
    The answer ends here. An error in the middle of a stream is easily overlooked: the status was
    200, and clients that only read deltas end without a word.

    ## Example
    ```
    data: {"choices":[{"index":0,"delta":{"content":"Let me"}}]}
    data: {"error":{"message":"overloaded","code":502}}
    ```

    ## Fix
    Read the message. Status 400 to 499 mostly means that the request is wrong, 429 and 5xx that a
    later attempt may succeed. In the client, look for `error` in every event.

    ## References
    - https://platform.openai.com/docs/guides/error-codes
    - https://openrouter.ai/docs/api-reference/errors
    - https://github.com/diegosouzapw/OmniRoute/issues/8210
    - https://github.com/langchain-ai/langchainjs/issues/11579
    """

    code: ClassVar[str] = "S005"
    name: ClassVar[str] = "error-event"
    severity: ClassVar[Severity] = Severity.ERROR

    def check(self, context: RuleContext) -> Iterator[Finding]:
        """See `Rule.check`."""
        head, reply = context.exchange.response, context.reply
        if head is not None and head.status >= _CLIENT_ERROR:
            blame = _blame(head.status)
            yield finding(
                self,
                context,
                Claim(
                    message=f"the answer is {_said(head.status, reply.error or _text(context))}",
                    hint=_hint(head.status),
                    blame=blame,
                    confidence=Confidence.LIKELY,
                    place=Place(
                        span=Span(0, len(context.stream.body)), t_ns=head.t_ns, line=head.line
                    ),
                    evidence=_text(context),
                ),
            )
            return
        seen = next(context.observed(self.code), None)
        if reply.error is None and seen is None:
            return
        yield finding(
            self,
            context,
            Claim(
                message=f"{'the app tells its page of' if reply.from_app else 'upstream sent'} an"
                f" error under status {head.status if head else '?'}:"
                f" {reply.error or (seen.detail if seen else '')}",
                hint="in the client, look for an error in every event; this answer is not whole",
                blame=Blame.UPSTREAM,
                confidence=context.seen,
                event=seen.event if seen else None,
                place=seen.place if seen else None,
                evidence=seen.evidence if seen else reply.error or "",
            ),
        )


def _said(status: int, message: str) -> str:
    """What an error answer says, with its status, which the message may begin with."""
    known = message.startswith(f"HTTP {status}")
    return message if known else f"status {status}: {message}"


def _text(context: RuleContext) -> str:
    return context.stream.body[:1000].decode("utf-8", "backslashreplace").strip() or "(no message)"


def _blame(status: int) -> Blame:
    if status >= _SERVER_ERROR or status in _NOT_THE_REQUEST:
        return Blame.UPSTREAM
    return Blame.APP


def _hint(status: int) -> str:
    if status in (401, 403):
        return "check the key, its rights, and whether it belongs to this provider"
    if status in _NOT_THE_REQUEST or status >= _SERVER_ERROR:
        return "a later attempt may succeed; wait as retry-after says"
    return "the request is wrong or asks for something that is not there: read the message"
