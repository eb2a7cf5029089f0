"""What is said without the library is what the library says."""

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltatape.model.rule_settings import DEFAULTS
from deltatape.rules import _plain_schema, _schema
from deltatape.rules._plain_schema import SchemaResult, validate, validate_text

FITS = SchemaResult(violations=(), unchecked=())
DRAFT_7 = "http://json-schema.org/draft-07/schema#"
CITY: Mapping[str, object] = {
    "$schema": DRAFT_7,
    "type": "object",
    "description": "a place",
    "required": ["city"],
    "additionalProperties": False,
    "properties": {
        "city": {"type": "string", "minLength": 1, "maxLength": 80, "description": "its name"},
        "unit": {"type": "string", "enum": ["C", "F"], "default": "C"},
        "days": {"type": "integer", "format": "int32", "minimum": 1, "maximum": 14},
        "height": {"anyOf": [{"type": "number"}, {"type": "null"}]},
        "tags": {"type": "array", "items": {"type": ["string", "null"]}, "maxItems": 3},
        "at": {"type": "object", "additionalProperties": {"type": "number"}},
        "kind": {"const": "city"},
        "any": True,
    },
}


def of_library(schema: Mapping[str, object], value: object) -> SchemaResult:
    return _schema.validate(schema, value, DEFAULTS, len(json.dumps(value)))


def of_both(schema: Mapping[str, object], value: object) -> SchemaResult:
    return validate(schema, value, DEFAULTS, len(json.dumps(value)))


PLAIN: list[object] = [
    {"city": "Gent"},
    {"city": "Gent", "unit": "C", "days": 14, "height": None, "tags": ["a", None]},
    {"city": "Gent", "height": 8.5, "at": {"x": 1, "y": 2.5}, "kind": "city", "any": [{}]},
]
OTHERS: list[object] = [
    None,
    [],
    {},
    {"city": ""},
    {"city": "x" * 81},
    {"city": 1},
    {"city": "Gent", "more": 1},
    {"city": "Gent", "unit": "K"},
    {"city": "Gent", "unit": 1},
    {"city": "Gent", "days": True},
    {"city": "Gent", "days": 0},
    {"city": "Gent", "days": 15},
    {"city": "Gent", "days": 1.5},
    {"city": "Gent", "height": "8"},
    {"city": "Gent", "tags": ["a", 1]},
    {"city": "Gent", "tags": ["a"] * 4},
    {"city": "Gent", "at": {"x": "1"}},
    {"city": "Gent", "kind": "town"},
    {"city": "Gent", "kind": 1},
]


@pytest.mark.parametrize("value", PLAIN)
def test_ordinary_arguments_fit_an_ordinary_schema_without_the_library(value: object) -> None:
    assert of_library(CITY, value) == FITS
    with pytest.MonkeyPatch.context() as patch:
        patch.delattr(_schema, "validate")
        assert of_both(CITY, value) == FITS


@pytest.mark.parametrize("value", OTHERS)
def test_what_may_not_fit_is_left_to_the_library(value: object) -> None:
    result = of_both(CITY, value)
    assert result.violations
    assert result == of_library(CITY, value)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "any"}, 1),
        ({"items": [{"type": "string"}]}, ["a"]),
        ({"$schema": "http://json-schema.org/draft-04/schema#"}, 1),
        ({"$schema": 1}, 1),
        ({"properties": {"absent": {"type": "strng"}}}, {}),
        ({"properties": {"absent": 7}}, {}),
        ({"pattern": "a"}, "a"),
        ({"enum": [1]}, 1),
        ({"const": 1}, 1),
        ({"const": True}, 1),
        ({"enum": [True]}, 1),
        ({"minimum": float("nan")}, 1),
        ({"minimum": 1}, float("nan")),
        ({"minItems": 1.5}, [1]),
        ({"nullable": True, "type": "string"}, None),
        ({"minimum": 10**5000}, 1),
    ],
)
def test_what_is_not_plain_is_left_to_the_library(
    schema: Mapping[str, object], value: object
) -> None:
    assert validate(schema, value, DEFAULTS, 4) == _schema.validate(schema, value, DEFAULTS, 4)


def test_limits_hold_as_they_do_for_the_library() -> None:
    few = replace(DEFAULTS, schema_characters=5)
    assert validate_text(CITY, "{}", few).unchecked == ("a schema of more than 5 characters",)
    assert validate_text(CITY, '{"city": "Gent"}', few).unchecked == (
        "arguments of more than 5 characters",
    )
    deep: dict[str, object] = {}
    value: list[object] = []
    for _ in range(2000):
        deep, value = {"items": deep}, [value]
    assert validate(deep, value, DEFAULTS, 4000).unchecked == (
        "the schema cannot be used (RecursionError)",
    )


def test_a_large_product_of_schema_and_value_is_left_to_the_budget_of_the_library() -> None:
    schema = {"items": {"anyOf": [{"type": "string"}] * 9_000}}
    value = [0] * 20_000
    assert of_both(schema, value).unchecked == ("the schema takes too many steps",)


KEYWORDS = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(
            ["string", "integer", "number", "null", "boolean", "any", ["null"]]
        ),
        "enum": st.lists(st.sampled_from(["a", "b", 1, True, None]), max_size=3),
        "const": st.sampled_from(["a", 1, None]),
        "minimum": st.integers(-1, 2),
        "maximum": st.sampled_from([0, 1.5, "x"]),
        "minLength": st.integers(-1, 2),
        "maxLength": st.integers(0, 2),
        "nullable": st.booleans(),
        "default": st.sampled_from(["a", 1]),
        "title": st.just("t"),
        "pattern": st.just("a"),
    },
)
SCHEMAS = st.recursive(
    KEYWORDS | st.booleans(),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(["object", "array", ["object", "null"], ["array", "string"]]),
            "properties": st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
            "required": st.lists(st.sampled_from("abc"), max_size=2),
            "additionalProperties": inner,
            "items": inner,
            "minItems": st.integers(0, 2),
            "maxItems": st.integers(0, 2),
            "anyOf": st.lists(inner, max_size=2),
        },
    ),
    max_leaves=6,
)
VALUES = st.recursive(
    st.sampled_from(["", "a", "b", "abc", 0, 1, 1.0, 1.5, True, False, None]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcd"), inner, max_size=3)
    ),
    max_leaves=5,
)


@given(SCHEMAS.filter(lambda schema: isinstance(schema, dict)), VALUES)
def test_both_say_the_same_of_any_schema_and_value(
    schema: Mapping[str, object], value: object
) -> None:
    assert of_both(schema, value) == of_library(schema, value)


def test_the_library_is_not_imported_for_what_fits() -> None:
    code = (
        "import sys; from deltatape.model.rule_settings import DEFAULTS\n"
        f"from deltatape.rules._plain_schema import validate\n"
        f"print(validate({dict(CITY)}, {PLAIN[1]}, DEFAULTS, 80), 'jsonschema' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert result.stdout.decode().strip() == f"{FITS} False"


def test_every_plain_keyword_is_one_that_the_library_knows_or_ignores() -> None:
    assert _plain_schema._COMPARED.isdisjoint(_plain_schema._ANNOTATIONS)
