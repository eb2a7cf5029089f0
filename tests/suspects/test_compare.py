import pytest

from deltatape.suspects.compare import difference, equal, likeness, same_arguments
from helpers.suspected import made

ONE = made(("c1", "get", '{"a":1}'))
IDS = frozenset({"c1", "c2"})


def test_equal_json_and_no_arguments_at_all_are_equal() -> None:
    assert equal(ONE, made(("c1", "get", '{ "a" : 1 }')), IDS)
    assert same_arguments("", " {} ")
    assert not same_arguments("{", "[")
    assert not equal(ONE, made(("c1", "get", '{"a":2}')), IDS)


def test_order_and_number_count() -> None:
    two = made(("c1", "get", ""), ("c2", "get", ""))
    assert not equal(two, tuple(reversed(two)), IDS)
    assert not equal(two, two[:1], IDS)


@pytest.mark.parametrize(
    ("mine", "heard", "same"),
    [
        ("c1", "c1", True),
        ("c1", "c2", False),
        ("c1", None, False),
        (None, None, True),
        (None, "call_made_up", True),
        (None, "c2", False),
    ],
)
def test_an_application_makes_up_only_ids_that_it_lacks(
    mine: str | None,
    heard: str | None,
    same: bool,  # noqa: FBT001
) -> None:
    assert equal(made((mine, "get", "")), made((heard, "get", "")), IDS) is same


def test_dialects_without_ids_need_none() -> None:
    assert equal(made(("x", "get", "")), made((None, "get", "")))
    assert not equal(made(("x", "get", "")), made(("y", "get", "")))


def test_likeness_counts_equal_parts() -> None:
    assert likeness(ONE, ONE, IDS) == 1
    assert likeness(ONE, made(("c1", "put", '{"a":1}')), IDS) == 0.75
    assert likeness(ONE, (), IDS) == 0
    assert likeness((), (), IDS) == 1


@pytest.mark.parametrize(
    ("mine", "told"),
    [
        ((), "of the call in the stream it makes none"),
        ((*ONE, *ONE), "of the call in the stream it makes 2"),
        (made(("c1", None, "")), "call 0 gets no name instead of get"),
        (
            made(("c1", "get", "x" * 70)),
            f'call 0 gets the arguments {"x" * 60}... instead of {{"a":1}}',
        ),
        (made(("c9", "get", '{"a":1}')), "call 0 gets the id c9 instead of c1"),
        (ONE, "the calls come out right"),
    ],
)
def test_the_first_difference_is_told(mine: tuple[()], told: str) -> None:
    assert difference(ONE, mine) == told
