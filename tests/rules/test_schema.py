import re
import time  # noqa: TID251 - what is computed is the point
import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from referencing import Registry

from deltatape.model.rule_settings import DEFAULTS
from deltatape.rules._bounded_validator import (
    ACCOUNT,
    BudgetUsedUpError,
    EvaluationBudget,
    is_risky,
    metered,
    weigh,
)
from deltatape.rules._schema import SchemaResult, draft_of, validate, validate_text


@pytest.mark.parametrize(
    ("schema", "draft"),
    [
        ({}, jsonschema.Draft202012Validator),
        (True, jsonschema.Draft202012Validator),
        ({"$schema": "https://example.com/own"}, jsonschema.Draft202012Validator),
        ({"$schema": "http://json-schema.org/draft-07/schema#"}, jsonschema.Draft7Validator),
        ({"$schema": 7}, jsonschema.Draft202012Validator),
        ({"not": {"items": [{}]}}, jsonschema.Draft7Validator),
        ({"allOf": [{"exclusiveMaximum": False}]}, jsonschema.Draft4Validator),
        ({"properties": {"a": {"items": {}}}}, jsonschema.Draft202012Validator),
        (
            {"$schema": "http://json-schema.org/draft-06/schema#", "items": [{}]},
            jsonschema.Draft6Validator,
        ),
    ],
)
def test_what_a_schema_is_made_of_tells_its_draft(schema: object, draft: object) -> None:
    assert draft_of(schema) is draft


@pytest.mark.parametrize(
    "schema",
    [
        None,
        [],
        "x",
        {"type": "text"},
        {"type": ["string", 1]},
        {"enum": {}},
        {"required": [1]},
        {"minLength": -1},
        {"minLength": True},
        {"maximum": "1"},
        {"multipleOf": 0},
        {"multipleOf": "1"},
        {"exclusiveMinimum": "1"},
        {"uniqueItems": 1},
        {"pattern": {}},
        {"properties": []},
        {"properties": {"a": None}},
        {"$defs": {"a": {"type": 1}}},
        {"anyOf": {}},
        {"anyOf": [1]},
        {"items": 1},
        {"items": [1]},
        {"not": []},
        {"dependentRequired": {"a": "b"}},
        {"dependentRequired": []},
    ],
)
def test_a_value_that_a_keyword_cannot_have_makes_no_schema(schema: object) -> None:
    assert draft_of(schema) is None


@pytest.mark.parametrize(
    "schema",
    [
        {"type": ["string", "null"], "enum": [None, {"type": 7}], "description": 3},
        {"minimum": 1.5, "exclusiveMinimum": 0, "multipleOf": 0.1, "maxItems": 3},
        {"prefixItems": [{}, True], "items": False, "contains": {}, "required": ["a"]},
        {"dependentRequired": {"a": ["b"]}, "uniqueItems": True, "const": {"type": 7}},
        {"properties": {"type": {"type": "string"}, "required": {"type": "boolean"}}},
    ],
)
def test_ordinary_schemas_are_schemas(schema: object) -> None:
    assert draft_of(schema) is jsonschema.Draft202012Validator


def outcome(schema: Mapping[str, object], value: object) -> SchemaResult:
    return validate(schema, value, DEFAULTS)


def test_violations_come_with_path_and_keyword() -> None:
    schema = {"properties": {"a": {"items": {"type": "integer"}}}}
    (violation,) = outcome(schema, {"a": [1, "x"]}).violations
    assert (violation.path, violation.keyword) == ("$.a[1]", "type")
    assert violation.message == "'x' is not of type 'integer'"


CITY = {
    "type": "object",
    "description": "a place",
    "required": ["city"],
    "additionalProperties": False,
    "properties": {
        "city": {"type": "string", "description": "its name"},
        "unit": {"type": "string", "enum": ["C", "F"]},
        "days": {"type": "integer", "format": "int32"},
        "height": {"type": ["number", "null"]},
        "tags": {"type": "array", "items": {"type": "string"}},
        "at": {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]},
    },
}


@pytest.mark.parametrize(
    ("text", "violated"),
    [
        ('{"city": "Gent"}', None),
        ('{"city": "Gent", "unit": "C", "days": 3, "height": null, "tags": []}', None),
        ('{"city": "Gent", "height": 8, "tags": ["a"], "at": {"x": 1, "y": {"z": 1}}}', None),
        ("{}", "required"),
        ("[]", "type"),
        ('{"city": 1}', "type"),
        ('{"city": "Gent", "more": 1}', "additionalProperties"),
        ('{"city": "Gent", "unit": "K"}', "enum"),
        ('{"city": "Gent", "days": true}', "type"),
        ('{"city": "Gent", "tags": ["a", 1]}', "type"),
        ('{"city": "Gent", "at": {}}', "required"),
    ],
)
def test_arguments_are_validated_as_text(text: str, violated: str | None) -> None:
    result = validate_text(CITY, text, DEFAULTS)
    assert [each.keyword for each in result.violations] == ([violated] if violated else [])
    assert result.unchecked == ()


