"""C002: arguments that the application repeats differently from how they were delivered."""

from collections.abc import Iterator
from typing import ClassVar

from deltatape.model.digest import Pair, ReadBack
from deltatape.model.finding import Finding, Severity
from deltatape.rules._conversation import AppClaim, app_finding, called
from deltatape.rules.evidence import excerpt
from deltatape.rules.repeated import CLEAN, first_difference, relation
from deltatape.rules.words import count


class ArgumentsChangedByApp:
    r"""The application repeats other arguments than were delivered.

    ## What it does
    Compares the arguments of each delivered call with those that the application's next request
    repeats, as JSON values: spacing and order do not matter, and the empty string is `{}`. Names
    the first path that differs, and what the application's text is made of.

    ## Why is this bad
    The tool ran, if at all, with something that the model did not say. The wire was in order: the
    mistake is in the code that joins the fragments.

    ## Example
    ```
    reply of #1:      {"city":"Rome"}           in 3 fragments
    request of #2:    "arguments": ""
    ```

    ## Fix
    Append every fragment, the one in the first event included, to the entry of its `index`. Parse
    once, at the end. Never take the arguments from the event that opens a call.

    ## References
    - https://platform.openai.com/docs/guides/function-calling
    - https://github.com/bojieli/ai-agent-book/issues/194
    - https://github.com/diegosouzapw/OmniRoute/issues/3762
    """

    code: ClassVar[str] = "C002"
    name: ClassVar[str] = "arguments-changed-by-app"
    severity: ClassVar[Severity] = Severity.ERROR

    def check(self, read_back: ReadBack) -> Iterator[Finding]:
        """See `ConversationRule.check`."""
        if not read_back.reply.whole:
            return
        for pair in read_back.pairs:
            path = first_difference(pair.said, pair.heard)
            if path is None or pair.said.status not in CLEAN:
                continue
            yield app_finding(
                self,
                read_back,
                AppClaim(
                    message=_message(read_back, pair, path),
                    hint="append every fragment to the entry of its index; parse once, at the end",
                    evidence=pair.heard.arguments or "(no arguments)",
                    severity=self.severity,
                    said=pair.said,
                    heard=pair.heard,
                ),
            )


def _message(read_back: ReadBack, pair: Pair, path: str) -> str:
    said, heard = excerpt(pair.said.arguments, 80), excerpt(pair.heard.arguments, 80)
    why = relation(pair.said, pair.heard, read_back.reply.calls)
    extra = len(read_back.extra)
    more = (
        f"; it also repeats {count(extra, 'call')} that the wire did not deliver" if extra else ""
    )
    return (
        f"{called(read_back, pair.said)} was delivered with {said!r}, the app repeats {heard!r}"
        f" (first difference at {path}){': ' if why else ''}{why}{more}"
    )
