import pytest

from deltatape.model.reply import CallStatus
from helpers import eventstream
from helpers.chat import codes, told
from helpers.invoked import chunk, reduced, reply_to, streamed, whole
from helpers.messages import END, STOP, piece, start, stop, text, text_block, tool_block

METRICS = {"inputTokenCount": 3, "outputTokenCount": 5, "invocationLatency": 100}
MESSAGE = (
    start(),
    text_block(),
    text("Hi"),
    stop(),
    tool_block(1),
    piece('{"a"', 1),
    piece(": 1}", 1),
    stop(1),
    *END[:-1],
    {**STOP, "amazon-bedrock-invocationMetrics": METRICS},
)
CHOICE = {"index": 0, "finish_reason": None}


def test_the_events_of_a_message_are_rebuilt_as_elsewhere() -> None:
    reply = reply_to(*MESSAGE)
    assert (reply.dialect, reply.text, told(reply)) == (
        "bedrock-invoke",
        "Hi",
        [("c1", "get", '{"a": 1}')],
    )
    assert (reply.terminated, reply.finish_reason_raw) == (True, "tool_use")
    assert (reply.usage, reply.observations) == ({"output_tokens": 5}, ())


def test_fragments_stand_where_the_message_stands_that_carried_them() -> None:
    (call,) = reply_to(*MESSAGE).tool_calls
    assert [fragment.event for fragment in call.fragments] == [5, 6]
    begin, end = call.fragments[0].place.span
    assert streamed(*MESSAGE).body[begin:end] == chunk(MESSAGE[5])


@pytest.mark.parametrize("at", range(6, len(MESSAGE) - 2))
def test_a_stream_cut_inside_of_a_call_is_not_whole(at: int) -> None:
    reply = reply_to(*MESSAGE[:at])
    whole = CallStatus.COMPLETE if at == 8 else CallStatus.TRUNCATED
    assert (reply.terminated, reply.tool_calls[0].status) == (False, whole)


def test_a_document_is_a_message() -> None:
    content = [{"type": "text", "text": "Hi"}]
    message = {"type": "message", "model": "m", "content": content, "stop_reason": "end_turn"}
    reply = reduced(whole(message))
    assert (reply.text, reply.terminated, reply.model) == ("Hi", True, "m")


@pytest.mark.parametrize(
    "kind",
    ["throttlingException", "modelStreamErrorException", "modelTimeoutException"],
)
def test_an_exception_is_the_error_wherever_it_comes(kind: str) -> None:
    error = eventstream.exception(kind, "no more")
    reply = reply_to(*MESSAGE[:3], error)
    assert (reply.text, reply.error, reply.terminated) == ("Hi", "no more", False)
    assert codes(reply) == ["S005"]
    alone = reduced(streamed(error))
    assert (alone.error, codes(alone)) == ("no more", ["S005"])
    first = reply_to(error, *MESSAGE)
    assert (first.text, first.error) == ("Hi", "no more")


def test_an_error_without_a_model_of_the_service_is_one_too() -> None:
    assert reply_to(*MESSAGE[:2], eventstream.error("InternalFailure", "oh")).error == "oh"


def test_an_error_answer_says_only_its_message() -> None:
    assert reduced(whole({"message": "no such model"})).error == "no such model"


def test_chat_completions_are_read_as_such() -> None:
    entry = {"index": 0, "id": "c1", "function": {"name": "get", "arguments": '{"a": 1}'}}
    reply = reply_to(
        {"choices": [{**CHOICE, "delta": {"content": "Hi"}}]},
        {"choices": [{**CHOICE, "delta": {"tool_calls": [entry]}}]},
        {
            "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}],
            "amazon-bedrock-invocationMetrics": METRICS,
        },
    )
    assert (reply.dialect, reply.text) == ("bedrock-invoke", "Hi")
    assert told(reply) == [("c1", "get", '{"a": 1}')]
    assert (reply.terminated, reply.usage, reply.observations) == (True, METRICS, ())


def test_what_a_guardrail_did_is_a_detail_of_the_finish_reason() -> None:
    frame = {
        "outputText": "Sorry.",
        "completionReason": "FINISH",
        "amazon-bedrock-guardrailAction": "INTERVENED",
    }
    choice = reply_to(frame).choices[0]
    assert (choice.finish_reason_raw, choice.finish_detail) == ("FINISH", "guardrail_intervened")
    frame["amazon-bedrock-guardrailAction"] = "NONE"
    assert reply_to(frame).choices[0].finish_detail is None


def test_text_that_merely_names_amazons_members_changes_nothing() -> None:
    reply = reply_to({"outputText": "amazon-bedrock-guardrailAction", "completionReason": "FINISH"})
    assert (reply.usage, reply.choices[0].finish_detail) == (None, None)
    assert codes(reply_to('"amazon-bedrock-guardrailAction"')) == ["S006"]


@pytest.mark.parametrize("carried", ["?", "bm8=", 1, None, [], {}])
def test_what_carries_nothing_is_noted_and_nothing_more(carried: object) -> None:
    reply = reply_to(*MESSAGE, eventstream.event("chunk", {"bytes": carried}))
    assert told(reply) == [("c1", "get", '{"a": 1}')]
    assert set(codes(reply)) <= {"W004", "S006"}
    unread = reply_to(eventstream.event("chunk", {"bytes": carried}))
    assert (unread.text, unread.terminated) == ("", False)
    assert reply_to(eventstream.event("chunk", [])).text == ""


def test_objects_of_an_unknown_model_say_nothing() -> None:
    reply = reply_to({"novelty": "Hi"}, {"amazon-bedrock-invocationMetrics": METRICS})
    assert (reply.text, reply.usage, reply.observations) == ("", METRICS, ())


def test_a_language_may_show_itself_late() -> None:
    reply = reply_to({"novelty": 1}, *MESSAGE)
    assert reply.text == "Hi"


def test_command_r_says_its_plan_once_and_its_calls_in_a_list() -> None:
    calls = [{"name": "get", "parameters": {"a": 1}}]
    reply = reply_to(
        {"event_type": "stream-start", "generation_id": "g", "is_finished": False},
        {"event_type": "tool-calls-chunk", "text": "I look.", "is_finished": False},
        {"event_type": "tool-calls-generation", "text": "I look.", "tool_calls": calls},
        {"event_type": "stream-end", "finish_reason": "COMPLETE", "response": {"text": "I look."}},
    )
    assert (reply.dialect, reply.text, reply.terminated) == ("bedrock-invoke", "I look.", True)
    assert (told(reply), codes(reply)) == ([(None, "get", '{"a": 1}')], [])
