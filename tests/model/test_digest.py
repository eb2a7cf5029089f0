from helpers.chat import FINISH
from helpers.exchanges import USER, asks, call, digests


def test_digests_of_the_same_exchange_are_equal_and_can_be_kept_in_sets() -> None:
    one, other = (digests((asks(USER), [*call(), FINISH]))[0] for _ in range(2))
    assert one == other
    assert len({one, other}) == 1
