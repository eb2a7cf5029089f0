import pytest

from deltatape.dialects import DIALECTS, detect, expect
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
