"""T020: the same call twice in one reply."""

from collections.abc import Iterator
from typing import ClassVar

from deltatape.model.finding import Blame, Confidence, Finding, Severity
from deltatape.model.reply import CallKind, CallStatus, ToolCall
from deltatape.rules._base import Claim, RuleContext, about_call, label, reported
from deltatape.wire.json_value import canonical


class DuplicateCall:
    r"""One reply asks for the same call twice.

    ## What it does
    Reports calls with the same name and the same arguments in one reply. They are compared as JSON;
    what is no JSON, such as the free text of a custom tool, is compared as it is.

    ## Why is this bad
    The tool runs twice: two mails, two orders. A model may mean it, but mostly either the model
    stutters or the server sends the call once more at the end.

    ## Example
    ```
    {"tool_calls":[{"index":0,"id":"c1","function":{"name":"send","arguments":"{\"to\":\"a\"}"}}]}
    {"tool_calls":[{"index":1,"id":"c2","function":{"name":"send","arguments":"{\"to\":\"a\"}"}}]}
    ```

    ## Fix
    In the client, ask before running a call with side effects a second time.

    ## References
    - https://github.com/rynfar/meridian/issues/73
    - https://github.com/assistant-ui/assistant-ui/issues/1744
    """

    code: ClassVar[str] = "T020"
    name: ClassVar[str] = "duplicate-call"
    severity: ClassVar[Severity] = Severity.WARNING

    def check(self, context: RuleContext) -> Iterator[Finding]:
        """See `Rule.check`."""
        yield from reported(self, context, "run one of them only")
        for choice in context.reply.choices:
            if len(choice.tool_calls) == 1:
                continue  # The usual one, whose arguments need not be compared.
            seen: dict[tuple[str | None, str], ToolCall] = {}
            for call in choice.tool_calls:
                if call.status is not CallStatus.COMPLETE:
                    continue
                first = seen.setdefault((call.name, _meaning(call)), call)
                if first is call:
                    continue
                yield about_call(
                    self,
                    context,
                    call,
                    Claim(
                        message=f"{label(call)} repeats call {first.index}: the same tool with the"
                        " same arguments",
                        hint="ask before running a call with side effects a second time",
                        blame=Blame.MODEL,
                        confidence=Confidence.POSSIBLE,
                    ),
                )


def _meaning(call: ToolCall) -> str:
    """The arguments for comparison."""
    if call.kind is CallKind.CUSTOM:
        return call.arguments
    return canonical(call.arguments) or call.arguments
