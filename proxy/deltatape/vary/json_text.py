"""JSON texts written otherwise: the same value in other bytes.

What is not rewritten keeps its spelling: numbers, escapes, nested values, since a call's arguments
may be one and count byte for byte. All texts are valid JSON.

Spec: RFC 8259.
"""

import re
from collections.abc import Iterator

_TOKEN = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[\[\]{}:,]|[^\s"\[\]{}:,]++|\s++')
_STEPS = {"{": 1, "[": 1, "}": -1, "]": -1}
_ESCAPED = re.compile(r"[^\x00-\x7f\ud800-\udfff]")
_MEMBER = 1


def spaced(text: str) -> str:
    """`text` with a blank around everything on its outermost level."""
    parts: list[str] = []
    for part, depth in _tokens(text):
        outer = depth == _MEMBER and part in "{}[]:,"
        parts.append(f" {part} " if outer else part)
    return "".join(parts).strip()


def escaped(text: str) -> str:
    r"""`text` with `\uXXXX` for every character beyond ASCII."""
    return _ESCAPED.sub(lambda match: _escape(match[0]), text)


def _escape(character: str) -> str:
    units = character.encode("utf-16-be").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def reversed_members(text: str) -> str:
    """The object `text` with its members in the opposite order; itself if a name comes twice."""
    members: list[list[str]] = [[]]
    for part, depth in _tokens(text):
        if depth == _MEMBER and part == ",":
            members.append([])
        elif depth > _MEMBER or part not in "{}":
            members[-1].append(part)
    names = [next((part for part in each if not part.isspace()), "") for each in members]
    if len(names) != len(set(names)):
        return text
    inside = ",".join("".join(each).strip() for each in reversed(members))
    return f"{{{inside}}}"


def _tokens(text: str) -> Iterator[tuple[str, int]]:
    """The tokens with their depth: brackets of the outermost value and what is in it have 1."""
    depth = 0
    for match in _TOKEN.finditer(text):
        token = match[0]
        step = _STEPS.get(token, 0)
        depth += max(step, 0)
        yield token, depth
        depth += min(step, 0)
