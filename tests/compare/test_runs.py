"""Deltas that were cut in another way."""

from hypothesis import given, settings
from hypothesis import strategies as st

from deltatape.compare.runs import Runs
from helpers.chat import FINISH
from helpers.compared import call, chat, units, words
from helpers.splits import cut, random_cuts


def run(left: list[object], right: list[object], i: int = 0, j: int = 0) -> object:
    return Runs(units(chat(*left, done=False)), units(chat(*right, done=False))).at(i, j)


def test_a_run_ends_where_both_sides_end_an_event() -> None:
    assert run(words("Hel", "lo", "x"), words("Hello", "x")) == (2, 1)
    assert run(words("Hello", "x"), words("Hel", "lo", "x")) == (1, 2)
    assert run(words("ab", "c"), words("a", "bc")) == (2, 2)
    assert run(words("a"), words("a")) == (1, 1)


def test_no_run_begins_where_the_texts_differ_or_one_side_ends() -> None:
    assert run(words("Hel"), words("Helo")) is None
    assert run(words("Hex"), words("Hello")) is None
    assert run(words("a"), call("a")) is None
    assert run([{"choices": []}], words("a")) is None
    assert run(words("a"), [{"choices": []}]) is None
    assert run(words("a"), words("a"), 1, 0) is None


def test_a_call_may_come_with_its_arguments_in_one_event() -> None:
    opened, *later = call('{"a"', ":1}")
    whole = call('{"a":1}')
    assert run([opened, *later], whole, 1, 1) == (3, 2)
    assert run(call("x", index=1, name="put"), call("x", index=1)) is None


def test_what_brings_nothing_ends_a_run() -> None:
    assert run(words("a", "") + words("b"), words("ab")) is None


def test_an_end_is_compared_as_a_whole() -> None:
    assert run([*words("a"), FINISH], [*words("a"), FINISH], 1, 1) == (2, 2)


@settings(max_examples=60, deadline=None)
@given(st.text(min_size=1, max_size=20), st.data())
def test_any_two_cuttings_of_a_text_are_runs(text: str, data: st.DataObject) -> None:
    sides = [words(*cut(text, data.draw(random_cuts(len(text))))) for _ in range(2)]
    left, right = (units(chat(*side, done=False)) for side in sides)
    runs = Runs(left, right)
    i = j = 0
    while i < len(left) and j < len(right):
        found = runs.at(i, j)
        assert found is not None
        i, j = found
    assert (i, j) == (len(left), len(right))


def test_attempts_that_fail_do_not_go_on_for_ever() -> None:
    left, right = (units(chat(*words(*"a" * 300, end), done=False)) for end in ("x", "y"))
    runs = Runs(left[:-1], right)
    assert all(runs.at(0, 0) == (1, 1) for _ in range(5))
    merged = units(chat(*words("a" * 299 + "b"), done=False))
    tries = Runs(left, merged)
    assert [tries.at(at, 0) for at in range(300)] == [None] * 300
