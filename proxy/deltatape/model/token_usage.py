"""The tokens of an exchange, as replies state them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_NAMES = (
    ("prompt_tokens", "completion_tokens"),
    ("input_tokens", "output_tokens"),
    ("promptTokenCount", "candidatesTokenCount"),
    ("inputTokens", "outputTokens"),
    ("total_input_tokens", "total_output_tokens"),
    ("prompt_eval_count", "eval_count"),
    ("inputTokenCount", "outputTokenCount"),
)
"""The names of the counts of request and reply."""
_HOLDERS = ("tokens", "billed_units")
"""Members of a usage that may hold these counts instead, the surest first: Cohere's."""
_CACHED = (
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
    "cacheWriteInputTokens",
    "cacheReadInputTokens",
)
"""Counts of the request that `input_tokens` and `inputTokens` of their dialects leave out."""
_THOUGHTS = ("thoughtsTokenCount",)
"""The same of the reply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenCount:
    """The tokens that a reply states; None where it does not state one of them."""

    input: int | None
    """Tokens of the request, cached ones included."""
    output: int | None
    """Tokens of the reply, those of reasoning included."""


def tokens_in(usage: Mapping[str, object] | None) -> TokenCount | None:
    """Return the tokens that a reply's `usage` states; None if it states none."""
    if usage is None:
        return None
    for holder in (usage, *map(usage.get, _HOLDERS)):
        if not isinstance(holder, Mapping):
            continue
        for of_request, of_reply in _NAMES:
            asked, replied = _count(holder.get(of_request)), _count(holder.get(of_reply))
            if asked is not None or replied is not None:
                return TokenCount(
                    input=_with(asked, holder, _CACHED), output=_with(replied, holder, _THOUGHTS)
                )
    return None


def _with(tokens: int | None, usage: Mapping[str, object], others: Sequence[str]) -> int | None:
    if tokens is None:
        return None
    return tokens + sum(_count(usage.get(name)) or 0 for name in others)


def _count(value: object) -> int | None:
    return value if type(value) is int and value >= 0 else None
