import pytest

from deltatape.importers.parts import ImportedRequest, ImportedResponse, ImportSource
from deltatape.importers.pasted import (
    PastedImporter,
    has_head,
    is_field,
    json_line,
    split_heads,
    strip_line,
    without_escapes,
)
from deltatape.importers.raw import RawImporter
from deltatape.model.exchange import Exchange
from helpers.imported import source

WHOLE = 'data: {"a":1}\n\ndata: [DONE]\n\n'


def material(text: str | bytes, **described: bytes) -> ImportSource:
    data = text if isinstance(text, bytes) else text.encode()
    return source(data, "-", **described)


def read(text: str | bytes, **described: bytes) -> Exchange:
    assert PastedImporter().claims(material(text, **described))
    (exchange,) = PastedImporter().read(material(text, **described))
    return exchange


def notes(exchange: Exchange) -> list[str]:
    return [note.text for note in exchange.notes]


def test_a_stream_without_any_blank_line_gets_them_back() -> None:
    exchange = read('event: a\ndata: {"a":1}\nevent: b\nid: 7\ndata: {"b":2}\n')
    assert exchange.body == b'event: a\ndata: {"a":1}\n\nevent: b\nid: 7\ndata: {"b":2}\n\n'
    assert notes(exchange) == [
        "pasted: blank lines added after each data line, since the text had none",
        "pasted: blank line added after the last event, since copying cuts it off",
        "media type text/event-stream told by the body",
    ]


def test_a_stream_with_a_blank_line_gets_no_others() -> None:
    log = "app | data: 1\napp | data: 2\napp | \napp | data: [DONE]\n"
    assert read(log).body == b"data: 1\ndata: 2\n\ndata: [DONE]\n\n"


def test_what_was_not_part_of_the_stream_is_left_out_and_shown() -> None:
    exchange = read(f"INFO start\x1b[0m\nINFO {WHOLE.replace(chr(10) * 2, chr(10) + 'INFO ')}")
    assert exchange.body == WHOLE.encode()
    assert notes(exchange)[:2] == [
        "pasted: lines with a log or terminal prefix removed: 3",
        "pasted: lines outside the event stream left out: 1, first 'INFO start\\x1b[0m'",
    ]


def test_a_line_that_was_cut_off_stays_cut_off() -> None:
    exchange = read('app | data: {"a":1}\napp |\napp | data: {"a":')
    assert exchange.body == b'data: {"a":1}\n\ndata: {"a":'


def test_windows_line_ends_are_no_part_of_mended_lines() -> None:
    assert read("app | data: 1\r\napp | \r\n").body == b"data: 1\n\n"


@pytest.mark.parametrize(
    "text",
    [
        WHOLE,
        'data: {"a":1}\n\njunk\nINFO data: {"a":2}\n\ndata: 3\n\n',
        "\ufeffdata: 1\n\n",
        "data: 1",
        "data: 1\r\n\r\ndata: 2\r\n\r\n",
        "\ndata: 1\ndata: 2",
        '{"error": {"message": "data: {"}}',
        '{"response":"data:"}\n{"response":"x"}\n{"response":"y"}\n',
        '\n  {\n "a": "b"\n}',
        '{"a":1}\n{"b":2}\n',
        '[{"a":1},\n{"b":2}]',
        '{\n "a": {"b":1},\n "c": {"d":1}\n}',
        'only one {"a":1}\n',
        "hello",
        "",
        "data: 1\ndata: 2\0",
    ],
)
def test_what_stands_as_it_is_is_not_touched(text: str) -> None:
    assert not PastedImporter().claims(material(text))
    (exchange,) = RawImporter().read(material(text))
    assert exchange.body == text.encode()


def test_json_lines_are_taken_from_the_ends_of_the_lines_of_a_log() -> None:
    exchange = read('start\n10:00 got {"a":1}\n\n\x1b[2m10:01\x1b[0m got {"b":{"c":2}}\nend\n')
    assert exchange.body == b'{"a":1}\n{"b":{"c":2}}\n'
    assert notes(exchange) == [
        "pasted: JSON taken from the ends of lines: 2",
        "pasted: lines without JSON left out: 2",
        "media type application/x-ndjson told by the body",
    ]


@pytest.mark.parametrize(
    ("last", "body"),
    [
        ('x {"c":3}', b'{"a":1}\n{"b":2}\n{"c":3}\n'),
        ('x {"c":{"d":3}', b'{"a":1}\n{"b":2}\n{"c":{"d":3}'),
        ("x", b'{"a":1}\n{"b":2}\n'),
    ],
)
def test_a_json_line_that_was_cut_off_stays_cut_off(last: str, body: bytes) -> None:
    exchange = read(f'x {{"a":1}}\nx {{"torn":\nx {{"b":2}}\n{last}')
    assert exchange.body == body


