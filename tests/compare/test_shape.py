"""The form of a stream without its content."""

import json

import pytest

from deltatape.compare import recheck
from deltatape.compare.comparable_events import DEEPEST
from deltatape.compare.recheck import Shape, ShapeChange, shape_changes, shape_of
from helpers.chat import FINISH, choice
from helpers.compared import analysed, anthropic_stream, call, chat, words

CHUNK = "chat.completion.chunk"


def fields(**types: str) -> Shape:
    """Events of one kind with these fields, dots written as `__`."""
    return {"e": {path.replace("__", "."): frozenset(t.split()) for path, t in types.items()}}


def test_other_words_and_other_arguments_have_the_same_form() -> None:
    one = chat(*words("a", "b"), *call('{"city":', '"Rome"}'), FINISH)
    other = chat(*words("c"), *call('{"days": 3}'), FINISH)
    assert shape_changes(shape_of(one), shape_of(other)) == ()


def test_values_that_a_model_fills_in_freely_have_no_form() -> None:
    def part(arguments: object) -> Shape:
        parts = [{"functionCall": {"name": "f", "args": arguments}}]
        body = {"candidates": [{"content": {"parts": parts}}]}
        return shape_of(analysed(json.dumps(body).encode(), media="application/json"))

    assert part({"a": 1}) == part({"b": {"c": []}})
    assert "candidates.*.content.parts.*.functionCall.args" in part({})["document"]


def test_kinds_of_events_are_named_by_the_framing_or_by_themselves() -> None:
    one = anthropic_stream(
        'event: ping\ndata: {"type": "ping"}', 'data: {"type": "x"}', "data: [1]"
    )
    two = chat({"object": CHUNK}, {"a": 1}, "[DONE]", "x" * 30, done=False)
    assert set(shape_of(one)) == {"ping", "x", "[1]"}
    assert set(shape_of(two)) == {CHUNK, "event", "[DONE]", "text"}


def test_events_that_are_new_or_gone_are_reported_once() -> None:
    left: Shape = {"a": {}, "b": {}}
    right: Shape = {"b": {}, "c": {}}
    assert shape_changes(left, right) == (
        ShapeChange(kind="a", path="", left="present", right=""),
        ShapeChange(kind="c", path="", left="", right="present"),
    )


def test_fields_below_a_new_field_are_not_reported() -> None:
    left = fields(a="string")
    right = fields(a="string", b="object", b__c="array", b__c__x="number", d="boolean")
    changes = shape_changes(left, right)
    assert [(change.path, change.left, change.right) for change in changes] == [
        ("b", "", "object"),
        ("d", "", "boolean"),
    ]
    assert [change.path for change in shape_changes(right, left)] == ["b", "d"]


@pytest.mark.parametrize(
    ("left", "right", "told"),
    [
        ("string", "number", [("string", "number")]),
        ("null", "string", []),
        ("null string", "string", []),
        ("number string", "string", []),
        ("null number", "null string", [("null or number", "null or string")]),
    ],
)
def test_another_type_is_reported_and_null_fits_all(
    left: str, right: str, told: list[tuple[str, str]]
) -> None:
    changes = shape_changes(fields(a=left), fields(a=right))
    assert [(change.left, change.right) for change in changes] == told


def test_all_types_of_json_are_told_apart() -> None:
    chunk: dict[str, object] = {"a": None, "b": True, "c": 1, "d": 0.5, "e": {}, "f": [], "g": ""}
    types = shape_of(chat(chunk, done=False))["event"]
    assert ["".join(types[key]) for key in "abcdefg"] == [
        *("null", "boolean", "number", "number", "object", "array", "string")
    ]


def test_a_hostile_body_costs_no_more_than_others(monkeypatch: pytest.MonkeyPatch) -> None:
    deep = json.loads("[" * (DEEPEST + 5) + "]" * (DEEPEST + 5))
    assert shape_of(chat({"a": deep}, done=False)) == {"event": {}}
    monkeypatch.setattr(recheck, "MOST_FIELDS", 3)
    wide = shape_of(chat({str(number): 1 for number in range(9)}, {"0": 1}, done=False))
    assert len(wide["event"]) == 3


def test_a_chunk_of_another_type_changes_the_form() -> None:
    changes = shape_changes(
        shape_of(chat(choice({"content": "a"}), done=False)),
        shape_of(chat(choice({"content": ["a"]}), done=False)),
    )
    assert [(one.path, one.left, one.right) for one in changes] == [
        ("choices.*.delta.content", "string", "array"),
        ("choices.*.delta.content.*", "", "string"),
    ]
