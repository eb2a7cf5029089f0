import pytest

from deltatape.diagnose.decode import format_of, is_plain
from deltatape.model.stream import Format
from helpers.eventstream import event

MESSAGE = event("messageStart", {"role": "assistant"})
BOM = b"\xef\xbb\xbf"
LINES = b'{"model":"m","done":false}\n{"model":"m","done":true}\n'
DOCUMENT = b'{\n  "error": {\n    "code": 400\n  }\n}\n'

SSE, NDJSON, ARRAY = "text/event-stream", "application/x-ndjson", Format.JSON_ARRAY


@pytest.mark.parametrize(
    ("body", "media", "expected"),
    [
        (b"data: 1\n\n", "application/json", Format.SSE),
        (BOM + b"\r\n: x\n", "text/plain", Format.SSE),
        (b"data\n\n", "", Format.SSE),
        (b'{"error":1}\n\ndata: x\n\n', SSE, Format.SSE),
        (b"garbage", SSE, Format.SSE),
        (b"", SSE, Format.SSE),
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


@pytest.mark.parametrize("media", [NDJSON, "application/json", "text/plain", SSE, ""])
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
def test_lines_of_json_are_told_by_their_looks(body: bytes, media: str) -> None:
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


@pytest.mark.parametrize("media", [NDJSON, "application/json", "text/plain", SSE])
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
        (b'{"error":1}', SSE, Format.JSON),
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
