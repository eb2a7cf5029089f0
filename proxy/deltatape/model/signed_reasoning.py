"""A thought of the model as the provider signs it, so that a later request can bring it back."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Thought:
    """A block of thinking, an item of reasoning, or what stands for one beside a call."""

    signature: str
    """What proves that it is unchanged, or holds it encrypted; "" if there is none."""
    text: str = ""
    """What can be read of it, as far as a request repeats it."""
    id: str | None = None
