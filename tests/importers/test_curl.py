from deltatape.importers._base import Answered, Asked
from deltatape.importers._curl import has_head, split_heads

VERBOSE = """\
$ curl -v https://api.example.com/v1/chat -d @request.json
  % Total    % Received % Xferd  Average Speed   Time    Time     Time  Current
  0     0    0     0    0     0      0      0 --:--:-- --:--:-- --:--:--     0
* Connected to api.example.com (192.0.2.1) port 443
*
> POST /v1/chat HTTP/2
> Host: api.example.com
> Authorization: Bearer fake
>\x20
} [123 bytes data]
< HTTP/1.1 100 Continue
<\x20
< HTTP/2 200
< Content-Type: text/event-stream
* Added cookie
< X-Empty:
<
{ [12 bytes data]
data: 1

data: 2
* Connection #0 to host api.example.com left intact"""


def test_the_heads_of_curl_v_are_told_from_the_body() -> None:
    heads = split_heads(VERBOSE.split("\n"))
    assert heads.asked == Asked(
        method="POST",
        url="https://api.example.com/v1/chat",
        http="2",
        headers=((b"Host", b"api.example.com"), (b"Authorization", b"Bearer fake")),
    )
    assert heads.answered == Answered(
        status=200,
        http="2",
        headers=((b"Content-Type", b"text/event-stream"), (b"X-Empty", b"")),
    )
    assert heads.rest == ("data: 1", "", "data: 2")


def test_the_head_of_curl_i_is_told_from_the_body() -> None:
    heads = split_heads(["HTTP/1.1 404 Not Found\r", "A: b\r", "\r", "{}\r", ""])
    assert heads.asked is None
    assert heads.answered == Answered(
        status=404, reason=b"Not Found", http="1.1", headers=((b"A", b"b"),)
    )
    assert heads.rest == ("{}\r", "")


def test_curls_last_remark_is_cut_from_a_body_without_line_feed() -> None:
    line = '{"error":1}* Connection #0 to host x left intact'
    assert split_heads(["HTTP/1.1 500", "", line]).rest == ('{"error":1}',)


def test_a_head_that_is_not_ended_is_a_head() -> None:
    heads = split_heads(["HTTP/1.1 200 OK", "A: b"])
    assert heads.answered is not None
    assert (heads.answered.headers, heads.rest) == (((b"A", b"b"),), ())


def test_a_head_ends_where_no_field_follows() -> None:
    assert split_heads(["HTTP/1.1 200 OK", "no field"]).rest == ("no field",)


def test_a_request_without_host_has_a_target_only() -> None:
    heads = split_heads(["> GET /x HTTP/1.1", ">", "rest"])
    assert heads.asked == Asked(method="GET", url="/x", http="1.1")
    assert heads.rest == ("rest",)


def test_a_status_line_counts_only_before_data() -> None:
    assert has_head(["", "< HTTP/2 200", "data: x"])
    assert not has_head(["data: x", "HTTP/1.1 200 OK"])
    assert not has_head(["nothing"])


def test_progress_and_failures_around_a_cut_body_are_no_body() -> None:
    meter = "\r100  3913    0  3226  100   687   5012   1067 --:--:-- --:--:-- --:--:--  6085"
    lines = [
        "  % Total    % Received % Xferd  Average Speed   Time    Time     Time  Current",
        "< HTTP/1.1 200 OK\r",
        "< Content-Type: text/event-stream\r",
        "< \r",
        "data: whole",
        "",
        meter,
        'data: {"half* transfer closed with outstanding read data remaining',
        "curl: (18) transfer closed with outstanding read data remaining",
        f"data: more{meter}",
    ]
    assert split_heads(lines).rest == ("data: whole", "", 'data: {"half', "data: more")
