import base64
import gzip
import json
import textwrap
from collections.abc import Sequence

import pytest
import yaml

from deltatape.errors import UsageError
from deltatape.importers.cassette import CassetteImporter
from deltatape.model.exchange import Exchange, header
from helpers.chat import choice, sse
from helpers.imported import imported, notes, source

ANSWER = sse(choice({"content": "café"}, "stop"))
ASKED = '{"model": "m", "messages": []}'
URI = "https://api.example.com/v1/chat/completions"


def interaction(body: object, **response: object) -> dict[str, object]:
    """An interaction as vcrpy writes it."""
    return {
        "request": {
            "method": "POST",
            "uri": URI,
            "body": ASKED,
            "headers": {"X-Twice": ["1", "2"]},
        },
        "response": {
            "status": {"code": 200, "message": "OK"},
            "headers": {"content-type": ["text/event-stream"]},
            "body": {"string": body},
            **response,
        },
    }


def cassette(*interactions: object) -> bytes:
    return yaml.dump({"interactions": interactions, "version": 1}).encode()


def read(data: bytes) -> Sequence[Exchange]:
    assert CassetteImporter().claims(source(data))
    return CassetteImporter().read(source(data))


def test_an_interaction_of_vcrpy_is_an_exchange() -> None:
    first, second = read(cassette(interaction(ANSWER.decode()), interaction(ANSWER)))
    for exchange in (first, second):
        assert (exchange.request.upstream, exchange.request.path) == (
            "https://api.example.com",
            "/v1/chat/completions",
        )
        assert exchange.request.body == ASKED.encode()
        assert exchange.request.headers == ((b"X-Twice", b"1"), (b"X-Twice", b"2"))
        assert exchange.response is not None
        assert (exchange.response.status, exchange.response.reason) == (200, b"OK")
        assert exchange.body == ANSWER
    assert notes(second) == ["cassette: interaction 2 of 2"]


def test_a_body_keeps_the_content_coding_that_it_had() -> None:
    coded = gzip.compress(ANSWER, mtime=0)
    headers = {"Content-Encoding": ["gzip"], "Content-Type": ["text/event-stream"]}
    (kept,) = read(cassette(interaction(coded, headers=headers)))
    assert (kept.body, notes(kept)) == (coded, ["cassette: interaction 1 of 1"])
    (undone,) = read(cassette(interaction(ANSWER.decode(), headers=headers)))
    assert undone.body == ANSWER
    assert undone.response is not None
    assert header(undone.response.headers, "content-encoding") is None


def test_a_cassette_in_json_is_read_alike() -> None:
    data = {"version": 1, "interactions": [interaction(ANSWER.decode())]}
    (exchange,) = read(json.dumps(data, indent=4).encode())
    assert exchange.body == ANSWER


def test_what_the_stub_of_httpx_wrote_is_read() -> None:
    made = interaction("")
    made["response"] = {
        "content": ANSWER.decode(),
        "headers": {"content-type": "text/event-stream", "x-binary": b"\xe9", "a\n": "b"},
        "http_version": "HTTP/1.1",
        "status_code": 200,
    }
    (exchange,) = read(cassette(made))
    assert exchange.body == ANSWER
    assert exchange.response is not None
    names = [name for name, _ in exchange.response.headers]
    assert names == [b"content-type", b"x-binary"]
    assert header(exchange.response.headers, "x-binary") == "é".encode()


RUBY = """\
    ---
    http_interactions:
    - request:
        method: post
        uri: https://api.example.com/v1/chat/completions
        body:
          encoding: UTF-8
          string: '{"model":"m","messages":[]}'
        headers:
          Accept:
          - "*/*"
      response:
        status:
          code: 200
          message: OK
        headers:
          Content-Type:
          - text/event-stream
        body:
          encoding: ASCII-8BIT
          %s
        http_version:
      recorded_at: Thu, 26 Nov 2026 10:21:10 GMT
    recorded_with: VCR 6.1.0
    """


