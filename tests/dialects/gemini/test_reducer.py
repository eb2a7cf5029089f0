import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltatape.diagnose.rebuild import rebuild
from deltatape.dialects.gemini.reducer import GeminiReducer
from deltatape.model.exchange import Exchange
from deltatape.model.reply import CallKind, CallStatus, Reply
from deltatape.model.request_summary import NOTHING_ASKED
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


def test_text_and_thoughts_are_kept_apart() -> None:
    reply = reply_to(
        candidate({"text": "Let me ", "thought": True}, {"text": "It "}),
        candidate({"text": "think.", "thought": True, "thoughtSignature": "s"}),
        candidate({"text": "rains.", "thought": False, "thoughtSignature": "s"}),
        STOP,
    )
    assert (reply.reasoning, reply.text) == ("Let me think.", "It rains.")
    assert codes(reply) == []


def test_what_the_provider_runs_itself_is_a_server_call() -> None:
    code = {"language": "PYTHON", "code": "print(1)", "id": "c"}
    search = {"toolType": "GOOGLE_SEARCH_WEB", "id": "s", "args": {"q": "x"}}
    reply = reply_to(
        candidate({"executableCode": code}, {"codeExecutionResult": {"output": "1"}}),
        candidate({"toolCall": search}, {"toolCall": {}}, {"toolResponse": {"id": "s"}}),
        candidate({"executableCode": 5}, {"inlineData": {}}, {"functionResponse": {}}),
        STOP,
    )
    found = [(one.kind, one.id, one.name, one.arguments) for one in reply.server_calls]
    assert found == [
        (
            CallKind.SERVER,
            "c",
            "executable_code",
            '{"language": "PYTHON", "code": "print(1)", "id": "c"}',
        ),
        (CallKind.SERVER, "s", "GOOGLE_SEARCH_WEB", '{"q": "x"}'),
        (CallKind.SERVER, None, None, ""),
    ]
    assert reply.server_calls[0].status is CallStatus.COMPLETE
    assert (reply.tool_calls, codes(reply)) == ((), [])


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("STOP", "STOP"),
        ("MAX_TOKENS", "MAX_TOKENS"),
        (1, "1"),
        (10, "10"),
        ("FINISH_REASON_UNSPECIFIED", None),
        (0, None),
        ("", None),
        (None, None),
    ],
)
def test_the_finish_reason_is_a_word_or_a_number(reason: object, told: str | None) -> None:
    reply = reply_to(candidate({"text": "x"}, finish=reason))
    assert reply.finish_reason_raw == told
    assert reply.terminated is (told is not None)
    assert codes(reply) == []


def test_the_message_of_an_early_finish_is_its_detail() -> None:
    message = "Model generated function call(s)."
    reply = reply_to(candidate({"text": "x"}, finish="STOP", finishMessage=message))
    assert reply.choices[0].finish_detail is None
    reply = reply_to(candidate(finish="SAFETY", finishMessage="too rude"))
    assert reply.choices[0].finish_detail == "too rude"


def test_a_finish_reason_may_be_in_every_event_but_not_change() -> None:
    assert codes(reply_to(STOP, STOP, STOP)) == []
    assert codes(reply_to(STOP, candidate(finish="SAFETY"))) == ["S004"]


@pytest.mark.parametrize(
    "broken",
    [
        {"content": 5},
        {"content": {"parts": 5}},
        {"content": {"parts": [5]}},
        {"content": {"parts": [{"text": 5}]}},
        {"content": {"parts": [{"functionCall": 5}]}},
        {"finishReason": 5.5},
        {"finishReason": {}},
    ],
)
def test_a_wrong_type_is_odd_and_nothing_else(broken: dict[str, object]) -> None:
    reply = reply_to({"candidates": [broken]}, candidate({"text": "ok"}), STOP)
    assert codes(reply) == ["S006"]
    assert (reply.text, reply.terminated) == ("ok", True)


@pytest.mark.parametrize(
    "empty", [{}, {"content": {}}, {"content": None}, {"content": {"parts": None}}]
)
def test_a_candidate_may_be_empty(empty: dict[str, object]) -> None:
    assert codes(reply_to({"candidates": [empty]}, STOP)) == []


@pytest.mark.parametrize(
    ("part", "media"),
    [
        ({"inlineData": {"mimeType": "image/png"}}, True),
        ({"fileData": {}}, True),
        ({"inlineData": {}, "thought": True}, False),
        ({"codeExecutionResult": {}}, False),
    ],
)
def test_an_image_is_something_to_show_unless_it_is_a_thought(
    part: dict[str, object],
    media: bool,  # noqa: FBT001
) -> None:
    assert reply_to(candidate(part), STOP).choices[0].media is media
