"""T024: a call that the request forbids."""

from collections.abc import Iterator
from typing import ClassVar

from deltatape.model.finding import Blame, Confidence, Finding, Severity
from deltatape.rules._base import Claim, RuleContext, about_call, label
from deltatape.rules.evidence import excerpt

_NONE = "none"
_OPEN = frozenset({None, "auto", _NONE, "required", "any", "validated"})
"""What is not the name of a tool."""


class CallAgainstChoice:
    """The reply calls a tool although the request's tool choice does not allow it.

    ## What it does
    Reports calls under the tool choice `none`, and calls of another tool than the one that the
    tool choice names.

    ## Why is this bad
    The application asked for the end of a tool loop, or for one certain answer. A client that runs
    the call goes on with the loop; one that does not is left without an answer.

    ## Example
    ```
    "tools": [...], "tool_choice": "none"
    ...
    data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1",...}]}}]}
    ```

    ## Fix
    Do not run the call. Servers that ignore the tool choice need another way: leave the tools out
    of the request, and allow the model to answer in text.

    ## References
    - https://platform.openai.com/docs/guides/function-calling#tool-choice
    - https://docs.claude.com/en/docs/agents-and-tools/tool-use/implement-tool-use
    """

    code: ClassVar[str] = "T024"
    name: ClassVar[str] = "call-against-choice"
    severity: ClassVar[Severity] = Severity.ERROR

    def check(self, context: RuleContext) -> Iterator[Finding]:
        """See `Rule.check`."""
        choice = context.asked.tool_choice
        if choice != _NONE and (choice in _OPEN or context.asked.tool(choice) is None):
            return
        for _, call in context.calls():
            if choice == _NONE or call.name not in (None, choice):
                yield about_call(self, context, call, _claim(label(call), choice or ""))


def _claim(call: str, choice: str) -> Claim:
    return Claim(
        message=f"{call} was made although the request's tool choice is {excerpt(choice, 60)!r}",
        hint="do not run it; where the server ignores the choice, leave the tools out",
        blame=Blame.UPSTREAM,
        confidence=Confidence.PROVEN,
        evidence=f"tool choice {choice!r}",
    )
