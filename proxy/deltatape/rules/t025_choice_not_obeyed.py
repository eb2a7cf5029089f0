"""T025: several calls where one was allowed, or none where one was demanded."""

from collections.abc import Iterator
from typing import ClassVar

from deltatape.model.finding import Blame, Confidence, Excluded, Finding, Severity
from deltatape.model.reply import Choice
from deltatape.rules._base import Claim, RuleContext, about_call, finding, label
from deltatape.rules._ending import ended_well
from deltatape.rules.evidence import excerpt

_ANY = frozenset({"required", "any"})
_OLLAMA = "ollama"
"""A server that documents that it knows no tool choice, and how it calls its own API."""
_MARK = '"fp_ollama"'
"""The fingerprint of its OpenAI-compatible answers."""
_SENT_TWICE = Excluded("the calls are one that was sent twice", "their names or arguments differ")
_IGNORES = "this server documents that it ignores it"


class ChoiceNotObeyed:
    """The reply does not do what the request's tool choice demands.

    ## What it does
    Reports several calls where the request forbids more than one (`parallel_tool_calls: false`,
    `disable_parallel_tool_use: true`), and a reply without any call where the tool choice demands
    one (`required`, `any`, a named tool) and the reply ended in good order. Calls that the choice
    forbids are T024's business.

    ## Why is this bad
    Code that sets these options counts on them: it takes the first call and drops the rest, or
    reads the arguments of a call that is not there. Servers that do not know an option mostly
    ignore it without a word.

    ## Innocent explanations
    - The model refused, a limit or a filter cut the reply, it was paused, or it is an error.
    - The provider ran a tool of its own.
    - Equal calls may be one that was sent twice, which is T020: possible at most.
    - The call was written as text: the server's parser missed it, which is T018.
    - Ollama documents that it ignores the tool choice: a remark only.

    ## Example
    ```
    "tools": [...], "tool_choice": "required"
    ...
    data: {"choices":[{"index":0,"delta":{"content":"It is sunny."},"finish_reason":"stop"}]}
    ```

    ## Fix
    Handle both: run or refuse every call that came, and ask again where none came. Look up whether
    the server supports the option.

    ## References
    - https://platform.openai.com/docs/guides/function-calling#parallel-function-calling
    - https://docs.claude.com/en/docs/agents-and-tools/tool-use/implement-tool-use
    - https://github.com/vllm-project/vllm/issues/9451
    - https://github.com/sgl-project/sglang/issues/9696
    """

    code: ClassVar[str] = "T025"
    name: ClassVar[str] = "choice-not-obeyed"
    severity: ClassVar[Severity] = Severity.ERROR

    def check(self, context: RuleContext) -> Iterator[Finding]:
        """See `Rule.check`."""
        for choice in context.reply.choices:
            if context.asked.one_call and len(choice.tool_calls) > 1:
                yield self._several(context, choice)
            elif _lacks_call(context, choice):
                yield self._none(context, choice)

    def _several(self, context: RuleContext, choice: Choice) -> Finding:
        second = choice.tool_calls[1]
        equal = len({(call.name, call.arguments) for call in choice.tool_calls}) == 1
        claim = Claim(
            message=f"the request forbids parallel calls, and the reply has"
            f" {len(choice.tool_calls)}: {', '.join(map(label, choice.tool_calls[:4]))}",
            hint="answer every call that came; where the server ignores the option, ask for one"
            " call in the prompt",
            blame=Blame.UPSTREAM,
            confidence=Confidence.POSSIBLE if equal else Confidence.LIKELY,
            excluded=() if equal else (_SENT_TWICE,),
        )
        return about_call(self, context, second, claim)

    def _none(self, context: RuleContext, choice: Choice) -> Finding:
        last = context.stream.events[-1] if context.stream.events else None
        wanted = excerpt(context.asked.tool_choice or "", 60)
        ignores = _ignores_choices(context)
        claim = Claim(
            message=f"the tool choice {wanted!r} demands a call, and the reply has none (finish"
            f" reason {choice.finish_reason_raw!r})" + (f"; {_IGNORES}" if ignores else ""),
            hint="ask again where no call came; look up whether the server knows the tool choice",
            blame=None if ignores else Blame.UPSTREAM,
            confidence=Confidence.LIKELY,
            severity=Severity.INFO if ignores else Severity.ERROR,
            event=last.number if last else None,
            place=last.place if last else None,
            evidence=choice.text or (last.data if last else ""),
            excluded=(
                Excluded("a limit or a filter cut the reply", "the finish reason is a normal end"),
                Excluded("the model refused", "there is no refusal"),
            ),
        )
        return finding(self, context, claim)


def _lacks_call(context: RuleContext, choice: Choice) -> bool:
    """Whether the reply had to call a tool, ended as it should, and has no call of any kind."""
    asked, wanted = context.asked, context.asked.tool_choice
    if not asked.must_call or choice.tool_calls or choice.server_calls or choice.text_calls:
        return False
    if wanted not in _ANY and asked.tool(wanted) is None:
        return False
    offered = bool(asked.tools) and not context.reply.from_app
    return offered and ended_well(context, choice)


def _ignores_choices(context: RuleContext) -> bool:
    first = context.stream.events[0].data if context.stream.events else ""
    return context.reply.dialect == _OLLAMA or _MARK in first
