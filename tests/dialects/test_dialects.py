from dataclasses import replace

import pytest

from deltatape.dialects import DIALECTS, detect, dialects_for, expect
from deltatape.model.app_names import CONTRACT
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
