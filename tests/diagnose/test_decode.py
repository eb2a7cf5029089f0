import gzip
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltatape.diagnose.decode import decode, format_of, is_plain, media_type
from deltatape.model.content_coding import ContentDecoder
from deltatape.model.exchange import Exchange, Headers, MaskedCredential, Read, Source
from deltatape.model.stream import AnomalyKind, Format, Span
from deltatape.wire.sse import SseDecoder
from helpers.eventstream import event

SSE = b'data: {"a":1}\n\n: ping\n\ndata: [DONE]\n\n'


def exchange(
    *pieces: bytes,
    media: str = "text/event-stream",
    coding: str = "",
    source: Source = Source.GATEWAY,
) -> Exchange:
    """An exchange of which read number n came at n ns and is on tape line 10 n."""
    made = Exchange.from_body(b"", content_type=media, url="http://127.0.0.1/x")
    headers: Headers = (
        (b"Content-Type", media.encode()),
        *(((b"Content-Encoding", coding.encode()),) if coding else ()),
    )
    reads = tuple(
        Read(t_ns=number, data=piece, boundaries=None, line=10 * number)
        for number, piece in enumerate(pieces, 1)
    )
    response = made.response
    assert response is not None
    return replace(made, source=source, response=replace(response, headers=headers), reads=reads)


def test_an_event_has_the_time_and_line_of_the_read_that_completed_it() -> None:
    stream = decode(exchange(b"data: a\n", b"\ndata: b\n\nda", b"ta: c"))
    assert stream.format is Format.SSE
    assert [(one.data, one.place.t_ns, one.place.line) for one in stream.events] == [
        ("a", 2, 20),
        ("b", 2, 20),
    ]
    assert stream.pending is not None
    assert (stream.pending.data, stream.pending.place.line) == ("c", 30)
    assert stream.body == b"data: a\n\ndata: b\n\ndata: c"


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_content_coding_is_undone_read_by_read(size: int) -> None:
    coded = gzip.compress(SSE)
    pieces = [coded[at : at + size] for at in range(0, len(coded), size)]
    stream = decode(exchange(*pieces, coding="gzip"))
    assert (stream.body, stream.anomalies) == (SSE, ())
    assert [event.data for event in stream.events] == ['{"a":1}', "[DONE]"]
    assert [comment.text for comment in stream.comments] == [" ping"]


def test_what_a_damaged_coding_leaves_is_framed_and_the_damage_told() -> None:
    stream = decode(exchange(gzip.compress(SSE)[:-8], b"garbage!", coding="gzip"))
    (anomaly,) = stream.anomalies
    assert (anomaly.kind, anomaly.event) == (AnomalyKind.BAD_CONTENT_CODING, None)
    assert (anomaly.place.span, anomaly.place.line) == (Span(len(SSE), len(SSE)), 20)
    assert len(stream.events) == 2


def test_a_coding_that_cannot_be_undone_leaves_nothing() -> None:
    stream = decode(exchange(SSE, coding="gzip"))
    assert (stream.body, stream.events) == (b"", ())
    assert [one.kind for one in stream.anomalies] == [AnomalyKind.BAD_CONTENT_CODING]
    assert decode(exchange(coding="compress")).anomalies[0].place.line is None


def test_an_imported_body_may_have_lost_its_coding() -> None:
    stream = decode(exchange(SSE, coding="gzip", source=Source.IMPORT))
    assert (stream.body, stream.anomalies) == (SSE, ())
    broken = decode(exchange(b"\x1f\x8bxx", coding="gzip", source=Source.IMPORT))
    assert [one.kind for one in broken.anomalies] == [AnomalyKind.BAD_CONTENT_CODING]


