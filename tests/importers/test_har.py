import base64
import json

import pytest

from deltatape.errors import UsageError
from deltatape.importers.har import HarImporter
from deltatape.importers.parts import ImportSource
from deltatape.model.exchange import Exchange, Framing, header
from helpers.chat import sse
from helpers.eventstream import event
from helpers.secret_tapes import words

STREAM = sse(words("Hello"))
JSON = "application/json"


def entry(content: object, **response: object) -> dict[str, object]:
    """An entry whose response has this content."""
    return {
        "request": {
            "method": "POST",
            "url": "https://api.example.com/v1/chat/completions?key=fake",
            "httpVersion": "h2",
            "headers": [{"name": ":method", "value": "POST"}, {"name": "A", "value": "1"}, "odd"],
            "postData": {"mimeType": JSON, "text": '{\n"model": "m"}'},
        },
        "response": {"status": 200, "content": content, **response},
    }


def text(body: bytes, media: str = "text/event-stream") -> dict[str, object]:
    return {"mimeType": media, "text": body.decode()}


def encoded(body: bytes) -> dict[str, object]:
    media = "application/vnd.amazon.eventstream"
    return {"mimeType": media, "text": base64.b64encode(body).decode(), "encoding": "base64"}


def material(*entries: object, **described: bytes) -> ImportSource:
    data = json.dumps({"log": {"version": "1.2", "entries": entries}}).encode()
    return ImportSource(name="x.har", files={"x.har": data}, **described)


def read(*entries: object, **described: bytes) -> Exchange:
    assert HarImporter().claims(material(*entries, **described))
    return HarImporter().read(material(*entries, **described))


def notes(exchange: Exchange) -> list[str]:
    return [note.text for note in exchange.notes]


def test_an_entry_is_an_exchange() -> None:
    exchange = read(
        entry(text(STREAM), statusText="OK", httpVersion="HTTP/1.1", headers=[{"name": "B"}])
    )
    request, response = exchange.request, exchange.response
    assert (request.method, request.upstream) == ("POST", "https://api.example.com")
    assert (request.path, request.http) == ("/v1/chat/completions", "2")
    assert (request.headers, request.body) == (((b"A", b"1"),), b'{\n"model": "m"}')
    assert response is not None
    assert (response.status, response.reason, response.http) == (200, b"OK", "1.1")
    assert response.headers == ((b"B", b""), (b"content-type", b"text/event-stream"))
    assert exchange.body == STREAM
    assert notes(exchange) == ["HAR: entry 1 of 1"]


def test_what_an_archive_has_undone_is_not_a_part_of_the_head() -> None:
    names = ["Content-Encoding", "Content-Length", "Transfer-Encoding", "Content-Type"]
    fields = [{"name": name, "value": "chunked"} for name in names]
    response = read(entry(text(STREAM), headers=fields)).response
    assert response is not None
    assert response.headers == ((b"Content-Type", b"chunked"),)
    assert response.framing is Framing.CLOSE


def test_a_body_in_base64_is_decoded() -> None:
    body = event("chunk", {"a": "é"})
    assert read(entry(encoded(body))).body == body
    broken = {**encoded(body), "text": "a"}
    exchange = read(entry(broken))
    assert (exchange.body, len(notes(exchange))) == (b"a", 2)


def test_a_binary_body_in_characters_of_one_byte_is_read_and_a_lossy_one_told() -> None:
    body = event("chunk", {})
    exchange = read(entry({"text": body.decode("latin-1")}))
    assert (exchange.body, notes(exchange)[0]) == (body, "HAR: entry 1 of 1")
    lossy = read(entry({"mimeType": "x/y", "text": body.decode(errors="replace")}))
    assert notes(lossy)[1] == "HAR: the body was saved as text; bytes that are not text are lost"


def test_of_several_entries_the_last_that_a_model_answered_is_taken() -> None:
    page = {"method": "GET", "url": "https://example.com/a.css"}
    css = {**entry(text(b"a{}", "text/css")), "request": page}
    empty = entry({"size": 0})
    first, last = entry(text(STREAM)), entry(text(sse(words("last"))))
    exchange = read(css, first, last, css, empty)
    assert exchange.body == sse(words("last"))
    assert notes(exchange) == ["HAR: entry 3 of 5"]


def test_without_an_answer_of_a_model_the_last_with_a_body_is_taken() -> None:
    page = {"mimeType": "text/html", "text": "<html>"}
    empty = entry({})
    empty["request"] = None
    other = {**entry(page), "request": {"method": "G\n", "url": 7, "headers": 1}}
    exchange = read(entry({}), other, empty, {"response": {"status": 0}}, 7)
    assert exchange.body == b"<html>"
    assert (exchange.request.method, exchange.request.path) == ("POST", "/")
    assert notes(read(empty))[:2] == ["HAR: entry 1 of 1", "HAR: the entry has no response body"]


def test_request_and_response_named_aside_win() -> None:
    exchange = read(
        entry(text(STREAM)),
        request=b'{"model": "n"}',
        response=b'{"status": 503, "headers": {"Content-Type": "text/plain"}}',
    )
    assert exchange.request.body == b'{"model": "n"}'
    assert exchange.response is not None
    assert exchange.response.status == 503
    assert header(exchange.response.headers, "content-type") == b"text/plain"


@pytest.mark.parametrize("status", [0, 99, 1000, "200", None, 200.5])
def test_an_archive_without_any_response_is_refused(status: object) -> None:
    entries = material({"response": {"status": status}})
    with pytest.raises(UsageError, match="none of the 1 entries of this HAR has a response"):
        HarImporter().read(entries)


@pytest.mark.parametrize(
    "data", [b'{"log": {"entries": 1}}', b'{"log": {"entries": [', b'{"log":7']
)
def test_a_damaged_archive_is_refused(data: bytes) -> None:
    with pytest.raises(UsageError, match="0 entries"):
        HarImporter().read(ImportSource(name="x.har", files={"x.har": data}))


@pytest.mark.parametrize("data", [b"", STREAM, b'{"log": 1}', b'{"a": {"log": {"entries": []}}}'])
def test_what_is_no_archive_is_not_for_this_importer(data: bytes) -> None:
    assert not HarImporter().claims(ImportSource(name="x", files={"x": data}))
    assert not HarImporter().claims(ImportSource(name="x", files={"x": data, "y": data}))


def test_a_byte_order_mark_hides_no_archive() -> None:
    data = b"\xef\xbb\xbf" + (material(entry(text(STREAM))).only or b"")
    marked = ImportSource(name="x.har", files={"x.har": data})
    assert HarImporter().claims(marked)
    assert HarImporter().read(marked).body == STREAM


def test_values_that_a_browser_joined_by_line_feeds_are_fields_of_their_own() -> None:
    hints = {"name": "x-hint", "value": "a\nb\r\nc"}
    exchange = read(entry(text(STREAM), headers=[hints], statusText="OK\nX: y"))
    assert exchange.response is not None
    assert [value for name, value in exchange.response.headers if name == b"x-hint"] == [
        b"a",
        b"b",
        b"c",
    ]
    assert exchange.response.reason == b""
