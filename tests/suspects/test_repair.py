import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltatape.suspects.repair import repaired


@pytest.mark.parametrize(
    ("text", "closed", "whole_members"),
    [
        ('{"a":', {}, {}),
        ('{"a":1,"b":"xy', {"a": 1, "b": "xy"}, {"a": 1}),
        ('{"a":{"b":[1,2', {"a": {"b": [1, 2]}}, {"a": {"b": [1]}}),
        ('{"a":"\\"{', {"a": '"{'}, {}),
        ("}}", {}, {}),
        ('{"a":[1],"b":tru', {"a": [1]}, {"a": [1]}),
    ],
)
def test_both_schools_close_what_is_open(text: str, closed: object, whole_members: object) -> None:
    assert json.loads(repaired(text, whole_members=False)) == closed
    assert json.loads(repaired(text, whole_members=True)) == whole_members


@settings(max_examples=60)
@given(st.text(alphabet='{}[],:"\\a1 ', max_size=40), st.booleans())
def test_any_text_becomes_json(text: str, whole: bool) -> None:  # noqa: FBT001
    json.loads(repaired(text, whole_members=whole))
