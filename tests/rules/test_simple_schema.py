import json
from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from deltatape.rules._schema import SchemaResult, validate
from deltatape.rules._simple_schema import simple, surely_allows
from deltatape.rules.settings import DEFAULTS

CLEAN = SchemaResult(violations=(), unchecked=())
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
    "value",
    [
        {"city": "Gent"},
        {"city": "Gent", "unit": "C", "days": 3, "height": None, "tags": [], "at": {"x": 0.5}},
        {"city": "Gent", "height": 8, "tags": ["a", "b"], "at": {"x": 1, "y": {"z": 1}}},
    ],
)
def test_what_fits_is_surely_allowed(value: object) -> None:
    fits = simple(CITY)
    assert fits is not None
    assert fits(value)
    assert validate(CITY, value, DEFAULTS) == CLEAN


@pytest.mark.parametrize(
    "value",
    [
        {},
        [],
        {"city": 1},
        {"city": "Gent", "more": 1},
        {"city": "Gent", "unit": "K"},
        {"city": "Gent", "unit": 1},
        {"city": "Gent", "days": True},
        {"city": "Gent", "days": "3"},
        {"city": "Gent", "tags": "a"},
        {"city": "Gent", "tags": ["a", 1]},
        {"city": "Gent", "at": {}},
    ],
)
def test_what_does_not_fit_is_left_to_the_library(value: object) -> None:
    fits = simple(CITY)
    assert fits is not None
    assert not fits(value)
    assert validate(CITY, value, DEFAULTS).violations


@pytest.mark.parametrize(
    "schema",
    [
        True,
        {},
        {"enum": ["a"]},
        {"type": "any"},
        {"type": ["string", "array"]},
        {"type": "string", "pattern": "a"},
        {"type": "string", "enum": ["a", 1]},
        {"type": "object", "required": [1]},
        {"type": "array"},
        {"type": "array", "items": True},
        {"type": "array", "items": {"type": "array"}},
        {"type": "array", "items": {"type": "string", "minLength": 1}},
        {"type": "object", "properties": {"a": {"$ref": "#"}}},
        {"type": "object", "properties": []},
        {"type": "object", "required": True},
        {"type": "object", "additionalProperties": {"type": "string"}},
        {"type": "object", "minProperties": 1},
    ],
)
def test_other_schemas_are_not_simple(schema: object) -> None:
    assert simple(schema) is None


def test_only_what_is_short_and_within_the_settings_is_quick() -> None:
    city = {"city": "Gent"}
    assert surely_allows(CITY, city, 15, DEFAULTS)
    assert not surely_allows(CITY, {}, 2, DEFAULTS)
    assert not surely_allows(CITY, city, 2500, DEFAULTS)
    assert not surely_allows(CITY, city, 15, replace(DEFAULTS, schema_steps=3))
    assert not surely_allows(CITY, city, 15, replace(DEFAULTS, schema_characters=20))
    assert not surely_allows({"minProperties": 1}, city, 15, DEFAULTS)


def test_only_drafts_that_agree_are_quick() -> None:
    for draft, quick in (
        ("https://json-schema.org/draft/2020-12/schema", True),
        ("http://json-schema.org/draft-07/schema#", True),
        ("http://json-schema.org/draft-03/schema#", False),
    ):
        assert surely_allows({**CITY, "$schema": draft}, {"city": "a"}, 12, DEFAULTS) is quick


NAMES = st.sampled_from(["a", "b", "type", "title", "required", "properties"])
SCALARS = st.sampled_from(["string", "integer", "number", "boolean", "null"])
PLAIN: st.SearchStrategy[dict[str, object]] = st.one_of(
    st.fixed_dictionaries({"type": SCALARS}, optional={"description": st.text(max_size=20)}),
    st.fixed_dictionaries({"type": SCALARS}, optional={"nullable": st.booleans()}),
    st.fixed_dictionaries({"type": st.lists(SCALARS, min_size=1, max_size=2)}),
    st.fixed_dictionaries(
        {"type": st.just("string"), "enum": st.lists(st.sampled_from("ab"), min_size=1)}
    ),
    st.fixed_dictionaries(
        {"type": st.just("array"), "items": st.fixed_dictionaries({"type": SCALARS})}
    ),
)
SCHEMAS = st.recursive(
    PLAIN,
    lambda inner: st.fixed_dictionaries(
        {"type": st.just("object")},
        optional={
            "properties": st.dictionaries(NAMES, inner, max_size=3),
            "required": st.lists(NAMES, max_size=2, unique=True),
            "additionalProperties": st.booleans(),
            "default": st.lists(st.integers(), max_size=3),
        },
    ),
    max_leaves=5,
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.just(1.5) | st.sampled_from("abc"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=60, deadline=None)
@given(SCHEMAS, VALUES)
@example({"type": "object"}, {"a": [[[1, 2, 3]]]})
@example(CITY, {"city": "Gent" * 300, "tags": ["a"] * 200})
def test_the_library_agrees_at_the_price_that_is_promised(
    schema: dict[str, object], value: object
) -> None:
    characters = len(json.dumps(value))
    within = replace(DEFAULTS, schema_steps=8 * (len(json.dumps(schema)) + characters))
    if surely_allows(schema, value, characters, within):
        assert validate(schema, value, within) == CLEAN
