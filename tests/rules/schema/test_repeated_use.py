"""Applications repeat their schemas: what is remembered of one validation changes no other."""

from dataclasses import replace

import pytest

from deltatape.rules._schema import SchemaResult, validate
from deltatape.rules.settings import DEFAULTS

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
