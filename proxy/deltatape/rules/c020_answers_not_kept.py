"""C020: the user's messages go on, and the assistant's answers are not among them."""

from collections.abc import Iterator
from typing import ClassVar

from deltatape.model.finding import Against, Blame, Confidence, Finding, Severity
from deltatape.model.turn import Turn
from deltatape.rules._conversation import TurnClaim, turn_finding
from deltatape.rules.evidence import excerpt
from deltatape.rules.settings import Settings

_STEPS = 2
"""One answer may have been interrupted."""


class AnswersNotKept:
    """An application sends all that the user said, and nothing of what was answered.

    ## What it does
    Looks at requests whose history is that of an earlier one and further messages of the user,
    where the answer in between was delivered whole, as text. Reports the second such step in a row,
    once in a conversation.

    ## Why is this bad
    The model does not know what it said. It answers the old questions again with the new one,
    contradicts itself, and cannot understand "and the second one?".

    ## Innocent explanations
    - The application judges what the user wrote so far, and no conversation is meant: short answers
      and answers in JSON are left out for that, the rest is no more than possible.
    - Answers are dropped on purpose, to save tokens.
    - The user interrupted the answers: only whole ones count.
    - The answers are kept elsewhere: in the system prompt, in a user's message.

    ## Example
    ```
    #1    [user "Which towns?"]                                reply: "Gent and Brugge."
    #2    [user "Which towns?", user "And the second?"]        reply: "Which list do you mean?"
    #3    [user "Which towns?", user "And the second?", user "The towns!"]
    ```

    ## Fix
    Append each answer to the history, as `{"role":"assistant","content":...}`, when its stream has
    ended.

    ## References
    - https://github.com/HKUDS/nanobot/issues/1236
    - https://github.com/acon96/home-llm/issues/384
    - https://platform.openai.com/docs/guides/conversation-state
    """

    code: ClassVar[str] = "C020"
    name: ClassVar[str] = "answers-not-kept"
    severity: ClassVar[Severity] = Severity.WARNING

    def check(self, turn: Turn, settings: Settings) -> Iterator[Finding]:
        """See `TurnRule.check`."""
        del settings
        found = turn.continues
        if found is None or found.unkept != _STEPS:
            return
        reply = found.reply
        yield turn_finding(
            self,
            turn,
            TurnClaim(
                message=f"the request has {len(turn.digest.history)} messages of the user and no"
                f" answer: that of #{reply.exchange} and the one before were delivered whole",
                hint="append each answer to the history as a message of the assistant",
                blame=Blame.APP,
                confidence=Confidence.POSSIBLE,
                severity=self.severity,
                evidence=turn.digest.history[-1].content,
                against=Against(
                    tape=reply.tape,
                    exchange=reply.exchange,
                    line=reply.end_line,
                    span=None,
                    asked=None,
                    evidence=excerpt(reply.content),
                ),
            ),
        )
