from collections.abc import Mapping
from dataclasses import replace

import pytest

from deltatape.rules._schema import Outcome, is_risky, validate
from deltatape.rules.settings import DEFAULTS


def outcome(schema: Mapping[str, object], value: object) -> Outcome:
    return validate(schema, value, DEFAULTS)


def test_violations_come_with_path_and_keyword() -> None:
    schema = {"properties": {"a": {"items": {"type": "integer"}}}}
    (violation,) = outcome(schema, {"a": [1, "x"]}).violations
    assert (violation.path, violation.keyword) == ("$.a[1]", "type")
    assert violation.message == "'x' is not of type 'integer'"


def test_references_are_resolved_inside_the_schema_and_never_fetched() -> None:
    inside: dict[str, object] = {"$ref": "#/$defs/n", "$defs": {"n": {"type": "integer"}}}
    outside: dict[str, object] = {"$ref": "http://127.0.0.1:1/schema.json"}
    assert outcome(inside, "x").violations
    assert outcome(inside, 1) == Outcome(violations=(), unchecked=())
    assert outcome(outside, 1).unchecked == ("a reference that leads nowhere inside the schema",)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "no such type"},
        {"required": "city"},
        {"$ref": 3},
        {"minimum": "a"},
        {"exclusiveMinimum": True},
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
    few = replace(DEFAULTS, schema_steps=1)
    assert validate(schema, {"a": 1}, few).unchecked == ("the schema takes too many steps",)


def test_unique_items_are_compared_as_json_and_in_one_pass() -> None:
    schema: dict[str, object] = {"uniqueItems": True}
    assert outcome(schema, [1, 1]).violations[0].message == "the items are not unique"
    assert not outcome(schema, [{"a": 1}, {"a": 2}]).violations
    assert not outcome(schema, "text").violations
    assert not outcome({"uniqueItems": False}, [1, 1]).violations


@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+b",
        "(a|a)*b",
        "a+b+c",
        "^a+b+c+",
        "a{30}b{1,40}",
        "^a{2,}b{3,}c{4,}",
        "a?a?a?a?a?aaaaa",
        "(?=a)b",
        "(a|b)(a|b)(a|b)",
        "a" * 300,
        "(",
        "\\p{L}",
        "a{99999999999999999999}",
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
        r"\(\)+",
    ],
)
def test_ordinary_patterns_are_not(pattern: str) -> None:
    assert not is_risky(pattern)


def test_patterns_that_are_not_risky_are_applied() -> None:
    assert outcome({"properties": {"a": {"pattern": "^x"}}}, {"a": "y"}).violations
    assert outcome({"patternProperties": {"^x": {"type": "string"}}}, {"xa": 1}).violations
    assert not outcome({"patternProperties": {"^x": {"type": "string"}}}, "text").violations


def test_risky_properties_are_left_out_with_what_depends_on_them() -> None:
    schema: dict[str, object] = {
        "patternProperties": {"(a+)+b": {"type": "string"}},
        "additionalProperties": False,
        "anyOf": [{"pattern": "(a+)+b"}],
    }
    result = outcome(schema, {"x": 1})
    assert result == Outcome(violations=(), unchecked=("patternProperties", "pattern '(a+)+b'"))


def test_what_looks_like_a_keyword_in_a_literal_is_none() -> None:
    schema: dict[str, object] = {"enum": [{"pattern": "(a+)+b"}]}
    assert outcome(schema, {"pattern": "(a+)+b"}) == Outcome(violations=(), unchecked=())


def test_a_long_text_costs_what_its_pattern_may_cost() -> None:
    schema: dict[str, object] = {"pattern": "^a+$"}
    assert outcome(schema, "a" * 10_000).unchecked == ("the schema takes too many steps",)
