"""Distinguishes chat completions, Mistral's and the older completions."""

import re
from collections.abc import Mapping

from deltatape.dialects._json import as_array, as_object, get_array, get_str

_MISTRAL_ID = re.compile(r"[0-9a-f]{32}\Z")
"""Most others' ids have a prefix or dashes."""
_OLD_MISTRAL_ID = re.compile(r"cmpl-[0-9a-f]{32}\Z")
"""What they were up to 2024; other servers have such ids, too, but other names of models."""
_MISTRAL_MODEL = re.compile(r"(?:open-)?(?:codestral|mi[sx]tral)-")
_NOT_MISTRAL = ("matched_stop", "system_fingerprint")
"""Members that others with ids like Mistral's have: SGLang and what is built on it, SiliconFlow."""
MARKS = frozenset({"object", "choices"})
"""Members of which a chunk, of chat or of the older completions, has one."""
DELTA_KEYS = frozenset(
    {
        *("content", "text", "refusal", "reasoning", "reasoning_content", "thinking"),
        *("arguments", "input"),
    }
)
"""See `Traits`."""
CLOSING_KEYS = frozenset({"finish_reason", "signature"})
"""See `Traits`."""
_BODIES = frozenset({"delta", "message"})
_CHOICE = frozenset({"delta", "message", "finish_reason", "index", "content_filter_results"})


def is_completion(chunk: Mapping[str, object]) -> bool:
    """Check whether `chunk` is an older completion: text without a delta or a message."""
    if chunk.get("object") == "text_completion":
        return True
    for choice in get_array(chunk, "choices"):
        if isinstance(choice, dict) and "text" in choice and _BODIES.isdisjoint(choice):
            return True
    return False


def is_chat(chunk: Mapping[str, object]) -> bool:
    """Check whether `chunk` is a chat completion of any provider."""
    said = str(chunk.get("object")).startswith("chat.completion")
    return (said or _has_choices(chunk)) and not is_completion(chunk)


def _has_choices(chunk: Mapping[str, object]) -> bool:
    """Whether the choices of `chunk` are none, or such of a model: polls have choices, too."""
    choices = as_array(chunk.get("choices"))
    if not choices:
        return choices is not None
    return any(not _CHOICE.isdisjoint(each) for each in map(as_object, choices) if each is not None)


def is_mistral(chunk: Mapping[str, object]) -> bool:
    """Return whether `chunk` is of a chat completion by Mistral."""
    if not _has_mistral_id(chunk):
        return False
    choices = [one for one in map(as_object, get_array(chunk, "choices")) if one is not None]
    others = any(key in holder for holder in (chunk, *choices) for key in _NOT_MISTRAL)
    # Those others may leave their members out where there is no choice.
    return is_chat(chunk) and bool(choices) and not others


def _has_mistral_id(chunk: Mapping[str, object]) -> bool:
    identifier, model = get_str(chunk, "id") or "", get_str(chunk, "model") or ""
    if _MISTRAL_ID.match(identifier):
        return True
    return bool(_OLD_MISTRAL_ID.match(identifier) and _MISTRAL_MODEL.match(model))
