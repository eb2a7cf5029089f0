import json

import pytest

from deltatape.diagnose.decode import decode
from deltatape.diagnose.dialect import dialect_of
from deltatape.model.exchange import Exchange

PING = {"type": "ping"}
ERROR = {"error": {"message": "x"}}
CHUNK = {"choices": [{"delta": {"content": "a"}}]}


def name(*frames: object, path: str = "/x") -> str | None:
    body = "".join(f"data: {json.dumps(frame)}\n\n" for frame in frames).encode()
    made = Exchange.from_body(body, content_type="text/event-stream", url=f"http://h{path}")
    found = dialect_of(made, decode(made))
    return found.name if found else None


@pytest.mark.parametrize("pings", [0, 3, 4, 5, 19, 20, 21, 500])
def test_a_dialect_may_show_itself_late(pings: int) -> None:
    assert name(*[PING] * pings, CHUNK) == "openai-chat"
    assert name(*[{"a": 1}] * pings) is None


@pytest.mark.parametrize(
    ("frames", "path", "found"),
    [
        ([], "/v1/chat/completions", "openai-chat"),
        ([PING, ERROR], "/v1/chat/completions", "openai-chat"),
        ([{"type": "error", "message": "x"}], "/api/chat", "ollama"),
        ([5], "/api/chat", "ollama"),
        ([{"a": 1}], "/api/chat", None),
        ([PING, {"a": 1}], "/v1/chat/completions", None),
        ([], "/x", None),
    ],
)
def test_the_path_counts_where_the_response_tells_nothing(
    frames: list[object], path: str, found: str | None
) -> None:
    assert name(*frames, path=path) == found


CHAT = "/v1/chat/completions"
OWN = "/api/chat"


def of(body: bytes, media: str, path: str, request: bytes = b"{}", status: int = 200) -> str | None:
    made = Exchange.from_body(
        body, content_type=media, url=f"http://h{path}", request=request, status=status
    )
    found = dialect_of(made, decode(made))
    return found.name if found else None


@pytest.mark.parametrize(
    "body",
    [
        b'{"detail": "no"}',
        b'{"statusCode": 401, "message": "no"}',
        b'{"object": "error", "message": "no", "code": 400}',
        b"no healthy upstream",
        b"",
    ],
)
def test_the_path_of_an_answer_with_the_status_of_an_error_counts(body: bytes) -> None:
    media = "application/json" if body[:1] == b"{" else "text/plain"
    assert of(body, media, CHAT, status=400) == "openai-chat"
    assert of(body, media, OWN, status=503) == "ollama"
    assert of(body, media, "/x", status=503) is None


def test_an_error_in_the_shape_of_another_server_tells_no_dialect() -> None:
    error = {"object": "error", "message": "too long", "type": "BadRequestError"}
    assert name(error, path=CHAT) == "openai-chat"
    assert name({"object": "list", "message": "x"}, path=CHAT) is None
    assert name({"error": None, "result": 1}, path=CHAT) == "openai-chat"
    assert name({"message": "no rights"}, path="/model/m/converse-stream") == "bedrock-converse"


def test_a_strange_document_is_of_the_path_if_a_stream_was_asked_for() -> None:
    body = b'{"code": 1, "msg": "no quota"}'
    streamed = b'{"model": "m", "stream": true}'
    assert of(body, "application/json", CHAT, streamed) == "openai-chat"
    assert of(body, "application/json", CHAT, b'{"model": "m"}') is None
    assert of(body, "application/json", OWN, streamed) is None


def test_plain_text_is_the_applications_where_the_path_may_be() -> None:
    assert of(b"Hello", "text/plain; charset=utf-8", OWN) is None
    assert of(b"Hello", "text/plain", CHAT) == "openai-chat"
    assert of(b"<html>", "text/html", OWN) == "ollama"
    assert of(b"", "text/plain", OWN) == "ollama"


def test_without_a_response_the_path_is_all_there_is() -> None:
    made = Exchange.from_body(b"", content_type="", url="http://h/v1/chat/completions")
    assert dialect_of(made, decode(made)) is not None
