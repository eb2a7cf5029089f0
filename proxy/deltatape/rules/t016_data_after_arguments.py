"""T016: something after the end of the arguments."""

from collections.abc import Iterator
from typing import ClassVar

from deltatape.model.finding import Blame, Confidence, Finding, Severity
from deltatape.model.reply import CallStatus, TextCall, ToolCall
from deltatape.rules._base import Claim, RuleContext, about_call, label
from deltatape.rules._forensics import HINT, concerned, excluded_by, told, trace_of
from deltatape.rules._in_text import in_answer, where
from deltatape.rules.evidence import excerpt
from deltatape.wire.json_scan import scan


class DataAfterArguments:
    """Something follows the arguments' JSON value.

    ## What it does
    Reports calls whose arguments are a whole JSON value and then something else. Says which
    fragment came twice, if leaving it out makes them one value.

    ## Why is this bad
    "Extra data", "unexpected non-whitespace character after JSON": strict parsers refuse the call,
    lenient ones do not notice, and nobody knows which value was meant.

    ## Example
    ```
    {"city": "Rome"}}
    ```

    ## Fix
    Repair the server's parser. In the client, answer the call with the parse error.

    ## References
    - https://github.com/yigit353/langchain-qwq/issues/30
    - https://github.com/OpenRouterTeam/ai-sdk-provider/issues/489
    """

    code: ClassVar[str] = "T016"
    name: ClassVar[str] = "data-after-arguments"
    severity: ClassVar[Severity] = Severity.ERROR

    def check(self, context: RuleContext) -> Iterator[Finding]:
        """See `Rule.check`."""
        for _, call in context.calls():
            if call.status is not CallStatus.EXTRA_DATA:
                continue
            yield about_call(self, context, call, _claim(context, call))
        for written in in_answer(context):
            if written.junk:
                yield about_call(self, context, written.call, _in_text(written))


def _claim(context: RuleContext, call: ToolCall) -> Claim:
    scanner = scan(call.arguments)
    more = call.arguments[scanner.extra or 0 :]
    tool = context.asked.tool(call.name)
    trace = trace_of(call.fragments, context.stream.events, tool, context.settings)
    cause = f": {told(trace, call.fragments)}" if trace else ""
    return Claim(
        message=f"the arguments of {label(call)} are whole after {scanner.end} characters, and then"
        f" {excerpt(more, 40)!r} follows{cause}",
        hint=HINT
        if trace
        else "answer the call with the parse error; the server has to be repaired",
        blame=Blame.UPSTREAM,
        confidence=context.seen if trace and trace.proof else Confidence.LIKELY,
        evidence=call.arguments[max(0, (scanner.extra or 0) - 100) :],
        excluded=excluded_by(trace) if trace else (),
        event=concerned(trace, call.fragments).event if trace else None,
        place=concerned(trace, call.fragments).place if trace else None,
    )


def _in_text(written: TextCall) -> Claim:
    return Claim(
        message=f"{where(written)} is whole JSON, and then {excerpt(written.junk, 40)!r} follows"
        " before its closing tag: strict parsers refuse that",
        hint="answer the call with the parse error, so that the model writes it again",
        blame=Blame.MODEL,
        confidence=Confidence.LIKELY,
        evidence=written.call.arguments_raw[-100:],
    )
