import jsonschema
import pytest

from deltatape.rules._drafts import draft_of


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
