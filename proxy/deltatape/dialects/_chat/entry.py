"""One entry of `tool_calls` (or `function_call`) of a delta, read into plain values.

Absent values have many spellings in the wild: a missing key, `null`, `""`, for ids the string
`"null"`. They all come out as "" here. Arguments that are no string keep their exact source text.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from deltatape.dialects._json import get_index, get_object, get_str
from deltatape.dialects._source import Member, Source
from deltatape.model.reply import CallKind
from deltatape.model.stream import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What an entry says; "" where it says nothing."""

    event: Event
    value: Mapping[str, object]
    index: int | None
    """None where the entry has no usable index."""
    id: str
    name: str
    kind: CallKind
    text: str
    """The piece of the arguments."""
    bare: bool
    """Whether the arguments came as JSON instead of a string."""
    odd: tuple[str, ...]
    """What has an unexpected shape, one phrase each."""

    @property
    def says_nothing(self) -> bool:
        """Whether the entry neither names nor feeds a call."""
        return not (self.id or self.name or self.text)


def read_entry(value: Mapping[str, object], event: Event, source: Source) -> Entry:
    """The entry `value` of `tool_calls`, which stands at `source` in the data of `event`."""
    kind, key, field = CallKind.FUNCTION, "function", "arguments"
    if not get_object(value, "function") and get_object(value, "custom"):
        kind, key, field = CallKind.CUSTOM, "custom", "input"
    odd = []
    if value.get(key) is not None and get_object(value, key) is None:
        odd.append(f"{key} is no object")
    if value.get("id") is not None and get_str(value, "id") is None:
        odd.append("id is no string")
    index = get_index(value, "index")
    if value.get("index") is not None and index is None:
        odd.append("index is no number")
    body = _read_body(get_object(value, key) or {}, field, Member(source, key))
    identifier = get_str(value, "id") or ""
    return Entry(
        event=event,
        value=value,
        index=index,
        id="" if identifier == "null" else identifier,
        name=body.name,
        kind=kind,
        text=body.text,
        bare=body.bare,
        odd=(*odd, *body.odd),
    )


def read_legacy(value: Mapping[str, object], event: Event, source: Source) -> Entry:
    """The `function_call` object `value`, which stands at `source` in the data of `event`."""
    body = _read_body(value, "arguments", source)
    return Entry(
        event=event,
        value=value,
        index=None,
        id="",
        name=body.name,
        kind=CallKind.LEGACY,
        text=body.text,
        bare=body.bare,
        odd=body.odd,
    )


class _Body(NamedTuple):
    name: str
    text: str
    bare: bool
    odd: tuple[str, ...]


def _read_body(body: Mapping[str, object], field: str, source: Source) -> _Body:
    """The name and the arguments (in `field`) that `body`, which stands at `source`, holds."""
    name = get_str(body, "name")
    odd = () if name is not None or body.get("name") is None else ("name is no string",)
    arguments = body.get(field)
    if arguments is None or isinstance(arguments, str):
        return _Body(name or "", arguments or "", bare=False, odd=odd)
    return _Body(name or "", Member(source, field).text, bare=True, odd=odd)
