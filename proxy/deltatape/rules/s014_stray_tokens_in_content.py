"""S014: text that nobody wrote: tokens of a chat template, an error page, mojibake."""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate
from typing import ClassVar

from deltatape.model.finding import Blame, Confidence, Excluded, Finding, Severity
from deltatape.model.reply import Channel, Choice, Piece
from deltatape.model.stream import AnomalyKind
from deltatape.rules._base import Claim, RuleContext, finding
from deltatape.rules._stray_text import Stray, error_page, mojibake, replaced, stray_tokens

_AROUND = 40
"""Characters before and after what is found that are shown."""
_ABOUT_TOKENS = (
    "special token",
    "stop token",
    "end token",
    "end-of",
    "template",
    "chatml",
    "tokeniz",
)
_ABOUT_PAGES = ("html", "web page", "webpage", "website")
_ABOUT_ENCODINGS = ("mojibake", "encod", "utf-8", "utf8", "latin-1", "unicode", "garbled")


class StrayTokensInContent:
    r"""The text of an answer holds something that nobody wrote.

    ## What it does
    Reports tokens of chat templates in the text (`<|im_end|>`, `<|eot_id|>`, `</s>`,
    `<end_of_turn>`, `[/INST]`), an HTML error page as the answer, UTF-8 that was read in another
    encoding (three times or more), and U+FFFD, which stands for bytes that could not be decoded.
    Bytes that are invalid on the wire itself are W002.

    ## Why is this bad
    The user sees it, and it goes back to the model with the history. Behind an end token the model
    often goes on and plays the user's part, too.

    ## Innocent explanations
    - The conversation is about it: it stands in the request, or the request asks for such things.
    - It is quoted, or stands in code.
    - `<s>` and `</s>` are tags of HTML, too: told only at the end and without an opening one.
    - In the middle of a text a model may have written a token itself: possible only.

    ## Example
    ```
    data: {"choices":[{"index":0,"delta":{"content":"It is sunny.<|im_end|>"}}]}
    data: {"choices":[{"index":0,"delta":{"content":"\n<|im_start|>user\nThanks!"}}]}
    ```

    ## Fix
    Set the chat template and the stop tokens of the server to those of the model. For mojibake and
    U+FFFD, look for the hop that decodes the stream piece by piece or with another encoding.

    ## References
    - https://github.com/vllm-project/vllm/issues/2919
    - https://github.com/moltis-org/moltis/issues/306
    - https://github.com/Mintplex-Labs/anything-llm/issues/525
    """

    code: ClassVar[str] = "S014"
    name: ClassVar[str] = "stray-tokens-in-content"
    severity: ClassVar[Severity] = Severity.ERROR

    def check(self, context: RuleContext) -> Iterator[Finding]:
        """See `Rule.check`."""
        for choice in context.reply.choices:
            yield from self._of(context, choice)

    def _of(self, context: RuleContext, choice: Choice) -> Iterator[Finding]:
        text = choice.text
        token = stray_tokens(text)
        if token is not None and not _is_from_request(context, token.found):
            about = _is_about(context, _ABOUT_TOKENS)
            if token.last or not about:
                sure = token.last and not about
                yield self._finding(context, choice, token, sure=sure)
        page = error_page(text)
        if page is not None and not _is_about(context, _ABOUT_PAGES):
            alone = not text[: page.start].strip()
            yield self._finding(context, choice, page, sure=alone)
        garbled = mojibake(text)
        if garbled is not None and not _is_from_request(context, garbled.found):
            sure = not _is_about(context, _ABOUT_ENCODINGS)
            yield self._finding(context, choice, garbled, sure=sure)
        cut = None if _is_invalid(context) else replaced(text)
        if cut is not None and not _is_from_request(context, cut.found):
            warning = self._finding(context, choice, cut, sure=False)
            yield replace(warning, severity=Severity.WARNING)

    def _finding(
        self, context: RuleContext, choice: Choice, stray: Stray, *, sure: bool
    ) -> Finding:
        piece = _piece_at(choice, stray.start)
        shown = choice.text[max(stray.start - _AROUND, 0) : stray.start + 2 * _AROUND]
        excluded = (
            Excluded("the conversation is about it", "the request has nothing of the kind"),
            Excluded("it is quoted or code", "it stands in the plain text"),
        )
        claim = Claim(
            message=f"the text of the answer holds {stray.what}"
            + (", at the end of a turn" if stray.last and stray.start else ""),
            hint="set chat template and stop tokens of the server to those of the model; for broken"
            " characters look for the hop that decodes the stream",
            blame=Blame.UPSTREAM,
            confidence=Confidence.LIKELY if sure else Confidence.POSSIBLE,
            event=piece.event,
            place=piece.carrier.place,
            evidence=shown,
            excluded=excluded if sure else (),
        )
        return finding(self, context, claim)


def _is_from_request(context: RuleContext, found: str) -> bool:
    return any(found in message.text for message in context.asked.history)


def _is_about(context: RuleContext, words: tuple[str, ...]) -> bool:
    texts = (message.text.lower() for message in context.asked.history)
    return any(word in text for text in texts for word in words)


def _is_invalid(context: RuleContext) -> bool:
    return any(each.kind is AnomalyKind.INVALID_UTF8 for each in context.stream.anomalies)


def _piece_at(choice: Choice, start: int) -> Piece:
    """The piece with the character number `start` of the text, which is not empty."""
    pieces = [piece for piece in choice.pieces if piece.channel is Channel.TEXT]
    ends = [*accumulate(len(piece.text) for piece in pieces)]
    return pieces[min(bisect_right(ends, start), len(pieces) - 1)]
