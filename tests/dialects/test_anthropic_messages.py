from deltatape.dialects.anthropic_messages import AnthropicMessages
from deltatape.model.request_summary import NOTHING_ASKED
from deltatape.model.stream import Format
from helpers.hints import hints

VERTEX = "/v1/projects/p/locations/l/publishers/anthropic/models/claude-fake@1"
DOCUMENT: dict[str, object] = {"type": "message", "content": [], "stop_reason": "end_turn"}


def test_it_claims_streams_documents_and_errors() -> None:
    dialect = AnthropicMessages()
    assert dialect.claims(hints({"type": "ping"}, {"type": "message_start"}))
    assert dialect.claims(hints(DOCUMENT, form=Format.JSON))
    assert dialect.claims(hints({"type": "error", "error": {"type": "api_error"}}))
    assert not dialect.claims(hints({"type": "ping"}))
    assert not dialect.claims(hints({"choices": []}))


def test_documents_of_amazon_are_left_to_its_dialect() -> None:
    headers = ["x-amzn-bedrock-input-token-count"]
    assert not AnthropicMessages().claims(hints(DOCUMENT, form=Format.JSON, headers=headers))


def test_it_serves_its_paths_also_at_vertex() -> None:
    dialect = AnthropicMessages()
    assert dialect.serves("/api/v1/messages/")
    assert dialect.serves("/anthropic/messages")
    assert dialect.serves(f"{VERTEX}:streamRawPredict")
    assert dialect.serves(f"{VERTEX}:rawPredict")
    assert not dialect.serves(f"{VERTEX}:predict")
    assert not dialect.serves("/v1/threads/t/messages")
    assert not dialect.serves("/v1/projects/p/publishers/mistralai/models/m:rawPredict")


def test_at_vertex_the_path_names_the_model() -> None:
    dialect = AnthropicMessages()
    asked = dialect.read_request(b'{"stream":true}', f"{VERTEX}:streamRawPredict")
    assert (asked.model, asked.stream) == ("claude-fake@1", True)
    assert dialect.read_request(b'{"model":"m"}', "/v1/messages").model == "m"
    assert dialect.read_request(b"", f"{VERTEX}:streamRawPredict") == NOTHING_ASKED


def test_its_reducer_says_whose_reply_it_is() -> None:
    reply = AnthropicMessages().reducer(NOTHING_ASKED).finish(cut=True)
    assert reply.dialect == "anthropic-messages"
