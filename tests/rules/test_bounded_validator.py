from collections.abc import Mapping
from typing import Any

import jsonschema
import pytest
from referencing import Registry

from deltatape.rules._bounded_validator import (
    ACCOUNT,
    BudgetUsedUpError,
    EvaluationBudget,
    is_risky,
    metered,
    weigh,
)


@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+b",
        "(a|a)*b",
        "a+b+c",
        "^a+b+c+",
        "a{30}b{1,90}",
        "^a{2,}b{3,}c{4,}",
        "a?a?a?a?a?a?a?aaaaaaa",
        "(?=a)b",
        "(a|b)(a|b)(a|b)",
        "a" * 300,
        "(",
        "\\p{L}",
        "a{99999999999999999999}",
        "^" + "a{0,20}" * 15 + "b",
        "^" + "a{,90}" * 2 + "b",
        "a{,}b{,}",
        "a{2000}",
        "a{0,100}",
    ],
)
def test_patterns_that_may_backtrack_or_are_unknown_are_risky(pattern: str) -> None:
    assert is_risky(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        "^[a-z0-9_]+$",
        r"^\d{4}-\d{2}-\d{2}$",
        "^(red|green|blue)$",
        "^[^@]+@[^@]+$",
        "a?b",
        "a{30}b{1,40}",
        "^.{1,64}$",
        "^[a-z]{2}(-[A-Z]{2})?$",
        "^#[0-9a-fA-F]{6}$",
        r"\(\)+",
    ],
)
def test_ordinary_patterns_are_not(pattern: str) -> None:
    assert not is_risky(pattern)


DRAFTS = (
    jsonschema.Draft202012Validator,
    jsonschema.Draft7Validator,
    jsonschema.Draft4Validator,
    jsonschema.Draft3Validator,
)


def told(schema: Mapping[str, object], value: Any, draft: object = DRAFTS[0]) -> list[str]:
    """The messages of the violations, in order."""
    ACCOUNT.set(EvaluationBudget(20_000, value, weigh(schema)))
    base = next(each for each in DRAFTS if each is draft)
    return [
        error.message for error in metered(base)(schema, registry=Registry()).iter_errors(value)
    ]


def test_containers_weigh_what_is_in_them() -> None:
    inner: list[object] = ["abc", 1, None]
    outer = {"key": inner, "k": "xy"}
    assert weigh(outer) == {id(inner): 5, id(outer): 11}
    assert weigh("text") == {}


def test_an_account_pays_for_steps_entries_and_characters() -> None:
    value = ["x" * 5_000]
    account = EvaluationBudget(20, value, {})
    account.charge(1, value)
    account.charge(8)
    with pytest.raises(BudgetUsedUpError):
        account.charge(1)


@pytest.mark.parametrize("draft", DRAFTS)
def test_patterns_are_looked_for_where_they_may_be(draft: object) -> None:
    assert told({"pattern": "^x"}, "y", draft) == ["'y' does not match '^x'"]
    assert told({"pattern": "^x"}, "x", draft) == []
    assert told({"pattern": "^x"}, 7, draft) == []
    named = {"patternProperties": {"^x": {"type": "string"}}, "additionalProperties": False}
    assert told(named, {"xa": "1"}, draft) == []
    assert told(named, {"xa": 1}, draft) == ["1 is not of type 'string'"]
    assert told(named, {"a": 1}, draft) == ["'a' does not match any of the regexes: '^x'"]
    assert told(named, "text", draft) == []
    assert told({"patternProperties": 7}, {}, draft) == []


def test_a_risky_pattern_is_left_out_with_what_depends_on_it() -> None:
    named = {"patternProperties": {"(a+)+b": {"type": "string"}}, "additionalProperties": False}
    assert told(named, {"x": 1}) == []
    assert [*ACCOUNT.get().unchecked] == ["pattern '(a+)+b'"]
    assert told({"pattern": 7}, "x") == []
    assert [*ACCOUNT.get().unchecked] == ["pattern 7"]


def test_keywords_that_walk_the_schema_anew_are_left_out_and_noted() -> None:
    assert told({"unevaluatedProperties": False, "properties": {}}, {"a": 1}) == []
    assert [*ACCOUNT.get().unchecked] == ["unevaluatedProperties"]


def test_a_long_text_costs_what_its_pattern_may_cost() -> None:
    with pytest.raises(BudgetUsedUpError):
        told({"pattern": "^a+$"}, "a" * 10_000)


def test_unique_items_are_compared_as_json() -> None:
    assert told({"uniqueItems": True}, [1, 1]) == ["the items are not unique"]
    assert told({"uniqueItems": True}, [{"a": 1}, {"a": 2}]) == []
    assert told({"uniqueItems": True}, "text") == []
    assert told({"uniqueItems": False}, [1, 1]) == []


def test_multiples_are_counted_in_decimals() -> None:
    assert told({"multipleOf": 0.01}, 19.99) == []
    assert told({"multipleOf": 0.01}, 19.995) == ["19.995 is not a multiple of 0.01"]
    assert told({"multipleOf": 2}, 3) == ["3 is not a multiple of 2"]
    assert told({"multipleOf": 2}, "3") == []
    assert told({"multipleOf": "2"}, 3) == []
