"""Validation against the JSON Schema of a tool, which is as untrusted as the rest of a tape.

Most schemas say of each property what type it has, which ones are required and which strings are
allowed, and most arguments fit. That is seen here. The rest is left to `_schema`: to import the
library takes a fifth of the time of a short `deltatape check`.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from deltatape.model.rule_settings import Settings
from deltatape.wire.json_value import parse

_MOST_WORK = 1 << 25
"""Characters of a schema times those of a value, up to which it is compared here."""
_TYPES = frozenset({"string", "number", "integer", "boolean", "array", "object", "null", "any"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """A violation of the schema: the JSON path, what is wrong, and the keyword that says so."""

    path: str
    message: str
    keyword: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaResult:
    """The first violations, and a phrase for each thing that could not be checked."""

    violations: tuple[Violation, ...]
    unchecked: tuple[str, ...]


_FITS = SchemaResult(violations=(), unchecked=())


def validate_text(schema: Mapping[str, object], text: str, settings: Settings) -> SchemaResult:
    """Validate the JSON `text`, as `validate` does; text that is too long is not checked."""
    if len(text) > settings.schema_characters:
        limit = f"arguments of more than {settings.schema_characters} characters"
        return SchemaResult(violations=(), unchecked=(limit,))
    return validate(schema, parse(text).value, settings, len(text))


def validate(
    schema: Mapping[str, object], value: object, settings: Settings, size: int
) -> SchemaResult:
    """Validate `value` against `schema`, within the limits of `settings`.

    Args:
        schema: JSON Schema.
        value: from a JSON parser.
        settings: limits.
        size: characters of the JSON text of `value`.
    """
    if _surely_allows(schema, value, settings, size):
        return _FITS
    from deltatape.rules import _schema  # noqa: PLC0415 - see the module

    return _schema.validate(schema, value, settings, size)


def _surely_allows(
    schema: Mapping[str, object], value: object, settings: Settings, size: int
) -> bool:
    try:
        text = json.dumps(schema)
        return (
            len(text) <= settings.schema_characters
            and len(text) * size <= _MOST_WORK
            and _is_plain(text)
            and _allows(schema, value)
        )
    except (RecursionError, ValueError):  # too deep, a number that is too long
        return False


@lru_cache(maxsize=64)
def _is_plain(text: str) -> bool:
    """Return whether every draft reads the schema in the JSON `text` as `_allows` does."""
    pending = [json.loads(text)]
    while pending:
        one = pending.pop()
        if isinstance(one, bool):
            continue
        if not isinstance(one, dict) or not all(map(_is_plain_keyword, one.items())):
            return False
        pending += inner(one)
    return True


def _is_plain_keyword(item: tuple[str, object]) -> bool:
    key, value = item
    if key == "$schema":
        return isinstance(value, str) and value.startswith(_DRAFTS)
    if key == "items":
        return isinstance(value, dict)
    return key in _ANNOTATIONS or (key in _COMPARED and fits_keyword(item))


_DRAFTS = ("http://json-schema.org/draft-07/", "https://json-schema.org/draft/20")
_ANNOTATIONS = frozenset(
    {"title", "description", "default", "examples", "format", "nullable", "$comment", "deprecated"}
)
"""Keywords that reject nothing; `nullable` even allows more."""
_COMPARED = frozenset(
    {"type", "enum", "const", "anyOf", "properties", "required", "additionalProperties"}
    | {"minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems"}
)


def _allows(schema: Any, value: object) -> bool:
    """Return whether a plain schema allows `value`; False also if that would take more to tell."""
    if not isinstance(schema, Mapping):
        return schema is True
    types = schema.get("type")
    if types is not None and not any(
        _has_type(value, name) for name in (types if isinstance(types, list) else [types])
    ):
        return False
    if "anyOf" in schema and not any(_allows(each, value) for each in schema["anyOf"]):
        return False
    # Only strings are equal to the same values in Python and in JSON.
    if ("enum" in schema or "const" in schema) and not (
        isinstance(value, str)
        and value in schema.get("enum", (value,))
        and value == schema.get("const", value)
    ):
        return False
    if isinstance(value, dict):
        properties, others = schema.get("properties", {}), schema.get("additionalProperties", True)
        return all(name in value for name in schema.get("required", ())) and all(
            _allows(properties.get(name, others), item) for name, item in value.items()
        )
    if isinstance(value, list):
        return _is_within(schema, len(value), "minItems", "maxItems") and all(
            _allows(schema.get("items", True), item) for item in value
        )
    if isinstance(value, str):
        return _is_within(schema, len(value), "minLength", "maxLength")
    return not isinstance(value, int | float) or _is_within(schema, value, "minimum", "maximum")


def _is_within(schema: Mapping[str, Any], number: float, least: str, most: str) -> bool:
    low, high = schema.get(least, number), schema.get(most, number)
    return bool(low <= number <= high)


def _has_type(value: object, name: str) -> bool:
    if isinstance(value, bool):
        return name == "boolean"
    return isinstance(value, _CLASSES.get(name, ()))


_CLASSES: Mapping[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "array": list,
    "object": dict,
    "null": type(None),
}


# What values keywords have.


def fits_keyword(item: tuple[str, object]) -> bool:
    """Return whether the value of a keyword has the type that the keyword requires."""
    key, value = item
    form = _FORMS.get(key)
    return form is None or form(value)


def inner(schema: Mapping[str, object]) -> Iterator[object]:
    """Yield the schemas directly inside `schema`."""
    for key, value in schema.items():
        if key in _ONE or (key == "items" and not isinstance(value, list)):
            yield value
        elif key in _NAMED and isinstance(value, dict):
            yield from value.values()
        elif key in {*_LISTS, "items"} and isinstance(value, list):
            yield from value


def _is_type(value: object) -> bool:
    names = value if isinstance(value, list) else [value]
    return all(isinstance(name, str) and name in _TYPES for name in names)


def _is_names(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: object) -> bool:
    return _is_number(value) and isinstance(value, int | float) and value >= 0


def _is_bound(value: object) -> bool:
    return isinstance(value, int | float)


def _type_check(*kinds: type) -> Callable[[object], bool]:
    return lambda value: isinstance(value, kinds)


_ONE = frozenset(
    {"additionalProperties", "additionalItems", "not", "if", "then", "else", "contains"}
    | {"propertyNames"}
)
"""Keywords with a schema."""
_LISTS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
"""Keywords with an array of schemas."""
_NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
"""Keywords with schemas by name."""
_COUNTS = frozenset(
    {"minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"}
    | {"minContains", "maxContains"}
)
BOUNDS = frozenset({"exclusiveMinimum", "exclusiveMaximum"})
"""Numbers; in draft 4 they say whether `minimum` and `maximum` exclude."""
_FORMS: Mapping[str, Callable[[object], bool]] = {
    "type": _is_type,
    "enum": _type_check(list),
    "required": _is_names,
    "pattern": _type_check(str),
    "$ref": _type_check(str),
    "uniqueItems": _type_check(bool),
    "minimum": _is_number,
    "maximum": _is_number,
    "multipleOf": lambda value: _is_count(value) and value != 0,
    "items": _type_check(dict, bool, list),
    "dependentRequired": lambda value: (
        isinstance(value, dict) and all(map(_is_names, value.values()))
    ),
    **dict.fromkeys(BOUNDS, _is_bound),
    **dict.fromkeys(_COUNTS, _is_count),
    **dict.fromkeys(_ONE, _type_check(dict, bool)),
    **dict.fromkeys(_LISTS, _type_check(list)),
    **dict.fromkeys(_NAMED, _type_check(dict)),
}
