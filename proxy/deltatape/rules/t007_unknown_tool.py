"""T007: a call of a tool that was not offered."""

import difflib
from collections.abc import Iterator
from typing import ClassVar

from deltatape.model.finding import Blame, Confidence, Finding, Severity
from deltatape.model.reply import CallKind, ToolCall
from deltatape.rules._base import Claim, RuleContext, about_call, label
from deltatape.rules.evidence import excerpt

_LONGEST_NAME = 200


class UnknownTool:
    """A call names a tool that the request did not offer.

    ## What it does
    Reports names that are not among the request's tools, with the nearest one that is. Silent if
    the request is not on the tape or offers no tools.

    ## Why is this bad
    The client cannot run it. A name that contains an offered one, twice or with something around
    it, was spoiled on its way: repeated in each event and joined, or with the model's own markup
    in it.

    ## Example
    ```
    "tools": [{"type": "function", "function": {"name": "get_weather"}}]
    ...
    {"tool_calls":[{"index":0,"id":"c1","function":{"name":"get_weather<|channel|>commentary"}}]}
    ```

    ## Fix
    If the model invented the name, answer the call with an error that lists the tools. If the
    name is spoiled, the server's parser has to be repaired.

    ## References
    - https://github.com/vllm-project/vllm/issues/32633
    - https://github.com/NousResearch/hermes-agent/issues/8259
    """

    code: ClassVar[str] = "T007"
    name: ClassVar[str] = "unknown-tool"
    severity: ClassVar[Severity] = Severity.ERROR

    def check(self, context: RuleContext) -> Iterator[Finding]:
        """See `Rule.check`."""
        offered = [tool.name for tool in context.asked.tools]
        if not offered or context.asked.tools_elsewhere:
            return
        for _, call in context.calls():
            if not call.name or call.name in offered or call.kind is CallKind.CUSTOM:
                continue
            yield about_call(self, context, call, _claim(call, call.name, offered))


def _claim(call: ToolCall, name: str, offered: list[str]) -> Claim:
    inside = next((each for each in offered if each and each in name), None)
    near = [inside] if inside else difflib.get_close_matches(name[:_LONGEST_NAME], offered, n=1)
    meant = f"; the nearest is {excerpt(near[0], 60)}" if near else ""
    return Claim(
        message=f"{label(call)} is none of the {len(offered)} tools of the request{meant}",
        hint="answer the call with an error that lists the tools",
        blame=Blame.UPSTREAM if inside else Blame.MODEL,
        confidence=Confidence.LIKELY,
        evidence=name,
    )
