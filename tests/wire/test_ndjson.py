import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltatape.model.stream import Span
from deltatape.wire.framer import UNIT_LIMIT
from deltatape.wire.ndjson import NdjsonDecoder
from helpers.framing import Framed, framed, noted
from helpers.splits import cut, cuttings, each_alone, random_cuts

BOM = b"\xef\xbb\xbf"


def run(*pieces: bytes, limit: int = UNIT_LIMIT) -> Framed:
    return framed(NdjsonDecoder(limit), pieces)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"a":1}\n{"b":2}\n', ['{"a":1}', '{"b":2}']),
        (b'{"a":1}\r\n{"b":2}\r\n', ['{"a":1}', '{"b":2}']),
        (b'\n\r\n \t\r\n{"a":1}\n\n\n{"b":2}\n\n', ['{"a":1}', '{"b":2}']),
        (b'{"a":1}\n{"b":2}', ['{"a":1}', '{"b":2}']),
        (b'{"a":1}\n{"b":2}\r', ['{"a":1}', '{"b":2}']),
        (b'{"a":1,\r"b":2}\n', ['{"a":1,\r"b":2}']),
        ('{"a":"\u2028\x85\x0b"}\n'.encode(), ['{"a":"\u2028\x85\x0b"}']),
        (b'  {"a":1} \n', ['  {"a":1} ']),
        (b'null\n12\n"x"\nno json\n\x0c\n', ["null", "12", '"x"', "no json", "\x0c"]),
        (BOM + b'{"a":1}\n', ['{"a":1}']),
        (BOM + b'{"a":1}', ['{"a":1}']),
        (BOM + b"\n" + BOM + b"1\n", ["\ufeff1"]),
        (b"", []),
        (b"\n", []),
        (b" ", []),
        (BOM, []),
    ],
)
def test_a_line_is_an_event_however_the_bytes_are_cut(body: bytes, expected: list[str]) -> None:
    whole = run(body)
    assert whole.data() == expected
    assert whole.pending is None
    for pieces in cuttings(body, pairs=True):
        assert run(*pieces) == whole


def test_events_are_numbered_messages_with_the_span_of_their_line() -> None:
    body = b'{"a":1}\r\n\n{"b":2}\n3'
    events = run(body).events
    assert [(event.number, event.type, event.id) for event in events] == [
        (number, "message", "") for number in range(3)
    ]
    assert [body[slice(*event.place.span)] for event in events] == [
        b'{"a":1}\r\n',
        b'{"b":2}\n',
        b"3",
    ]


def test_the_read_that_brings_the_line_end_gives_the_time_and_the_line() -> None:
    decoder = NdjsonDecoder()
    assert decoder.feed(b'{"a":1}', 1, 10) == []
    (first, second) = decoder.feed(b"\n2\n3", 2, 20)
    assert (first.place.t_ns, first.place.line, second.place.line) == (2, 20, 20)
    assert decoder.feed(b"", 3, 30) == []
    assert decoder.end() is None
    assert decoder.tail is not None
    assert (decoder.tail.data, decoder.tail.place.line) == ("3", 30)


@pytest.mark.parametrize("torn", [b'{"a":', b"nul", b'{"a":1}}', BOM + b"{"])
def test_a_torn_last_line_is_pending(torn: bytes) -> None:
    for front in (b"", b"1\n"):
        if front and torn.startswith(BOM):
            continue
        body = front + torn
        whole = run(body)
        assert whole.pending is not None
        assert whole.pending.data.encode() == torn.removeprefix(BOM)
        assert whole.pending.number == len(whole.events) == len(front) // 2
        assert whole.kinds()[-1] == "unterminated-event"
        assert whole.anomalies[-1].event == whole.pending.number
        assert whole.anomalies[-1].place == whole.pending.place
        assert whole.pending.place.span.end == len(body)
        for pieces in cuttings(body, pairs=True):
            assert run(*pieces) == whole


def test_defects_are_noted_with_their_bytes_and_their_event() -> None:
    body = BOM + b'1\n{"a":"\xff\xfe"}\n\xe2\x82'
    whole = run(body)
    assert noted(body, whole) == [
        ("byte-order-mark", BOM),
        ("invalid-utf-8", b"\xff"),
        ("invalid-utf-8", b"\xe2\x82"),
        ("unterminated-event", b"\xe2\x82"),
    ]
    assert [each.event for each in whole.anomalies] == [0, 1, 2, 2]
    assert whole.events[1].data == '{"a":"\ufffd\ufffd"}'
    assert [each.event for each in run(BOM + b"\n").anomalies] == [None]


@pytest.mark.parametrize("body", [b"12345678\n1\n", b"1\n12345678\r\n\n2", b"12345\r\n1"])
def test_a_line_beyond_the_limit_is_dropped_and_the_next_one_is_not(body: bytes) -> None:
    whole = run(body, limit=5)
    assert whole.kinds() == ["too-large"]
    assert all(len(data) == 1 for data in whole.data())
    assert body[slice(*whole.anomalies[0].place.span)].startswith(b"12345")
    for pieces in cuttings(body):
        assert run(*pieces, limit=5) == whole


def test_an_unfinished_line_beyond_the_limit_is_not_pending() -> None:
    whole = run(b"1\n123456", limit=5)
    assert (whole.pending, whole.kinds()) == (None, ["too-large", "unterminated-event"])
    assert whole.anomalies[1].place.span == Span(2, 8)
    assert run(*each_alone(b"1\n123456"), limit=5) == whole


LINES = st.lists(
    st.sampled_from([b"{}", b'{"a":1}', b"\n", b"\r\n", b"\r", b" ", BOM, b"\xff", b"nul"])
    | st.binary(max_size=4),
    max_size=30,
).map(b"".join)


@given(st.data())
def test_no_cutting_changes_what_any_bytes_decode_to(data: st.DataObject) -> None:
    body = data.draw(LINES)
    limit = data.draw(st.sampled_from([3, UNIT_LIMIT]))
    whole = run(body, limit=limit)
    assert run(*each_alone(body), limit=limit) == whole
    assert run(*cut(body, data.draw(random_cuts(len(body)))), limit=limit) == whole
    for event in whole.events:
        raw = body[slice(*event.place.span)].decode(errors="replace")
        assert raw.removesuffix("\n").removesuffix("\r") == event.data
