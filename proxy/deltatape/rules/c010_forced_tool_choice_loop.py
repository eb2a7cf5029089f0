"""C010: the model is still forced to call when the result is there."""

from collections.abc import Iterator
from typing import ClassVar

from deltatape.model.finding import Blame, Confidence, Excluded, Finding, Severity
from deltatape.model.turn import Turn
from deltatape.rules._conversation import TurnClaim, names, turn_finding
from deltatape.rules.evidence import excerpt
from deltatape.rules.settings import Settings


class ForcedToolChoiceLoop:
    """A request brings tool results and forces the model to call again.

    ## What it does
    Looks at requests that end with tool results and still have a `tool_choice` that leaves no way
    but a call, where the reply makes a call that the conversation has had, with the same arguments:
    of the tool that is named; or, under `required` or `any`, where every offered tool has been
    called already. Once in a conversation.

    ## Why is this bad
    The model may not answer, whatever the results say: it calls until something else stops it.

    ## Innocent explanations
    - Another tool that is offered ends the run, a "final answer", and was not called yet.
    - The tool refused the last call, and the model is to correct it.
    - The user asked something new, and every answer is to come as this call.
    - A tool is called again and again to collect things: each time with other arguments.

    ## Example
    ```
    {"tool_choice":{"type":"function","function":{"name":"get_weather"}},
     "messages":[..., {"role":"tool","tool_call_id":"c1","content":"13 °C"}]}
    reply:  get_weather {"city":"Gent"}
    ```

    ## Fix
    Force the first call only: set `tool_choice` back to `auto` in the requests that bring results.

    ## References
    - https://platform.openai.com/docs/guides/function-calling
    - https://openai.github.io/openai-agents-python/agents/#forcing-tool-use
    - https://docs.anthropic.com/en/docs/agents-and-tools/tool-use/implement-tool-use
    """

    code: ClassVar[str] = "C010"
    name: ClassVar[str] = "forced-tool-choice-loop"
    severity: ClassVar[Severity] = Severity.WARNING

    def check(self, turn: Turn, settings: Settings) -> Iterator[Finding]:
        """See `TurnRule.check`."""
        del settings
        digest = turn.digest
        if turn.forced_again or not turn.forced_to_loop:
            return
        tools = names(*(call.name for call in digest.calls[:3])) or "a tool without a name"
        yield turn_finding(
            self,
            turn,
            TurnClaim(
                message="the request brings tool results and still has tool_choice"
                f" {excerpt(digest.tool_choice or '', 60)!r}: the model may not answer, it calls"
                f" {tools} again",
                hint="set tool_choice back to auto in the requests that bring results",
                blame=Blame.APP,
                confidence=Confidence.LIKELY,
                severity=self.severity,
                evidence=digest.calls[0].arguments or "(no argument bytes)",
                excluded=(
                    Excluded(
                        "the run ends with a call of a tool of its own",
                        "every tool that the request leaves open has been called already",
                    ),
                    Excluded(
                        "the model is to correct a call, or to make another one",
                        "it makes the same call once more, and no result complains",
                    ),
                ),
            ),
        )
