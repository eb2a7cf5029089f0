"""A003: a call that the application told its page of, and never its result."""

from collections.abc import Iterator, Sequence
from typing import ClassVar

from deltatape.model.finding import Confidence, Excluded, Finding, Severity
from deltatape.model.reply import ToolCall, ToolResult
from deltatape.rules._app import DIES, Flaw, dies_in_call, flawed
from deltatape.rules._base import RuleContext, label


class CallWithoutResult:
    r"""The application tells its page of a call, and its result never comes.

    ## What it does
    Looks at the stream of the application's own endpoint (`record --app`, or a pasted one). Pairs
    results with the calls before them, by id, else by name in their order, and reports calls that
    are left. A warning if the stream ended in good order and has no result at all: the page may run
    the tools itself. Silent if the transport was cut (W006) or an error came in its place (S005),
    and where the reply ends with calls that the page is to run.

    ## Why is this bad
    The page shows "running ..." for ever. The tool raised, or never ran because the call was
    already broken, or the task that streams died with it.

    ## Innocent explanations
    - The page runs the tools itself: then no call of the stream has a result.
    - The application tells of its calls and keeps the results to itself, or runs a tool in the
      background and tells of its result in a later stream: only where another call of the same
      tool has its result in this one does that speak against it.
    - A tool that ends the turn (a final answer, a question to the user, a handoff) has no result.

    ## Example
    ```
    data: {"type":"tool_call","name":"get_weather","arguments":{"city":"Rome"}}
    data: {"type":"done","content":"I will look it up."}
    ```

    ## Fix
    In the application, send a result for every call, also when the tool fails: then with the error.
    Look into its log for an exception at the time of the call.

    ## References
    - https://ai-sdk.dev/docs/ai-sdk-ui/stream-protocol
    - https://docs.ag-ui.com/concepts/events
    """

    code: ClassVar[str] = "A003"
    name: ClassVar[str] = "call-without-result"
    severity: ClassVar[Severity] = Severity.ERROR

    def check(self, context: RuleContext) -> Iterator[Finding]:
        """See `Rule.check`."""
        reply = context.reply
        if not reply.results_due or reply.error is not None or context.exchange.cut:
            return
        calls = [call for _, call in context.calls()]
        left, strays = _paired(calls, reply.results)
        silent = reply.terminated and not reply.results
        told = f"; a result came for {strays[0]!r}, which is none of the calls" if strays else ""
        dies = dies_in_call(context)
        names = {call.name for call in calls if call not in left}
        flaws = [
            Flaw(
                message=f"the result of {label(call)} never came{told}",
                event=call.start_event,
                place=call.start,
                severity=Severity.WARNING if silent else Severity.ERROR,
                confidence=Confidence.LIKELY if dies or call.name in names else None,
                excluded=DIES if dies else _EXCLUDED if call.name in names else (),
                doubted=not dies and call.name not in names,
            )
            for call in left
        ]
        hint = "send a result for every call, also when the tool fails: then with the error"
        yield from flawed(self, context, flaws, hint)


_EXCLUDED = (
    Excluded(
        "the page runs the tool, or its results are not told",
        "another call of the same tool has its result in this stream",
    ),
)


def _paired(
    calls: Sequence[ToolCall], results: Sequence[ToolResult]
) -> tuple[Sequence[ToolCall], Sequence[str]]:
    """The calls without a result, and the id or name of each result that is of no call."""
    left = list(calls)
    strays = []
    for result in results:
        mine = next((call for call in left if _fits(call, result)), None)
        if mine is not None:
            left.remove(mine)
        elif result.call_id or result.name:
            strays.append(result.call_id or result.name or "")
    return left, strays


def _fits(call: ToolCall, result: ToolResult) -> bool:
    """Whether `result` may be that of `call`: the id tells, where both have one, else the name."""
    if call.start_event > result.event:
        return False
    if call.ids and result.call_id:
        return result.call_id in call.ids
    return not call.name or not result.name or call.name == result.name
