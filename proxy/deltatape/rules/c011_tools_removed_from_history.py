"""C011: calls in the history, and no tools any more."""

from collections.abc import Iterator
from typing import ClassVar

from deltatape.model.finding import Blame, Confidence, Finding, Severity
from deltatape.model.turn import Turn
from deltatape.rules._conversation import TurnClaim, turn_finding
from deltatape.rules.evidence import excerpt
from deltatape.rules.settings import Settings


class ToolsRemovedFromHistory:
    """A request repeats tool calls, but offers no tools any more.

    ## What it does
    Reports the first request of a conversation that has calls or results in its history and offers
    no tools, where an earlier one did. An error if it was refused for its tools; else a remark: it
    is a way to have the model answer at last.

    ## Why is this bad
    Some providers refuse calls in a history without the definitions of their tools. Models that
    want to call all the same write the call into their text.

    ## Innocent explanations
    - The last request of a run offers no tools on purpose, to have the model answer at last.
    - Another agent without tools goes on, or a request for a title or a summary stands beside.

    ## Example
    ```
    #1    "tools":[{"name":"get_weather", ...}]
    #2    no "tools"; history: call get_weather, its result
    HTTP 400: the toolConfig field must be defined
    ```

    ## Fix
    Keep sending the tools, and forbid calls with `tool_choice` `none`.

    ## References
    - https://docs.aws.amazon.com/bedrock/latest/userguide/tool-use-inference-call.html
    - https://docs.litellm.ai/docs/completion/function_call
    - https://platform.openai.com/docs/api-reference/chat/create
    """

    code: ClassVar[str] = "C011"
    name: ClassVar[str] = "tools-removed-from-history"
    severity: ClassVar[Severity] = Severity.INFO

    def check(self, turn: Turn, settings: Settings) -> Iterator[Finding]:
        """See `TurnRule.check`."""
        del settings
        if not turn.bare:
            return
        digest = turn.digest
        about_tools = digest.refused and "tool" in (digest.error or "").lower()
        refused = f"; it was refused ({digest.status})" if about_tools else ""
        yield turn_finding(
            self,
            turn,
            TurnClaim(
                message="the history has tool calls or results, but the request offers no tools, as"
                f" #{turn.offered} did{refused}",
                hint="keep sending the tools, and forbid calls with tool_choice none",
                blame=Blame.APP,
                confidence=Confidence.LIKELY if about_tools else Confidence.POSSIBLE,
                severity=Severity.ERROR if about_tools else self.severity,
                evidence=excerpt(digest.error or ""),
            ),
        )
