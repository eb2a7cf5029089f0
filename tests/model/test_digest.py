from dataclasses import replace

import pytest

from helpers.chat import FINISH
from helpers.exchanges import USER, asks, call, digests


def test_digests_of_the_same_exchange_are_equal_and_can_be_kept_in_sets() -> None:
    one, other = (digests((asks(USER), [*call(), FINISH]))[0] for _ in range(2))
    assert one == other
    assert len({one, other}) == 1


@pytest.mark.parametrize(
    ("choice", "must"),
    [(None, False), ("auto", False), ("NONE", False), ("required", True), ("get", True)],
)
def test_what_the_model_may_choose(choice: str | None, *, must: bool) -> None:
    (made,) = digests((asks(USER), []))
    assert replace(made, tool_choice=choice).must_call is must


@pytest.mark.parametrize(
    ("status", "refused"), [(None, False), (200, False), (429, False), (400, True)]
)
def test_a_request_that_is_limited_is_not_refused(status: int | None, *, refused: bool) -> None:
    (made,) = digests((asks(USER), []))
    assert replace(made, status=status).refused is refused
