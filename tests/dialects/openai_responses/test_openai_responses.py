import pytest

from deltatape.dialects.openai_responses import OpenAIResponses
from deltatape.model.request_summary import NOTHING_ASKED
from deltatape.model.stream import Format
from helpers.hints import hints
from helpers.responses import created, response

DIALECT = OpenAIResponses()


@pytest.mark.parametrize(
    "first",
    [
        created(),
        {"type": "response.output_text.delta", "delta": "x"},
        {"type": "error", "sequence_number": 2, "message": "no"},
        response(),
    ],
)
def test_it_claims_what_only_this_api_says(first: dict[str, object]) -> None:
    assert DIALECT.claims(hints(first))
    assert DIALECT.claims(hints(first, form=Format.JSON))
    assert not DIALECT.claims(hints(first, form=Format.NDJSON))


def test_it_claims_events_whose_data_cannot_be_read_by_their_line() -> None:
    assert DIALECT.claims(hints(types=("response.created",)))


@pytest.mark.parametrize(
    "first",
    [
        {"type": "message_start"},
        {"type": "error", "error": {"message": "no"}},
        {"object": "chat.completion.chunk"},
        {"object": "response.deleted"},
        {"type": 7},
    ],
)
def test_it_claims_nothing_else(first: dict[str, object]) -> None:
    assert not DIALECT.claims(hints(first))


def test_it_leaves_realtime_whose_types_begin_alike() -> None:
    first: list[dict[str, object]] = [{"type": "session.created"}, {"type": "response.created"}]
    assert not DIALECT.claims(hints(*first, types=("message", "message")))


@pytest.mark.parametrize(
    ("path", "ours"),
    [
        ("/v1/responses", True),
        ("/openai/responses/", True),
        ("/v1/responses/resp_fake", True),
        ("/v1/chat/completions", False),
        ("/", False),
    ],
)
def test_it_serves_responses_and_single_ones(path: str, ours: bool) -> None:  # noqa: FBT001
    assert DIALECT.serves(path) is ours


def test_it_reads_requests_and_makes_reducers() -> None:
    assert DIALECT.read_request(b'{"model": "m"}', "/v1/responses").model == "m"
    assert DIALECT.reducer(NOTHING_ASKED).finish(cut=False).dialect == "openai-responses"