@pytest.mark.parametrize(
    ("body", "media", "expected"),
    [
        (SSE, "text/event-stream", Format.SSE),
        (SSE, "application/json", Format.SSE),
        (SSE, "", Format.SSE),
        (b"\xef\xbb\xbf\r\n: x\n", "text/plain", Format.SSE),
        (b"data\n\n", "text/plain", Format.SSE),
        (b"database error", "text/plain", Format.OTHER),
        (b"", "text/event-stream", Format.SSE),
        (b"garbage", "text/event-stream", Format.SSE),
        (b'{"error":1}', "text/event-stream", Format.JSON),
        (b'{"error":1}\n\ndata: x\n\n', "text/event-stream", Format.SSE),
        (b' \n[{"a":1}]', "text/plain", Format.JSON_ARRAY),
        (b'{"a":1}\n{"b":2}', "text/plain", Format.NDJSON),
        (event("x", 1), "text/plain", Format.EVENTSTREAM),
        (b"null", "application/json", Format.JSON),
        (b"null", "application/problem+json", Format.JSON),
        (b" ", "application/json", Format.OTHER),
        (b"<html>", "text/html", Format.OTHER),
        (b"", "", Format.OTHER),
    ],
)
def test_the_body_tells_its_format_and_else_the_media_type(
    body: bytes, media: str, expected: Format
) -> None:
    stream = decode(exchange(body, media=media) if body else exchange(media=media))
    assert (stream.format, stream.body) == (expected, body)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"a":1}\n{"b":2}\n', ['{"a":1}', '{"b":2}']),
        (b'{"a":1}\n{"b":2}', ['{"a":1}', '{"b":2}']),
        (b'[{"a":1},\r\n{"b":2}]', ['{"a":1}', '{"b":2}']),
        (event("x", {"a": 1}) + event("y", {"b": 2}), ['{"a":1}', '{"b":2}']),
    ],
)
def test_every_format_of_streams_is_decoded_read_by_read(body: bytes, expected: list[str]) -> None:
    stream = decode(exchange(body[:-3], body[-3:], media=""))
    assert [one.data for one in stream.events] == expected
    assert [one.place.line for one in stream.events] == [10, 20]
    assert (stream.anomalies, stream.pending) == ((), None)


@pytest.mark.slow
@given(st.lists(st.sampled_from((b"data: a", b": c", b"x", b"\n", b"\r", b"\r\n\r\n"))))
@pytest.mark.parametrize("coding", ["", "gzip"])
def test_events_come_of_all_reads_at_once_as_they_do_one_by_one(
    coding: str, pieces: list[bytes]
) -> None:
    body = b"data: first\n\n" + b"".join(pieces)
    coded = gzip.compress(body) if coding else body
    reads = [coded[at : at + 3] for at in range(0, len(coded), 3)]
    stream = decode(exchange(*reads, coding=coding))
    plain, decoder = ContentDecoder(("gzip",) if coding else ()), SseDecoder()
    events = [
        one
        for at, read in enumerate(reads, 1)
        for one in decoder.feed(plain.feed(read), at, 10 * at)
    ]
    assert stream.events == tuple(events)
    assert stream.pending == decoder.end()
    assert (list(stream.comments), list(stream.anomalies)) == (decoder.comments, decoder.anomalies)


@pytest.mark.parametrize("body", [b'{"a":1}\n{"b":2', b'[{"a":1},{"b":2'])
def test_a_torn_event_is_pending_in_every_text_format(body: bytes) -> None:
    stream = decode(exchange(body))
    assert [one.data for one in stream.events] == ['{"a":1}']
    assert stream.pending is not None
    assert (stream.pending.data, stream.pending.number) == ('{"b":2', 1)
    assert [one.kind for one in stream.anomalies] == [AnomalyKind.UNTERMINATED_EVENT]


def test_an_imported_binary_body_that_lost_its_coding_is_read() -> None:
    stream = decode(exchange(event("x", 1), coding="gzip", source=Source.IMPORT))
    assert [one.data for one in stream.events] == ["1"]


def test_a_json_document_is_one_event_completed_by_the_last_read() -> None:
    stream = decode(exchange(b'{"a":', b"1}", media="application/json"))
    (event,) = stream.events
    assert (event.data, event.place.span, event.line) == ('{"a":1}', Span(0, 7), 20)
    assert (stream.anomalies, stream.pending) == ((), None)


