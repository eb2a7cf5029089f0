import pytest

from deltatape.dialects.gemini.json_path import STEPS_LIMIT, Step, parse_path


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
def test_a_path_to_one_value_is_read(path: str, steps: tuple[Step, ...]) -> None:
    assert parse_path(path) == steps


@pytest.mark.parametrize(
    "path",
    ["", "$", "$.", "$..a", "$.a[*]", "$[-1]", "$[01]", "$['a", r"$['\x']", "$.a[?@.b]", "$[]"],
)
def test_a_path_to_no_or_many_values_is_none(path: str) -> None:
    assert parse_path(path) is None


def test_a_path_without_end_is_none() -> None:
    assert len(parse_path("$" + ".a" * STEPS_LIMIT) or ()) == STEPS_LIMIT
    assert parse_path("$" + "[0]" * (STEPS_LIMIT + 1)) is None
