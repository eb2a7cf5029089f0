import pytest

from deltatape.dialects.gemini_interactions import GeminiInteractions
from helpers.hints import hints


@pytest.mark.parametrize(
    "first",
    [
        {"event_type": "interaction.created", "interaction": {}},
        {"event_type": "step.start"},
        {"event_type": "content.delta"},
        {"object": "interaction", "status": "completed"},
    ],
)
def test_it_claims_events_and_documents(first: dict[str, object]) -> None:
    assert GeminiInteractions().claims(hints(first))


@pytest.mark.parametrize(
    "first", [{"event_type": "text-generation"}, {"event_type": 5}, {"candidates": []}]
)
def test_it_leaves_the_responses_of_others(first: dict[str, object]) -> None:
    assert not GeminiInteractions().claims(hints(first))


def test_it_serves_its_paths() -> None:
    dialect = GeminiInteractions()
    assert dialect.serves("/v1beta/interactions")
    assert dialect.serves("/gemini/v1beta/interactions/v1_abc")
    assert not dialect.serves("/v1beta/models/x:generateContent")


def test_a_reducer_judges_by_the_request() -> None:
    dialect = GeminiInteractions()
    asked = dialect.read_request(b'{"model":"m"}', "/v1beta/interactions")
    assert asked.model == "m"
    assert dialect.reducer(asked).finish(cut=False).dialect == "gemini-interactions"
