"""Finds tool calls that a model writes into its text, in all known notations.

Servers that should turn such text into structured calls often do not, or not always; then it is
shown to the user and nobody runs it. `find_calls` says what a correct parser would have found.
`families` knows the notations; it is imported for a text that may hold a call.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from deltatape.text_calls._notation import Offered, WrittenCall

SIGNS = ("<", "to=", "[TOOL_CALLS]")
"""Every opener of a call has one of them in it; most texts have none."""
_NO_TOOLS: Mapping[str, None] = {}


def find_calls(text: str, offered: "Offered" = _NO_TOOLS) -> "tuple[WrittenCall, ...]":
    """Return the calls written in `text`, in order.

    Args:
        text: one channel of a reply, complete.
        offered: the tools of the request; they decide the types of values in notations without
            types, and whether notations that need a known name are calls.
    """
    if not any(map(text.__contains__, SIGNS)) and not begins_as_json(text, offered):
        return ()
    from deltatape.text_calls.families import read_calls  # noqa: PLC0415 - see the module

    return read_calls(text, offered)


def begins_as_json(text: str, offered: "Offered") -> bool:
    """Return whether the whole text may be a call of a tool in JSON, which has no opener."""
    return bool(offered) and text.lstrip()[:1] in ("{", "[", "`")
