import json

import pytest

from deltatape.model.digest import DeliveredCall
from deltatape.model.reply import CallKind, CallStatus
from deltatape.model.request_summary import RepeatedCall
from deltatape.rules.edits import breaks_schema, explain
from deltatape.rules.repeated import MAX_DIFFERENCES, differences

SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "unit": {"enum": ["celsius", "kelvin"], "default": "celsius"},
        "days": {"type": "array", "items": {"properties": {"hour": {"default": 12}}}},
        "note": {"type": "string"},
        "place": {"type": "object", "properties": {"zip": {"default": "0"}}},
    },
    "required": ["city"],
}


def explained(
    one: object, other: object, *following: str, schema: dict[str, object] | None = SCHEMA
) -> str:
    """What explains the change of one value into the other; "" if nothing does."""
    delivered = DeliveredCall(
        index=0,
        id="c1",
        ids=("c1",),
        name="get",
        kind=CallKind.FUNCTION,
        arguments=json.dumps(one),
        fragments=(),
        status=CallStatus.COMPLETE,
    )
    repeated = RepeatedCall(id="c1", name="get", arguments=json.dumps(other))
    return explain(differences(delivered, repeated), schema, following) or ""


@pytest.mark.parametrize(
    ("one", "other", "says"),
    [
        ({}, {"unit": "celsius"}, "a default of the schema was filled in ($.unit)"),
        ({"unit": "celsius"}, {}, "a default of the schema was left out ($.unit)"),
        ({"days": [{}]}, {"days": [{"hour": 12}]}, "a default of the schema was filled in"),
        ({"place": {}}, {"place": {"zip": "0"}}, "a default of the schema was filled in"),
        ({}, {"note": None}, "an unset parameter was written out ($.note)"),
        ({"note": None}, {}, "an empty value was left out"),
        ({"note": ""}, {}, "an empty value was left out"),
        ({"extra": 7}, {}, "a field that the schema does not know was dropped ($.extra)"),
        ({"place": {"x": 7}}, {"place": {}}, "a field that the schema does not know was dropped"),
        ({"a": "3"}, {"a": 3}, "a value was converted to another type"),
        ({"a": 3}, {"a": "3"}, "a value was converted to another type"),
        ({"a": "yes"}, {"a": True}, "a value was converted to another type"),
        ({"a": False}, {"a": "off"}, "a value was converted to another type"),
        ({"a": "null"}, {"a": None}, "a value was converted to another type"),
        ({"a": 3}, {"a": [3]}, "a value was put into a list"),
        ({"a": [3]}, {"a": 3}, "a value was put into a list"),
        ({"a": '{"b":1}'}, {"a": {"b": 1}}, "a value was converted between JSON and its text"),
        ({"a": 9007199254740993}, {"a": 9007199254740992}, "digits beyond double precision"),
        (
            {"user_id": 7, "b_c": {"d": [1]}},
            {"userId": 7, "bC": {"d": [1]}},
            "members were renamed",
        ),
        ({"a": "Celsius "}, {"a": "celsius"}, "a text was normalised"),
        ({"a": "New_York"}, {"a": "new york"}, "a text was normalised"),
        ({"a": "caf\u00e9"}, {"a": "caf"}, "characters outside ASCII, or symbols, were removed"),
        ({"a": "\u00e9 \U0001f600"}, {"a": "\u00e9 "}, "characters outside ASCII, or symbols"),
        ({"a": "24/11/2026"}, {"a": "2026-11-24"}, "a date or number was written in another"),
        ({"a": [2, 1, 1]}, {"a": [1, 2]}, "a list was sorted or deduplicated"),
        ({"a": "x" * 99}, {"a": "xx... (97 characters)"}, "a long value was shortened"),
        ({"a": "x" * 99}, {"a": ["omitted"]}, "a long value was shortened"),
        ({"a": 1}, {"a": 1, "_": {"note": "truncated"}}, "a note about omitted content was added"),
    ],
)
def test_what_frameworks_and_histories_do_is_explained(
    one: object, other: object, says: str
) -> None:
    assert explained(one, other).startswith(says)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"city": "Gent"}, {"city": "Rome"}),
        ({"city": "Gent"}, {}),
        ({"a": 1}, {"a": 2}),
        ({"a": True}, {"a": 1}),
        ({"a": "3"}, {"a": 4}),
        ({"a": "x"}, {"a": 4}),
        ({"a": [1, 2]}, {"a": [1, 3]}),
        ({"a": 1}, {"a": 1, "b": "new"}),
        ({"a": {"b": 1}}, {"a": "other"}),
        ({"a": "one 1"}, {"a": "two 1"}),
    ],
)
def test_what_nothing_explains_is_left(one: object, other: object) -> None:
    assert explained(one, other) == ""


def test_every_difference_has_to_be_explained() -> None:
    both = {"city": "Rome", "unit": "celsius"}
    assert explained({"city": "Gent"}, both) == ""
    assert explained({"city": "Rome "}, both) == (
        "a text was normalised ($.city); a default of the schema was filled in ($.unit)"
    )


def test_without_a_schema_a_missing_field_is_a_change() -> None:
    assert explained({"a": 1, "b": 2}, {"a": 1}, schema=None) == ""
    assert explained({"a": 1, "b": 2}, {"a": 1}, schema={"type": "object"}) == ""


def test_what_follows_may_tell_of_an_edit() -> None:
    change = ({"city": "Gent"}, {"city": "Rome"})
    assert explained(*change, "", "Rome: 21 °C").startswith("what follows has the new value")
    assert explained(*change, "The user edited the call.").startswith("what follows says that")
    assert explained(*change, "From Gent to Rome") == ""
    assert explained({"a": 12}, {"a": 345}, "345 found").startswith("what follows has the new")
    assert explained({"city": "Gent"}, {}, "21 °C") == ""


def test_many_differences_are_no_edit() -> None:
    one = {f"k{at}": "3" for at in range(MAX_DIFFERENCES)}
    assert explained(one, dict.fromkeys(one, 3)) == ""


def test_what_the_schema_requires() -> None:
    assert breaks_schema(SCHEMA, "{}") is True
    assert breaks_schema(SCHEMA, "") is True
    assert breaks_schema(SCHEMA, "[1]") is True
    assert breaks_schema(SCHEMA, '{"city":"Gent"}') is False
    assert breaks_schema({"type": "object"}, "{}") is None
    assert breaks_schema(None, "{}") is None
