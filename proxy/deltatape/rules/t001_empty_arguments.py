"""T001: a call without a byte of arguments whose tool needs some."""

from collections.abc import Iterator
from typing import ClassVar

from deltatape.model.asked import ToolSpec
from deltatape.model.finding import Blame, Confidence, Finding, Severity
from deltatape.model.reply import CallStatus, ToolCall
from deltatape.rules._base import Claim, RuleContext, about_call, label


class EmptyArguments:
    r"""A call came without arguments, and its tool needs some.

    ## What it does
    Reports calls whose arguments are the empty string. An error if the request offers the tool with
    a parameter that is required, a warning if the tool's schema is not known. A tool that requires
    nothing may be called with nothing: that is no finding. What an application tells its page is
    A002's.

    ## Why is this bad
    Parsing the empty string as JSON fails: "Unexpected end of JSON input". Taking it for `{}`
    calls the tool without what it needs. Mostly the arguments were lost by a server's parser, or
    the stream ended before them.

    ## Example
    ```
    {"tool_calls":[{"index":0,"id":"c1","function":{"name":"get_weather","arguments":""}}]}
    {"delta":{},"finish_reason":"tool_calls"}           <- and no fragment in between
    ```

    ## Fix
    If the same request without streaming has the arguments, the server loses them: report it there.
    In the client, run a call with empty arguments as `{}` only if the tool requires nothing.

    ## References
    - https://github.com/vllm-project/vllm/issues/48347
    - https://github.com/openai/openai-agents-js/issues/664
    - https://github.com/vercel/ai/issues/10747
    """

    code: ClassVar[str] = "T001"
    name: ClassVar[str] = "empty-arguments"
    severity: ClassVar[Severity] = Severity.ERROR

    def check(self, context: RuleContext) -> Iterator[Finding]:
        """See `Rule.check`."""
        for _, call in context.calls():
            if call.status is CallStatus.EMPTY_SUSPECT and not context.reply.from_app:
                yield about_call(self, context, call, _claim(context, call))


def _claim(context: RuleContext, call: ToolCall) -> Claim:
    needed = required(context.asked.tool(call.name))
    if not needed:
        return Claim(
            message=f"{label(call)} has no argument bytes, and it is not known whether its tool"
            " needs any: its schema is not on the tape",
            hint="tape the request too; in the client, run it as {} only if nothing is required",
            blame=None,
            confidence=Confidence.POSSIBLE,
            severity=Severity.WARNING,
        )
    return Claim(
        message=f"{label(call)} has no argument bytes, but its tool requires {', '.join(needed)}",
        hint="send the same request without streaming: if the arguments are there, the server's"
        " streaming parser loses them",
        blame=Blame.UPSTREAM,
        confidence=context.seen,
    )


def required(tool: ToolSpec | None) -> tuple[str, ...]:
    """The parameters that `tool` cannot do without, as far as its schema says."""
    names = tool.parameters.get("required") if tool and tool.parameters else None
    return tuple(name for name in names if isinstance(name, str)) if isinstance(names, list) else ()
