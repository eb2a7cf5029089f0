import pytest

from deltatape.errors import UsageError
from deltatape.wire.json_path import (
    PLACE_LIMIT,
    PlaceStep,
    Step,
    Wildcard,
    drop,
    parse_path,
    parse_place,
)

ANY, DEEP = Wildcard.ANY, Wildcard.DEEP


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("a", ("a",)),
        ("$.a", ("a",)),
        ("a.b", ("a", "b")),
        ("a.0.b", ("a", "0", "b")),
        ("$.a[0].b", ("a", 0, "b")),
        ("a[-1]", ("a", -1)),
        ("a[*].b", ("a", ANY, "b")),
        ("a.*.b", ("a", ANY, "b")),
        ("*", (ANY,)),
        ("[0]", (0,)),
        ("$['a.b'][\"c'd\"]", ("a.b", "c'd")),
        ("$..id", (DEEP, "id")),
        ("..id", (DEEP, "id")),
        ("a..b", ("a", DEEP, "b")),
        ("a..[0]", ("a", DEEP, 0)),
        ("$..*", (DEEP, ANY)),
        ("cache-control.x_y", ("cache-control", "x_y")),
    ],
)
def test_paths_are_read_into_steps(text: str, steps: tuple[Step, ...]) -> None:
    assert parse_path(text) == steps


@pytest.mark.parametrize(
    "text",
    ["", "$", ".", "..", "$..", "a.", "a..", "a[", "a[]", "a[x]", "a[01]", "a[1:2]", "$a.b["],
)
def test_an_invalid_path_is_reported(text: str) -> None:
    with pytest.raises(UsageError, match="not a path; metadata"):
        parse_path(text)


@pytest.mark.parametrize(
    ("path", "left"),
    [
        ("a", {"b": [{"a": 2}, {"a": 3, "c": [{"a": 4}]}]}),
        ("b[*].a", {"a": 1, "b": [{}, {"c": [{"a": 4}]}]}),
        ("b[0].a", {"a": 1, "b": [{}, {"a": 3, "c": [{"a": 4}]}]}),
        ("b.1.a", {"a": 1, "b": [{"a": 2}, {"c": [{"a": 4}]}]}),
        ("b[-1].c[0].a", {"a": 1, "b": [{"a": 2}, {"a": 3, "c": [{}]}]}),
        ("..a", {"b": [{}, {"c": [{}]}]}),
        ("b..a", {"a": 1, "b": [{}, {"c": [{}]}]}),
        ("b[0]", {"a": 1, "b": [None, {"a": 3, "c": [{"a": 4}]}]}),
        ("b[*]", {"a": 1, "b": [None, None]}),
        ("*", {}),
        ("b[7].a", None),
        ("a.x", None),
        ("b.x", None),
        ("b['0']['x']", None),
        ("[0]", None),
    ],
)
def test_the_value_at_a_path_is_removed(path: str, left: object) -> None:
    whole = {"a": 1, "b": [{"a": 2}, {"a": 3, "c": [{"a": 4}]}]}
    value = {"a": 1, "b": [{"a": 2}, {"a": 3, "c": [{"a": 4}]}]}
    drop(value, parse_path(path))
    assert value == (whole if left is None else left)


@pytest.mark.parametrize(
    ("path", "steps"),
    [
        ("$.location", ("location",)),
        ("$.a[0].b", ("a", 0, "b")),
        ("$['a b'][ 12 ]", ("a b", 12)),
        ('$["a.b"]["c[0]"]', ("a.b", "c[0]")),
        (r"$['it\'s']['say \"hi\"']", ("it's", 'say "hi"')),
        ("$['say \"hi\"']", ('say "hi"',)),
        (r'$["\ud83d\ude00\n"]', ("\U0001f600\n",)),
        ("$.größe.名", ("größe", "名")),
        ("$['']", ("",)),
        ("location.city", ("location", "city")),
        ("[0]", (0,)),
    ],
)
def test_a_path_to_one_value_is_read(path: str, steps: tuple[PlaceStep, ...]) -> None:
    assert parse_place(path) == steps


@pytest.mark.parametrize(
    "path",
    ["", "$", "$.", "$..a", "$.a[*]", "$[-1]", "$[01]", "$['a", r"$['\x']", "$.a[?@.b]", "$[]"],
)
def test_a_path_to_no_or_many_values_is_none(path: str) -> None:
    assert parse_place(path) is None


def test_a_path_without_end_is_none() -> None:
    assert len(parse_place("$" + ".a" * PLACE_LIMIT) or ()) == PLACE_LIMIT
    assert parse_place("$" + "[0]" * (PLACE_LIMIT + 1)) is None
