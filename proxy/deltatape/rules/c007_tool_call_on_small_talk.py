"""C007: a tool call in answer to a greeting, thanks or a farewell."""

from collections.abc import Iterator
from typing import ClassVar

from deltatape.model.finding import Blame, Confidence, Finding, Severity
from deltatape.model.turn import Turn
from deltatape.rules._conversation import TurnClaim, names, turn_finding
from deltatape.rules.evidence import excerpt
from deltatape.rules.settings import Settings


class ToolCallOnSmallTalk:
    """The user said nothing but hello, thanks or goodbye, and the model called a tool.

    ## What it does
    Looks at requests that end with a message of the user in which there is nothing but a greeting,
    thanks or a farewell, in a few languages. Words that may answer a question (yes, no, ok, stop)
    are none of these. Reports it if the reply calls tools, unless the request forced it to.

    ## Why is this bad
    The user waits for a tool that nobody asked for, and some tools have effects. It is mostly the
    instructions: "you must call tools" is taken at its word.

    ## Innocent explanations
    - The instructions ask for a call at every message: a memory, a log, a look-up of the user.

    ## Example
    ```
    {"role":"user","content":"thanks, bye!"}
    reply:  list_directory {"path":"."}
    ```

    ## Fix
    Say in the instructions when not to call tools, or answer such messages without the model. More
    phrases of your own: `rules.small-talk` in `deltatape.yaml`.

    ## References
    - https://platform.openai.com/docs/guides/function-calling
    - https://docs.anthropic.com/en/docs/build-with-claude/prompt-engineering/overview
    """

    code: ClassVar[str] = "C007"
    name: ClassVar[str] = "tool-call-on-small-talk"
    severity: ClassVar[Severity] = Severity.INFO

    def check(self, turn: Turn, settings: Settings) -> Iterator[Finding]:
        """See `TurnRule.check`."""
        del settings
        digest = turn.digest
        called = (*digest.calls, *digest.text_calls)
        if not digest.small_talk or not called or digest.must_call:
            return
        tools = names(*(call.name for call in called[:3])) or "a tool without a name"
        yield turn_finding(
            self,
            turn,
            TurnClaim(
                message=f"the user says only {excerpt(digest.small_talk, 80)!r}, and the model"
                f" calls {tools}",
                hint="say in the instructions that greetings, thanks and farewells need no tool",
                blame=Blame.MODEL,
                confidence=Confidence.LIKELY,
                severity=self.severity,
                evidence=called[0].arguments or "(no argument bytes)",
            ),
        )
