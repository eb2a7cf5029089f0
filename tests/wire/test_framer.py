from collections.abc import Callable

import pytest

from deltatape.model.stream import AnomalyKind
from deltatape.wire.aws_eventstream import EventStreamDecoder
from deltatape.wire.framer import Decoder, Framer, PartialUnit, replaced
from deltatape.wire.json_array import JsonArrayDecoder
from deltatape.wire.ndjson import NdjsonDecoder
from helpers.eventstream import message
from helpers.framing import framed
from helpers.splits import each_alone

SIZE = 300_000


def test_a_held_event_comes_out_when_it_ends() -> None:
    held = PartialUnit()
    held.add(b"ab", 10)
    held.add(b"c", 10)
    assert held
    assert held.take(b"d", 10) == b"abcd"
    assert not held
    assert held.take(b"x", 10) == b"x"


def test_an_event_over_the_limit_is_dropped_up_to_its_end() -> None:
    held = PartialUnit()
    for piece in (b"ab", b"cd", b"e"):
        held.add(piece, 3)
    assert (held.dropped, bool(held)) == (True, True)
    assert held.take(b"f", 3) is None
    assert held.take(b"abc", 3) == b"abc"
    assert held.take(b"abcd", 3) is None


def test_equal_bytes_held_are_equal() -> None:
    one, other = PartialUnit(), PartialUnit()
    assert one == other
    one.add(b"a", 10)
    assert one != other
    assert one != b"a"


def test_invalid_bytes_are_counted_apart_from_real_replacement_characters() -> None:
    raw = "\ufffd".encode() + b"\xff\xc3("
    with pytest.raises(UnicodeDecodeError) as caught:
        raw.decode()
    text, detail = replaced(raw, caught.value)
    assert text == "\ufffd\ufffd\ufffd("
    assert detail == "2 invalid UTF-8 sequences, the first ff"


def test_a_framer_numbers_its_events_and_places_what_is_wrong_in_them() -> None:
    framer = Framer(10)
    first = framer._event("a", 0, 1)
    text = framer._text(b"x\xff", 5)
    second = framer._event(text, 5, 7, "kind", exception=True)
    (anomaly,) = framer.anomalies
    assert (first.number, first.type, second.number, second.type) == (0, "message", 1, "kind")
    assert second.exception
    assert (anomaly.kind, anomaly.event, anomaly.place.span) == (
        AnomalyKind.INVALID_UTF8,
        1,
        (6, 7),
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("decoder", "body", "expected"),
    [
        (NdjsonDecoder, b'"' + b"x" * SIZE + b'"', SIZE + 2),
        (JsonArrayDecoder, b'[{"":"' + b"x\\\\" * (SIZE // 3) + b'"}]', SIZE + 7),
        (JsonArrayDecoder, b"[" + b"[" * SIZE + b"]" * SIZE + b"]", 2 * SIZE),
        (EventStreamDecoder, message({}, b"x" * SIZE), SIZE),
        (EventStreamDecoder, b"\0" * SIZE + message({}, b"x"), 1),
    ],
)
def test_large_units_byte_by_byte_take_linear_time(
    decoder: Callable[[], Decoder], body: bytes, expected: int
) -> None:
    found = framed(decoder(), each_alone(body))
    assert [len(data) for data in found.data()] == [expected]