def test_bytes_of_a_json_document_that_are_not_text_are_reported() -> None:
    stream = decode(exchange(b'\xef\xbb\xbf{"a":"\xff"}', media="application/json"))
    assert stream.events[0].data == '{"a":"\ufffd"}'
    assert [(one.kind, one.place.span) for one in stream.anomalies] == [
        (AnomalyKind.INVALID_UTF8, Span(9, 10)),
        (AnomalyKind.BYTE_ORDER_MARK, Span(0, 3)),
    ]


def test_a_media_type_is_in_lower_case_without_parameters() -> None:
    assert media_type(((b"content-TYPE", b"Text/Event-Stream ; charset=x"),)) == "text/event-stream"
    assert media_type(()) == ""
    assert media_type(((b"content-type", MaskedCredential(length=3, hash="00000000")),)) == ""


def test_an_exchange_without_response_has_no_events() -> None:
    stream = decode(replace(exchange(), response=None))
    assert (stream.format, stream.body) == (Format.OTHER, b"")


@given(
    st.lists(
        st.binary(min_size=1, max_size=20)
        | st.sampled_from([SSE, b"{", b"[", b"{}\n", b"\n\n", event("x", 1)]),
        max_size=5,
    ),
    st.sampled_from(["text/event-stream", "application/json", "text/html"]),
    st.sampled_from(["", "gzip", "deflate", "zstd", "br", "gzip, br", "x"]),
)
def test_no_response_makes_decoding_raise(pieces: list[bytes], media: str, coding: str) -> None:
    stream = decode(exchange(*pieces, media=media, coding=coding))
    again = decode(exchange(*([b"".join(pieces)] if pieces else []), media=media, coding=coding))
    assert (stream.format, stream.body) == (again.format, again.body)
    assert [event.data for event in stream.events] == [event.data for event in again.events]


MESSAGE = event("messageStart", {"role": "assistant"})
BOM = b"\xef\xbb\xbf"
LINES = b'{"model":"m","done":false}\n{"model":"m","done":true}\n'
DOCUMENT = b'{\n  "error": {\n    "code": 400\n  }\n}\n'

SSE_TYPE, NDJSON, ARRAY = "text/event-stream", "application/x-ndjson", Format.JSON_ARRAY


@pytest.mark.parametrize(
    ("body", "media", "expected"),
    [
        (b"data: 1\n\n", "application/json", Format.SSE),
        (BOM + b"\r\n: x\n", "text/plain", Format.SSE),
        (b"data\n\n", "", Format.SSE),
        (b'{"error":1}\n\ndata: x\n\n', SSE_TYPE, Format.SSE),
        (b"garbage", SSE_TYPE, Format.SSE),
        (b"", SSE_TYPE, Format.SSE),
        (b"database error", "text/plain", Format.OTHER),
    ],
)
def test_server_sent_events(body: bytes, media: str, expected: Format) -> None:
    assert format_of(body, media) is expected


@pytest.mark.parametrize(
    ("body", "media", "expected"),
    [
        (MESSAGE, "application/octet-stream", Format.EVENTSTREAM),
        (MESSAGE[:12], "", Format.EVENTSTREAM),
        (MESSAGE[:11], "", Format.OTHER),
        (MESSAGE[:11], "application/vnd.amazon.eventstream", Format.EVENTSTREAM),
        (MESSAGE[1:], "application/vnd.amazon.eventstream", Format.EVENTSTREAM),
        (b"", "application/vnd.amazon.eventstream", Format.EVENTSTREAM),
        (b'{"message":"x"}', "application/vnd.amazon.eventstream", Format.JSON),
    ],
)
def test_amazon_event_streams(body: bytes, media: str, expected: Format) -> None:
    assert format_of(body, media) is expected


