import pytest

from deltatape.importers import import_exchange
from deltatape.importers._base import Material
from deltatape.importers.pasted import Pasted
from deltatape.model.exchange import Exchange

WHOLE = 'data: {"a":1}\n\ndata: [DONE]\n\n'


def material(text: str | bytes, **described: bytes) -> Material:
    data = text if isinstance(text, bytes) else text.encode()
    return Material(name="-", files={"-": data}, **described)


def read(text: str | bytes, **described: bytes) -> Exchange:
    assert Pasted().claims(material(text, **described))
    return Pasted().read(material(text, **described))


def notes(exchange: Exchange) -> list[str]:
    return [note.text for note in exchange.notes]


def test_a_stream_without_any_blank_line_gets_them_back() -> None:
    exchange = read('event: a\ndata: {"a":1}\nevent: b\nid: 7\ndata: {"b":2}\n')
    assert exchange.body == b'event: a\ndata: {"a":1}\n\nevent: b\nid: 7\ndata: {"b":2}\n\n'
    assert notes(exchange) == [
        "pasted: blank lines put back after each data line, the text had none",
        "pasted: blank line put back after the last event, copying cuts it off",
        "media type text/event-stream told by the body",
    ]


def test_a_stream_with_a_blank_line_gets_no_others() -> None:
    log = "app | data: 1\napp | data: 2\napp | \napp | data: [DONE]\n"
    assert read(log).body == b"data: 1\ndata: 2\n\ndata: [DONE]\n\n"


def test_what_was_not_part_of_the_stream_is_left_out_and_shown() -> None:
    exchange = read(f"INFO start\x1b[0m\nINFO {WHOLE.replace(chr(10) * 2, chr(10) + 'INFO ')}")
    assert exchange.body == WHOLE.encode()
    assert notes(exchange)[:2] == [
        "pasted: lines freed of what a log or terminal put around them: 3",
        "pasted: lines left out that are no event stream: 1, first 'INFO start\\x1b[0m'",
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
    assert not Pasted().claims(material(text))
    assert import_exchange(material(text)).body == text.encode()


def test_json_lines_are_taken_from_the_ends_of_the_lines_of_a_log() -> None:
    exchange = read('start\n10:00 got {"a":1}\n\n\x1b[2m10:01\x1b[0m got {"b":{"c":2}}\nend\n')
    assert exchange.body == b'{"a":1}\n{"b":{"c":2}}\n'
    assert notes(exchange) == [
        "pasted: JSON taken from the ends of lines: 2",
        "pasted: lines left out that hold no JSON: 2",
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
    assert not Pasted().claims(Material(name="x", files={"a": b"", "b": b""}))


def test_a_head_is_taken_and_a_whole_stream_behind_it_kept_as_it_is() -> None:
    body = 'data: {"a":1}\r\n\r\njunk\r\n\r\n'
    exchange = read(f"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n{body}")
    assert exchange.body == body.encode()
    assert exchange.response is not None
    assert (exchange.response.status, exchange.response.reason) == (200, b"OK")
    assert notes(exchange) == ["pasted: HTTP heads taken from the text"]


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


def test_bytes_that_are_no_utf8_are_kept() -> None:
    assert read(b"app | data: \xff\n").body == b"data: \xff\n\n"


def test_only_blank_lines_behind_a_head_are_only_blank_lines() -> None:
    assert read("HTTP/1.1 200 OK\n\n\n").body == b"\n"


def test_a_field_without_json_is_whole() -> None:
    assert read('app | data: {"a":1}\napp | event: end').body.endswith(b"event: end\n\n")
