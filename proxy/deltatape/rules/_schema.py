"""JSON Schema for untrusted schemas: nothing is fetched, and nothing can take long.

The jsonschema library does the validating. Around it:
- references are resolved inside the schema only, the registry is empty;
- each applied keyword costs steps, weighted with the size of what it compares, and validation gives
  up when they are used up;
- patterns that may backtrack, and patterns that Python does not know, are left out beforehand;
- a schema that is itself invalid is not used, whatever way the library trips over it.
What was left out or given up is said, never silent.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any, cast

import jsonschema
from jsonschema.protocols import Validator
from jsonschema.validators import extend, validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable

from deltatape.rules.settings import Settings

_MAX_ERRORS = 3
_MAX_PATTERN = 200
_MAX_OPTIONAL = 4
_MAX_COUNT = 20
_MAX_GROUPS = 2
# Literals, not schemas: what looks like a keyword in them is none.
_LITERALS = frozenset({"enum", "const", "default", "examples"})
# They depend on which properties the left-out pattern would have matched.
_NEEDS_PATTERNS = frozenset({"patternProperties", "additionalProperties", "unevaluatedProperties"})

_ESCAPED = re.compile(r"\\.", re.DOTALL)
_CLASS = re.compile(r"\[\^?\]?[^\]]*\]")
_UNBOUNDED = re.compile(r"[*+]|\{\d+,\}")
_COUNTED = re.compile(r"\{(\d+)(?:,(\d+))?\}")
_RISKY = re.compile(r"\)[*+{]|\(\?[^:]|[*+?}][*+{]")

_REMEMBERED = 64
"""How many schemas are known to be sound or not."""
_MEMORABLE = 1 << 16
"""The longest of them, in characters."""

_LEFT: ContextVar[list[int]] = ContextVar("_LEFT")
"""The steps that the validation under way may still take."""

_Keyword = Callable[[Validator, object, object, Mapping[str, object]], Iterator[object] | None]


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


class _GaveUpError(Exception):
    """The steps are used up."""


def validate(schema: Mapping[str, object], value: object, settings: Settings) -> Outcome:
    """What `schema` says against `value`, as far as `settings` allows to look."""
    unchecked: list[str] = []
    try:
        base = validator_for(schema, default=jsonschema.Draft202012Validator)
        text = json.dumps(schema)
        is_sound = _is_sound if len(text) <= _MEMORABLE else _is_sound.__wrapped__
        if not is_sound(base, text):
            return Outcome(violations=(), unchecked=("the schema is invalid",))
        tamed = _json(_tamed(schema, unchecked))
        checker = _counting(base)(tamed, registry=Registry())
        _LEFT.set([settings.schema_steps])
        errors = islice(checker.iter_errors(_json(value)), _MAX_ERRORS)
        found = tuple(_violation(error) for error in errors)
    except Unresolvable:
        reason = "a reference that leads nowhere inside the schema"
        return Outcome(violations=(), unchecked=(reason,))
    except _GaveUpError:
        return Outcome(violations=(), unchecked=("the schema takes too many steps",))
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
    return Outcome(violations=found, unchecked=tuple(unchecked))


def _json(value: object) -> Any:
    """`value`, which comes from a JSON parser, as the library's types have it."""
    return value


def _violation(error: jsonschema.ValidationError) -> Violation:
    return Violation(path=error.json_path, message=error.message, keyword=str(error.validator))


@lru_cache(maxsize=_REMEMBERED)
def _is_sound(base: type[Validator], schema: str) -> bool:
    """Whether `schema`, a JSON text, is valid by its draft: applications repeat theirs."""
    return base(base.META_SCHEMA).is_valid(json.loads(schema))


@lru_cache
def _counting(base: type[Validator]) -> type[Validator]:
    """`base` with every keyword charged to the account in `_LEFT`; making it takes long."""

    def charged(keyword: _Keyword) -> _Keyword:
        def check(
            validator: Validator, value: object, instance: object, schema: Mapping[str, object]
        ) -> Iterator[object] | None:
            left = _LEFT.get()
            left[0] -= 1 + _size(value) + _size(instance) + _searches(instance, schema)
            if left[0] < 0:
                raise _GaveUpError
            return keyword(validator, value, instance, schema)

        return check

    keywords = dict(base.VALIDATORS) | {"uniqueItems": _unique_items}
    counted = {name: charged(keyword) for name, keyword in keywords.items()}
    return cast("type[Validator]", extend(base, counted))  # type: ignore[no-untyped-call]


def _size(value: object) -> int:
    return len(value) // 8 if isinstance(value, dict | list | str) else 0


def _searches(instance: object, schema: Mapping[str, object]) -> int:
    """The steps of the regular expressions of `schema` over `instance`: quadratic at worst."""
    if isinstance(instance, str):
        return len(instance) ** 2 // 1000 if "pattern" in schema else 0
    patterns = schema.get("patternProperties")
    if not isinstance(instance, dict) or not isinstance(patterns, dict):
        return 0
    return len(patterns) * sum(len(key) ** 2 for key in instance) // 1000


def _unique_items(
    _: Validator, wanted: object, instance: object, __: Mapping[str, object]
) -> Iterator[object]:
    """The library's own check compares every item with every other."""
    if wanted is not True or not isinstance(instance, list):
        return
    if len({json.dumps(item, sort_keys=True) for item in instance}) < len(instance):
        yield jsonschema.ValidationError("the items are not unique")


def _tamed(schema: object, unchecked: list[str]) -> object:
    """A copy of `schema` without the patterns that may not be run; names them in `unchecked`."""
    if isinstance(schema, list):
        return [_tamed(item, unchecked) for item in schema]
    if not isinstance(schema, dict):
        return schema
    dropped = {"$schema"}  # the draft is chosen: another one inside would escape the counting
    pattern = schema.get("pattern")
    if isinstance(pattern, str) and is_risky(pattern):
        dropped.add("pattern")
        unchecked.append(f"pattern {pattern!r}")
    by_pattern = schema.get("patternProperties")
    if isinstance(by_pattern, dict) and any(is_risky(key) for key in by_pattern):
        dropped |= _NEEDS_PATTERNS
        unchecked.append("patternProperties")
    return {
        key: item if key in _LITERALS else _tamed(item, unchecked)
        for key, item in schema.items()
        if key not in dropped
    }


def is_risky(pattern: str) -> bool:
    """Whether `pattern` may backtrack badly, or is none that Python knows. Rather too often."""
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        return True
    bare = _CLASS.sub("x", _ESCAPED.sub("x", pattern))
    loops = len(_UNBOUNDED.findall(bare))
    loops += sum(int(most or least) > _MAX_COUNT for least, most in _COUNTED.findall(bare))
    return (
        len(pattern) > _MAX_PATTERN
        or _RISKY.search(bare) is not None
        or loops > 1 + bare.startswith("^")
        or bare.count("?") - bare.count("(?") > _MAX_OPTIONAL
        or (bare.count("|") > 0 and bare.count("(") > 2)  # noqa: PLR2004 - each may double the paths
    )
