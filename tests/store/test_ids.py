import re

from deltatape.store.ids import UlidSource, ulid
from helpers.tapes import StillClock


class JumpingClock(StillClock):
    def __init__(self, walls_ms: list[int]) -> None:
        super().__init__()
        self._walls = iter(walls_ms)

    def wall_ns(self) -> int:
        return next(self._walls) * 1_000_000


def test_a_ulid_is_26_characters_of_crockfords_alphabet() -> None:
    assert re.fullmatch("[0-7][0-9A-HJKMNP-TV-Z]{25}", ulid(StillClock()))


def test_the_time_comes_first() -> None:
    # The example of the specification: 1469918176385 ms is 01ARYZ6S41.
    assert UlidSource().next(JumpingClock([1_469_918_176_385])).startswith("01ARYZ6S41")


def test_ulids_ascend_also_when_the_clock_stands_still_or_jumps_back() -> None:
    source = UlidSource()
    clock = JumpingClock([1000, 1000, 500, 1001, 2000])
    made = [source.next(clock) for _ in range(5)]
    assert made == sorted(set(made))
