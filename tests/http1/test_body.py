import itertools

import httptools
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from deltatape.http1.body import (
    MAX_LINE_BYTES,
    ChunkedBody,
    CloseBody,
    LengthBody,
    body_of,
    fin_completes,
    write_chunk,
)
from deltatape.model.exchange import Framing

CHUNKED = b"5;ext=1\r\nhello\r\n6\r\n world\r\n0\r\nX-Trailer: yes\r\n\r\n"


def scan_all(pieces: list[bytes]) -> tuple[bytes, list[int], bool]:
    body = ChunkedBody()
    data, ends = b"", []
    for piece in pieces:
        scan = body.feed(piece)
        assert scan.used == len(piece)
        assert scan.ends is not None
        ends += [len(data) + end for end in scan.ends]
        data += scan.data
    return data, ends, body.done


def test_a_chunked_body_is_the_same_under_every_cut() -> None:
    at_once = scan_all([CHUNKED])
    assert at_once == (b"hello world", [5, 11], True)
    for cut in range(1, len(CHUNKED)):
        assert scan_all([CHUNKED[:cut], CHUNKED[cut:]]) == at_once
    assert scan_all([CHUNKED[i : i + 1] for i in range(len(CHUNKED))]) == at_once


@pytest.mark.parametrize(
    "read",
    [
        *(b"1\r\na\r\n", b"0a\r\n0123456789\r\n", b"2\r\n\r\n\r\n", b"1\r\na\r\n1\r\nb\r\n"),
        *(b"1\r\na\r\n0\r\n\r\n", b"1;x\r\na\r\n", b"2\r\na\r\n", b"1\r\nab\r\n", b"1\r\na\n\n"),
        *(b"0\r\n\r\n", b"\r\na\r\n", b"a\r\n", b"0123456789\r\n"),
    ],
)
def test_a_chunk_that_is_one_read_is_the_same_as_in_two(read: bytes) -> None:
    whole, cut = ChunkedBody(), ChunkedBody()
    at_once = whole.feed(read)
    first, rest = cut.feed(read[:1]), cut.feed(read[1:])
    assert (whole.done, whole.problem) == (cut.done, cut.problem)
    assert at_once.data == first.data + rest.data
    assert at_once.ends == rest.ends
    assert whole.problem or at_once.used == first.used + rest.used


def test_trailers_are_kept() -> None:
    body = ChunkedBody()
    body.feed(CHUNKED)
    assert body.trailers == ((b"X-Trailer", b"yes"),)


@pytest.mark.parametrize(
    "trailer",
    [
        *(b"X: a\rGET /smuggled HTTP/1.1", b"X: a\x00b", b"X y: a", b"X\x00: a", b": a", b"X\t: a"),
        *(b"Transfer-Encoding: x", b"HOST: evil", b"Content-Length: 100", b"Authorization: x"),
    ],
)
def test_trailers_that_could_change_the_request_are_refused(trailer: bytes) -> None:
    body = ChunkedBody(strict=True)
    body.feed(b"0\r\n" + trailer + b"\r\n\r\n")
    assert "trailer" in body.problem
    assert not body.done


REQUEST_HEAD = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
FRAMING = st.text(
    st.sampled_from(
        ["0", "1", "f", "a", ";", "=", '"', "\\", " ", "\t", "\0", "\r", ":", "\x7f", "é"]
    ),
    max_size=8,
).map(str.encode)


def llhttp_accepts(body: bytes) -> bool:
    try:
        httptools.HttpRequestParser(object()).feed_data(REQUEST_HEAD + body)
    except httptools.HttpParserError:
        return False
    return True


@settings(max_examples=400)
@given(FRAMING, FRAMING)
@example(b"1 ", b"a:")
@example(b'1;a=b;c="\\""', b"a:\xff")
def test_a_request_with_framing_that_llhttp_refuses_is_refused(size: bytes, value: bytes) -> None:
    for raw in (b"1" + size + b"\r\n", b"0\r\na: " + value + b"\r\n\r\n"):
        body = ChunkedBody(strict=True)
        body.feed(raw)
        assert body.problem or llhttp_accepts(raw)


@pytest.mark.parametrize("size", [b"A", b"00a", b"a;x", b"a;x=y;z", b'a;x="y \\" ;";z=1'])
def test_a_chunk_size_of_a_request_may_have_extensions(size: bytes) -> None:
    body = ChunkedBody(strict=True)
    assert body.feed(size + b"\r\n0123456789\r\n").data == b"0123456789"
    assert not body.problem
    assert llhttp_accepts(size + b"\r\n0123456789\r\n")


