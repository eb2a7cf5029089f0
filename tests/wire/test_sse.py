from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltatape.model.stream import Anomaly, AnomalyKind, Comment, Event, Span
from deltatape.wire.framer import UNIT_LIMIT
from deltatape.wire.sse import SseDecoder
from helpers.splits import cut, cuttings, each_alone, random_cuts

BOM = b"\xef\xbb\xbf"
LONG = b"x" * 2048

# The format-* tests of the Web Platform Tests' event source suite, as (type, id, data) per event.
WPT: dict[str, tuple[bytes, list[tuple[str, str, str]]]] = {
    "format-bom": (
        BOM + b"data:1\n\n" + BOM + b"data:2\n\ndata:3\n\n",
        [("message", "", "1"), ("message", "", "3")],
    ),
    "format-bom-2": (
        BOM + BOM + b"data:1\n\ndata:2\n\ndata:3\n\n",
        [("message", "", "2"), ("message", "", "3")],
    ),
    "format-comments": (
        b"data:1\r:\0\n:\r\ndata:2\n:" + LONG + b"\rdata:3\n:data:fail\r:" + LONG + b"\ndata:4\n\n",
        [("message", "", "1\n2\n3\n4")],
    ),
    "format-data-before-final-empty-line": (
        b"retry:1000\ndata:test1\n\nid:test\ndata:test2",
        [("message", "", "test1")],
    ),
    "format-field-data": (
        b"data:\n\ndata\ndata\n\ndata:test\n\n",
        [("message", "", ""), ("message", "", "\n"), ("message", "", "test")],
    ),
    "format-field-event": (
        b"event:test\ndata:x\n\ndata:x\n\n",
        [("test", "", "x"), ("message", "", "x")],
    ),
    "format-field-event-empty": (b"event: \ndata:data\n\n", [("message", "", "data")]),
    "format-field-id": (
        b"id:1\ndata:a\n\ndata:b\n\n",
        [("message", "1", "a"), ("message", "1", "b")],
    ),
    "format-field-id-2": (
        b"id:x\n\ndata:a\n\nretry:50\n\ndata:b\n\n",
        [("message", "x", "a"), ("message", "x", "b")],
    ),
    "format-field-id-3": (
        b"id:1\ndata:1\n\ndata:2\n\nid:\ndata:3\n\nid:4\ndata:4\n\nid\ndata:5\n\n",
        [("message", last_id, str(n)) for n, last_id in enumerate(["1", "1", "", "4", ""], 1)],
    ),
    "format-field-id-null": (
        b"id:1\0\ndata:a\n\nid:\0\0\ndata:b\n\n",
        [("message", "", "a"), ("message", "", "b")],
    ),
    "format-field-parsing": (
        b"data:\0\ndata:  2\rData:1\ndata\0:2\ndata:1\r\0data:4\nda-ta:3\rdata_5\ndata:3\r%s"
        % b"data:\r\n data:32\ndata:4\n\n",
        [("message", "", "\0\n 2\n1\n3\n\n4")],
    ),
    "format-field-unknown": (
        b"data:test\n data\ndata\nfoobar:xxx\njustsometext\n:thisisacommentyay\ndata:test\n\n",
        [("message", "", "test\n\ntest")],
    ),
    "format-leading-space": (
        b"data:\ttest\rdata: \ndata:test\n\n",
        [("message", "", "\ttest\n\ntest")],
    ),
    "format-newlines": (b"data:test\r\ndata\ndata:test\r\n\r", [("message", "", "test\n\ntest")]),
    "format-null-character": (b"data:\0\n\n\n\n", [("message", "", "\0")]),
    "format-utf-8": ("data:ok…\n\n".encode(), [("message", "", "ok…")]),
}


def run(
    pieces: list[bytes], limit: int = UNIT_LIMIT
) -> tuple[list[Event], list[Comment], list[Anomaly], Event | None]:
    """What a decoder makes of `pieces`, all fed at the same time."""
    decoder = SseDecoder(limit)
    events = [event for piece in pieces for event in decoder.feed(piece, 0, None)]
    pending = decoder.end()
    return events, decoder.comments, decoder.anomalies, pending


def spans(body: bytes) -> list[tuple[str, bytes]]:
    """Kind of every anomaly and the bytes it points at."""
    anomalies = run([body])[2]
    return [(one.kind.value, body[slice(*one.place.span)]) for one in anomalies]