@pytest.mark.parametrize("media", [NDJSON, "application/json", "text/plain", SSE_TYPE, ""])
@pytest.mark.parametrize(
    "body",
    [
        LINES,
        LINES.replace(b"\n", b"\r\n"),
        BOM + b"\n \r\n" + LINES,
        b'{"a":1}\n\n\n{"b',
        b'{"a":1}\n[',
        b'["a"]\n["b"]\n',
    ],
)
def test_lines_of_json_are_described_by_their_looks(body: bytes, media: str) -> None:
    assert format_of(body, media) is Format.NDJSON


@pytest.mark.parametrize(
    ("body", "as_ndjson", "as_json"),
    [
        (b'{"a":1}\n', Format.NDJSON, Format.JSON),
        (b'{"a":1}', Format.NDJSON, Format.JSON),
        (b'{"a":', Format.NDJSON, Format.JSON),
        (b'{"a":1}\ngarbage', Format.NDJSON, Format.JSON),
        (b'{"a":}\n{"b":2}\n', Format.NDJSON, Format.JSON),
        (b'{"a":\n{"b":2}\n{"c":3}\n', Format.NDJSON, Format.JSON),
        (b'proxy error\n{"b":2}\n', Format.NDJSON, Format.JSON),
        (b"", Format.NDJSON, Format.OTHER),
        (b" \n", Format.NDJSON, Format.OTHER),
        (b"proxy error\n", Format.OTHER, Format.JSON),
        (DOCUMENT, Format.JSON, Format.JSON),
        (BOM + DOCUMENT, Format.JSON, Format.JSON),
        (DOCUMENT[:20], Format.JSON, Format.JSON),
    ],
)
def test_the_media_type_of_json_lines_counts_where_looks_do_not_decide(
    body: bytes, as_ndjson: Format, as_json: Format
) -> None:
    assert format_of(body, NDJSON) is as_ndjson
    assert format_of(body, "application/stream+json") is as_ndjson
    assert format_of(body, "application/json") is as_json


@pytest.mark.parametrize("media", [NDJSON, "application/json", "text/plain", SSE_TYPE])
@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'[{"a":1},\r\n{"b":2}]', ARRAY),
        (b'[{\n  "a": 1\n}\n,\n{', ARRAY),
        (BOM + b' \n[ {"a":1}]\n', ARRAY),
        (b"[]", ARRAY),
        (b"[ \n", ARRAY),
        (b"[", ARRAY),
        (b'[{"error":1}]\n', ARRAY),
    ],
)
def test_arrays_of_objects_are_streams(body: bytes, media: str, expected: Format) -> None:
    assert format_of(body, media) is expected


@pytest.mark.parametrize(
    ("body", "media", "expected"),
    [
        (b"[1,2]", "application/json", Format.JSON),
        (b'["a"]', "text/plain", Format.JSON),
        (b'{"error":1}', SSE_TYPE, Format.JSON),
        (b"null", "application/json", Format.JSON),
        (b"null", "application/problem+json", Format.JSON),
        (b" ", "application/json", Format.OTHER),
        (b"<html>", "text/html", Format.OTHER),
        (b"", "", Format.OTHER),
    ],
)
def test_documents_and_what_is_nothing(body: bytes, media: str, expected: Format) -> None:
    assert format_of(body, media) is expected


def test_a_body_that_no_coding_was_applied_to_shows_it() -> None:
    assert all(is_plain(body) for body in (b"data: x\n\n", LINES, b"[", MESSAGE))
    assert not is_plain(b"\x1f\x8bxx")


def test_what_the_tape_says_is_a_credential_is_not_decoded() -> None:
    coded = gzip.compress(b'data: {"a":"secret"}\n\n')
    made = exchange(coded[:-9], coded[-9:], coding="gzip")
    first, last = made.reads
    hidden = (12, 18, "ab12cd34")
    stream = decode(replace(made, reads=(first, last._replace(hidden=(hidden,)))))
    assert [event.data for event in stream.events] == ['{"a":"******"}']
