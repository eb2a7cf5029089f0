"""Alignments: ascending, of equal values, as long as they can be, and quick whatever comes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltatape.clock import SystemClock
from deltatape.compare.align import MAX_EDITS, align

SHORT = st.text("abcd", max_size=14)


def longest(left: str, right: str) -> int:
    """The length of the longest common subsequence, by the textbook."""
    row = [0] * (len(right) + 1)
    for one in left:
        before = 0
        for at, other in enumerate(right, 1):
            before, row[at] = row[at], before + 1 if one == other else max(row[at], row[at - 1])
    return row[-1]


@settings(max_examples=60, deadline=None)
@given(SHORT, SHORT)
def test_pairs_ascend_and_hold_equal_values(left: str, right: str) -> None:
    pairs = align(left, right)
    assert all(left[i] == right[j] for i, j in pairs)
    for side in zip(*pairs, strict=True):
        assert list(side) == sorted(set(side))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from("ab"), max_size=9), st.lists(st.sampled_from("ab"), max_size=9))
def test_without_anchors_the_alignment_is_the_longest(left: list[str], right: list[str]) -> None:
    # Between walls of values that stand twice there is nothing to be an anchor.
    one, other = "xyxy" + "".join(left * 2), "zwzw" + "".join(right * 2)
    if all(one.count(each) != 1 != other.count(each) for each in "ab"):
        assert len(align(one + "vv", other + "uu")) == longest(one, other)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 99), max_size=60), st.data())
def test_what_is_left_out_or_put_in_is_all_that_is_not_paired(
    left: list[int], data: st.DataObject
) -> None:
    left = list(dict.fromkeys(left))
    gone = data.draw(st.sets(st.sampled_from(left))) if left else set()
    right = [each for each in left if each not in gone]
    right.insert(data.draw(st.integers(0, len(right))), -1)
    pairs = align(left, right)
    assert [left[i] for i, _ in pairs] == [each for each in right if each != -1]


def test_one_left_out_of_many_equal_ones_is_one() -> None:
    assert len(align("a" * 10_000, "a" * 9_999)) == 9_999


@pytest.mark.exhaustive
def test_ten_thousand_events_with_many_changes_take_moments() -> None:
    words = [f"word {at % 50}" for at in range(10_000)]
    changed = [word for at, word in enumerate(words) if at % 7]
    backwards = words[::-1]
    start_ns = SystemClock.now_ns()
    assert len(align(words, changed)) > 8_000
    assert align(words, backwards)
    assert SystemClock.now_ns() - start_ns < 20 * 10**9


def test_unlike_beginnings_do_not_keep_what_follows_from_being_found() -> None:
    left = "a" * MAX_EDITS * 2 + "xy" * 100
    right = "b" * MAX_EDITS * 2 + "xy" * 99 + "yx"
    assert len(align(left, right)) > 150