@pytest.mark.slow
@pytest.mark.parametrize("name", WPT)
def test_web_platform_cases_are_dispatched_as_the_standard_says(name: str) -> None:
    body, expected = WPT[name]
    whole = run([body])
    assert [(event.type, event.id, event.data) for event in whole[0]] == expected
    for pieces in cuttings(body, pairs=len(body) <= 60):
        assert run(pieces) == whole


def test_a_first_line_may_begin_as_a_byte_order_mark_does() -> None:
    body = "\uf8ff: x\ndata: a\n\n".encode()
    whole = run([body])
    assert [event.data for event in whole[0]] == ["a"]
    assert [one.kind for one in whole[2]] == [AnomalyKind.UNKNOWN_FIELD]
    assert run([body[:1], body[1:]]) == whole


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b"3000", 3000),
        (b"", None),
        (b"1000x", None),
        (b"-1", None),
        ("٣".encode(), None),
        (b"9" * 5000, None),
    ],
)
def test_retry_takes_ascii_digits_only(value: bytes, expected: int | None) -> None:
    events, _, anomalies, _ = run([b"retry:" + value + b"\ndata:x\n\ndata:y\n\n"])
    assert [event.retry for event in events] == [expected, None]
    kinds = [] if expected else [AnomalyKind.BAD_RETRY]
    assert [one.kind for one in anomalies] == kinds


def test_an_event_is_dispatched_at_the_cr_without_waiting_for_its_lf() -> None:
    decoder = SseDecoder()
    assert decoder.feed(b"data: a\r\n\r", 5, 7) != []
    assert decoder.feed(b"\ndata: b\n", 6, 8) == []
    (event,) = decoder.feed(b"\n", 9, 10)
    assert (event.data, event.t_ns, event.line) == ("b", 9, 10)


def test_an_empty_read_changes_nothing() -> None:
    pieces = [b"data: a\r", b"", b"\n\r", b"", b"\n"]
    assert run(pieces) == run([b"".join(pieces)])


def test_the_first_read_that_completes_an_event_gives_its_time_and_line() -> None:
    decoder = SseDecoder()
    decoder.feed(b"data: a\n", 1, 10)
    (event,) = decoder.feed(b"\ndata: b", 2, 20)
    assert (event.t_ns, event.line) == (2, 20)


def test_spans_hold_the_bytes_of_events_and_comments() -> None:
    body = BOM + b": ping\n\nevent: a\r\ndata: 1\r\n\r\n: x\ndata: 2\n\n"
    events, comments, _, _ = run([body])
    assert [body[slice(*event.place.span)] for event in events] == [
        b"event: a\r\ndata: 1\r\n\r",
        b"data: 2\n\n",
    ]
    assert [(one.text, body[slice(*one.place.span)]) for one in comments] == [
        (" ping", b": ping"),
        (" x", b": x"),
    ]
    assert [event.number for event in events] == [0, 1]


def test_bytes_that_the_standard_drops_are_kept() -> None:
    assert spans(BOM + b"data:x\n\n") == [("byte-order-mark", BOM)]
    assert spans(b"data:x\nfoo: 1\n\n") == [("unknown-field", b"foo: 1")]
    assert spans(b"data:x\nid:1\0\n\n") == [("id-with-null", b"id:1\0")]
    assert spans(b"retry: x\ndata:\n\n") == [("bad-retry", b"retry: x")]
    assert spans(b"event: ping\nid: 1\n\n") == [("event-without-data", b"event: ping\nid: 1\n\n")]
    assert spans(b"foo\n\n") == [("unknown-field", b"foo")]
    assert spans(b"data: \xff\xfe\n\n") == [("invalid-utf-8", b"\xff")]
    assert spans(b": \xe2\x82\n") == [("invalid-utf-8", b"\xe2\x82")]


def test_an_anomaly_names_the_event_it_is_part_of() -> None:
    body = b"data:0\n\n: \xff\nfoo\ndata:1\n\nbar\n\nbaz\ndata:2"
    anomalies = run([body])[2]
    assert [(one.kind.value, one.event) for one in anomalies] == [
        ("invalid-utf-8", None),
        ("unknown-field", 1),
        ("unknown-field", None),
        ("unknown-field", 2),
        ("unterminated-event", 2),
    ]


