"""C021: a conversation goes on without its system prompt."""

from collections.abc import Iterator
from typing import ClassVar

from deltatape.model.digest import Digest
from deltatape.model.finding import Blame, Confidence, Excluded, Finding, Severity
from deltatape.model.turn import Continuation, Turn
from deltatape.rules._conversation import TurnClaim, hands_over, turn_finding
from deltatape.rules.settings import Settings


class SystemPromptLost:
    """A request goes on from a reply whose own request had a system prompt, and has none.

    ## What it does
    Compares a request with the one whose reply its history repeats. Likely where model and tools
    are the same, no call hands over, and it is a step of the same conversation: it brings the
    results of the calls before, or a later request goes on from the answer to it. Else possible,
    also where the history was shortened, and the system prompt went with its first messages. A
    request that names a stored response gets none of that response's instructions.

    ## Why is this bad
    The model forgets who it is, which rules hold, and in what form to answer: most often from the
    second turn on, when nobody looks any more. Provider-side caches of the prompt are missed, too.

    ## Innocent explanations
    - The conversation was handed to another agent, which has no instructions.
    - It is another job on the same history: a title, a summary, a judgement. Possible only where
      the conversation itself goes on with its system prompt.
    - A stored response has them as a message of its input, which the provider keeps.

    ## Example
    ```
    #1    [system "You are a cook.", user "What can I do with leeks?"]
    #2    [user "What can I do with leeks?", assistant "A soup.", user "How?"]
    ```

    ## Fix
    Send the system prompt with each request: interfaces keep no state. With
    `previous_response_id`, send `instructions` again.

    ## References
    - https://github.com/RamiAwar/dataline/issues/280
    - https://github.com/tickernelz/opencode-kiro-auth/pull/45
    - https://platform.openai.com/docs/api-reference/responses/create
    - https://platform.openai.com/docs/guides/conversation-state
    - https://docs.anthropic.com/en/docs/build-with-claude/prompt-engineering/system-prompts
    """

    code: ClassVar[str] = "C021"
    name: ClassVar[str] = "system-prompt-lost"
    severity: ClassVar[Severity] = Severity.WARNING

    def check(self, turn: Turn, settings: Settings) -> Iterator[Finding]:
        """See `TurnRule.check`."""
        del settings
        found, digest = turn.continues, turn.digest
        if found is None and turn.shortened is not None:
            yield from self._of_shortened(turn, turn.shortened)
        if found is None or digest.instructed or not all(each.instructed for each in found.replies):
            return
        reply = found.reply
        if not reply.instructions if found.stored else found.start == found.end:
            return
        excluded = tuple(_excluded(found, digest, reply))
        back = f", and #{found.followed} has it again" if found.restored else ""
        kept = (
            "; the provider does not carry instructions over from a stored response"
            if found.stored
            else ""
        )
        yield turn_finding(
            self,
            turn,
            TurnClaim(
                message=f"the request goes on from #{reply.exchange}, but without a system prompt,"
                f" which that one had{back}{kept}",
                hint="send the system prompt with each request",
                blame=Blame.APP,
                confidence=Confidence.LIKELY if excluded else Confidence.POSSIBLE,
                severity=self.severity,
                evidence=digest.history[-1].content,
                excluded=excluded,
            ),
        )

    def _of_shortened(self, turn: Turn, reply: Digest) -> Iterator[Finding]:
        """A history that is kept short: its first message, the system prompt, has gone with it."""
        digest = turn.digest
        same = digest.tools == reply.tools and digest.model == reply.model
        if digest.instructed or not reply.instructed or not same or hands_over(reply):
            return
        yield turn_finding(
            self,
            turn,
            TurnClaim(
                message=f"the request goes on from #{reply.exchange} with a shortened history, and"
                " without the system prompt that that one had",
                hint="when a history is shortened, keep the system prompt in front",
                blame=Blame.APP,
                confidence=Confidence.POSSIBLE,
                severity=self.severity,
                evidence=digest.history[-1].content,
            ),
        )


def _excluded(found: Continuation, digest: Digest, reply: Digest) -> Iterator[Excluded]:
    """What speaks against another agent, and another job; nothing if not both are told."""
    if found.stored or digest.tools != reply.tools or digest.model != reply.model:
        return
    if hands_over(reply):
        return
    same = f"model and tools are those of #{reply.exchange}, and no call hands over"
    if found.followed is not None:
        yield Excluded("another agent goes on", same)
        yield Excluded("it is another job", f"#{found.followed} goes on from its answer")
    elif digest.tools and digest.results:
        yield Excluded("another agent goes on", same)
        yield Excluded("it is another job", "it brings the results of the calls, and nothing else")
