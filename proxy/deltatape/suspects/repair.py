"""What tolerant parsers make of arguments that were cut: they close whatever is open.

Two schools: one keeps what there is of the last member, its string closed; the other drops the
member in which the text was cut.
"""

import json

from deltatape.wire.json_value import parse

_CLOSER = {"{": "}", "[": "]"}


def repaired(text: str, *, whole_members: bool) -> str:
    """An object made of `text`; `{}` if none can be made.

    Args:
        text: that is not JSON.
        whole_members: whether the member in which it was cut is dropped.
    """
    for end in _cuts(text, whole_members=whole_members):
        closed = _closed(text[:end])
        found = parse(closed)
        if found.error is None:
            return json.dumps(found.value, ensure_ascii=False)
    return "{}"


def _cuts(text: str, *, whole_members: bool) -> list[int]:
    """Where the text may end so that the rest can be closed, the longest first: few of them."""
    commas = _commas(text)
    found = [] if whole_members else [len(text)]
    return [*found, *reversed(commas[-2:])]


def _commas(text: str) -> list[int]:
    """The commas, and the openers' ends, outside of strings."""
    found, quoted, escaped = [], False, False
    for at, sign in enumerate(text):
        if quoted:
            quoted, escaped = escaped or sign != '"', sign == "\\" and not escaped
        elif sign == '"':
            quoted, escaped = True, False
        elif sign == ",":
            found.append(at)
        elif sign in _CLOSER:
            found.append(at + 1)
    return found


def _closed(text: str) -> str:
    """`text` with its strings, arrays and objects closed."""
    stack, quoted, escaped = [], False, False
    for sign in text:
        if quoted:
            quoted, escaped = escaped or sign != '"', sign == "\\" and not escaped
        elif sign == '"':
            quoted, escaped = True, False
        elif sign in _CLOSER:
            stack.append(_CLOSER[sign])
        elif stack and sign == stack[-1]:
            stack.pop()
    return text + '"' * quoted + "".join(reversed(stack))
