"""Token counts under the names of every provider, and whether they are possible."""

from collections.abc import Mapping
from itertools import combinations
from typing import NamedTuple


class TokenCounts(NamedTuple):
    """The token counts of a request; None where one is not reported."""

    prompt: int
    answer: int | None
    total: int | None
    cached: int
    """Of the prompt; 0 where the interface does not count it as a part of it."""


_NAMES = (
    ("prompt_tokens", "completion_tokens", "total_tokens", "prompt_tokens_details"),
    ("input_tokens", "output_tokens", "total_tokens", "input_tokens_details"),
    ("promptTokenCount", "candidatesTokenCount", "totalTokenCount", ""),
    ("inputTokens", "outputTokens", "totalTokens", ""),
    ("total_input_tokens", "total_output_tokens", "total_tokens", ""),
)
"""Of the prompt, the answer, both, and what holds the cached tokens among others."""
_KNOWN = frozenset(name for names in _NAMES for name in names[:3])
_GEMINI_CACHED = "cachedContentTokenCount"
_MOST = 12
"""Further counts of which sums are formed."""


def counts_in(usage: Mapping[str, object]) -> TokenCounts | None:
    """Return the counts in `usage`; None if it does not report prompt tokens."""
    for prompt, answer, total, details in _NAMES:
        found = usage.get(prompt)
        if type(found) is int:
            inner = usage.get(details)
            cached = inner.get("cached_tokens") if isinstance(inner, dict) else None
            if cached is None:
                cached = usage.get(_GEMINI_CACHED)
            return TokenCounts(
                found,
                _count(usage.get(answer)),
                _count(usage.get(total)),
                _count(cached) or 0,
            )
    return None


def is_explained(difference: int, usage: Mapping[str, object]) -> bool:
    """Return whether other counts in `usage` add up to the difference."""
    inner = [value for value in usage.values() if isinstance(value, dict)]
    holders = ({key: value for key, value in usage.items() if key not in _KNOWN}, *inner)
    counts = [_count(value) or 0 for holder in holders for value in holder.values()]
    parts = [count for count in counts if count > 0][:_MOST]
    sums = (sum(some) for size in range(1, 4) for some in combinations(parts, size))
    return any(each == difference for each in sums)


def _count(value: object) -> int | None:
    return value if type(value) is int else None
