from deltatape.dialects.bedrock_invoke import BedrockInvoke
from deltatape.model.request_summary import NOTHING_ASKED
from deltatape.model.stream import Format
from helpers.hints import hints

STREAM = Format.EVENTSTREAM
LLAMA: dict[str, object] = {"generation": "Hi", "stop_reason": "stop"}


def test_it_claims_streams_of_chunks() -> None:
    dialect = BedrockInvoke()
    assert dialect.claims(hints({"bytes": ""}, form=STREAM, types=("chunk",)))
    assert not dialect.claims(hints({}, form=STREAM, types=("messageStart",)))
    assert not dialect.claims(hints({"type": "message_start"}, types=("chunk",)))


def test_it_claims_documents_by_their_head_or_their_shape() -> None:
    dialect = BedrockInvoke()
    headers = ["x-amzn-bedrock-output-token-count"]
    assert dialect.claims(hints({"a": 1}, form=Format.JSON, headers=headers))
    assert not dialect.claims(hints(form=Format.OTHER, headers=headers))
    assert dialect.claims(hints(LLAMA, form=Format.JSON))
    assert not dialect.claims(hints({"type": "message"}, form=Format.JSON))
    assert not dialect.claims(hints(LLAMA))


def test_it_serves_its_paths() -> None:
    assert BedrockInvoke().serves("/model/m/invoke")
    assert not BedrockInvoke().serves("/model/m/converse-stream")


def test_a_request_is_read_with_its_path() -> None:
    asked = BedrockInvoke().read_request(b"{}", "/model/m/invoke-with-response-stream")
    assert (asked.model, asked.stream) == ("m", True)


def test_its_reducer_says_whose_reply_it_is() -> None:
    reply = BedrockInvoke().reducer(NOTHING_ASKED).finish(cut=True)
    assert (reply.dialect, reply.terminated) == ("bedrock-invoke", False)
