import pytest

from deltatape.importers._base import ImportSource
from deltatape.importers.raw import RawImporter, sniff
from deltatape.model.exchange import Exchange, header
from helpers.eventstream import event


def read(body: bytes, **described: bytes) -> Exchange:
    material = ImportSource(name="x.sse", files={"x.sse": body}, **described)
    assert RawImporter().claims(material)
    return RawImporter().read(material)


@pytest.mark.parametrize(
    ("body", "media_type"),
    [
        (b"data: x\n\n", "text/event-stream"),
        (b"\xef\xbb\xbfevent: a\ndata: x\n\n", "text/event-stream"),
        (b": hello\n\n", "text/event-stream"),
        (b'  {"a": 1}', "application/json"),
        (b'{"a": 1}\n', "application/json"),
        (b'[{"a": 1},\n{"b": 2}]', "application/json"),
        (b'{\n "a": 1\n}', "application/json"),
        (b'{"a": 1}\n{"b": 2}\n', "application/x-ndjson"),
        (b'[{"a": 1}\r\n,{"b"', "application/json"),
        (b'{"a": 1}\n{"b": ', "application/x-ndjson"),
        (b"junk\ndata: x\n\n", "text/event-stream"),
        (event("a", {}), "application/vnd.amazon.eventstream"),
        (b"hello", "application/octet-stream"),
        (b"", "application/octet-stream"),
        (b"\0" * 11, "application/octet-stream"),
    ],
)
def test_the_media_type_is_told_by_the_body(body: bytes, media_type: str) -> None:
    assert sniff(body) == media_type


def test_the_body_is_kept_byte_for_byte() -> None:
    body = b"data: \xff\r\r\n\0junk\n"
    exchange = read(body)
    assert exchange.body == body
    assert exchange.tape == "x.sse"
    assert [note.text for note in exchange.notes] == [
        "media type text/event-stream told by the body"
    ]


def test_request_and_response_may_be_described() -> None:
    exchange = read(
        b"data: x\n\n",
        request=b'{"model": "m"}',
        response=b'{"status": 503, "headers": {"Content-Type": "text/plain"}}',
    )
    assert exchange.request.body == b'{"model": "m"}'
    assert exchange.response is not None
    assert exchange.response.status == 503
    assert header(exchange.response.headers, "content-type") == b"text/plain"
    assert exchange.notes == ()


def test_a_described_response_without_media_type_keeps_its_headers() -> None:
    exchange = read(b"data: x\n\n", response=b'{"headers": {"A": "1"}}')
    assert exchange.response is not None
    assert exchange.response.headers == ((b"A", b"1"), (b"content-type", b"text/event-stream"))


def test_folders_are_not_for_this_importer() -> None:
    assert not RawImporter().claims(ImportSource(name="x", files={"a": b"", "b": b""}))