def test_a_head_may_stand_before_json_lines_with_something_before_each() -> None:
    exchange = read('HTTP/1.1 200 OK\n\nx {"a":1}\nx {"b":2}\n')
    assert exchange.body == b'{"a":1}\n{"b":2}\n'
    exchange = read('HTTP/1.1 200 OK\n\n{"a":1}\n{"b":2}\n')
    assert exchange.body == b'{"a":1}\n{"b":2}\n'


def test_folders_are_not_for_this_importer() -> None:
    assert not PastedImporter().claims(ImportSource(name="x", files={"a": b"", "b": b""}))


def test_a_head_is_taken_and_a_whole_stream_behind_it_kept_as_it_is() -> None:
    body = 'data: {"a":1}\r\n\r\njunk\r\n\r\n'
    exchange = read(f"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n{body}")
    assert exchange.body == body.encode()
    assert exchange.response is not None
    assert (exchange.response.status, exchange.response.reason) == (200, b"OK")
    assert notes(exchange) == ["pasted: HTTP headers taken from the text"]


def test_a_head_of_the_request_is_taken() -> None:
    exchange = read("> POST /v1/x HTTP/1.1\n> Host: host\n>\n< HTTP/1.1 400\n<\n{}")
    assert (exchange.request.method, exchange.request.upstream) == ("POST", "https://host")
    assert (exchange.request.path, exchange.body) == ("/v1/x", b"{}")


def test_request_and_response_named_aside_win() -> None:
    exchange = read(
        f"HTTP/1.1 200 OK\n\n{WHOLE}",
        request=b'{"model": "m"}',
        response=b'{"status": 201, "headers": {"content-type": "text/event-stream"}}',
    )
    assert exchange.request.body == b'{"model": "m"}'
    assert exchange.response is not None
    assert exchange.response.status == 201


def test_bytes_that_are_not_utf8_are_kept() -> None:
    assert read(b"app | data: \xff\n").body == b"data: \xff\n\n"


def test_only_blank_lines_behind_a_head_are_only_blank_lines() -> None:
    assert read("HTTP/1.1 200 OK\n\n\n").body == b"\n"


def test_a_field_without_json_is_whole() -> None:
    assert read('app | data: {"a":1}\napp | event: end').body.endswith(b"event: end\n\n")


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
    assert heads.request == ImportedRequest(
        method="POST",
        url="https://api.example.com/v1/chat",
        http="2",
        headers=((b"Host", b"api.example.com"), (b"Authorization", b"Bearer fake")),
    )
    assert heads.response == ImportedResponse(
        status=200,
        http="2",
        headers=((b"Content-Type", b"text/event-stream"), (b"X-Empty", b"")),
    )
    assert heads.rest == ("data: 1", "", "data: 2")


METER = (
    "  % Total    % Received % Xferd  Average Speed   Time    Time     Time  Current\n"
    "                                 Dload  Upload   Total   Spent    Left  Speed\n"
    "  0     0    0     0    0     0      0      0 --:--:-- --:--:-- --:--:--     0"
    "\r100    80    0     0  100    80      0     78  0:00:01  0:00:01 --:--:--    78"
)
END = "\r100   260    0   180  100    80   1751    778 --:--:-- --:--:-- --:--:--  2549\n"


@pytest.mark.parametrize("head", ["", "HTTP/1.1 200 OK\nContent-Type: text/event-stream\n\n"])
@pytest.mark.parametrize("body", ["data: 1\n\ndata: 2\n\n", '{"choices": []}'])
def test_curls_progress_before_and_after_a_body_is_none_of_it(head: str, body: str) -> None:
    exchange = read(METER + head + body + END)
    assert exchange.body.strip() == body.strip().encode()
    assert notes(exchange)[0] == (
        "pasted: HTTP headers taken from the text" if head else "pasted: curl's progress removed"
    )


def test_the_head_of_curl_i_is_told_from_the_body() -> None:
    heads = split_heads(["HTTP/1.1 404 Not Found\r", "A: b\r", "\r", "{}\r", ""])
    assert heads.request is None
    assert heads.response == ImportedResponse(
        status=404, reason=b"Not Found", http="1.1", headers=((b"A", b"b"),)
    )
    assert heads.rest == ("{}\r", "")


def test_curls_last_remark_is_cut_from_a_body_without_line_feed() -> None:
    line = '{"error":1}* Connection #0 to host x left intact'
    assert split_heads(["HTTP/1.1 500", "", line]).rest == ('{"error":1}',)


def test_a_head_that_is_not_ended_is_a_head() -> None:
    heads = split_heads(["HTTP/1.1 200 OK", "A: b"])
    assert heads.response is not None
    assert (heads.response.headers, heads.rest) == (((b"A", b"b"),), ())


def test_a_head_ends_where_no_field_follows() -> None:
    assert split_heads(["HTTP/1.1 200 OK", "no field"]).rest == ("no field",)


def test_a_request_without_host_has_a_target_only() -> None:
    heads = split_heads(["> GET /x HTTP/1.1", ">", "rest"])
    assert heads.request == ImportedRequest(method="GET", url="/x", http="1.1")
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


DATA = 'data: {"a":1}'


