"""Reads one entry of `tool_calls` (or `function_call`) into plain values.

Absent values have many spellings in the wild: a missing key, `null`, `""`, for ids the string
`"null"`. They all come out as "" here. Arguments that are no string keep their exact source text.
"""

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from deltatape.dialects._json import get_index, get_object, get_str
from deltatape.dialects._source_text import JsonSource, MemberValue
from deltatape.model.reply import CallKind
from deltatape.model.stream import Event

_FUNCTION = CallKind.FUNCTION
_new = tuple.__new__
"""What the constructor of a named tuple calls, in a third of the time: every delta makes one."""


class ChatDelta(NamedTuple):
    """The content of an entry; "" where it has none."""

    event: Event
    value: Mapping[str, object]
    wire_index: int | None
    """None where the entry has no usable index."""
    id: str
    name: str
    kind: CallKind
    text: str
    """The piece of the arguments."""
    unquoted: tuple[str, ...]
    """The keys that lead to arguments that came as JSON instead of a string; mostly none."""
    unexpected: tuple[str, ...]
    """What has an unexpected shape, one phrase each."""

    @property
    def says_nothing(self) -> bool:
        """Whether the entry neither names nor extends a call."""
        return not (self.text or self.id or self.name)

    def read_unquoted(self, source: JsonSource) -> "ChatDelta":
        """Return the entry at `source` with the exact source of arguments that are not a string."""
        for key in self.unquoted:
            source = MemberValue(source, key)
        return self._replace(text=source.text)


def read_entry(value: Mapping[str, object], event: Event) -> ChatDelta:
    """Read the entry `value` of `tool_calls` in the data of `event`.

    See `ChatDelta.read_unquoted`: only such entries need their position.
    """
    kind, key, field = _FUNCTION, "function", "arguments"
    body = get_object(value, key)
    if not body and get_object(value, "custom"):
        kind, key, field = CallKind.CUSTOM, "custom", "input"
        body = get_object(value, key)
    name, text, unquoted, unexpected = _NO_BODY if body is None else _read_body(body, field)
    index = get_index(value, "index")
    identifier = value.get("id")
    if body is None or index is None or not (identifier is None or isinstance(identifier, str)):
        unexpected = (*_unexpected_shapes(value, key, index), *unexpected)
        identifier = get_str(value, "id")
    if identifier is None or identifier == "null":
        identifier = ""
    if unquoted:
        unquoted = (key, *unquoted)
    return _new(
        ChatDelta, (event, value, index, identifier, name, kind, text, unquoted, unexpected)
    )


def signature_of(value: Mapping[str, object]) -> str:
    """Return the thought signature that Gemini's compatible endpoint adds to a call; or "".

    See https://ai.google.dev/gemini-api/docs/thought-signatures.
    """
    extra = value.get("extra_content")
    google = get_object(extra, "google") if isinstance(extra, Mapping) else None
    return (get_str(google, "thought_signature") or "") if google else ""


def read_legacy(value: Mapping[str, object], event: Event) -> ChatDelta:
    """Read the `function_call` object `value` in the data of `event`. See `read_entry`."""
    name, text, unquoted, unexpected = _read_body(value, "arguments")
    return ChatDelta(event, value, None, "", name, CallKind.LEGACY, text, unquoted, unexpected)


_Body: TypeAlias = tuple[str, str, tuple[str, ...], tuple[str, ...]]
"""Name and text, and then `unquoted` and `unexpected` as in `ChatDelta`."""
_NO_BODY: _Body = ("", "", (), ())


def _read_body(body: Mapping[str, object], field: str) -> _Body:
    """Read `body`, whose arguments are in `field`."""
    unexpected: tuple[str, ...] = ()
    name = body.get("name")
    if name is None:
        name = ""
    elif not isinstance(name, str):
        name, unexpected = "", ("name is no string",)
    arguments = body.get(field)
    if isinstance(arguments, str):
        return name, arguments, (), unexpected
    return name, "", () if arguments is None else (field,), unexpected


def _unexpected_shapes(value: Mapping[str, object], key: str, index: int | None) -> list[str]:
    unexpected = []
    if value.get(key) is not None and get_object(value, key) is None:
        unexpected.append(f"{key} is no object")
    if value.get("id") is not None and get_str(value, "id") is None:
        unexpected.append("id is no string")
    if value.get("index") is not None and index is None:
        unexpected.append("index is no number")
    return unexpected
