"""A002: an application's event about a call whose arguments are no object."""

from collections.abc import Iterator
from typing import ClassVar

from deltatape.model.finding import Confidence, Excluded, Finding, Severity
from deltatape.model.reply import CallKind, CallStatus, ToolCall
from deltatape.rules._app import Flaw, flawed
from deltatape.rules._base import RuleContext, label
from deltatape.rules.evidence import excerpt
from deltatape.wire.json_scan import Verdict, scan
from deltatape.wire.json_value import parse

_WORDS = {bool: "a truth value", int: "the number", float: "the number", list: "a list"}


class EventArgumentsNotObject:
    r"""The application tells its page of a call whose arguments are no object.

    ## What it does
    Looks at the stream of the application's own endpoint (`record --app`, or a pasted one). Reports
    calls whose arguments are a number, a string, a list; as a warning arguments that are missing or
    null, and a string that holds a whole object.

    ## Why is this bad
    The page reads fields of the arguments and gets `undefined`, or raises. A number is mostly an
    index that got into the wrong field; a string with half an object in it is a piece of what the
    provider streamed, passed on before the rest was there.

    ## Innocent explanations
    - The contract has the arguments as a string of JSON, as providers send them.
    - The tool takes free text, such as a command, and the event has it as it is.
    - The event only announces a call; its arguments follow, or the page does not show them.

    ## Example
    ```
    data: {"type":"tool_call","name":null,"arguments":10}
    data: {"type":"tool_call","name":"get_weather","arguments":"{\"ci"}
    ```

    ## Fix
    In the application, join the pieces of the arguments per index, parse them once when the
    provider's reply has ended, and tell the page of the object.

    ## References
    - https://platform.openai.com/docs/guides/function-calling#streaming
    - https://ai-sdk.dev/docs/ai-sdk-ui/stream-protocol
    """

    code: ClassVar[str] = "A002"
    name: ClassVar[str] = "event-arguments-not-object"
    severity: ClassVar[Severity] = Severity.ERROR

    def check(self, context: RuleContext) -> Iterator[Finding]:
        """See `Rule.check`."""
        if not context.reply.from_app:
            return
        flaws = [
            flaw
            for _, call in context.calls()
            if call.kind is not CallKind.CUSTOM and (flaw := _flaw(call)) is not None
        ]
        hint = "join the pieces of the arguments per index and parse them once, at the end"
        yield from flawed(self, context, flaws, hint)


def _flaw(call: ToolCall) -> Flaw | None:
    """What is wrong with the arguments; texts that are no JSON are the business of other rules."""
    what, severity, odd = _instead(call.arguments) if call.arguments else _missing(call)
    if not what:
        return None
    last = call.fragments[-1] if call.fragments else None
    return Flaw(
        message=f"the arguments of {label(call)} are {what}, not an object",
        event=last.event if last else call.start_event,
        place=last.place if last else call.start,
        severity=severity,
        confidence=Confidence.LIKELY if odd else None,
        excluded=(Excluded("the contract has them as text", odd),) if odd else (),
    )


def _missing(call: ToolCall) -> tuple[str, Severity, str]:
    ended = call.status in {CallStatus.EMPTY_SUSPECT, CallStatus.NO_NAME}
    return "missing or null" if ended else "", Severity.WARNING, ""


def _instead(arguments: str) -> tuple[str, Severity, str]:
    """What stands in place of an object, "" if one is there; what no contract explains."""
    parsed = parse(arguments)
    value = parsed.value
    if parsed.error is not None or isinstance(value, dict):
        return "", Severity.ERROR, ""
    if not isinstance(value, str):
        what = f"{_WORDS.get(type(value), '')} {excerpt(arguments, 40)}"
        odd = "they are no text" if isinstance(value, bool | int | float) else ""
        return what.strip(), Severity.ERROR, odd
    if isinstance(parse(value).value, dict):
        return "a string with an object in it", Severity.WARNING, ""
    shown = f"the string {excerpt(repr(value), 60)}"
    if not value or scan(value).verdict is not Verdict.PREFIX:
        return shown, Severity.ERROR, ""
    begun = "the text is the beginning of an object" if value.lstrip().startswith("{") else ""
    return f"{shown}, a piece of JSON", Severity.ERROR, begun
