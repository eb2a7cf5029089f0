"""Texts of which somebody has hidden a part: the application, or the recorder.

Recorders put asterisks in place of credentials, as many as there were characters. They know them in
a request, where they stand whole, and not in a stream that brings them in pieces; so one side may
be masked and the other not. Applications that hide personal data write what they like.
"""

import re

_MASK = re.compile(
    r"\*{3,}|[\u2022\u2588]{3,}"
    r"|[\[<({](?:redacted|masked|filtered|removed|hidden|secret)[^\])>}\n]{0,40}[\])>}]",
    re.IGNORECASE,
)


def same_but_masked(one: str, other: str) -> bool:
    """Whether one of the texts is the other one with parts of it masked.

    >>> same_but_masked("key sk-fake-000000, please", "key **************, please")
    True
    """
    return _fits(one, other) or _fits(other, one)


def _fits(masked: str, text: str) -> bool:
    """Whether `text` has what `masked` shows, in order, and anything where it shows nothing."""
    first, *rest = _MASK.split(masked)
    if not rest or not text.startswith(first):
        return False
    at = len(first)
    for part in rest[:-1]:
        found = text.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return len(text) - len(rest[-1]) >= at and text.endswith(rest[-1])