def test_arguments_that_are_too_long_are_reported_as_unchecked() -> None:
    result = validate_text(CITY, '{"city": 1}', replace(DEFAULTS, schema_characters=5))
    assert result == SchemaResult(violations=(), unchecked=("arguments of more than 5 characters",))


def test_references_are_resolved_inside_the_schema_and_never_fetched() -> None:
    inside: dict[str, object] = {"$ref": "#/$defs/n", "$defs": {"n": {"type": "integer"}}}
    outside: dict[str, object] = {"$ref": "http://127.0.0.1:1/schema.json"}
    assert outcome(inside, "x").violations
    assert outcome(inside, 1) == SchemaResult(violations=(), unchecked=())
    assert outcome(outside, 1).unchecked == ("a reference that is not in the schema",)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "no such type"},
        {"required": "city"},
        {"$ref": 3},
        {"minimum": "a"},
    ],
)
def test_an_invalid_schema_is_not_used_and_that_is_said(schema: dict[str, object]) -> None:
    assert outcome(schema, {"a": 1}).unchecked == ("the schema is invalid",)


def test_a_schema_that_refers_to_itself_ends() -> None:
    assert outcome({"$ref": "#"}, {}).unchecked


def test_a_schema_that_doubles_its_work_with_each_level_gives_up() -> None:
    levels = {f"l{n}": {"allOf": [{"$ref": f"#/$defs/l{n + 1}"}] * 2} for n in range(40)}
    schema: dict[str, object] = {"$ref": "#/$defs/l0", "$defs": {**levels, "l40": {}}}
    assert outcome(schema, {}).unchecked == ("the schema takes too many steps",)


def test_a_draft_named_inside_does_not_escape_the_counting() -> None:
    draft = "http://json-schema.org/draft-07/schema#"
    schema: dict[str, object] = {"properties": {"a": {"$schema": draft, "type": "string"}}}
    few = replace(DEFAULTS, schema_steps=3)
    assert validate(schema, {"a": 1}, few).unchecked == ("the schema takes too many steps",)
    assert outcome(schema, {"a": 1}).violations


def test_a_property_may_be_called_as_a_keyword_is() -> None:
    names = ("$schema", "pattern", "patternProperties", "enum", "default", "nullable", "type")
    properties = {name: {"type": "string"} for name in names}
    schema = {"properties": properties, "additionalProperties": False}
    assert outcome(schema, dict.fromkeys(names, "x")) == SchemaResult(violations=(), unchecked=())
    assert len(outcome(schema, dict.fromkeys(names, 1)).violations) == 3


def test_nullable_allows_null() -> None:
    schema = {"type": "string", "enum": ["a"], "nullable": True}
    assert not outcome(schema, None).violations
    assert outcome(schema, "b").violations
    assert not outcome({"nullable": True}, None).violations


def test_any_allows_every_type() -> None:
    for schema in ({"type": "any"}, {"type": ["string", "any"]}):
        assert outcome({"properties": {"a": schema}}, {"a": 1}) == CLEAN


def test_older_drafts_are_read_without_being_named() -> None:
    assert outcome({"minimum": 1, "exclusiveMinimum": True}, 1).violations
    pair: dict[str, object] = {"items": [{"type": "string"}, {"type": "integer"}]}
    assert outcome(pair, ["a", "b"]).violations[0].path == "$[1]"
    assert outcome({"prefixItems": [{"type": "string"}]}, [1]).violations


def test_a_schema_nested_too_deep_cannot_be_used() -> None:
    deep: dict[str, object] = {}
    value: list[object] = []
    for _ in range(505):
        deep, value = {"items": deep}, [value]
    assert outcome(deep, value).unchecked == ("the schema cannot be used (RecursionError)",)


