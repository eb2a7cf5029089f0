"""S012: counts of tokens that cannot be."""

from collections.abc import Iterator, Mapping
from typing import ClassVar, NamedTuple

from deltatape.model.finding import Blame, Confidence, Finding, Severity
from deltatape.rules._base import Claim, RuleContext, finding
from deltatape.rules._usage import Counts, counts_in, is_explained


class ImpossibleUsage:
    """The counts of tokens contradict each other or the answer.

    ## What it does
    Reports negative counts, a total that is less than its parts or exceeds them by what no other
    count explains, more cached tokens of the prompt than the prompt has, and no token for an answer
    that has text or a call.

    ## Why is this bad
    Budgets, bills and the limits of contexts are computed from them. Clients that trim a history by
    its count send too much or too little.

    ## Innocent explanations
    - Reasoning, cached tokens and those of tools are parts of the counts at some providers, and
      come on top of them at others: a total that fits either way is fine.
    - Counts that are all 0 are no counts. An answer from a gateway's cache may cost no tokens: that
      is a remark only.
    - Where a stream is cut, the counts are those of its beginning.

    ## Example
    ```
    "usage":{"prompt_tokens":90,"completion_tokens":20,"total_tokens":50}
    ```

    ## Fix
    Count on the provider's own bill, or count tokens in the client. Report it to the gateway.

    ## References
    - https://platform.openai.com/docs/api-reference/chat/object
    - https://ai.google.dev/api/generate-content#UsageMetadata
    - https://github.com/vllm-project/vllm/issues/8625
    """

    code: ClassVar[str] = "S012"
    name: ClassVar[str] = "impossible-usage"
    severity: ClassVar[Severity] = Severity.WARNING

    def check(self, context: RuleContext) -> Iterator[Finding]:
        """See `Rule.check`."""
        usage = context.reply.usage
        counts = counts_in(usage) if usage else None
        if not usage or not counts or not context.reply.terminated or context.exchange.cut:
            return
        wrong = _wrong(counts, usage) or _nothing_counted(context, counts)
        if wrong is None:
            return
        last = context.stream.events[-1]
        yield finding(
            self,
            context,
            Claim(
                message=f"the usage cannot be: {wrong.how}",
                hint="do not compute budgets from it; report it to the gateway or the provider",
                blame=Blame.UPSTREAM,
                confidence=wrong.confidence,
                severity=wrong.severity,
                event=last.number,
                place=last.place,
                evidence=", ".join(f"{key}: {value}" for key, value in usage.items()),
            ),
        )


class _Wrong(NamedTuple):
    how: str
    severity: Severity = Severity.WARNING
    confidence: Confidence = Confidence.LIKELY


def _wrong(counts: Counts, usage: Mapping[str, object]) -> _Wrong | None:
    """What contradicts itself."""
    prompt, answer, total, cached = counts
    for name, count in zip(Counts._fields, counts, strict=True):
        if count is not None and count < 0:
            return _Wrong(f"the count of the {_WORDS.get(name, name)} is {count}")
    if cached > prompt:
        return _Wrong(f"{cached} tokens of a prompt of {prompt} were cached")
    if answer is None or total is None or total == prompt + answer:
        return None
    told = f"the total is {total}, of {prompt} and {answer}"
    if total < max(prompt, answer):
        return _Wrong(told)
    explained = is_explained(abs(total - prompt - answer), usage)
    return None if explained else _Wrong(told, Severity.INFO, Confidence.POSSIBLE)


_WORDS = {"cached": "cached tokens"}


def _nothing_counted(context: RuleContext, counts: Counts) -> _Wrong | None:
    """An answer that no token was counted for; counts that are all 0 are none."""
    said = any(choice.text or choice.tool_calls for choice in context.reply.choices)
    if counts.answer != 0 or not counts.prompt or not said:
        return None
    told = "no token is counted for an answer that has some"
    return _Wrong(told, Severity.INFO, Confidence.POSSIBLE)