def test_invalid_bytes_are_replaced_and_counted_apart_from_real_replacement_characters() -> None:
    body = "data: \ufffd".encode() + b"\xff\xc3(\n\n"
    events, _, anomalies, _ = run([body])
    assert events[0].data == "\ufffd\ufffd\ufffd("
    assert anomalies[0].detail == "2 invalid UTF-8 sequences, the first ff"


@pytest.mark.parametrize(
    ("body", "data", "span"),
    [
        (b"data: a\n\ndata: b", "b", (9, 16)),
        (b"data: b\n", "b", (0, 8)),
        (b"event: e\nid: 7\ndata\r", "", (0, 20)),
    ],
)
def test_the_undispatched_event_at_the_end_is_kept_as_pending(
    body: bytes, data: str, span: tuple[int, int]
) -> None:
    _, _, anomalies, pending = run([body])
    assert pending is not None
    assert (pending.data, pending.place.span) == (data, Span(*span))
    assert [one.kind for one in anomalies] == [AnomalyKind.UNTERMINATED_EVENT]
    assert anomalies[0].event == pending.number


def test_an_undispatched_block_without_data_is_noted_but_no_event() -> None:
    _, _, anomalies, pending = run([b"event: x"])
    assert pending is None
    assert [(one.kind, one.event) for one in anomalies] == [(AnomalyKind.UNTERMINATED_EVENT, None)]


@pytest.mark.parametrize("body", [b"", b"\n", BOM, b"data: a\n\n", b": unfinished comment"])
def test_a_body_that_ends_between_events_leaves_nothing_pending(body: bytes) -> None:
    _, _, anomalies, pending = run([body])
    assert pending is None
    assert AnomalyKind.UNTERMINATED_EVENT not in [one.kind for one in anomalies]


@pytest.mark.parametrize(
    "body",
    [
        b"data: " + b"x" * 20 + b"\n\ndata: ok\n\n",
        b": " + b"x" * 20 + b"\ndata: 1\n\ndata: ok\n\n",
        b"data: 123\ndata: 123\ndata: 123\n\ndata: ok\n\n",
    ],
)
def test_an_event_beyond_the_limit_is_dropped_and_the_next_one_is_not(body: bytes) -> None:
    whole = run([body], limit=20)
    assert [event.data for event in whole[0]] == ["ok"]
    assert [one.kind for one in whole[2]] == [AnomalyKind.TOO_LARGE]
    assert body[slice(*whole[2][0].place.span)] == body[: body.index(b"\n\n") + 2]
    for pieces in cuttings(body):
        assert run(pieces, limit=20) == whole


@pytest.mark.parametrize("body", [b"data: " + b"x" * 20, b"data: " + b"x" * 20 + b"\ndata: 1"])
def test_an_unfinished_event_beyond_the_limit_is_not_pending(body: bytes) -> None:
    whole = run([body], limit=20)
    assert whole[3] is None
    assert [one.kind for one in whole[2]] == [
        AnomalyKind.TOO_LARGE,
        AnomalyKind.UNTERMINATED_EVENT,
    ]
    for pieces in cuttings(body):
        assert run(pieces, limit=20) == whole


@pytest.mark.slow
def test_a_long_line_fed_byte_by_byte_takes_linear_time() -> None:
    body = b"data:" + b"x" * 300_000 + b"\n\n"
    events, _, _, _ = run(each_alone(body))
    assert [len(event.data) for event in events] == [300_000]


@pytest.mark.slow
@pytest.mark.parametrize(
    "event",
    [
        b"data: a\n\n",
        b"data:a\r\n\r\n",
        b"data: a\r\n\n",
        b"data: a\n\r\n",
        b"event: e\ndata: a\n\n",
        b"event:e\r\ndata:a\r\n\r\n",
        b"event:\ndata:  a\n\n",
        b"event: e\ndata: \n\n",
        b"event: \xff\ndata: a\n\n",
        b"data: \xe2\x82\n\n",
        b"data: 123456789\n\n",
        b"data: a\r\r\n",
        b"id: 1\ndata: a\n\n",
    ],
)
def test_a_usual_event_that_comes_at_once_is_what_its_lines_make(event: bytes) -> None:
    body = b"id: 0\n\n" + event + b": ping\n" + event + event
    whole = run([body], limit=16)
    assert {one.place.span.end - one.place.span.start for one in whole[0]} <= {
        len(event),
        len(event) - 1,
    }
    for pieces in cuttings(body, pairs=True):
        assert run(pieces, limit=16) == whole