BIG = "x" * 150_000
TWICE = {f"l{n}": {"$ref": f"#/$defs/l{n + 1}"} for n in range(40)} | {"l40": {}}
LONELY = {
    f"l{n}": {**one, "$dynamicRef": f"#/$defs/l{n + 1}"} for n, one in enumerate(TWICE.values())
}
ATTACKS: list[tuple[dict[str, object], object]] = [
    ({"unevaluatedProperties": False, "$ref": "#/$defs/l0", "$defs": LONELY}, {"a": 1}),
    ({"properties": {"a": {"pattern": f"^{'a{0,20}' * 15}b"}}}, {"a": "a" * 60}),
    ({"properties": {"a": {"pattern": f"^{'a{,90}' * 20}b"}}}, {"a": "a" * 60}),
    ({"properties": {"default": {"pattern": "(a+)+b"}}}, {"default": "a" * 60}),
    ({"properties": {"a": {"$ref": "#/enum/0"}}, "enum": [{"pattern": "(a+)+b"}]}, {"a": "a" * 60}),
    ({"$ref": "#/const", "const": {"patternProperties": {"(a+)+b": True}}}, {"a" * 60: 1}),
    ({"enum": [{"a": n} if n % 2 else n for n in range(15_000)]}, {}),
    ({"uniqueItems": True}, [{"a": n} if n % 2 else n for n in range(15_000)]),
    ({"required": [str(n) for n in range(15_000)]}, {}),
    ({"anyOf": [False] * 20_000}, {}),
    ({"oneOf": [{}] * 20_000}, {}),
    ({"anyOf": [{"type": "string"}] * 9_000}, [[[BIG]]]),
    ({"items": {"items": {"anyOf": [{"not": {}}] * 12_000}}}, [[[BIG]]]),
    ({"contains": False}, list(range(40_000))),
    ({"patternProperties": {f"^a{n}{'[a-z]' * 10}$": {} for n in range(2_500)}}, {"a": 1}),
    (
        {"items": {"$ref": "#"}, "allOf": [{"items": {"$ref": "#"}}] * 2},
        [[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]],
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize("at", range(len(ATTACKS)))
def test_no_schema_takes_a_second_of_computing(at: int) -> None:
    schema, value = ATTACKS[at]
    # Not of the clock: what else the machine does counts there. None takes a tenth.
    started_s = time.thread_time()
    outcome(schema, value)
    assert time.thread_time() - started_s < 1


CLEAN = SchemaResult(violations=(), unchecked=())
SCHEMA: dict[str, object] = {"properties": {"a": {"type": "integer"}}}
FEW = replace(DEFAULTS, schema_steps=1)


def test_steps_that_one_validation_used_up_are_not_missing_in_the_next() -> None:
    for _ in range(3):
        assert validate(SCHEMA, {"a": 1}, FEW).unchecked == ("the schema takes too many steps",)
        assert validate(SCHEMA, {"a": 1}, DEFAULTS) == CLEAN


@pytest.mark.parametrize("padding", [0, 100_000], ids=["remembered", "too long to be remembered"])
def test_a_verdict_on_a_schema_is_the_same_each_time(padding: int) -> None:
    text = "x" * padding
    for _ in range(2):
        sound = {**SCHEMA, "description": text}
        assert validate(sound, {"a": 1}, DEFAULTS) == CLEAN
        assert validate(sound, {"a": ""}, DEFAULTS).violations
        broken = {"type": "no such type", "description": text}
        assert validate(broken, {}, DEFAULTS).unchecked == ("the schema is invalid",)


def test_the_same_schema_of_another_draft_is_judged_by_that_draft() -> None:
    siblings: dict[str, object] = {"$ref": "#/$defs/a", "type": "string", "$defs": {"a": {}}}
    draft7 = {"$schema": "http://json-schema.org/draft-07/schema#", **siblings}
    for _ in range(2):
        assert validate(draft7, 2, DEFAULTS) == CLEAN
        assert validate(siblings, 2, DEFAULTS).violations


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
        "(?a)(?u)x",
        "[[:alpha:]]",
        "[a-z&&x]",
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
        r"^[\[(]a[&|~-]$",
    ],
)
def test_ordinary_patterns_are_not(pattern: str) -> None:
    assert not is_risky(pattern)


@pytest.mark.slow
@given(st.text(st.sampled_from("a[]^-&|~\\(?:aLuims)"), max_size=12))
@settings(max_examples=300)
def test_no_pattern_fails_or_warns(pattern: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert is_risky(pattern) or re.compile(pattern)


DRAFTS = (
    jsonschema.Draft202012Validator,
    jsonschema.Draft7Validator,
    jsonschema.Draft4Validator,
    jsonschema.Draft3Validator,
)


def told(schema: Mapping[str, object], value: Any, draft: object = DRAFTS[0]) -> list[str]:
    """The messages of the violations, in order."""
    ACCOUNT.set(EvaluationBudget(20_000, {**weigh(schema), **weigh(value)}))
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
    account = EvaluationBudget(20, weigh(value))
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
