"""T015: one thing said in several places, and not the same."""

from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

from deltatape.model.finding import Finding, Severity
from deltatape.model.reply import CallKind, Observation, ToolCall
from deltatape.rules._base import MAX_MESSAGE, RuleContext, reported
from deltatape.rules._forensics import beside, fits
from deltatape.rules.evidence import excerpt
from deltatape.wire.json_value import parse


class SourcesDisagree:
    r"""A call is told in several places, and they say different things.

    ## What it does
    Reports calls whose arguments, name or presence differ between the places in which a dialect
    repeats them: the deltas, the event that ends them, the item that is done, the final response.
    Arguments that are equal as JSON do not differ, nor does what a limit cut, nor what is sent
    before the arguments are known. A warning for a text that differs, and for a call that the
    provider runs itself. Says which source holds JSON that the tool's schema allows, and which
    fragment is doubled or missing, where that makes the difference.

    ## Why is this bad
    Which of them runs depends on the client: one that joins deltas and one that waits for the end
    call the tool with different arguments, and both are right by the documentation.

    ## Example
    ```
    {"type":"response.function_call_arguments.delta","output_index":0,"delta":"{\"a\":"}
    {"type":"response.function_call_arguments.done","output_index":0,"arguments":"{\"a\":1}"}
    ```

    ## Fix
    The server or gateway has lost or rewritten something: mostly events between the two. In the
    client, take the arguments from the source that the finding names; by the protocols that is the
    event that ends the call (`response.output_item.done`, `tool-input-available`).

    ## References
    - https://platform.openai.com/docs/api-reference/responses-streaming
    - https://github.com/router-for-me/CLIProxyAPI/issues/2626
    """

    code: ClassVar[str] = "T015"
    name: ClassVar[str] = "sources-disagree"
    severity: ClassVar[Severity] = Severity.ERROR

    def check(self, context: RuleContext) -> Iterator[Finding]:
        """See `Rule.check`."""
        calls = {(choice.index, call.index): call for choice, call in context.calls()}
        found = reported(self, context, "nothing depends on it but what is shown")
        for seen, each in zip(context.observed(self.code), found, strict=False):
            call = None if seen.call is None else calls.get((seen.choice, seen.call))
            if call is None:
                yield replace(each, severity=Severity.WARNING)
            else:
                yield _about(context, call, seen, each)


def _about(context: RuleContext, call: ToolCall, seen: Observation, base: Finding) -> Finding:
    """`base`, with what the sources are worth."""
    deltas, end = (_is_good(text, call, context) for text in (call.arguments_raw, call.arguments))
    if call.arguments == call.arguments_raw:
        other = _is_good(seen.evidence, call, context)
        hint = _OTHER if other and not deltas else _DELTAS
    elif deltas and not end:
        hint = _DELTAS
    elif end and not deltas:
        hint = _END
    else:
        hint = _NEITHER if not end else _BOTH
    cause = beside(call.fragments, call.arguments) if end and call.fragments else ""
    message = f"{base.message}; {cause}" if cause else base.message
    return replace(base, hint=hint, message=excerpt(message, MAX_MESSAGE))


_END = (
    "in the client, take the arguments from the event that ends the call, not from the deltas;"
    " show the provider or gateway this tape"
)
_DELTAS = (
    "in the client, take the arguments from the deltas, joined: they are JSON that the tool can"
    " take, what the other event says is not, or nothing bears it out; show the provider this tape"
)
_OTHER = (
    "in the client, take the arguments from the event that this is about: they are JSON that the"
    " tool can take, the deltas are not; show the provider or gateway this tape"
)
_BOTH = (
    "both are JSON that the tool can take, and the tape does not say which was meant: by the"
    " protocol the event that ends the call counts; show the provider or gateway this tape"
)
_NEITHER = "no source has arguments that the tool can take: run none, and answer the call so"


def _is_good(text: str, call: ToolCall, context: RuleContext) -> bool:
    """Whether `text` is what a client could run: an object that the schema does not refuse."""
    if call.kind is CallKind.CUSTOM:
        return True
    whole = isinstance(parse(text).value, dict)
    return whole and fits(text, context.asked.tool(call.name), context.settings) is not False
