"""Which name a call has when the wire gives it in pieces, late, again, or differently."""

from typing import NamedTuple

from deltatape.model.asked import Asked

_NAME_LIMIT = 1000
"""Characters from which on a name is not continued: no name of a tool is that long."""


class Naming(NamedTuple):
    """A name, and the code and detail of what was wrong with how it came; "" if nothing."""

    name: str
    code: str
    detail: str


def merge_name(old: str, new: str, *, begun: bool, asked: Asked) -> Naming:
    """The name of a call called `old` so far, after a later entry called it `new`.

    Args:
        old: "" if the call has no name yet.
        new: never empty.
        begun: whether argument bytes have arrived: then a name is final.
        asked: the offered tools decide whether two pieces are one name.
    """
    if not old:
        return Naming(new, "T021", f"the name {new!r} comes later than the call")
    if new == old:
        return Naming(old, "T009", f"the name {new!r} is sent again")
    if begun or len(old) > _NAME_LIMIT:
        return Naming(old, "T021", f"the name {old!r} changes to {new!r} when it is final")
    if asked.tool(old + new) is None and (asked.tool(new) is not None or new.startswith(old)):
        return Naming(new, "T021", f"the name {old!r} is replaced by {new!r}")
    return Naming(old + new, "T021", f"the name comes in pieces: {old!r} and {new!r}")
