"""JSON Schema validators with a bound on the work that they do.

Schemas and arguments are untrusted: a few lines can double the work with each level, compare each
item of a long list with each other, or use a regular expression that backtracks. Here every keyword
charges its work to a budget before it runs, and what cannot be bounded is not evaluated but noted
in the budget.

Source: https://json-schema.org/draft/2020-12/json-schema-core and -validation.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from fractions import Fraction
from functools import lru_cache
from typing import cast

import jsonschema
from jsonschema.protocols import Validator
from jsonschema.validators import extend

_LONGEST = 200
_MAX_WAYS = 64
"""The most ways to match optional and repeated parts."""
_MAX_GROUPS = 2
_ESCAPED = re.compile(r"\\.", re.DOTALL)
_CLASS = re.compile(r"\[\^?\]?[^\]]*\]")
_SET_OPERATION = re.compile(r"\[\^?\[|\[\^?\]?[^\]]*(?:--|&&|~~|\|\|)")
"""Syntax for set operations in other languages; Python warns about it."""
_LOOPS = re.compile(r"[*+]|\{\d*,\}")
_COUNTED = re.compile(r"\{(\d*),(\d+)\}")
_OPTIONAL = re.compile(r"(?<!\()\?")
_REPEATED = re.compile(r"\{(\d+)[,}]")
_RISKY = re.compile(r"\)[*+{]|\(\?[^:]|[*+?}][*+{]")
_MAX_REPEATED = 1000


@lru_cache(maxsize=1024)
def is_risky(pattern: str) -> bool:
    """Return whether `pattern` may backtrack badly, or is not a pattern that Python can compile.

    Judged by the pattern's source alone: the work is bounded by the parts that repeat without
    limit, and by the number of ways in which the rest can match. It errs on the side of refusing;
    ordinary patterns of schemas pass.
    """
    escaped = _ESCAPED.sub("x", pattern)
    if len(pattern) > _LONGEST or _SET_OPERATION.search(escaped):
        return True
    try:
        re.compile(pattern)
    except (re.error, ValueError, OverflowError, RecursionError):  # ValueError: flags of two kinds
        return True
    bare = _CLASS.sub("x", escaped)
    loops = len(_LOOPS.findall(bare))
    return (
        _RISKY.search(bare) is not None
        or loops > 1 + bare.startswith("^")
        or _match_count(bare) > _MAX_WAYS
        or any(int(least) > _MAX_REPEATED for least in _REPEATED.findall(bare))
        or (bare.count("|") > 0 and bare.count("(") > _MAX_GROUPS)
    )


def _match_count(bare: str) -> int:
    """Return an upper bound on the ways in which optional and counted parts can match."""
    ways = 1 << min(len(_OPTIONAL.findall(bare)), 10)
    for least, most in _COUNTED.findall(bare):
        ways *= max(1, int(most) - int(least or 0) + 1)
    return ways


COPIED = 500
"""How many characters can be copied or compared for one step."""
_PRICES = {"$ref": 5, "allOf": 10, "anyOf": 10, "oneOf": 10}
"""Steps where it is more than one; for each schema of a list: a validator is set up for each."""
_PATTERN = 20
"""Steps to compile an expression."""
_SQUARE = 1000
"""Pairs of characters that an expression looks at, at worst, at the price of a step."""
_BRANCHES = frozenset({"allOf", "anyOf", "oneOf"})
_UNBOUNDED = ("unevaluatedProperties", "unevaluatedItems", "$dynamicRef", "$recursiveRef")
"""Keywords for which the library walks the schema again, past every keyword's price."""
Keyword = Callable[[Validator, object, object, Mapping[str, object]], Iterator[object] | None]


class BudgetUsedUpError(Exception):
    """The evaluation budget is used up."""


class EvaluationBudget:
    """Counts the steps of a validation down, and notes what is not evaluated.

    Args:
        steps: more raise `BudgetUsedUpError`.
        weights: the results of `weigh` for the schema and for the value, together; those for the
            value may be left out if it is shorter than `COPIED`.
    """

    def __init__(self, steps: int, weights: Mapping[int, int]) -> None:
        self.unchecked: dict[str, None] = {}  # an ordered set of phrases
        self._left = steps
        self._weights = weights

    def charge(self, steps: int, *values: object) -> None:
        """Charge `steps`, and the cost of walking through or printing `values`."""
        for value in values:
            if isinstance(value, str):
                steps += len(value) // COPIED
            elif isinstance(value, dict | list):
                steps += len(value) + self._weights.get(id(value), 1) // COPIED
        self._left -= steps
        if self._left < 0:
            raise BudgetUsedUpError


ACCOUNT: ContextVar[EvaluationBudget] = ContextVar("ACCOUNT")
"""The budget of the validation in progress."""


