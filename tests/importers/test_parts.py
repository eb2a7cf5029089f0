import json

import pytest

from deltatape.errors import UsageError
from deltatape.importers.parts import (
    ImportedRequest,
    ImportedResponse,
    ImportSource,
    build,
    read_request,
    read_response,
    sniff,
)
from deltatape.model.exchange import Framing
from helpers.eventstream import event

TEXT = (b"content-type", b"text/plain")


@pytest.mark.parametrize(
    ("url", "upstream", "target"),
    [
        ("https://host:8443/v1/x?a=1#f", "https://host:8443", b"/v1/x?a=1"),
        ("/v1/x", "", b"/v1/x"),
        ("", "", b"/"),
        ("https://host", "https://host", b"/"),
        ("https://[x/v1", "", b"https://[x/v1"),
        ("/\udcff", "", b"/\xff"),
    ],
)
def test_a_url_is_an_upstream_and_a_target(url: str, upstream: str, target: bytes) -> None:
    request = build("x", ImportedRequest(url=url), ImportedResponse(), b"").request
    assert (request.upstream, request.target) == (upstream, (target,))


@pytest.mark.parametrize(
    ("header", "framing"),
    [
        ((b"Transfer-Encoding", b"gzip, chunked"), Framing.CHUNKED),
        ((b"Content-Length", b"3"), Framing.LENGTH),
        ((b"X-Other", b"x"), Framing.CLOSE),
    ],
)
def test_the_framing_is_what_the_headers_say(header: tuple[bytes, bytes], framing: Framing) -> None:
    exchange = build("x", ImportedRequest(), ImportedResponse(headers=(header, TEXT)), b"abc")
    assert exchange.response is not None
    assert (exchange.response.framing, exchange.response.headers) == (framing, (header, TEXT))
    (read,) = exchange.reads
    assert read.boundaries == ((3,) if framing is Framing.CHUNKED else None)
    assert exchange.notes == ()


@pytest.mark.parametrize(
    "header",
    [(b"content-encoding", b"gzip"), (b"Content-Encoding", b" ZSTD"), (b"content-length", b"7")],
)
def test_a_header_that_does_not_fit_the_body_is_left_out_and_said(
    header: tuple[bytes, bytes],
) -> None:
    exchange = build(
        "x", ImportedRequest(), ImportedResponse(headers=(header, TEXT)), b"abc", ["before"]
    )
    assert exchange.response is not None
    assert exchange.response.headers == (TEXT,)
    assert exchange.notes[0].text == "before"
    assert "it contradicts the body of 3 bytes" in exchange.notes[1].text


@pytest.mark.parametrize(
    ("coding", "body"),
    [(b"gzip", b"\x1f\x8b..."), (b"zstd", b"\x28\xb5\x2f\xfd..."), (b"br", b"abc")],
)
def test_a_coding_that_may_still_be_there_is_kept(coding: bytes, body: bytes) -> None:
    headers = ((b"content-encoding", coding), TEXT)
    exchange = build("x", ImportedRequest(), ImportedResponse(headers=headers), body)
    assert exchange.response is not None
    assert exchange.response.headers == headers


def test_an_empty_body_is_no_read() -> None:
    assert build("x", ImportedRequest(), ImportedResponse(), b"").reads == ()


def test_only_a_single_file_is_the_only_one() -> None:
    assert ImportSource(name="x", files={"x": b"1"}).only == b"1"
    assert ImportSource(name="x", files={"x": b"1", "y": b""}).only is None


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
def test_the_media_type_is_described_by_the_body(body: bytes, media_type: str) -> None:
    assert sniff(body) == media_type


def test_a_request_is_described_by_its_parts() -> None:
    data = json.dumps(
        {
            "method": "PUT",
            "url": "https://host/x",
            "headers": {"A": "1", "B": ["2", "3"]},
            "body": {"model": "é"},
        }
    ).encode()
    assert read_request("r", data) == ImportedRequest(
        method="PUT",
        url="https://host/x",
        headers=((b"A", b"1"), (b"B", b"2"), (b"B", b"3")),
        body=b'{"model": "\\u00e9"}',
    )


@pytest.mark.parametrize("body", [b'{"model":"x","messages":[]}', b'{"body":1,"other":2}'])
def test_what_describes_no_request_is_its_body(body: bytes) -> None:
    assert read_request("r", body) == ImportedRequest(body=body)


def test_headers_and_body_alone_describe_a_request() -> None:
    assert read_request("r", b'{"headers": {"A": "1"}, "body": "x"}') == ImportedRequest(
        headers=((b"A", b"1"),), body=b"x"
    )


@pytest.mark.parametrize("data", [b"no json", b"", b"\xff\0", b"[" * 100_000, b"[1]", b"7", b"{}"])
def test_what_is_no_json_object_is_no_request(data: bytes) -> None:
    with pytest.raises(UsageError, match=r"^r\.json: the request must be a JSON object, "):
        read_request("r.json", data)


@pytest.mark.parametrize(("body", "expected"), [(None, b""), ("a\ud800", b"a?"), ([1], b"[1]")])
def test_a_body_may_be_missing_text_or_json(body: object, expected: bytes) -> None:
    data = json.dumps({"url": "/", "body": body}).encode()
    assert read_request("r", data) == ImportedRequest(url="/", body=expected)


def test_nothing_given_is_nothing_known() -> None:
    assert read_request("r", None) == ImportedRequest()
    assert read_response("r", None) == ImportedResponse()
    assert read_request("r", b'{"url": null, "method": null}') == ImportedRequest()


def test_a_response_is_described_by_status_and_headers() -> None:
    data = b'{"status": 429, "headers": [["Retry-After", "7"]], "other": 1}'
    assert read_response("r", data) == ImportedResponse(
        status=429, headers=((b"Retry-After", b"7"),)
    )


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"[]", "the response must be a JSON object"),
        (b"nonsense", "the response must be a JSON object"),
        (b"{}", "the response must be a JSON object"),
        (b'{"code": 200}', "the response must be a JSON object"),
        (b'{"status": 99}', '"status" is 99; use 100 to 999'),
        (b'{"status": true}', '"status" is True'),
        (b'{"headers": 1}', '"headers" is 1; use an object'),
        (b'{"headers": {"a": 1}}', "header ('a', 1); use a name and a text"),
        (b'{"headers": [["a"]]}', "header ['a']"),
        (b'{"headers": {"a": "b\\nc: d"}}', "\"a\" is 'b\\nc: d'; use printable text"),
    ],
)
def test_what_no_response_can_have_is_refused(data: bytes, problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_response("r.json", data)
    assert str(caught.value).startswith("r.json: ")
    assert problem in str(caught.value)


def test_what_no_request_can_have_is_refused() -> None:
    with pytest.raises(UsageError, match=r'r.json: "method" is 7; use printable text'):
        read_request("r.json", b'{"method": 7}')
