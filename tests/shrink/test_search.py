import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltatape.model.exchange import Exchange, MaskedCredential, Note, ResponseHead
from deltatape.shrink.search import (
    BudgetExhaustedError,
    ShrinkSearch,
    defects,
    fewest,
    largest,
    patient,
    size,
)
from helpers.chat import choice
from helpers.shrunk import Asked, having, streamed

WORDS = choice({"content": "abc"})
WHOLE = streamed(choice({"role": "assistant"}), WORDS, choice({}, "stop"))


def shorter(exchange: Exchange, count: int) -> Exchange:
    return replace(exchange, reads=exchange.reads[:count])


def test_what_is_smaller_and_fails_is_taken() -> None:
    search = ShrinkSearch((WHOLE,), having(b"abc"), sound=False)
    assert search.offer_one(shorter(WHOLE, 2))
    assert search.exchanges == (shorter(WHOLE, 2),)
    assert not search.offer_one(shorter(WHOLE, 1))
    assert search.exchanges == (shorter(WHOLE, 2),)


def test_what_is_not_smaller_is_not_even_asked_about() -> None:
    judge = Asked(lambda _: pytest.fail("asked"))
    search = ShrinkSearch((shorter(WHOLE, 2),), judge, sound=False)
    assert not search.offer_one(WHOLE)
    assert not search.offer_one(shorter(WHOLE, 2), smaller=False)


def test_another_one_of_equal_size_is_taken_where_that_is_enough() -> None:
    search = ShrinkSearch((WHOLE,), having(b"abc"))
    later = replace(WHOLE, reads=tuple(read._replace(t_ns=read.t_ns + 1) for read in WHOLE.reads))
    assert not search.offer_one(later)
    assert search.offer_one(later, smaller=False)


def test_a_stream_that_would_get_a_defect_costs_no_run() -> None:
    judge = having()
    assert not ShrinkSearch((WHOLE,), judge).offer_one(shorter(WHOLE, 2))
    assert judge.known == {}
    assert ShrinkSearch((WHOLE,), judge, sound=False).offer_one(shorter(WHOLE, 2))


def test_a_defect_that_is_there_may_stay() -> None:
    cut = shorter(WHOLE, 2)
    assert ShrinkSearch((cut,), having()).offer_one(shorter(WHOLE, 1))


def test_silence_is_not_a_defect_since_times_are_not_kept() -> None:
    late = WHOLE.reads[-1]._replace(t_ns=90_000_000_000)
    silent = replace(WHOLE, reads=(*WHOLE.reads[:-1], late))
    assert defects(silent) == defects(WHOLE) == {"in openai-chat"}


def test_the_judge_says_what_is_kept() -> None:
    other = replace(WHOLE, number=2)
    asked = replace(WHOLE.request, body=b"other")
    search = ShrinkSearch((WHOLE, other), lambda _: (replace(WHOLE, request=asked),), sound=False)
    assert search.offer_only([1])
    assert search.numbers == (1,)
    assert search.get(2) is None
    smaller = shorter(WHOLE, 2)
    assert smaller.request.body != b"other"
    search = ShrinkSearch(search.exchanges, having(), sound=False)
    assert search.offer_one(smaller)
    assert search.exchanges[0].request.body == b"other"
    assert search.exchanges[0].reads == smaller.reads


def test_the_search_ends_where_no_run_is_left() -> None:
    search = ShrinkSearch((WHOLE,), Asked(lambda _: True, most=0), sound=False)
    with pytest.raises(BudgetExhaustedError):
        search.offer_one(shorter(WHOLE, 2))


def test_all_that_is_beside_the_body_counts_for_the_size() -> None:
    assert WHOLE.response is not None
    secret = ((b"cookie", MaskedCredential(length=4, hash="00000000")),)
    noted = replace(WHOLE, notes=(Note(t_ns=0, text="x"),))
    trailed = replace(WHOLE, trailers=secret)
    headed = replace(WHOLE, response=replace(WHOLE.response, headers=secret * 9))
    early = ResponseHead(
        status=103, reason=b"", http="1.1", framing=WHOLE.response.framing, headers=(), t_ns=0,
        line=None,
    )  # fmt: skip
    hinted = replace(WHOLE, informational=(early,))
    for one in (noted, trailed, headed, hinted):
        assert size((one,)) > size((WHOLE,))
    assert size((replace(WHOLE, response=None),)) < size((WHOLE,)) < size((WHOLE, WHOLE))


def asked_for(items: Sequence[int], needed: set[int]) -> tuple[list[int], int]:
    """What is left when `needed` are, and how many different questions that took."""
    seen: dict[tuple[int, ...], bool] = {}

    def holds(kept: Sequence[int]) -> bool:
        return seen.setdefault(tuple(kept), needed <= set(kept))

    return list(fewest(items, holds)), len(seen)


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


@given(st.integers(0, 100), st.integers(1, 100), st.integers(-1, 120))
def test_the_largest_number_that_holds_is_found(answer: int, limit: int, guess: int) -> None:
    def holds(number: int) -> bool:
        assert 1 <= number <= limit
        return number <= answer

    assert largest(limit, holds, guess) == min(answer, limit)


@pytest.mark.slow
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
