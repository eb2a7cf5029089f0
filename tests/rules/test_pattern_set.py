from random import Random

import pytest

from deltatape.rules.pattern_set import PatternSet
from helpers.work import work_of

MANY = [f"value {number}" for number in range(100)]


@pytest.mark.parametrize("filling", [[], MANY], ids=["few", "many"])
def test_finds_every_pattern_of_a_text(filling: list[str]) -> None:
    wanted = PatternSet(["a", "ab", "abc", "bc", "x", *filling])
    assert wanted.within("an abbot") == {"a", "ab"}
    assert wanted.within("abc") == {"a", "ab", "abc", "bc"}
    assert wanted.within("") == frozenset()
    assert wanted.within("none") == frozenset()
    assert PatternSet(["", *filling]).within("-") == {""}


@pytest.mark.slow
def test_finds_in_random_texts_what_a_search_for_each_pattern_finds() -> None:
    random = Random(1)
    for _ in range(200):
        letters = random.choice(["ab", "abc", "abcdefgh"])
        texts = ["".join(random.choices(letters, k=random.randrange(9))) for _ in range(80)]
        wanted = PatternSet(texts)
        text = "".join(random.choices(letters, k=random.randrange(60)))
        assert wanted.within(text) == {each for each in texts if each in text}
        begins = {each for each in texts if each and text.startswith(each)}
        assert list(wanted.beginnings(text)) == sorted(begins, key=len, reverse=True)


def test_the_longest_beginning_comes_first() -> None:
    wanted = PatternSet(["", "a", "ab", "abcd", "b", "c"])
    assert list(wanted.beginnings("abc")) == ["ab", "a"]
    assert list(wanted.beginnings("abc", 1)) == ["b"]
    assert list(wanted.beginnings("xyz")) == []
    assert list(PatternSet([]).beginnings("a")) == []


def test_the_work_does_not_grow_with_the_number_of_patterns() -> None:
    text = "the city is value 7, or value 77"
    few, many = (PatternSet(f"value {number}" for number in range(size)) for size in (100, 10_000))
    assert few.within(text) == many.within(text)
    assert work_of(lambda: many.within(text)) < 2 * work_of(lambda: few.within(text))


def test_patterns_that_begin_with_each_other_take_no_longer_than_one_by_one() -> None:
    nested = PatternSet("a" * size for size in range(1, 1000))
    text = ("a" * 10 + "b") * 100
    assert nested.within(text) == {"a" * size for size in range(1, 11)}
    assert work_of(lambda: nested.within(text)) < 20 * len(text)