@pytest.mark.parametrize(
    "body",
    [
        f"string: !binary |-\n            {base64.b64encode(ANSWER).decode()}",
        f"base64_string: |\n            {base64.b64encode(ANSWER).decode()}",
        f"string: {json.dumps(ANSWER.decode())}",
    ],
)
def test_an_interaction_of_ruby_is_an_exchange(body: str) -> None:
    (exchange,) = read(textwrap.dedent(RUBY).replace("%s", body.replace("    ", "", 1)).encode())
    assert (exchange.request.method, exchange.request.path) == ("POST", "/v1/chat/completions")
    assert exchange.request.body == b'{"model":"m","messages":[]}'
    assert exchange.body == ANSWER


def test_damaged_base64_is_told() -> None:
    made = interaction("")
    made["response"] = {"status": {"code": 200}, "body": {"base64_string": "a"}}
    (exchange,) = read(cassette(made))
    assert (exchange.body, "a body's base64 is damaged" in notes(exchange)[1]) == (b"a", True)


def test_a_tag_is_read_as_the_plain_value_below_it() -> None:
    data = cassette(interaction("STREAM")).decode()
    data = data.replace(f"'{ASKED}'", "!!python/tuple [a, !odd b, !!python/object:x.Y {c: 1}]")
    data = data.replace("STREAM", "!ruby/string &same 7").replace("X-Twice:", "7: &h [u]\n      X:")
    data = data.replace("- '2'", "- *same\n      - *h\n      - !!binary a")
    (exchange,) = read((data + "--- 2\n").encode())
    assert exchange.request.body == b"ab"
    assert exchange.body == b"7"


@pytest.mark.slow
def test_a_cassette_of_any_depth_is_read() -> None:
    nested = b"version:\n  " + b"- " * 20_000 + b"x\n"
    data = cassette(interaction(ANSWER)).replace(b"version: 1\n", nested)
    assert [each.body for each in read(data)] == [ANSWER]


def test_an_interaction_without_response_is_a_request() -> None:
    alone = {"request": {"method": "post", "uri": URI, "body": None}}
    found = imported(cassette(alone, interaction(ANSWER)))
    assert [each.response is None for each in found] == [True, False]
    assert notes(found[0])[1] == "cassette: it has no response"
    assert found[0].request.body == b""


def test_what_is_no_traffic_of_a_model_is_left_out() -> None:
    page = {"request": {"method": "GET", "uri": "https://example.com/"}}
    page["response"] = {"status": {"code": 200}, "headers": {}, "body": {"string": "<html>"}}  # type: ignore[dict-item]
    assert [each.body for each in imported(cassette(page, interaction(ANSWER)))] == [ANSWER]
    with pytest.raises(UsageError, match="is read as a cassette, and has 1 exchange"):
        imported(cassette(page))


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"interactions:\n- request:\n    body: 'x\n", r"torn or damaged in line 4"),
        (b"interactions:\n- request: \x07\n", "torn or damaged: .*control characters"),
        (b"interactions:\n- request: " + b"[" * 999, "torn or damaged in line 3"),
        (b"interactions:\n- request: {}\n", "that is torn: its end has neither version nor"),
        (b"interactions: 7 # request\n", "without a list of interactions"),
        (b"- request: 1\ninteractions:\n", "torn or damaged"),
        (b'{"version": 1, "interactions": [{"request": {', "JSON that is torn"),
    ],
)
def test_a_damaged_cassette_is_refused(data: bytes, problem: str) -> None:
    with pytest.raises(UsageError, match=f"x: is a cassette.*{problem}"):
        imported(data)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"interactions:\n",
        b"request: x\n  interactions:\n",
        b'{"version": 1, "request": 1}',
        b"interactions:\nrequest\0",
    ],
)
def test_what_is_no_cassette_is_not_for_this_importer(data: bytes) -> None:
    assert not CassetteImporter().claims(source(data))
