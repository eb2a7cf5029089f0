import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltatape.diagnose.rebuild import rebuild
from deltatape.dialects.gemini.reducer import GeminiReducer
from deltatape.model.asked import NOTHING_ASKED
from deltatape.model.exchange import Exchange
from deltatape.model.reply import Reply
from helpers.chat import codes
from helpers.gemini import MODEL, STOP, call, candidate, events, reply_to

KEYS = ("args", "id", "jsonPath", "name", "numberValue", "partialArgs", "stringValue", "text")
WORDS = ("$.a", "$.a[0]", "$['b']", "f", True)


def reduced(*chunks: object) -> Reply:
    reducer = GeminiReducer("gemini", NOTHING_ASKED)
    for event in events(*chunks):
        reducer.feed(event)
    return reducer.finish(cut=False)


def test_model_and_the_last_usage_are_kept() -> None:
    reply = reduced(
        {"modelVersion": "gemini-x-1", "usageMetadata": {"totalTokenCount": 1}},
        {"modelVersion": "other", "usageMetadata": {"totalTokenCount": 2}, **STOP},
        {"usageMetadata": 5, "modelVersion": 5},
    )
    assert (reply.model, reply.usage) == ("gemini-x-1", {"totalTokenCount": 2})
    assert (reply.terminated, reply.terminal_event, codes(reply)) == (True, 1, [])


def test_candidates_are_choices_by_index_or_place() -> None:
    both = {"candidates": [{"finishReason": "STOP"}, {"finishReason": "STOP"}]}
    reply = reduced(
        candidate({"text": "b"}, index=1), candidate({"text": "a"}, call("f"), index=0), both
    )
    assert [(one.index, one.text, len(one.tool_calls)) for one in reply.choices] == [
        (0, "a", 1),
        (1, "b", 0),
    ]
    assert reply.terminated


def test_every_candidate_has_to_end() -> None:
    reply = reduced(candidate({"text": "b"}, index=1), STOP)
    assert (reply.terminated, reply.terminator) == (False, "finishReason")
    assert not reduced().terminated


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_blocked_prompt_is_an_error_and_the_end(wrapped: object) -> None:
    feedback = {
        "promptFeedback": {"blockReason": "SAFETY", "blockReasonMessage": "not that"},
        "usageMetadata": {},
    }
    frame = {"response": feedback} if wrapped else feedback
    reply = reduced(frame, frame)
    assert reply.error == "the prompt was blocked: SAFETY: not that"
    assert (reply.terminated, reply.finish_reason_raw, codes(reply)) == (True, None, ["S005"])
    assert reduced({"promptFeedback": {"blockReason": 1}}).error == "the prompt was blocked: 1"


def test_feedback_that_blocks_nothing_is_none() -> None:
    reply = reduced({"promptFeedback": {"safetyRatings": []}, **STOP}, {"promptFeedback": 5})
    assert (reply.error, codes(reply)) == (None, [])


def test_a_malformed_call_is_an_error_with_its_message() -> None:
    message = "Malformed function call: print(f(a=1"
    end = candidate(finish="MALFORMED_FUNCTION_CALL", finishMessage=message)
    reply = reduced(candidate({"text": "Let me"}), end, end)
    assert reply.error == f"MALFORMED_FUNCTION_CALL: {message}"
    assert reply.choices[0].finish_detail == message
    assert (reply.text, reply.terminated, codes(reply)) == ("Let me", True, ["S005"])
    assert reduced(candidate(finish="UNEXPECTED_TOOL_CALL")).error == "UNEXPECTED_TOOL_CALL"
    assert reduced(candidate(finish="SAFETY")).error is None


@pytest.mark.parametrize("wrapped", [False, True])
def test_an_error_in_the_middle_keeps_what_came(wrapped: object) -> None:
    error = {"error": {"code": 499, "message": "cancelled", "status": "CANCELLED"}}
    reply = reduced(candidate({"text": "First"}), {"response": error} if wrapped else error)
    assert (reply.error, reply.text) == ("cancelled", "First")
    assert (reply.terminated, codes(reply)) == (False, ["S005"])


@pytest.mark.parametrize(
    "body", ['{"error":{"message":"bad key"}}', '[{"error":{"message":"bad key"}}]']
)
def test_an_error_document_and_an_array_with_one_are_errors(body: str) -> None:
    url = f"{MODEL}:streamGenerateContent"
    exchange = Exchange.from_body(body.encode(), content_type="application/json", url=url)
    reply = rebuild(exchange)
    assert (reply.dialect, reply.error) == ("gemini", "bad key")


@pytest.mark.parametrize(
    "frame",
    [
        "[DONE]",
        "[]",
        "5",
        {"candidates": 5},
        {"candidates": {}},
        {"candidates": [5]},
    ],
)
def test_a_wrong_shape_is_noted_once_and_nothing_else(frame: object) -> None:
    reply = reduced(frame, STOP)
    assert codes(reply) in (["S006"], ["W004"])
    assert reply.terminated


def test_unknown_fields_and_parts_are_ignored() -> None:
    reply = reduced({"responseId": "x"}, {}, candidate({"novelty": {}}, {}, avgLogprobs=1), STOP)
    assert codes(reply) == []


def test_a_stream_cut_anywhere_is_not_terminated() -> None:
    chunks = [candidate({"text": "a"}), candidate(call("f", args={"a": 1})), STOP]
    for count in range(3):
        reply = reply_to(*chunks[:count])
        assert not reply.terminated
        assert all(one.status == "complete" for one in reply.tool_calls)
    assert reply_to(*chunks).terminated


NESTED = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.text(max_size=3) | st.sampled_from(WORDS),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(st.lists(NESTED, max_size=4))
@settings(max_examples=60)
def test_any_values_make_a_reply(chunks: list[object]) -> None:
    calls = [{"functionCall": chunk} for chunk in chunks]
    more = [{"functionCall": {"name": "f", "partialArgs": chunk}} for chunk in chunks]
    frames = [{"candidates": chunk, "promptFeedback": chunk, "error": chunk} for chunk in chunks]
    reply = reduced(*frames, candidate(*chunks, *calls), candidate(*more, finish="STOP"))
    assert len(reply.choices) >= 1
