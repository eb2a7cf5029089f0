import pytest

from deltatape.dialects import DIALECTS, detect
from helpers.hints import hints


def test_names_are_unique() -> None:
    names = [dialect.name for dialect in DIALECTS]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    ("path", "first", "name"),
    [
        ("", [{"choices": []}], "openai-chat"),
        ("/whatever", [{"error": "x"}, {"object": "chat.completion.chunk"}], "openai-chat"),
        ("/v1/chat/completions", [], "openai-chat"),
        ("/openai/v1/chat/completions/", [{"error": {"message": "x"}}], "openai-chat"),
        ("/v1/embeddings", [{"object": "list"}], None),
        ("", [], None),
    ],
)
def test_the_response_decides_and_the_path_helps(
    path: str, first: list[dict[str, object]], name: str | None
) -> None:
    found = detect(hints(*first), path)
    assert (found and found.name) == name