def weigh(root: object) -> dict[int, int]:
    """Return the characters of each container in `root`, by the container's `id`."""
    weights: dict[int, int] = {}
    pending = [(root, False)]
    while pending:
        value, counted = pending.pop()
        if not isinstance(value, dict | list):
            continue
        inner = list(value.values()) if isinstance(value, dict) else value
        if counted:
            keys = sum(map(len, value)) if isinstance(value, dict) else 0
            weights[id(value)] = keys + sum(_weight(each, weights) for each in inner)
        else:
            pending.append((value, True))
            pending += [(each, False) for each in inner]
    return weights


def _weight(value: object, weights: Mapping[int, int]) -> int:
    if isinstance(value, str):
        return len(value)
    return weights.get(id(value), 1) if isinstance(value, dict | list) else 1


@lru_cache
def metered(base: type[Validator]) -> type[Validator]:
    """Return the validator class of a draft with metering added; building one is slow."""
    own: dict[str, Keyword] = {
        "pattern": _pattern,
        "patternProperties": _pattern_properties(base),
        "additionalProperties": _additional_properties(base),
        "uniqueItems": _unique_items,
        "multipleOf": _multiple_of,
        **dict.fromkeys(_UNBOUNDED, _allow_everything),
    }
    keywords = {**base.VALIDATORS, **{key: own[key] for key in own if key in base.VALIDATORS}}
    charged = {name: _charged(name, keyword) for name, keyword in keywords.items()}
    return cast("type[Validator]", extend(base, charged))  # type: ignore[no-untyped-call]


def _charged(name: str, keyword: Keyword) -> Keyword:
    price, branching, unbounded = _PRICES.get(name, 1), name in _BRANCHES, name in _UNBOUNDED

    def check(
        validator: Validator, value: object, instance: object, schema: Mapping[str, object]
    ) -> Iterator[object] | None:
        branches = len(value) if branching and isinstance(value, dict | list) else 1
        account = ACCOUNT.get()
        account.charge(price * branches, value, instance)
        if unbounded:
            account.unchecked[name] = None
        return keyword(validator, value, instance, schema)

    return check


def _allow_everything(*_: object) -> None:
    """Return a validator keyword that allows everything."""


def _allowed(pattern: object, *searched: str) -> bool:
    """Return whether `pattern` may be searched for within the budget; note it if not."""
    account = ACCOUNT.get()
    if not isinstance(pattern, str) or is_risky(pattern):
        account.unchecked[f"pattern {pattern!r:.200}"] = None
        return False
    account.charge(_PATTERN + sum(len(text) ** 2 for text in searched) // _SQUARE)
    return True


def _pattern(
    validator: Validator, pattern: object, instance: object, schema: Mapping[str, object]
) -> Iterator[object] | None:
    if not isinstance(instance, str) or not _allowed(pattern, instance):
        return None
    base: Keyword = jsonschema.Draft202012Validator.VALIDATORS["pattern"]
    return base(validator, pattern, instance, schema)


def _pattern_properties(base: type[Validator]) -> Keyword:
    original: Keyword = base.VALIDATORS.get("patternProperties", _allow_everything)

    def check(
        validator: Validator, patterns: object, instance: object, schema: Mapping[str, object]
    ) -> Iterator[object] | None:
        if not isinstance(instance, dict) or not isinstance(patterns, dict):
            return None
        names = [*instance]
        allowed = {key: patterns[key] for key in patterns if _allowed(key, *names)}
        return original(validator, allowed, instance, schema)

    return check


def _additional_properties(base: type[Validator]) -> Keyword:
    original: Keyword = base.VALIDATORS.get("additionalProperties", _allow_everything)

    def check(
        validator: Validator, wanted: object, instance: object, schema: Mapping[str, object]
    ) -> Iterator[object] | None:
        patterns = schema.get("patternProperties")
        # A property is additional if no pattern matches it: without the patterns nobody knows.
        names = [*instance] if isinstance(instance, dict) else []
        keys = patterns if isinstance(patterns, dict) else ()
        if names and not all(_allowed(key, *names) for key in keys):
            return None
        return original(validator, wanted, instance, schema)

    return check


def _unique_items(
    _: Validator, wanted: object, instance: object, __: Mapping[str, object]
) -> Iterator[object]:
    """Replace the library's check, which compares every item with every other."""
    if wanted is not True or not isinstance(instance, list):
        return
    if len({json.dumps(item, sort_keys=True) for item in instance}) < len(instance):
        yield jsonschema.ValidationError("the items are not unique")


def _multiple_of(
    _: Validator, step: object, instance: object, __: Mapping[str, object]
) -> Iterator[object]:
    """Replace the library's check, which divides binary fractions: 19.99 is a multiple of 0.01."""
    if not _is_number(step) or not _is_number(instance):
        return
    if (Fraction(str(instance)) / Fraction(str(step))).denominator != 1:
        yield jsonschema.ValidationError(f"{instance!r} is not a multiple of {step!r}")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
