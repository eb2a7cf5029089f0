"""Validation against the JSON Schema of a tool, which is as untrusted as the rest of a tape.

No reference is ever fetched: what is not in the schema itself does not exist. Work is capped (see
`_bounded_validator`), and so are sizes. An invalid schema is not used, however the library fails on
it. `nullable`, which OpenAPI adds, allows null. The default of a property is allowed there, and so
is its absence: the schema's author fills it in. What was not checked is reported.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple

import jsonschema
from jsonschema.protocols import Validator
from jsonschema.validators import validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable

from deltatape.model.rule_settings import Settings
from deltatape.rules._bounded_validator import (
    ACCOUNT,
    COPIED,
    BudgetUsedUpError,
    EvaluationBudget,
    metered,
    weigh,
)
from deltatape.wire.json_value import parse

_TYPES = frozenset({"string", "number", "integer", "boolean", "array", "object", "null", "any"})
_NEWEST: type[Validator] = jsonschema.Draft202012Validator
_WITH_TUPLES: type[Validator] = jsonschema.Draft7Validator
_WITH_FLAGS: type[Validator] = jsonschema.Draft4Validator


def draft_of(schema: object) -> type[Validator] | None:
    """Return the draft that `schema` is written in; None if it is not a schema.

    The drafts' meta-schemas would check more and take a hundred times longer; here only keywords
    with values that a validator would misread matter. Schemas seldom name their draft, and often a
    wrong one, so the draft is inferred from the keywords.

    Source: https://json-schema.org/draft/2020-12/json-schema-validation, and the migration guides.
    """
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
    """Return whether the value of a keyword has the type that the keyword requires."""
    key, value = item
    form = _FORMS.get(key)
    return form is None or form(value)


def _inner(schema: Mapping[str, object]) -> Iterator[object]:
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
_BOUNDS = frozenset({"exclusiveMinimum", "exclusiveMaximum"})
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
    **dict.fromkeys(_BOUNDS, _is_bound),
    **dict.fromkeys(_COUNTS, _is_count),
    **dict.fromkeys(_ONE, _type_check(dict, bool)),
    **dict.fromkeys(_LISTS, _type_check(list)),
    **dict.fromkeys(_NAMED, _type_check(dict)),
}


_MAX_ERRORS = 3
_REMEMBERED = 64
"""How many schemas are remembered."""
_MEMORABLE = 1 << 16
"""The longest of them, in characters."""
_INVALID = "the schema is invalid"
_TOO_MANY = "the schema takes too many steps"


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """A violation of the schema: the JSON path, what is wrong, and the keyword that says so."""

    path: str
    message: str
    keyword: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaResult:
    """The first violations, and a phrase for each part that could not be checked."""

    violations: tuple[Violation, ...]
    unchecked: tuple[str, ...]


class _Prepared(NamedTuple):
    """A schema ready to validate with."""

    checker: Validator
    schema: object
    """The schema as it is checked."""
    weights: dict[int, int]
    """The weights of its containers."""


def validate(
    schema: Mapping[str, object], value: object, settings: Settings, size: int | None = None
) -> SchemaResult:
    """Validate `value` against `schema`, within the limits of `settings`.

    Args:
        schema: JSON Schema.
        value: from a JSON parser.
        settings: limits.
        size: characters of the JSON text of `value`, if known.
    """
    try:
        return _validated(schema, value, settings, size)
    except Unresolvable:
        reason = "a reference that is not in the schema"
    except BudgetUsedUpError:
        reason = _TOO_MANY
    # The schema is untrusted, and the library trips over odd ones in many ways.
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        RecursionError,
        TypeError,
        ValueError,
    ) as error:
        reason = f"the schema cannot be used ({type(error).__name__})"
    return SchemaResult(violations=(), unchecked=(reason,))


def validate_text(schema: Mapping[str, object], text: str, settings: Settings) -> SchemaResult:
    """Validate the JSON `text`, as `validate` does; text that is too long is not checked."""
    if len(text) > settings.schema_characters:
        limit = f"arguments of more than {settings.schema_characters} characters"
        return SchemaResult(violations=(), unchecked=(limit,))
    return validate(schema, parse(text).value, settings, len(text))


def _validated(
    schema: Mapping[str, object], value: object, settings: Settings, size: int | None
) -> SchemaResult:
    text = json.dumps(schema)
    if len(text) > settings.schema_characters:
        reason = f"a schema of more than {settings.schema_characters} characters"
        return SchemaResult(violations=(), unchecked=(reason,))
    prepare = _prepared if len(text) <= _MEMORABLE else _prepared.__wrapped__
    prepared = prepare(text)
    if prepared is None:
        return SchemaResult(violations=(), unchecked=(_INVALID,))
    # No part of a short value costs a step: most arguments need no walk through them.
    short = size is not None and size < COPIED
    weights = prepared.weights if short else {**prepared.weights, **weigh(value)}
    account = EvaluationBudget(settings.schema_steps, weights)
    ACCOUNT.set(account)
    errors = prepared.checker.iter_errors(_json(value))
    real = (error for error in errors if not _is_by_default(error, prepared.schema))
    found = tuple(_violation(error) for error in islice(real, _MAX_ERRORS))
    return SchemaResult(violations=found, unchecked=tuple(account.unchecked))


def _json(value: object) -> Any:
    """Return `value`, from a JSON parser, typed as the library expects."""
    return value


def _violation(error: jsonschema.ValidationError) -> Violation:
    return Violation(path=error.json_path, message=error.message, keyword=str(error.validator))


@lru_cache(maxsize=_REMEMBERED)
def _prepared(text: str) -> _Prepared | None:
    """Prepare the schema in the JSON `text`; None if it is not a schema.

    Applications repeat their schemas.
    """
    schema = json.loads(text)
    draft = draft_of(schema)
    if draft is None:
        return None
    plain = _plain(schema)
    return _Prepared(metered(draft)(_json(plain), registry=Registry()), plain, weigh(plain))


def _is_by_default(error: jsonschema.ValidationError, schema: object) -> bool:
    """Return whether `error` rejects a value that the schema itself gives as a default."""
    if error.validator == "required":
        properties = error.schema.get("properties") if isinstance(error.schema, dict) else None
        missing = (properties or {}).items()
        return any(
            error.message.startswith(repr(name)) and _has_default(each) for name, each in missing
        )
    at = _along(schema, [*error.absolute_path])
    return any("default" in each and _same(each["default"], error.instance) for each in at)


def _has_default(schema: object) -> bool:
    return isinstance(schema, dict) and "default" in schema


def _same(one: object, other: object) -> bool:
    return type(one) is type(other) and one == other


def _along(schema: object, path: Sequence[str | int]) -> Iterator[dict[str, object]]:
    """Yield the schemas for the value at `path`, following properties and items."""
    at = schema
    for step in path:
        at = _resolved(schema, at)
        if not isinstance(at, dict):
            return
        inner = at.get("items") if isinstance(step, int) else at.get("properties")
        at = inner.get(step) if isinstance(inner, dict) and isinstance(step, str) else inner
    for each in (at, _resolved(schema, at)):
        if isinstance(each, dict):
            yield each


def _resolved(root: object, schema: object) -> object:
    """Resolve `schema` inside `root`, if it is only a reference."""
    where = schema.get("$ref") if isinstance(schema, dict) else None
    if not isinstance(where, str) or not where.startswith("#/"):
        return schema
    for step in where[2:].split("/"):
        root = root.get(step) if isinstance(root, dict) else None
    return root


def _plain(schema: object) -> object:
    """Copy `schema` without nested draft declarations; `nullable` and `any` as newer drafts do.

    The draft is chosen: another one inside would escape the metering.
    """
    if isinstance(schema, list):
        return [_plain(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    found = {
        key: _plain(item)
        for key, item in schema.items()
        if key != "$schema" or not isinstance(item, str)
    }
    kind, enum = found.get("type"), found.get("enum")
    if kind == "any" or (isinstance(kind, list) and "any" in kind):
        del found["type"]  # only draft 3 knows it
    elif schema.get("nullable") is True and isinstance(kind, str):
        found["type"] = [kind, "null"]
    if schema.get("nullable") is True and isinstance(enum, list):
        found["enum"] = [*enum, None]
    return found
