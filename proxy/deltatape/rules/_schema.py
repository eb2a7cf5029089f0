"""Validation against the JSON Schema of a tool, which is as untrusted as everything on a tape.

No reference is ever fetched: what is not in the schema itself does not exist. Work is capped (see
`_metered`), and so are sizes. A schema that is invalid is not used, whatever way the library trips
over it. `nullable`, which OpenAPI adds, allows null, and what a schema names as the default of a
property is allowed there, its absence too: who wrote the schema fills it in. What was left out or
given up is said, never silent.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple

import jsonschema
from jsonschema.protocols import Validator
from referencing import Registry
from referencing.exceptions import Unresolvable

from deltatape.rules._drafts import draft_of
from deltatape.rules._metered import ACCOUNT, Account, GaveUpError, metered, weigh
from deltatape.rules.settings import Settings

_MAX_ERRORS = 3
_REMEMBERED = 64
"""How many schemas are remembered."""
_MEMORABLE = 1 << 16
"""The longest of them, in characters."""
_INVALID = "the schema is invalid"
_TOO_MANY = "the schema takes too many steps"


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """What the schema does not allow: the JSON path, what is wrong, which keyword says so."""

    path: str
    message: str
    keyword: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The first violations, and what could not be checked and why, one phrase each."""

    violations: tuple[Violation, ...]
    unchecked: tuple[str, ...]


class _Prepared(NamedTuple):
    """A schema that validates."""

    checker: Validator
    schema: object
    """As it is checked."""
    weights: dict[int, int]
    """Of its containers."""


def validate(schema: Mapping[str, object], value: object, settings: Settings) -> Outcome:
    """What `schema` says against `value`, as far as `settings` allows to look."""
    try:
        return _validated(schema, value, settings)
    except Unresolvable:
        reason = "a reference that leads nowhere inside the schema"
    except GaveUpError:
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
    return Outcome(violations=(), unchecked=(reason,))


def _validated(schema: Mapping[str, object], value: object, settings: Settings) -> Outcome:
    text = json.dumps(schema)
    if len(text) > settings.schema_characters:
        reason = f"a schema of more than {settings.schema_characters} characters"
        return Outcome(violations=(), unchecked=(reason,))
    prepare = _prepared if len(text) <= _MEMORABLE else _prepared.__wrapped__
    prepared = prepare(text)
    if prepared is None:
        return Outcome(violations=(), unchecked=(_INVALID,))
    account = Account(settings.schema_steps, value, prepared.weights)
    ACCOUNT.set(account)
    errors = prepared.checker.iter_errors(_json(value))
    real = (error for error in errors if not _is_by_default(error, prepared.schema))
    found = tuple(_violation(error) for error in islice(real, _MAX_ERRORS))
    return Outcome(violations=found, unchecked=tuple(account.unchecked))


def _json(value: object) -> Any:
    """`value`, which comes from a JSON parser, as the library's types have it."""
    return value


def _violation(error: jsonschema.ValidationError) -> Violation:
    return Violation(path=error.json_path, message=error.message, keyword=str(error.validator))


@lru_cache(maxsize=_REMEMBERED)
def _prepared(text: str) -> _Prepared | None:
    """The schema `text`, a JSON text; None if it is none.

    Applications repeat their schemas.
    """
    schema = json.loads(text)
    draft = draft_of(schema)
    if draft is None:
        return None
    plain = _plain(schema)
    return _Prepared(metered(draft)(_json(plain), registry=Registry()), plain, weigh(plain))


def _is_by_default(error: jsonschema.ValidationError, schema: object) -> bool:
    """Whether what `error` refuses is what the schema itself names as a default."""
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
    """The schemas of the value at `path`, as far as properties and items lead there."""
    at = schema
    for step in path:
        at = _within(schema, at)
        if not isinstance(at, dict):
            return
        inner = at.get("items") if isinstance(step, int) else at.get("properties")
        at = inner.get(step) if isinstance(inner, dict) and isinstance(step, str) else inner
    for each in (at, _within(schema, at)):
        if isinstance(each, dict):
            yield each


def _within(root: object, schema: object) -> object:
    """What `schema` refers to inside `root`, if it only refers."""
    where = schema.get("$ref") if isinstance(schema, dict) else None
    if not isinstance(where, str) or not where.startswith("#/"):
        return schema
    for step in where[2:].split("/"):
        root = root.get(step) if isinstance(root, dict) else None
    return root


def _plain(schema: object) -> object:
    """A copy of `schema` without drafts named inside, and with what `nullable` means written out.

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
    if schema.get("nullable") is True and isinstance(kind, str):
        found["type"] = [kind, "null"]
    if schema.get("nullable") is True and isinstance(enum, list):
        found["enum"] = [*enum, None]
    return found
