"""Which regular expressions of a schema may be run: Python's backtrack, and a schema is untrusted.

Judged by the source, before anything is run: how often the engine could begin anew is bounded by
what repeats without limit, and by the number of ways in which the rest can be taken. Rather too
much is refused than too little; the ordinary patterns of schemas pass.
"""

import re
from functools import lru_cache

_LONGEST = 200
_MAX_WAYS = 64
"""Ways to take what may be there or not, or so and so often."""
_MAX_GROUPS = 2

_ESCAPED = re.compile(r"\\.", re.DOTALL)
_CLASS = re.compile(r"\[\^?\]?[^\]]*\]")
_UNBOUNDED = re.compile(r"[*+]|\{\d*,\}")
_COUNTED = re.compile(r"\{(\d*),(\d+)\}")
_OPTIONAL = re.compile(r"(?<!\()\?")
_REPEATED = re.compile(r"\{(\d+)[,}]")
_RISKY = re.compile(r"\)[*+{]|\(\?[^:]|[*+?}][*+{]")
_MAX_REPEATED = 1000


@lru_cache(maxsize=1024)
def is_risky(pattern: str) -> bool:
    """Whether `pattern` may backtrack badly, or is none that Python knows. Rather too often."""
    if len(pattern) > _LONGEST:
        return True
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        return True
    bare = _CLASS.sub("x", _ESCAPED.sub("x", pattern))
    loops = len(_UNBOUNDED.findall(bare))
    return (
        _RISKY.search(bare) is not None
        or loops > 1 + bare.startswith("^")
        or _ways(bare) > _MAX_WAYS
        or any(int(least) > _MAX_REPEATED for least in _REPEATED.findall(bare))
        or (bare.count("|") > 0 and bare.count("(") > _MAX_GROUPS)
    )


def _ways(bare: str) -> int:
    """In how many ways the parts that are optional or counted can be taken, at most."""
    ways = 1 << min(len(_OPTIONAL.findall(bare)), 10)
    for least, most in _COUNTED.findall(bare):
        ways *= max(1, int(most) - int(least or 0) + 1)
    return ways
