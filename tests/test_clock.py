"""Clocks, and times as text."""

from datetime import UTC, datetime, timedelta  # noqa: TID251 - the other clock to compare with

import pytest

from deltatape.clock import SystemClock, file_stamp, rfc3339

MOMENT_NS = 1_795_293_361_000_000_000


@pytest.mark.parametrize(
    ("wall_ns", "text"),
    [
        (MOMENT_NS, "2026-11-21T20:36:01.000000000Z"),
        (MOMENT_NS + 1, "2026-11-21T20:36:01.000000001Z"),
        (MOMENT_NS + 999_999_999, "2026-11-21T20:36:01.999999999Z"),
        (0, "1970-01-01T00:00:00.000000000Z"),
    ],
)
def test_a_moment_is_rfc_3339_to_the_nanosecond(wall_ns: int, text: str) -> None:
    assert rfc3339(wall_ns) == text


def test_a_moment_in_a_file_name_has_whole_seconds_and_no_colons() -> None:
    assert file_stamp(MOMENT_NS + 999_999_999) == "2026-11-21T20-36-01"


def test_the_machines_wall_clock_is_utc() -> None:
    told = datetime.fromisoformat(rfc3339(SystemClock().wall_ns())[:26] + "+00:00")
    assert abs(told - datetime.now(UTC)) < timedelta(seconds=5)


def test_the_monotonic_clock_never_goes_back() -> None:
    clock = SystemClock()
    looks = [clock.now_ns() for _ in range(100)]
    assert looks == sorted(looks)
