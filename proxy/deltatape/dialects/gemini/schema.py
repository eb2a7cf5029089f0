"""Gemini's own form of schemas, as JSON Schema.

It is a selection of OpenAPI 3.0: types in upper case (or as numbers), `nullable`, counts as strings
with digits. What is JSON Schema already comes out as it is.

Source: https://ai.google.dev/api/caching#Schema.
"""

from collections.abc import Mapping

from deltatape.dialects._json import as_array, as_object

DEPTH_LIMIT = 50
"""Levels of schemas in schemas; what is deeper is left out, and so allows everything."""

_TYPES = ("", "string", "number", "integer", "boolean", "array", "object", "null")
"""By the number of the enumeration."""
_ONE = frozenset({"items", "additionalProperties", "additional_properties", "not", "contains"})
"""Keywords with a schema."""
_LISTS = frozenset({"anyOf", "any_of", "oneOf", "allOf", "prefixItems", "prefix_items"})
"""Keywords with an array of schemas."""
_NAMED = frozenset({"properties", "patternProperties", "$defs", "defs", "definitions"})
"""Keywords with schemas by name."""
_COUNTS = frozenset(
    {"minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"}
)
_SPELLINGS = {
    "any_of": "anyOf",
    "additional_properties": "additionalProperties",
    "defs": "$defs",
    "prefix_items": "prefixItems",
}


def json_schema(schema: Mapping[str, object]) -> dict[str, object]:
    """`schema` as JSON Schema."""
    return _schema(schema, DEPTH_LIMIT)


def _schema(schema: Mapping[str, object], depth: int) -> dict[str, object]:
    if not depth:
        return {}
    found: dict[str, object] = {}
    for key, value in schema.items():
        if key not in ("type", "nullable"):
            found[_SPELLINGS.get(key, key)] = _value(key, value, depth - 1)
    kind = _type(schema.get("type"))
    if kind:
        found["type"] = kind
    if schema.get("nullable") is True:
        _allow_null(found)
    return found


def _value(key: str, value: object, depth: int) -> object:
    inner, listed = as_object(value), as_array(value)
    if inner is not None and key in _ONE:
        return _schema(inner, depth)
    if inner is not None and key in _NAMED:
        return {name: _any(each, depth) for name, each in inner.items()}
    if listed is not None and key in _LISTS:
        return [_any(each, depth) for each in listed]
    if key in _COUNTS and isinstance(value, str) and value.isascii() and value.isdigit():
        return int(value[:15])
    return value


def _any(value: object, depth: int) -> object:
    """A schema, or what stands in the place of one."""
    inner = as_object(value)
    return value if inner is None else _schema(inner, depth)


def _type(value: object) -> object:
    """The type or types in JSON Schema's words; None if none is given."""
    if isinstance(value, str):
        return None if value == "TYPE_UNSPECIFIED" else value.lower()
    if type(value) is int:
        return _TYPES[value] if 0 < value < len(_TYPES) else None
    return [each.lower() for each in as_array(value) or () if isinstance(each, str)]


def _allow_null(schema: dict[str, object]) -> None:
    kind, values, options = schema.get("type"), schema.get("enum"), schema.get("anyOf")
    if isinstance(kind, str):
        schema["type"] = [kind, "null"]
    if isinstance(values, list) and None not in values:
        schema["enum"] = [*values, None]
    if isinstance(options, list):
        schema["anyOf"] = [*options, {"type": "null"}]
