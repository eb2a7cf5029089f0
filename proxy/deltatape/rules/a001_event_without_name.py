"""A001: an application's event about a tool that does not say which."""

from collections.abc import Iterator
from typing import ClassVar

from deltatape.model.finding import Confidence, Excluded, Finding, Severity
from deltatape.model.reply import CallStatus, ToolCall
from deltatape.rules._app import Flaw, flawed
from deltatape.rules._base import RuleContext, label
from deltatape.wire.json_value import parse

_FIELDS = ("name", "tool", "tool_name", "toolName", "function")
"""Where names of tools stand."""
_ASIDE = frozenset({"type", "event", "kind", "arguments", "args", "input", "parameters"})
"""Fields whose texts are no names."""
_NAMELESS = frozenset({CallStatus.NO_NAME, CallStatus.ORPHAN})


class EventWithoutName:
    r"""The application tells its page of a call without a name.

    ## What it does
    Looks at the stream of the application's own endpoint (`record --app`, or a pasted one). Reports
    calls whose name is missing, null, empty or no string; as a warning results with neither a name
    nor an id.

    ## Why is this bad
    The page cannot show or run a tool that has no name; many fail there, and the user sees nothing
    more. Almost always the provider's stream was in order: its first event of a call has the name,
    the others only pieces of the arguments, and the application passes each of them on as a call.

    ## Innocent explanations
    - The application's contract has the name in a field of its own: then the field that others use
      is missing, and not null, and it is possible at most.
    - Only what the page needs is sent: an id, whose name came before.

    ## Example
    ```
    data: {"type":"tool_call","name":null,"arguments":10}
    ```

    ## Fix
    In the application, collect the provider's pieces in an entry per index and tell the page of a
    call when the provider's reply has ended. Check the name before telling.

    ## References
    - https://platform.openai.com/docs/guides/function-calling#streaming
    - https://ai-sdk.dev/docs/ai-sdk-ui/stream-protocol
    """

    code: ClassVar[str] = "A001"
    name: ClassVar[str] = "event-without-name"
    severity: ClassVar[Severity] = Severity.ERROR

    def check(self, context: RuleContext) -> Iterator[Finding]:
        """See `Rule.check`."""
        if not context.reply.from_app:
            return
        hint = "collect the provider's pieces per index; tell the page of a call when it is whole"
        calls = [
            Flaw(
                message=f"{label(call)} has no name: the page cannot know which tool it is of",
                event=call.start_event,
                place=call.start,
                confidence=Confidence.PROVEN if (empty := _empty_field(context, call)) else None,
                excluded=_excluded(empty) if empty else (),
            )
            for _, call in context.calls()
            if call.status in _NAMELESS
        ]
        results = [
            Flaw(
                message="a result has neither a name nor an id: whose it is can only be guessed",
                event=result.event,
                place=result.place,
                severity=Severity.WARNING,
            )
            for result in context.reply.results
            if not result.name and not result.call_id
        ]
        yield from flawed(self, context, calls, hint)
        yield from flawed(self, context, results, "give each result the name or id of its call")


def _empty_field(context: RuleContext, call: ToolCall) -> str:
    """The field of the event that should have the name and has nothing; "" if there is none."""
    event = context.event(call.start_event)
    found = parse(event.data).value if event else None
    body = found if isinstance(found, dict) else {}
    said = [value for key, value in body.items() if key not in _ASIDE and isinstance(value, str)]
    empty = (key for key in _FIELDS if key in body and not _has_text(body[key]))
    return next(empty, "") if not any(said) else ""


def _has_text(value: object) -> bool:
    """Whether a name may be in it: text, or an object with some."""
    inner = value.values() if isinstance(value, dict) else (value,)
    return any(isinstance(each, str) and each for each in inner)


def _excluded(field: str) -> tuple[Excluded, ...]:
    return (
        Excluded(
            "the contract has the name elsewhere",
            f"the event has a field {field!r} with nothing in it, and no other text",
        ),
    )
