"""T002: arguments that are no JSON and no beginning of any."""

from collections.abc import Iterator
from typing import ClassVar

from deltatape.model.finding import Blame, Confidence, Finding, Severity
from deltatape.model.reply import CallKind, CallStatus, TextCall, ToolCall
from deltatape.rules._base import Claim, RuleContext, about_call, label
from deltatape.rules._in_text import in_answer, where
from deltatape.wire.json_scan import JsonScanner, scan
from deltatape.wire.json_value import reads_alike


class MalformedArguments:
    r"""The arguments of a call are not JSON.

    ## What it does
    Reports calls whose joined arguments break the grammar of JSON: a missing quote, a raw line
    break inside a string, a lost beginning. Arguments that only end too early are T003. JSON that
    parsers read differently (a key twice in one object, half of a surrogate pair) is a warning.

    ## Why is this bad
    No client can run the call. Clients that swallow the parse error run it with `{}`.

    ## Example
    ```
    {"keywords": Dave}
    code": "uptime"}
    ```

    ## Fix
    If the tape shows one fragment per token, the model wrote it: ask again, use a strict mode, or
    simplify the schema. If pieces are missing, the server's parser lost them. In the client, answer
    such a call with the parse error, so that the model can correct itself.

    ## References
    - https://www.rfc-editor.org/rfc/rfc8259
    - https://github.com/vllm-project/vllm/issues/34887
    - https://github.com/earendil-works/pi/issues/2981
    - https://github.com/dust-tt/dust/issues/24414
    """

    code: ClassVar[str] = "T002"
    name: ClassVar[str] = "malformed-arguments"
    severity: ClassVar[Severity] = Severity.ERROR

    def check(self, context: RuleContext) -> Iterator[Finding]:
        """See `Rule.check`."""
        for _, call in context.calls():
            if call.status is CallStatus.MALFORMED:
                yield about_call(self, context, call, _not_json(context, call))
            elif call.status is CallStatus.COMPLETE and call.kind is not CallKind.CUSTOM:
                if reads_alike(call.arguments):
                    continue
                scanner = scan(call.arguments)
                if scanner.duplicate_keys or scanner.lone_surrogate:
                    yield about_call(self, context, call, _ambiguous(context, call, scanner))
        for written in in_answer(context):
            if written.call.status is CallStatus.MALFORMED:
                yield about_call(self, context, written.call, _in_text(written))


def _not_json(context: RuleContext, call: ToolCall) -> Claim:
    scanner = scan(call.arguments)
    tool = context.asked.tool(call.name)
    plain = tool is not None and tool.parameters is not None and not _is_torn(call, scanner)
    return Claim(
        message=f"the arguments of {label(call)} are not JSON: {scanner.problem}"
        f" at character {scanner.position}",
        hint="answer the call with the parse error, never run it with a guess",
        blame=Blame.MODEL if plain else Blame.UPSTREAM,
        confidence=Confidence.LIKELY if plain else context.seen,
        evidence=call.arguments[max(0, scanner.position - 100) :],
    )


def _in_text(written: TextCall) -> Claim:
    scanner = scan(written.call.arguments)
    return Claim(
        message=f"the arguments of {where(written)} are not JSON: {scanner.problem}"
        f" at character {scanner.position}",
        hint="answer the call with the parse error, so that the model writes it again",
        blame=Blame.MODEL,
        confidence=Confidence.LIKELY,
        evidence=written.call.arguments[max(0, scanner.position - 100) :],
    )


def _is_torn(call: ToolCall, scanner: JsonScanner) -> bool:
    """Whether a piece of the arguments is missing, or something stands in front of them.

    Models write wrong values; beginnings and colons are what parsers of servers lose.
    """
    return not call.arguments.lstrip().startswith("{") or scanner.problem.endswith("expected ':'")


def _ambiguous(context: RuleContext, call: ToolCall, scanner: JsonScanner) -> Claim:
    keys = scanner.duplicate_keys
    what = f"the key {keys[0]!r} comes twice" if keys else "half of a surrogate pair is in a string"
    return Claim(
        message=f"the arguments of {label(call)} are JSON that parsers read differently: {what}",
        hint="parse them strictly and answer the call with the problem",
        blame=Blame.UPSTREAM,
        confidence=context.seen,
        severity=Severity.WARNING,
    )