@pytest.mark.parametrize(
    "prefix",
    [
        "",
        "    ",
        "2026-11-21 20:36:01 ",
        "2026-11-21T20:36:01.123456789Z ",
        "2026-11-21 20:36:01,123 +0100 ",
        "[2026-11-21T20:36:01+01:00] ",
        "20:36:01.123 ",
        "[20:36:01] ",
        "Nov 21 20:36:01 host app[17]: ",
        "Nov  1 20:36:01 host app: ",
        "INFO ",
        "[debug] ",
        "WARNING: ",
        "LOG ",
        "[chatStream] ",
        "[client]: ",
        "web-1  | ",
        "app/container.1 | 2026-11-21 20:36:01 INFO [stream] ",
        "12:",
        "12|",
        "7\t",
        "< ",
        "> ",
        "-> ",
        "• ",
        "got a line of the stream: ",
        "received chunk=",
        "(unknown words) ",
    ],
)
def test_what_loggers_put_before_a_line_is_found(prefix: str) -> None:
    assert strip_line(prefix + DATA) == (DATA,)


@pytest.mark.parametrize("line", ["event: ping", "id: 7", "retry: 10", ": keep-alive", "data:"])
def test_every_field_is_found_behind_a_known_prefix(line: str) -> None:
    assert is_field(line)
    assert strip_line(line) == (line,)
    assert strip_line(f"app | {line}") == (line,)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (r"""b'data: {"a":1}\n\n'""", ('data: {"a":1}', "", "")),
        (r"""INFO got chunk: b"data: it's\n" """, ("data: it's", "")),
        (r"""'data: {"a":"\'"}'""", ('data: {"a":"\'"}',)),
        (r"""chunk "data: {\"a\":1}\n\n" (17 bytes)""", ('data: {"a":1}', "", "")),
        (r"""{"ts":1,"msg":"data: [DONE]\n\n"}""", ("data: [DONE]", "", "")),
        (r"""2026-11-21 20:36:01 {"level":3,"line":"event: x"}""", ("event: x",)),
        (r"""b'data: \xff'""", ("data: \udcff",)),
        (r"""'data: \d'""", (r"data: \d",)),
    ],
)
def test_quoted_lines_are_unquoted(line: str, expected: tuple[str, ...]) -> None:
    assert strip_line(line) == expected


def test_a_prefix_with_nothing_behind_it_is_a_logged_blank_line() -> None:
    assert strip_line("web-1  | ") == ("",)
    assert strip_line("   ") == ("",)


@pytest.mark.parametrize(
    "line",
    [
        "hello",
        "metadata: {",
        '{"a": 1}',
        '{"a": "x"}',
        "'data: unclosed",
        "b'data: \\x'",
        "INFO request finished",
        "x" * 10_000,
        "[a] " * 1000 + "data",
    ],
)
def test_other_lines_are_no_part_of_a_stream(line: str) -> None:
    assert strip_line(line) is None


def test_control_sequences_of_terminals_are_removed() -> None:
    text = "\x1b[1;32mdata\x1b[0m: \x1b]0;title\x07x\x1b]8;;y\x1b\\z\x1bM"
    assert without_escapes(text) == "data: xz"


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ('{"a":1}', '{"a":1}'),
        ('10:00 [x] got { "a": {"b": "}"}} ', '{ "a": {"b": "}"}}'),
        ('got b\'{"a":"\\xc3\\xa9"}\\n\'', '{"a":"\u00e9"}'),
        ("got '{\"a\":1}' there", '{"a":1}'),
        ("x {}", "{}"),
        ('x {"a":1} y', None),
        ('x {"a":', None),
        ('x \'{"a":1}', None),
        ("{'a': 1}", None),
        ("x", None),
        ("", None),
    ],
)
def test_the_object_at_the_end_of_a_line_is_found(line: str, found: str | None) -> None:
    assert json_line(line) == found


def test_the_beginning_of_an_object_is_found_if_the_line_is_cut() -> None:
    assert json_line('x {"a":{"b":1}', cut=True) == '{"a":{"b":1}'
    assert json_line('x {"a":1}', cut=True) == '{"a":1}'
    assert json_line('x {"a" 1', cut=True) is None
    assert json_line("x", cut=True) is None


@pytest.mark.parametrize(
    "text",
    [
        "func f() {\n\tdata: data,\n}\n",
        "for d in data:\n    pass\nif data:\n    pass\n",
        'const found = parse({ data: "x" });\nconst b = parse({ data: "y" });\nend();\nmore();\n',
        "say('data: [DONE]\\n\\n');\nreturn {};\nor();\n",
    ],
)
def test_source_code_shows_no_stream(text: str) -> None:
    assert not PastedImporter().claims(material(text))


@pytest.mark.parametrize("line", ["x {{1}: 2}", "x '{[1]: 2}'", '"{[]: {}}"'])
def test_a_literal_that_python_cannot_build_is_none(line: str) -> None:
    assert strip_line(f"data {line}") is None
    assert json_line(line) is None