@pytest.mark.parametrize("size", [b"5 ", b"5\t", b"5 ;a", b"5;a=\xff", b"5;"])
def test_a_response_may_have_a_chunk_size_that_clients_accept(size: bytes) -> None:
    assert scan_all([size + b"\r\nhello\r\n0\r\n\r\n"]) == (b"hello", [5], True)


def test_a_response_may_have_any_valid_trailer() -> None:
    body = ChunkedBody()
    body.feed(b"0\r\nContent-Type: x\r\nX-Empty:\r\n\r\n")
    assert body.trailers == ((b"Content-Type", b"x"), (b"X-Empty", b""))


def test_bytes_after_the_end_are_not_the_bodys() -> None:
    scan = ChunkedBody().feed(CHUNKED + b"GET /next")
    assert scan.used == len(CHUNKED)
    assert LengthBody(3).feed(b"abcdef").used == 3


def test_a_known_length_ends_when_it_is_reached() -> None:
    body = LengthBody(4)
    assert body.feed(b"ab").data == b"ab"
    assert not body.done
    assert body.feed(b"cd").ends is None
    assert body.done
    assert LengthBody(0).done


def test_a_body_that_ends_with_the_connection_takes_everything() -> None:
    body = CloseBody()
    assert body.feed(b"anything").data == b"anything"
    assert not body.done


@pytest.mark.parametrize(
    "raw",
    [
        b"\r\n",
        b"+5\r\n",
        b"0x5\r\n",
        b"5 5\r\n",
        b"-1\r\n",
        b"11112222333344445\r\n",
        b"5\nhello",
        b"5\r\nhello!\r\n",
        b"0\r\nno colon\r\n\r\n",
        b"0\r\n: empty\r\n\r\n",
        b"0\r\n folded: 1\r\n\r\n",
        b"1;" + b"x" * (MAX_LINE_BYTES + 1),
        b"0\r\n" + b"".join(b"a%d: %b\r\n" % (n, b"x" * 9000) for n in range(9)),
    ],
)
def test_broken_chunk_framing_is_told(raw: bytes) -> None:
    body = ChunkedBody()
    body.feed(raw)
    assert body.problem
    assert not body.done


def test_what_came_before_broken_framing_is_valid_under_every_cut() -> None:
    raw = b"5\r\nhello\r\n3\r\nyou\r\nZZ\r\nrest"
    for cut in range(len(raw)):
        body = ChunkedBody()
        scans = [body.feed(piece) for piece in (raw[:cut], raw[cut:]) if not body.problem]
        assert b"".join(scan.data for scan in scans) == b"helloyou"
        assert "not a chunk size: b'ZZ'" in body.problem
        fed = raw[:cut] if len(scans) == 1 else raw
        used = sum(scan.used for scan in scans)
        assert body.pending + fed[used:] == b"ZZ\r\nrest"[: len(body.pending + fed[used:])]


def test_each_framing_has_its_scanner() -> None:
    assert isinstance(body_of(Framing.CHUNKED, 0), ChunkedBody)
    assert isinstance(body_of(Framing.CLOSE, 0), CloseBody)
    assert not body_of(Framing.LENGTH, 1).done
    assert body_of(Framing.NONE, 7).done


@given(st.lists(st.binary(min_size=1, max_size=300), max_size=6), st.data())
def test_written_chunks_are_read_back_under_any_cutting(
    chunks: list[bytes], data: st.DataObject
) -> None:
    raw = b"".join(map(write_chunk, chunks)) + b"0\r\n\r\n"
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=8)))
    edges = [0, *cuts, len(raw)]
    pieces = [raw[a:b] for a, b in itertools.pairwise(edges) if a < b]
    got, ends, done = scan_all(pieces)
    assert done
    assert got == b"".join(chunks)
    assert len(ends) == len(chunks)


@pytest.mark.parametrize(
    ("framing", "bare", "completes"),
    [
        (Framing.CLOSE, False, True),
        (Framing.CHUNKED, True, True),
        (Framing.CHUNKED, False, False),
        (Framing.LENGTH, False, False),
        (None, True, False),
    ],
)
def test_where_a_fin_looks_like_the_end(
    framing: Framing | None, *, bare: bool, completes: bool
) -> None:
    assert fin_completes(framing, bare=bare) is completes