PARTS = [
    b"data",
    b"data: x",
    b"data: x\n\n",
    b"event: e\r\ndata: x\r\n\r\n",
    b"id: 1",
    b"event: e",
    b"retry: 1",
    b":c",
    b":",
    b"\n",
    b"\r",
    b"\r\n",
]
STREAMS = st.lists(
    st.sampled_from([*PARTS, BOM, b"\xff", b"\xe2\x82\xac", b" ", b"\0"]) | st.binary(max_size=4),
    max_size=30,
).map(b"".join)


@pytest.mark.slow
@given(st.data())
def test_no_cutting_changes_what_any_bytes_decode_to(data: st.DataObject) -> None:
    body = data.draw(STREAMS)
    limit = data.draw(st.sampled_from([10, UNIT_LIMIT]))
    whole = run([body], limit)
    assert run(each_alone(body), limit) == whole
    assert run(cut(body, data.draw(random_cuts(len(body)))), limit) == whole
    for event in whole[0]:
        assert 0 <= event.start < event.end <= len(body)


LINES = (
    b"event: e",
    b"data: a",
    b"",
    b"data: b",
    b"",
    b": c",
    b"data: \xff",
    b"x",
    b"",
    b"data: d",
    b"",
    b"data: e",
)
READ_PARTS = (
    b"data: x",
    b"data: x\n\n",
    b"data: \xc3\xa9\n\n",
    b"event: e\r\ndata: x\r\n\r\n",
    b"id: 1",
    b":c",
    b"\n",
    b"\r",
    b"\r\n",
    b"\xef\xbb\xbf",
    b"\xff",
)
READ_STREAMS = st.lists(st.sampled_from(READ_PARTS) | st.binary(max_size=4), max_size=30).map(
    b"".join
)


def made(
    pieces: list[bytes], limit: int, *, at_once: bool
) -> tuple[list[Event], list[Comment], list[Anomaly], Event | None]:
    """What a decoder makes of `pieces`, of which each has its own time and line."""
    decoder = SseDecoder(limit)
    events: list[Event] = []
    if at_once:
        ends = enumerate(accumulate(map(len, pieces)))
        events = decoder.feed_reads(
            b"".join(pieces), [(end, 10 + at, 100 + at) for at, end in ends]
        )
    else:
        for at, piece in enumerate(pieces):
            events += decoder.feed(piece, 10 + at, 100 + at)
    pending = decoder.end()
    return events, decoder.comments, decoder.anomalies, pending


@pytest.mark.slow
@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
@pytest.mark.parametrize("first", [b"", b"\xef", b"\xef\xbb\xbf"])
def test_everything_has_the_time_and_line_of_the_read_that_completed_it(
    first: bytes, end: bytes
) -> None:
    for pieces in cuttings(first + end.join(LINES), pairs=True):
        with_empty = [one for piece in pieces for one in (b"", piece, b"")]
        for each in (pieces, with_empty):
            assert made(each, 16, at_once=True) == made(each, 16, at_once=False)


@given(st.data())
def test_any_reads_at_once_are_what_they_are_one_by_one(data: st.DataObject) -> None:
    body = data.draw(READ_STREAMS)
    limit = data.draw(st.sampled_from([10, UNIT_LIMIT]))
    for pieces in (each_alone(body), cut(body, data.draw(random_cuts(len(body))))):
        pieces.append(b"")
        assert made(pieces, limit, at_once=True) == made(pieces, limit, at_once=False)


@pytest.mark.slow
@given(READ_STREAMS, st.integers(0, 60))
def test_reads_may_come_in_several_groups(body: bytes, at: int) -> None:
    decoder = SseDecoder()
    events: list[Event] = []
    for half in (body[:at], body[at:]):
        reads = [(end, len(events), None) for end in range(1, len(half) + 1)]
        events += decoder.feed_reads(half, reads or [(0, 0, None)])
    alone = SseDecoder()
    expected = [one for byte in each_alone(body) for one in alone.feed(byte, 0, None)]
    spans = [(one.data, one.type, one.place.span) for one in events]
    assert spans == [(one.data, one.type, one.place.span) for one in expected]
