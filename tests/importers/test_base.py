import pytest

from deltatape.importers._base import ImportedRequest, ImportedResponse, ImportSource, build
from deltatape.model.exchange import Framing


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
        ((b"Content-Type", b"x"), Framing.CLOSE),
    ],
)
def test_the_framing_is_what_the_headers_say(header: tuple[bytes, bytes], framing: Framing) -> None:
    exchange = build("x", ImportedRequest(), ImportedResponse(headers=(header,)), b"abc")
    assert exchange.response is not None
    assert (exchange.response.framing, exchange.response.headers) == (framing, (header,))
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
        "x", ImportedRequest(), ImportedResponse(headers=(header,)), b"abc", ["before"]
    )
    assert exchange.response is not None
    assert exchange.response.headers == ()
    assert exchange.notes[0].text == "before"
    assert "it contradicts the body of 3 bytes" in exchange.notes[1].text


@pytest.mark.parametrize(
    ("coding", "body"),
    [(b"gzip", b"\x1f\x8b..."), (b"zstd", b"\x28\xb5\x2f\xfd..."), (b"br", b"abc")],
)
def test_a_coding_that_may_still_be_there_is_kept(coding: bytes, body: bytes) -> None:
    headers = ((b"content-encoding", coding),)
    exchange = build("x", ImportedRequest(), ImportedResponse(headers=headers), body)
    assert exchange.response is not None
    assert exchange.response.headers == headers


def test_an_empty_body_is_no_read() -> None:
    assert build("x", ImportedRequest(), ImportedResponse(), b"").reads == ()


def test_only_a_single_file_is_the_only_one() -> None:
    assert ImportSource(name="x", files={"x": b"1"}).only == b"1"
    assert ImportSource(name="x", files={"x": b"1", "y": b""}).only is None
