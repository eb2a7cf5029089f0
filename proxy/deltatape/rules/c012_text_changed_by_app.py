"""C012: the application repeats a text that is not the one that was delivered."""

from collections.abc import Iterator
from typing import ClassVar

from deltatape.model.digest import Digest
from deltatape.model.finding import Against, Blame, Confidence, Excluded, Finding, Severity
from deltatape.model.turn import TextDamage, Turn
from deltatape.rules._conversation import TurnClaim, turn_finding
from deltatape.rules.evidence import excerpt
from deltatape.rules.settings import Settings

_HINTS = {
    TextDamage.LOST: "append every fragment: also one that comes in the first event, in the last,"
    " or in one event with something else",
    TextDamage.DOUBLED: "append each fragment once: either the deltas or the text that ends them,"
    " and in one place only",
    TextDamage.ORDER: "append fragments in the order in which they come; do not handle them at the"
    " same time",
    TextDamage.ENCODING: "decode the response as UTF-8 with one incremental decoder for the whole"
    " stream",
    TextDamage.TRIMMED: "append fragments as they are; trim the whole text if anything",
}


class TextChangedByApp:
    """The next request repeats an answer's text, but not as it was delivered.

    ## What it does
    Compares the text of a reply with the assistant's message that the next request has in its
    place, in terms of the fragments in which the wire delivered it: the first, the last or one in
    the middle is missing; all of it, each fragment or one is there twice; two are in each other's
    place; the white space where fragments meet is missing; the bytes of characters were decoded
    with the wrong table, or read by read.

    Proven where the change begins or ends inside a word, just where a fragment of the wire does, or
    where nothing but a mistake makes such a text. Likely where it lies between words, and what is
    left does not look like something that was cut on purpose, or the same happened to another
    reply. Any other change of a text is the application's own business.

    ## Why is this bad
    The model reads its own words from the history. It takes over broken words and lost sentences,
    and the user has seen the same broken text.

    ## Innocent explanations
    - White space around the text was trimmed, or written otherwise.
    - Think tags, markup, citations, markers or a stop word were removed.
    - The text was translated, summarised, redacted, edited, put into a template, or written anew
      from parsed JSON.
    - It was cut to a length, or where the user interrupted it.
    - The application keeps one of several parts of a message.
    - The reply broke off, or another reply to the same request is the one that is repeated.
    - An old text was shortened later on: only the first request that carries it counts.

    ## Example
    ```
    data: {"choices":[{"delta":{"content":"Hel"}}]}
    data: {"choices":[{"delta":{"content":"lo there"}}]}
    next request:  {"role":"assistant","content":"lo there"}
    ```

    ## Fix
    Append every fragment once, as it comes, and decode the stream as UTF-8 with one incremental
    decoder. The first event of an answer may have content beside its role, and the last one beside
    its finish reason.

    ## References
    - https://platform.openai.com/docs/api-reference/chat-streaming
    - https://docs.anthropic.com/en/docs/build-with-claude/streaming
    - https://encoding.spec.whatwg.org/#dom-textdecodeoptions-stream
    """

    code: ClassVar[str] = "C012"
    name: ClassVar[str] = "text-changed-by-app"
    severity: ClassVar[Severity] = Severity.ERROR

    def check(self, turn: Turn, settings: Settings) -> Iterator[Finding]:
        """See `TurnRule.check`."""
        del settings
        found = turn.continues
        if found is None or found.change is None or found.changed is None:
            return
        change, reply = found.change, found.changed
        confidence, excluded = change.confidence, change.excluded
        if confidence is Confidence.POSSIBLE and found.times > 1:
            confidence = Confidence.LIKELY
            because = f"{found.times} replies lost different words at the same place"
            excluded = (*excluded, Excluded("the app cut this text on purpose", because))
        if confidence is Confidence.PROVEN and len(found.replies) > 1:
            confidence = Confidence.LIKELY
        messages = turn.digest.history[found.start : found.end]
        yield turn_finding(
            self,
            turn,
            TurnClaim(
                message=f"the app repeats the text of #{reply.exchange} {change.told}",
                hint=_HINTS[change.damage],
                blame=Blame.APP,
                confidence=confidence,
                severity=self.severity,
                evidence=next(each.content for each in messages if each.text),
                against=_against(reply),
                excluded=excluded,
            ),
        )


def _against(reply: Digest) -> Against:
    return Against(
        tape=reply.tape,
        exchange=reply.exchange,
        line=reply.end_line,
        span=None,
        asked=None,
        evidence=excerpt(reply.content),
    )
