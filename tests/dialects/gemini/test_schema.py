import pytest

from deltatape.dialects.gemini.schema import DEPTH_LIMIT, json_schema


@pytest.mark.parametrize(
    ("own", "standard"),
    [
        ({"type": "STRING"}, {"type": "string"}),
        ({"type": "object"}, {"type": "object"}),
        ({"type": 6}, {"type": "object"}),
        ({"type": 99}, {}),
        ({"type": "TYPE_UNSPECIFIED"}, {}),
        ({"type": {}}, {}),
        ({"type": ["STRING", "null"]}, {"type": ["string", "null"]}),
        ({"type": "STRING", "nullable": True}, {"type": ["string", "null"]}),
        ({"type": "STRING", "nullable": False}, {"type": "string"}),
        (
            {"type": "STRING", "enum": ["a"], "nullable": True},
            {"type": ["string", "null"], "enum": ["a", None]},
        ),
        (
            {"any_of": [{"type": "NUMBER"}], "nullable": True},
            {"anyOf": [{"type": "number"}, {"type": "null"}]},
        ),
        ({"nullable": True, "enum": [None]}, {"enum": [None]}),
        (
            {"minItems": "2", "maxLength": 3, "minLength": "x"},
            {"minItems": 2, "maxLength": 3, "minLength": "x"},
        ),
        (
            {
                "type": "OBJECT",
                "properties": {"type": {"type": "INTEGER"}, "x": 5},
                "required": ["type"],
            },
            {
                "type": "object",
                "properties": {"type": {"type": "integer"}, "x": 5},
                "required": ["type"],
            },
        ),
        ({"items": {"type": "BOOLEAN"}, "anyOf": 5}, {"items": {"type": "boolean"}, "anyOf": 5}),
        ({"additionalProperties": False}, {"additionalProperties": False}),
        ({"description": "d", "example": 1}, {"description": "d", "example": 1}),
    ],
)
def test_geminis_schemas_become_json_schema(
    own: dict[str, object], standard: dict[str, object]
) -> None:
    assert json_schema(own) == standard


def test_what_is_too_deep_allows_everything() -> None:
    schema: dict[str, object] = {"type": "STRING"}
    for _ in range(DEPTH_LIMIT + 5):
        schema = {"type": "ARRAY", "items": schema}
    found: object = json_schema(schema)
    depth = 0
    while isinstance(found, dict) and found:
        found, depth = found["items"], depth + 1
    assert depth == DEPTH_LIMIT
