"""T003: arguments that end too early."""

from collections.abc import Iterator
from typing import ClassVar

from deltatape.model.exchange import EndReason
from deltatape.model.finding import Blame, Confidence, Finding, Severity
from deltatape.model.reply import CallStatus, Choice, ToolCall
from deltatape.rules._base import Claim, RuleContext, about_call, label
from deltatape.rules._forensics import HINT, Trace, concerned, excluded_by, told, trace_of
from deltatape.rules.finish import Finish, finish_of
from deltatape.rules.words import count


class TruncatedArguments:
    r"""The arguments of a call end too early.

    ## What it does
    Reports calls whose joined arguments are the beginning of a JSON value and no more, and calls
    whose stream ended before anything said that they were complete. If they only look cut, because
    a fragment is doubled, moved or missing in their middle, it says which. Where the client left,
    or the recorder ended, that is a remark and nobody's fault.

    ## Why is this bad
    "Unexpected end of JSON input" at best. Libraries that complete partial JSON turn `{"path":"/a`
    into a valid object, and the tool runs with a wrong value without any error.

    ## Example
    ```
    {"tool_calls":[{"index":0,"function":{"arguments":"{\"city\":"}}]}
    (nothing more for this call)
    ```

    ## Fix
    See what ended it: a limit of tokens (S009), the transport (W006), a stream without its terminal
    event (S001); if the reply ended in good order, the server lost the rest. In the client, never
    complete partial JSON for execution.

    ## References
    - https://github.com/vllm-project/vllm/issues/32152
    - https://github.com/vllm-project/vllm/issues/46303
    - https://github.com/NousResearch/hermes-agent/issues/80623
    """

    code: ClassVar[str] = "T003"
    name: ClassVar[str] = "truncated-arguments"
    severity: ClassVar[Severity] = Severity.ERROR

    def check(self, context: RuleContext) -> Iterator[Finding]:
        """See `Rule.check`."""
        for choice, call in context.calls():
            if call.status is not CallStatus.TRUNCATED:
                continue
            trace = _trace(context, choice, call)
            if trace is not None:
                yield about_call(self, context, call, _damaged(context, call, trace))
                continue
            why, blame, confidence = _cause(context, choice)
            yield about_call(
                self,
                context,
                call,
                Claim(
                    message=f"{_extent(call)}: {why}",
                    hint=_HINT if why in _NOBODY else f"{_HINT}; {_SHOW}",
                    blame=blame,
                    confidence=confidence,
                    severity=Severity.INFO if why in _NOBODY else Severity.ERROR,
                ),
            )


_HINT = "run no such call and complete no partial JSON"
_SHOW = "ask again, and show the provider this tape if it stays so"


def _trace(context: RuleContext, choice: Choice, call: ToolCall) -> Trace | None:
    """What happened to the fragments, where nothing else says what ended the call."""
    ended = choice.finish_reason_raw is not None and context.reply.error is None
    if not ended or finish_of(choice) in {Finish.LENGTH, Finish.FILTER}:
        return None
    tool = context.asked.tool(call.name)
    return trace_of(call.fragments, context.stream.events, tool, context.settings)


def _damaged(context: RuleContext, call: ToolCall, trace: Trace) -> Claim:
    """Arguments that only look cut: something in their middle is doubled, moved or missing."""
    return Claim(
        message=f"{_extent(call)} without being whole: {told(trace, call.fragments)}",
        hint=HINT,
        blame=Blame.UPSTREAM,
        confidence=context.seen if trace.proof else Confidence.LIKELY,
        excluded=excluded_by(trace),
        event=concerned(trace, call.fragments).event,
        place=concerned(trace, call.fragments).place,
    )


_UNSEEN = "the recorder stopped watching"
_LEFT = "the client closed the connection"
_NOBODY = frozenset({_UNSEEN, _LEFT})
"""What ends a call by nobody's fault: who did not want the rest does not run it either."""


def _extent(call: ToolCall) -> str:
    if not call.fragments:
        return f"no arguments of {label(call)} came"
    pieces = count(len(call.fragments), "fragment")
    return f"the arguments of {label(call)} end after {len(call.arguments)} characters in {pieces}"


def _cause(context: RuleContext, choice: Choice) -> tuple[str, Blame | None, Confidence]:
    """What ended the call, who did that, and how sure that is."""
    end = finish_of(choice)
    if end in {Finish.LENGTH, Finish.FILTER}:
        word = repr(choice.finish_reason_raw)
        return f"the provider cut the reply (finish reason {word})", None, Confidence.PROVEN
    if context.reply.error is not None:
        return "upstream sent an error", Blame.UPSTREAM, context.seen
    if choice.finish_reason_raw is not None:
        return "the reply went on to its regular end", Blame.UPSTREAM, context.seen
    if not context.exchange.cut:
        blame = Blame.UPSTREAM if context.exchange.timed else None
        return "the stream ended without a finish reason", blame, Confidence.LIKELY
    ended = context.exchange.end
    if ended is None or ended.reason is EndReason.STOPPED:
        return _UNSEEN, None, Confidence.POSSIBLE
    if ended.reason is EndReason.CLIENT_CLOSED:
        return _LEFT, None, Confidence.PROVEN
    return "the transport was cut", Blame.TRANSPORT, Confidence.LIKELY
