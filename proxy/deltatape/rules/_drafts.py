"""Whether a JSON value has the form of a schema, and which draft of JSON Schema it is written in.

The drafts' own schemas would tell more and take a hundred times longer; what matters here is that
no keyword has a value that a validator would misread. Schemas seldom name their draft, and often a
wrong one: what they are made of decides.

Source: https://json-schema.org/draft/2020-12/json-schema-validation, and the migration guides.
"""

from collections.abc import Callable, Iterator, Mapping

import jsonschema
from jsonschema.protocols import Validator
from jsonschema.validators import validator_for

_TYPES = frozenset({"string", "number", "integer", "boolean", "array", "object", "null", "any"})
_NEWEST: type[Validator] = jsonschema.Draft202012Validator
_WITH_TUPLES: type[Validator] = jsonschema.Draft7Validator
_WITH_FLAGS: type[Validator] = jsonschema.Draft4Validator


def draft_of(schema: object) -> type[Validator] | None:
    """The draft that `schema` is to be read in; None if it is no schema."""
    found = _NEWEST
    if isinstance(schema, dict) and isinstance(schema.get("$schema"), str):
        found = validator_for(schema, default=_NEWEST)
    pending = [schema]
    while pending:
        one = pending.pop()
        if isinstance(one, bool):
            continue
        if not isinstance(one, dict) or not all(map(_fits, one.items())):
            return None
        if any(isinstance(one.get(key), bool) for key in _BOUNDS):
            found = _WITH_FLAGS
        elif isinstance(one.get("items"), list) and found is _NEWEST:
            found = _WITH_TUPLES
        pending += _inner(one)
    return found


def _fits(item: tuple[str, object]) -> bool:
    """Whether the value of a keyword is of the form that the keyword asks for."""
    key, value = item
    form = _FORMS.get(key)
    return form is None or form(value)


def _inner(schema: Mapping[str, object]) -> Iterator[object]:
    """The schemas right inside `schema`."""
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


def _is(*kinds: type) -> Callable[[object], bool]:
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
_BOUNDS = frozenset({"exclusiveMinimum", "exclusiveMaximum"})
"""Numbers; in draft 4 they say whether `minimum` and `maximum` exclude."""
_FORMS: Mapping[str, Callable[[object], bool]] = {
    "type": _is_type,
    "enum": _is(list),
    "required": _is_names,
    "pattern": _is(str),
    "$ref": _is(str),
    "uniqueItems": _is(bool),
    "minimum": _is_number,
    "maximum": _is_number,
    "multipleOf": lambda value: _is_count(value) and value != 0,
    "items": _is(dict, bool, list),
    "dependentRequired": lambda value: (
        isinstance(value, dict) and all(map(_is_names, value.values()))
    ),
    **dict.fromkeys(_BOUNDS, _is_bound),
    **dict.fromkeys(_COUNTS, _is_count),
    **dict.fromkeys(_ONE, _is(dict, bool)),
    **dict.fromkeys(_LISTS, _is(list)),
    **dict.fromkeys(_NAMED, _is(dict)),
}
