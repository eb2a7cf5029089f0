import pytest

from deltatape.errors import UsageError
from deltatape.rules.progress import Phase
from deltatape.vary.where import Kind, Where, parse_duration, parse_where


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("event:3", Where(kind=Kind.EVENT, number=3)),
        ("byte:0", Where(kind=Kind.BYTE)),
        ("1.5s", Where(kind=Kind.TIME, number=1_500_000_000)),
        ("in-text", Where(kind=Kind.PHASE, phase=Phase.IN_TEXT)),
        ("arguments", Where(kind=Kind.PHASE, phase=Phase.IN_ARGUMENTS)),
        ("end", Where(kind=Kind.PHASE, phase=Phase.BEFORE_END)),
    ],
)
def test_a_place_is_an_event_a_byte_a_time_or_a_phase(text: str, expected: Where) -> None:
    assert parse_where(text) == expected


@pytest.mark.parametrize("text", ["", "middle", "event:", "event:-1", "byte:x", "5", "1h"])
def test_anything_else_is_no_place(text: str) -> None:
    with pytest.raises(UsageError, match=r"not a place.*event:N.*before-first, in-text"):
        parse_where(text)


def test_durations_are_in_nanoseconds() -> None:
    assert [parse_duration(text) for text in ("20ms", "2s", "1m")] == [
        20_000_000,
        2_000_000_000,
        60_000_000_000,
    ]
    with pytest.raises(UsageError, match="'soon': no duration; 500ms, 30s or 2m are"):
        parse_duration("soon")
