import pytest

from deltatape.render.numbers import duration, seconds, since_request, size

MS = 1_000_000
S = 1000 * MS


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0.0 ms"),
        (300_000, "0.3 ms"),
        (12 * MS, "12 ms"),
        (1_200 * MS, "1.2 s"),
        (99_900 * MS, "99.9 s"),
        (200 * S, "3 min 20 s"),
        (3600 * S, "1 h 0 min"),
        (86_400 * S + 7200 * S, "1 d 2 h"),
    ],
)
def test_durations_are_for_people(ns: int, text: str) -> None:
    assert duration(ns) == text


def test_times_are_seconds_with_milliseconds() -> None:
    assert seconds(12_345_678_901) == "12.346"


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 kB"), (3 << 20, "3.0 MB"), (5 << 30, "5.0 GB")],
)
def test_sizes_are_for_people(count: int, text: str) -> None:
    assert size(count) == text


def test_it_is_said_what_times_are_counted_from() -> None:
    assert since_request(1_500_000_000).endswith("the request, which came 1.500 s into the tape")
