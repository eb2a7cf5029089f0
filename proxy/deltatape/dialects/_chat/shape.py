"""What tells chat completions, Mistral's and the older completions from each other."""

import re
from collections.abc import Mapping

from deltatape.dialects._json import as_object, get_array

_MISTRAL_ID = re.compile(r"[0-9a-f]{32}\Z")
"""Everybody else's ids have a prefix or dashes."""


def is_completion(chunk: Mapping[str, object]) -> bool:
    """Whether `chunk` is of the older completions: text without a delta or a message."""
    if chunk.get("object") == "text_completion":
        return True
    choices = [choice for choice in map(as_object, get_array(chunk, "choices")) if choice]
    return any("text" in one and not {"delta", "message"}.intersection(one) for one in choices)


def is_chat(chunk: Mapping[str, object]) -> bool:
    """Whether `chunk` is of a chat completion, whoever sends it."""
    said = str(chunk.get("object")).startswith("chat.completion")
    return (said or isinstance(chunk.get("choices"), list)) and not is_completion(chunk)


def is_mistral(chunk: Mapping[str, object]) -> bool:
    """Whether `chunk` is of a chat completion by Mistral."""
    identifier = chunk.get("id")
    ours = isinstance(identifier, str) and _MISTRAL_ID.match(identifier) is not None
    return ours and is_chat(chunk)
