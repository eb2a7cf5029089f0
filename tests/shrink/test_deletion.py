import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltatape.shrink.deletion import fewest, largest, patient


def asked_for(items: Sequence[int], needed: set[int]) -> tuple[list[int], int]:
    """What is left when `needed` are, and how many different questions that took."""
    seen: dict[tuple[int, ...], bool] = {}

    def holds(kept: Sequence[int]) -> bool:
        return seen.setdefault(tuple(kept), needed <= set(kept))

    return list(fewest(items, holds)), len(seen)


@settings(max_examples=60, deadline=None)
@given(st.sets(st.integers(0, 59)), st.integers(0, 60))
def test_what_is_needed_is_left_and_nothing_else(needed: set[int], count: int) -> None:
    needed = {one for one in needed if one < count}
    left, _ = asked_for(range(count), needed)
    assert left == sorted(needed)


@pytest.mark.parametrize(
    ("count", "needed", "most"), [(2000, 1, 22), (2000, 3, 50), (2000, 20, 225), (60, 60, 70)]
)
def test_few_questions_are_asked(count: int, needed: int, most: int) -> None:
    for seed in range(20):
        wanted = set(random.Random(seed).sample(range(count), needed))
        left, questions = asked_for(range(count), wanted)
        assert left == sorted(wanted)
        assert questions <= most


def test_what_is_not_needed_any_more_goes_in_another_round() -> None:
    def holds(kept: Sequence[str]) -> bool:
        return "a" in kept and ("c" in kept or "b" not in kept)

    assert list(fewest("abc", holds)) == ["a"]


def test_nothing_is_asked_where_there_is_nothing() -> None:
    assert list(fewest((), lambda _: pytest.fail("asked"))) == []


def test_the_whole_is_never_asked_about() -> None:
    def holds(kept: Sequence[int]) -> bool:
        assert len(kept) < 5
        return False

    assert list(fewest(range(5), holds)) == [0, 1, 2, 3, 4]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 100), st.integers(1, 100), st.integers(-1, 120))
def test_the_largest_number_that_holds_is_found(answer: int, limit: int, guess: int) -> None:
    def holds(number: int) -> bool:
        assert 1 <= number <= limit
        return number <= answer

    assert largest(limit, holds, guess) == min(answer, limit)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.booleans(), min_size=1, max_size=40), st.integers(1, 40))
def test_the_next_number_never_holds(answers: list[bool], guess: int) -> None:
    asked: set[int] = set()

    def holds(number: int) -> bool:
        asked.add(number)
        return answers[number - 1]

    found = largest(len(answers), holds, guess)
    assert found == 0 or answers[found - 1]
    assert found == len(answers) or (not answers[found] and found + 1 in asked)


def test_patience_ends_after_refusals_in_a_row() -> None:
    asked: list[int] = []

    def holds(kept: Sequence[int]) -> bool:
        asked.append(len(kept))
        return len(kept) == 7

    ask = patient(holds, 2)
    assert [ask(range(size)) for size in (1, 7, 2, 3, 7)] == [False, True, False, False, False]
    assert asked == [1, 7, 2, 3]
