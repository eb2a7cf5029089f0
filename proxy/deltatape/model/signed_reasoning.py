"""Signed reasoning, which a later request has to send back."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Thought:
    """A thinking block, a reasoning item, or the signature that replaces it next to a call."""

    signature: str
    """What proves that it is unchanged, or holds it encrypted; "" if there is none."""
    text: str = ""
    """What can be read of it, as far as a request repeats it."""
    id: str | None = None
