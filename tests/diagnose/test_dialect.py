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


def test_without_a_response_the_path_is_all_there_is() -> None:
    made = Exchange.from_body(b"", content_type="", url="http://h/v1/chat/completions")
    assert dialect_of(made, decode(made)) is not None
