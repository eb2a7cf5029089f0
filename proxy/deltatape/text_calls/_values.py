"""Converts parameters written as text to JSON, by the tool's schema.

Text stays a string if the schema allows a string; otherwise it is parsed as JSON. Invalid JSON
stays a string, so that the schema's check reports it.
"""

import json
from collections.abc import Iterator, Mapping

from deltatape.text_calls._notation import TextSource
from deltatape.wire.json_value import parse

_WORDS = {"True": "true", "False": "false", "None": "null"}
_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}
_DEPTH = 8
"""How deep schemas are searched for types."""


class ObjectText:
    """The text of a JSON object under construction."""

    def __init__(self) -> None:
        self._members: list[str] = []

    def add(self, key: str, value: str) -> None:
        """Adds a member whose `value` is JSON, or its beginning."""
        self._members.append(f"{quoted(key)}: {value}")

    def text(self, *, whole: bool) -> str:
        """The object; without its closing brace if it is not complete, "" if it is not begun."""
        inner = ", ".join(self._members)
        if whole:
            return f"{{{inner}}}"
        return f"{{{inner}" if inner else ""


def quoted(text: str) -> str:
    """Return `text` as a JSON string."""
    return json.dumps(text, ensure_ascii=False)


def opened(text: str) -> str:
    """Return `text` as a JSON string that is not ended."""
    return quoted(text)[:-1]


def as_json(text: str) -> str | None:
    """Return `text` as the JSON or Python word that it is; None if it is neither."""
    stripped = text.strip()
    word = _WORDS.get(stripped, stripped)
    return word if parse(word).error is None else None


def typed(source: TextSource, tool: str, key: str, text: str) -> str:
    """Return the JSON of a parameter's `text`, by the schema that the tool has for it."""
    types = _types_of(source, tool, key)
    value = as_json(text) if types else None
    if value is None or ("string" in types and (value != "null" or "null" not in types)):
        return quoted(text)
    return value


def is_string(source: TextSource, tool: str, key: str) -> bool:
    """Return whether a parameter is known to be a string."""
    types = _types_of(source, tool, key)
    return not types or "string" in types


def _types_of(source: TextSource, tool: str, key: str) -> frozenset[str]:
    """Return the types that a parameter may have; empty if that is unknown."""
    root = source.offered.get(tool)
    properties = root.get("properties") if root else None
    if root is None or not isinstance(properties, Mapping):
        return frozenset()
    return frozenset(_types(properties.get(key), root, _DEPTH))


def _types(schema: object, root: Mapping[str, object], depth: int) -> Iterator[str]:
    if not isinstance(schema, Mapping) or depth == 0:
        return
    declared = schema.get("type")
    yield from (kind for kind in _list(declared) or [declared] if isinstance(kind, str))
    if declared is None:
        values = [schema["const"]] if "const" in schema else _list(schema.get("enum"))
        yield from (_TYPES.get(type(value), "object") for value in values)
    for keyword in ("anyOf", "oneOf", "allOf"):
        for branch in _list(schema.get(keyword)):
            yield from _types(branch, root, depth - 1)
    reference = schema.get("$ref")
    if isinstance(reference, str):
        yield from _types(_definition(reference, root), root, depth - 1)


def _definition(reference: str, root: Mapping[str, object]) -> object:
    """Return what a reference into the same schema names."""
    found: object = root
    for step in reference.removeprefix("#/").split("/"):
        found = found.get(step) if isinstance(found, Mapping) else None
    return found


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
