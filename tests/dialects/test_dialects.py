from dataclasses import replace

import pytest

from deltatape.dialects import DIALECTS, UNKNOWN, UnknownReducer, detect, dialects_for, expect
from deltatape.model.app_names import CONTRACT
from deltatape.model.stream import Event
from helpers.events import event_of
from helpers.hints import hints


def test_names_are_unique() -> None:
    names = [dialect.name for dialect in DIALECTS]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    ("first", "name"),
    [
        ([{"choices": []}], "openai-chat"),
        ([{"error": "x"}, {"object": "chat.completion.chunk"}], "openai-chat"),
        ([{"object": "list"}], None),
        ([], None),
    ],
)
def test_the_response_decides(first: list[dict[str, object]], name: str | None) -> None:
    found = detect(hints(*first))
    assert (found and found.name) == name


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/v1/chat/completions", "openai-chat"),
        ("/openai/v1/chat/completions/", "openai-chat"),
        ("/v1/embeddings", None),
        ("", None),
    ],
)
def test_a_path_tells_what_to_expect(path: str, name: str | None) -> None:
    found = expect(path)
    assert (found and found.name) == name


def test_an_applications_own_names_replace_its_dialect_alone() -> None:
    assert dialects_for(CONTRACT) is DIALECTS
    own = dialects_for(replace(CONTRACT, tool_call=("invoke",)))
    assert [dialect.name for dialect in own] == [dialect.name for dialect in DIALECTS]
    event: dict[str, object] = {"type": "invoke", "name": "get", "arguments": {}}
    assert detect(hints(event)) is None
    found = detect(hints(event), own)
    assert found
    assert found.name == "app-events"


def event(data: str, kind: str = "message") -> Event:
    return event_of(data, kind)


@pytest.mark.parametrize("cut", [False, True])
def test_a_reply_of_no_dialect_has_one_empty_choice(cut: bool) -> None:  # noqa: FBT001
    reply = UnknownReducer().finish(cut=cut)
    assert (reply.dialect, reply.text, reply.tool_calls) == (UNKNOWN, "", ())
    assert (reply.terminated, reply.error) == (not cut, None)


def test_the_first_error_is_reported() -> None:
    reducer = UnknownReducer()
    for data in ("not json", "[]", '{"a":1}', '{"error":"one"}', '{"error":"two"}'):
        reducer.feed(event(data))
    assert reducer.finish(cut=False).error == "one"


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("openai-responses", "/v1/responses"),
        ("gemini-interactions", "/v1beta/interactions"),
        ("mistral", "/v1/chat/completions"),
    ],
)
def test_a_request_names_its_model(name: str, path: str) -> None:
    (dialect,) = (dialect for dialect in DIALECTS if dialect.name == name)
    asked = dialect.read_request(b'{"model":"m"}', path)
    assert asked.model == "m"
    assert dialect.reducer(asked).finish(cut=False).dialect == name


def test_a_request_that_is_not_json_is_not_known() -> None:
    (dialect,) = (dialect for dialect in DIALECTS if dialect.name == "openai-chat")
    asked = dialect.read_request(b"{'tools': None}", "")
    assert asked.known is False
    assert dialect.reducer(asked).finish(cut=False).dialect == "openai-chat"
