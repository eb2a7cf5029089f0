import json

import pytest

from deltatape.http1.head import (
    MAX_HEAD_BYTES,
    REASONS,
    BadMessageError,
    Fields,
    end_to_end,
    ends_connection,
    error_answer,
    expects_continue,
    field,
    find_head,
    http2_refusal,
    parse_request,
    parse_response,
    write_request,
    write_response,
)
from deltatape.model.exchange import Framing


def test_fields_keep_order_case_and_repeats() -> None:
    raw = b"GET /a?b=%7E HTTP/1.1\r\nHost: h\r\nX-A: 1\r\nx-a: 2\r\nAccept:\r\n\r\n"
    head = parse_request(raw)
    assert head.fields == ((b"Host", b"h"), (b"X-A", b"1"), (b"x-a", b"2"), (b"Accept", b""))
    assert head.target == b"/a?b=%7E"
    assert write_request(head.method, head.target, head.fields) == raw.replace(
        b"Accept:", b"Accept: "
    )


@pytest.mark.parametrize(
    ("raw", "keep_alive"),
    [
        (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", True),
        (b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", False),
        (b"GET / HTTP/1.0\r\nHost: a\r\n\r\n", False),
    ],
)
def test_whether_a_client_wants_to_go_on(raw: bytes, *, keep_alive: bool) -> None:
    assert parse_request(raw).keep_alive is keep_alive


def test_upgrade_and_connect_are_whole_heads() -> None:
    upgrade = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"
    assert parse_request(upgrade).method == "GET"
    assert parse_request(b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n").method == "CONNECT"


@pytest.mark.parametrize(
    ("method", "raw", "framing", "length"),
    [
        ("GET", b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n", Framing.LENGTH, 4),
        ("HEAD", b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n", Framing.NONE, 0),
        ("GET", b"HTTP/1.1 204 No\r\n\r\n", Framing.NONE, 0),
        ("GET", b"HTTP/1.1 304 Not\r\nContent-Length: 4\r\n\r\n", Framing.NONE, 0),
        ("GET", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", Framing.CHUNKED, 0),
        ("GET", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", Framing.CLOSE, 0),
        (
            "GET",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: gzip\r\n\r\n",
            Framing.CLOSE,
            0,
        ),
        (
            "GET",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n",
            Framing.CHUNKED,
            0,
        ),
        ("GET", b"HTTP/1.0 200 \xe9\r\n\r\n", Framing.CLOSE, 0),
    ],
)
def test_framing_of_a_response(method: str, raw: bytes, framing: Framing, length: int) -> None:
    head = parse_response(raw, method=method)
    assert (head.framing, head.length) == (framing, length)


def test_a_response_that_only_its_close_ends_cannot_keep_the_connection() -> None:
    assert not parse_response(b"HTTP/1.1 200 OK\r\n\r\n", method="GET").keep_alive
    assert parse_response(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", method="GET").keep_alive


@pytest.mark.parametrize(
    ("http", "framing", "fields", "ends"),
    [
        ("1.1", Framing.LENGTH, (), False),
        ("1.1", Framing.CLOSE, (), True),
        ("1.1", Framing.CHUNKED, ((b"connection", b"x, Close"),), True),
        ("1.1", Framing.CHUNKED, ((b"Connection", b"x"), (b"Connection", b"close")), True),
        ("1.1", Framing.CHUNKED, ((b"Connection", b"keep-alive"),), False),
        ("1.0", Framing.LENGTH, (), True),
        ("1.0", Framing.LENGTH, ((b"Connection", b"Keep-Alive"),), False),
    ],
)
def test_which_responses_end_their_connection(
    http: str, framing: Framing, fields: Fields, *, ends: bool
) -> None:
    assert ends_connection(http, framing, fields) is ends


def test_reason_bytes_survive() -> None:
    raw = b"HTTP/1.1 200 D\xe9j\xe0 vu\r\nA: b\r\n\r\n"
    head = parse_response(raw, method="GET")
    assert write_response(head.status, head.reason, head.fields) == raw


def test_only_1xx_but_101_is_informational() -> None:
    assert parse_response(b"HTTP/1.1 103 Early\r\n\r\n", method="GET").informational
    assert not parse_response(
        b"HTTP/1.1 101 S\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n", method="GET"
    ).informational
    assert not parse_response(b"HTTP/1.1 200 OK\r\n\r\n", method="GET").informational


@pytest.mark.parametrize(
    "raw",
    [
        b"hello\r\n\r\n",
        b"HTTP/3.0 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 099 OK\r\n\r\n",
    ],
)
def test_what_is_no_response_is_told(raw: bytes) -> None:
    with pytest.raises(BadMessageError):
        parse_response(raw, method="GET")


def test_fields_for_one_hop_are_dropped_with_those_that_connection_lists() -> None:
    fields = (
        (b"Connection", b"keep-alive, X-Hop, content-length"),
        (b"Keep-Alive", b"timeout=5"),
        (b"X-Hop", b"1"),
        (b"Content-Length", b"3"),
        (b"Transfer-Encoding", b"chunked"),
        (b"Upgrade", b"h2c"),
        (b"X-End", b"2"),
    )
    assert [name for name, _ in end_to_end(fields)] == [
        b"Content-Length",
        b"Transfer-Encoding",
        b"X-End",
    ]


def test_a_head_is_found_when_its_blank_line_is_there() -> None:
    assert find_head(b"GET / HTTP/1.1\r\n\r") == 0
    assert find_head(b"GET / HTTP/1.1\r\n\r\nrest") == 18


def test_tls_is_told_at_its_first_bytes() -> None:
    with pytest.raises(BadMessageError, match="not https"):
        find_head(b"\x16\x03\x01\x02\x00\x01")


def test_lines_that_end_with_lf_alone_are_refused_at_once() -> None:
    with pytest.raises(BadMessageError, match="LF alone"):
        find_head(b"GET / HTTP/1.1\nHost: a\n\n")
    assert find_head(b"GET / HTTP/1.1\r\nHost: a\r\n\r\nbody\n\n") == 27


def test_a_head_without_end_is_refused_at_a_limit() -> None:
    with pytest.raises(BadMessageError, match="no end of the head"):
        find_head(b"a" * (MAX_HEAD_BYTES + 1))


def test_empty_lines_before_a_request_are_left_out_a_bare_cr_is_refused() -> None:
    for before in (b"", b"\r\n", b"\r\n\r\n"):
        assert parse_request(before + b"GET /a HTTP/1.1\r\nHost: b\r\n\r\n").target == b"/a"
    for before in (b"\r", b"\r\n\r"):
        with pytest.raises(BadMessageError, match="a CR without LF before the request line"):
            parse_request(before + b"GET /a HTTP/1.1\r\nHost: b\r\n\r\n")


def test_field_takes_the_first_in_any_case() -> None:
    assert field(((b"A", b"1"), (b"a", b"2")), b"a") == b"1"
    assert field((), b"a") is None


def test_a_short_head_that_comes_again_is_not_parsed_again_a_long_one_is() -> None:
    short = b"POST /again HTTP/1.1\r\nHost: a\r\n\r\n"
    long = b"POST /again HTTP/1.1\r\nHost: a\r\nX-Long: %b\r\n\r\n" % (b"x" * 5000)
    assert parse_request(short) is parse_request(short)
    assert parse_request(long) is not parse_request(long)
    assert parse_request(long) == parse_request(long)


def test_only_a_client_of_http_1_1_waits_to_continue() -> None:
    def waits(http: str, field: str) -> bool:
        return expects_continue(
            parse_request(f"POST / HTTP/{http}\r\nHost: a\r\n{field}\r\n\r\n".encode())
        )

    assert waits("1.1", "Expect: 100-Continue")
    assert not waits("1.0", "Expect: 100-continue")
    assert not waits("1.1", "Expect: tea")
    assert not waits("1.1", "X: 1")


# Answers of our own have the form that SDKs show to their users.


@pytest.mark.parametrize("status", REASONS)
def test_an_answer_is_a_whole_response_that_closes(status: int) -> None:
    head, _, body = error_answer(status, "some_code", 'it says "no" to €').partition(b"\r\n\r\n")
    parsed = parse_response(head + b"\r\n\r\n", method="POST")
    assert parsed.status == status
    assert parsed.reason == REASONS[status]
    assert parsed.length == len(body)
    assert not parsed.keep_alive
    assert field(parsed.fields, b"x-deltatape-error") == b"some_code"
    assert json.loads(body) == {
        "error": {"message": 'it says "no" to €', "type": "deltatape", "code": "some_code"}
    }


def test_details_and_fields_are_added() -> None:
    answer = error_answer(400, "c", "m", detail={"nearest": None}, fields=((b"x-a", b"1"),))
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"\r\nx-a: 1" in head
    assert json.loads(body)["error"]["nearest"] is None


def test_head_is_answered_without_the_body_that_it_announces() -> None:
    response = error_answer(404, "c", "m")
    assert error_answer(404, "c", "m", head_only=True) == response.partition(b"\r\n\r\n")[0] + (
        b"\r\n\r\n"
    )


@pytest.mark.parametrize(
    "field", [b"content-length: %b", b"Content-Length: %b", b"CONTENT-LENGTH:%b"]
)
@pytest.mark.parametrize("length", [b"0", b"1", b"2", b"007", b"1234567", b"12345678"])
def test_each_head_has_its_own_length(field: bytes, length: bytes) -> None:
    for digits in (b"5", length, b"6"):
        line = field % digits
        head = parse_request(b"POST / HTTP/1.1\r\nHost: a\r\n%b\r\nX: 1\r\n\r\n" % line)
        assert head.length == int(digits)
        name = line.partition(b":")[0]
        assert head.fields == ((b"Host", b"a"), (name, digits), (b"X", b"1"))


def test_heads_have_one_pattern_if_they_differ_in_their_length_alone() -> None:
    def pattern(fields: bytes) -> bytes:
        return parse_request(b"POST / HTTP/1.1\r\nHost: a\r\n%b\r\n" % fields).pattern

    assert pattern(b"Content-Length: 5\r\n") == pattern(b"Content-Length: 1234567\r\n")
    assert pattern(b"Content-Length: 5\r\n") != pattern(b"Content-Length: 12345678\r\n")
    assert pattern(b"Content-Length: 5\r\n") != pattern(b"content-length: 5\r\n")
    assert pattern(b"Content-Length: 5\r\n") != pattern(b"X: Content-Length: 5\r\n")


@pytest.mark.parametrize("other", [b"Content-Length: 6", b"Transfer-Encoding: chunked"])
def test_a_second_framing_is_refused_also_where_the_first_is_known(other: bytes) -> None:
    start = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n"
    parse_request(start + b"\r\n")
    for _ in range(2):
        with pytest.raises(BadMessageError):
            parse_request(start + other + b"\r\n\r\n")


def test_http_2_is_told_in_its_frames_which_version_is_required() -> None:
    frames = http2_refusal("use HTTP/1.1")
    settings, goaway = frames[:9], frames[9:]
    assert settings == bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
    assert goaway[:9] == bytes((0, 0, 8 + 12, 7, 0, 0, 0, 0, 0))
    assert goaway[9:17] == bytes((0, 0, 0, 0, 0, 0, 0, 13))
    assert goaway[17:] == b"use HTTP/1.1"
