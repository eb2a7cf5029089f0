"""Names for kept tapes, and a summary of what was redacted."""

import re
from collections.abc import Mapping

from deltatape.why.overview import TapeOverview

_UNFIT = re.compile(r"[^A-Za-z0-9._]+")
_MAX_MODEL = 24
_MAX_STEM = 60
"""A name has 64 characters at most, and may get a number."""


def kept_stem(recorded_at: str, seen: TapeOverview) -> str:
    """`2026-11-22-gpt-4o-empty-arguments`: day, first model, worst finding or `healthy`.

    Args:
        recorded_at: of the tape's header.
        seen: what the tape holds.
    """
    model = _plain(seen.models[0])[:_MAX_MODEL] if seen.models else ""
    worst = seen.worst.name if seen.worst else "healthy"
    parts = (_plain(recorded_at[:10]), model, worst)
    return "-".join(part.strip("-.") for part in parts if part.strip("-."))[:_MAX_STEM]


def counted(kinds: Mapping[str, int]) -> str:
    """Return `2 x API key, 1 x bearer token`, or "none"."""
    return ", ".join(f"{kinds[kind]} x {kind}" for kind in sorted(kinds)) or "none"


def _plain(text: str) -> str:
    return _UNFIT.sub("-", text)
