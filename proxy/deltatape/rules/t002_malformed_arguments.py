"""T002: arguments that are no JSON and no beginning of any."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from deltatape.model.finding import Blame, Confidence, Excluded, Finding, Severity
from deltatape.model.reply import CallKind, CallStatus, Fragment, TextCall, ToolCall
from deltatape.rules._base import Claim, RuleContext, about_call, label
from deltatape.rules._forensics import HINT, Trace, concerned, excluded_by, gap_of, told, trace_of
from deltatape.rules._in_text import in_answer, where
from deltatape.rules._notation import QUOTES, notation_of
from deltatape.wire.json_scan import JsonScanner, scan
from deltatape.wire.json_value import parse, reads_alike


class MalformedArguments:
    r"""The arguments of a call are not JSON.

    ## What it does
    Reports calls whose joined arguments break the grammar of JSON: a missing quote, a raw line
    break inside a string, a lost beginning. Arguments that only end too early are T003. JSON that
    parsers read differently (a key twice in one object, half of a surrogate pair) is a warning.

    Whose fault it was is asked of the fragments, not of the parser: if leaving out a repeated
    fragment or exchanging two neighbours makes the arguments valid, and valid against the tool's
    schema, the provider or a gateway did it, and so where they break between two fragments and go
    on as JSON does. Proven is that only by what no model writes: numbers of events that repeat or
    jump, an event again with its padding. Arguments that are whole in another notation (a Python
    dict, a Ruby hash, an object without quotes, a comma too many) are the model's.

    ## Why is this bad
    No client can run the call. Clients that swallow the parse error run it with `{}`.

    ## Innocent explanations
    - The model wrote it: then no repetition, order or gap of fragments explains it, or it reads as
      another notation.
    - The model stuttered just where a fragment ends: then nothing but the text is doubled, and it
      is likely, not proven.

    ## Example
    ```
    {"keywords": Dave}
    code": "uptime"}
    ```

    ## Fix
    If the model wrote it: ask again, use a strict mode, or simplify the schema. If fragments are
    missing or doubled, record on both sides of the gateway to see who does it. In the client,
    answer such a call with the parse error, so that the model can correct itself.

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
    cause = _cause(context, call)
    return Claim(
        message=f"the arguments of {label(call)} are not JSON ({scanner.problem}"
        f" at character {scanner.position}): {cause.what}",
        hint=cause.hint,
        blame=cause.blame,
        confidence=cause.confidence,
        evidence=call.arguments[max(0, scanner.position - 100) :],
        excluded=cause.excluded,
        event=cause.fragment.event if cause.fragment else None,
        place=cause.fragment.place if cause.fragment else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cause:
    """Why arguments are broken, as far as the fragments tell."""

    what: str
    hint: str = "answer the call with the parse error, never run it with a guess"
    blame: Blame = Blame.UPSTREAM
    confidence: Confidence = Confidence.LIKELY
    excluded: tuple[Excluded, ...] = ()
    fragment: Fragment | None = None
    """Where it shows, if that is one fragment."""


def _cause(context: RuleContext, call: ToolCall) -> _Cause:
    """What explains the broken arguments best: what happened to fragments, or who writes so."""
    joined = "".join(fragment.text for fragment in call.fragments)
    if joined != call.arguments and isinstance(parse(joined).value, dict):
        return _Cause(
            what="the deltas are whole JSON, the event that ends the call is not",
            hint="in the client, take the arguments of this call from the deltas",
            confidence=context.seen,
            excluded=(
                Excluded("the model wrote it so", "it wrote the deltas, and they are JSON"),
                Excluded("the app did it", "these are the bytes before any client read them"),
            ),
        )
    tool = context.asked.tool(call.name)
    trace = trace_of(call.fragments, context.stream.events, tool, context.settings)
    if trace is not None:
        return _of(trace, context, call)
    notation = notation_of(call.arguments)
    if notation is not None and notation.habits != {QUOTES}:
        return _Cause(what=f"they are {notation.name}, which models write", blame=Blame.MODEL)
    gap = gap_of(call.fragments)
    if gap is not None:
        return _of(gap, context, call)
    if notation is not None:
        return _Cause(what=f"they are {notation.name}, which models write", blame=Blame.MODEL)
    return _Cause(
        what="no fragment that was lost, doubled or moved explains it; the model wrote it, or the"
        " server's parser spoilt it"
    )


def _of(trace: Trace, context: RuleContext, call: ToolCall) -> _Cause:
    return _Cause(
        what=told(trace, call.fragments),
        hint=HINT,
        confidence=context.seen if trace.proof else Confidence.LIKELY,
        excluded=excluded_by(trace),
        fragment=concerned(trace, call.fragments),
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
