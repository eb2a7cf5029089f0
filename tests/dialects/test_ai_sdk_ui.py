import json

import pytest

from deltatape.dialects.ai_sdk_ui import AISDKUI
from deltatape.model.reply import CallKind, CallStatus, Reply
from deltatape.model.request_summary import NOTHING_ASKED, RepeatedCall, RequestSummary
from helpers.events import codes, details, events, reduced, spoilt

Json = dict[str, object]


def start(call_id: str, name: str, **more: object) -> Json:
    return {"type": "tool-input-start", "toolCallId": call_id, "toolName": name, **more}


def delta(call_id: str, text: str) -> Json:
    return {"type": "tool-input-delta", "toolCallId": call_id, "inputTextDelta": text}


def whole(call_id: str, name: str, value: object, **more: object) -> Json:
    call = {"toolCallId": call_id, "toolName": name, "input": value}
    return {"type": "tool-input-available", **call, **more}


def failed(call_id: str, name: str, value: object) -> Json:
    call = {"toolCallId": call_id, "toolName": name, "input": value, "errorText": "no"}
    return {"type": "tool-input-error", **call}


FINISH: Json = {"type": "finish", "finishReason": "tool-calls"}
STREAM: list[Json] = [
    {"type": "start", "messageId": "m"},
    {"type": "start-step"},
    {"type": "reasoning-start", "id": "r"},
    {"type": "reasoning-delta", "id": "r", "delta": "Hm."},
    {"type": "reasoning-end", "id": "r"},
    {"type": "text-start", "id": "0"},
    {"type": "text-delta", "id": "0", "delta": "Let me"},
    start("c1", "get_weather"),
    start("c2", "now", dynamic=True),
    delta("c1", '{"city":'),
    delta("c2", "{}"),
    delta("c1", '"Gent"}'),
    {"type": "text-delta", "id": "0", "delta": " see"},
    {"type": "text-end", "id": "0"},
    whole("c1", "get_weather", {"city": "Gent"}),
    whole("c2", "now", {}),
    {"type": "tool-output-available", "toolCallId": "c1", "output": {"celsius": 13}},
    {"type": "tool-output-error", "toolCallId": "c2", "errorText": "no clock"},
    {"type": "data-weather", "data": {}},
    {"type": "source-url", "sourceId": "s", "url": "https://example.com"},
    {"type": "finish-step"},
    FINISH,
]


def reply_to(*frames: object, cut: bool = False) -> Reply:
    return reduced(AISDKUI(), events(*frames), cut=cut)


def test_parts_and_calls_are_put_together() -> None:
    reply = reply_to(*STREAM, "[DONE]")
    assert (reply.text, reply.reasoning) == ("Let me see", "Hm.")
    assert [(c.id, c.name, c.arguments, c.status) for c in reply.tool_calls] == [
        ("c1", "get_weather", '{"city": "Gent"}', CallStatus.COMPLETE),
        ("c2", "now", "{}", CallStatus.COMPLETE),
    ]
    assert reply.tool_calls[0].arguments_raw == '{"city":"Gent"}'
    assert reply.tool_calls[0].wire_index is None
    assert (reply.finish_reason_raw, reply.terminated) == ("tool-calls", True)
    assert reply.terminal_event == len(STREAM) - 1
    assert reply.observations == ()


def test_results_are_due_where_the_reply_does_not_end_with_calls_for_the_page() -> None:
    reply = reply_to(*STREAM)
    assert reply.from_app
    assert [(one.call_id, one.event) for one in reply.results] == [("c1", 16), ("c2", 17)]
    assert not reply.results_due
    assert reply_to(*STREAM[:-1], {"type": "finish", "finishReason": "stop"}).results_due
    early = {"type": "tool-output-available", "toolCallId": "c1", "preliminary": True}
    refused = failed("d", "g", "no JSON")
    assert [one.call_id for one in reply_to(early, refused, FINISH).results] == ["d"]


def test_done_alone_ends_it_too() -> None:
    reply = reply_to(whole("c", "f", {}), "[DONE]")
    assert (reply.terminated, reply.terminal_event, reply.observations) == (True, 1, ())
    assert reply.tool_calls[0].status is CallStatus.COMPLETE


def test_an_input_without_pieces_is_its_exact_source() -> None:
    frame = '{"type":"tool-input-available","toolCallId":"c","toolName":"f","input":{ "a" : 1.0 }}'
    reply = reply_to(frame, FINISH)
    assert [(c.arguments, c.arguments_raw) for c in reply.tool_calls] == [('{ "a" : 1.0 }',) * 2]


def test_an_input_that_is_not_what_its_pieces_say_is_reported() -> None:
    reply = reply_to(start("c", "f"), delta("c", '{"a":1}'), whole("c", "f", {"a": 2}), FINISH)
    assert reply.tool_calls[0].arguments == '{"a": 2}'
    assert reply.tool_calls[0].repairs == ("T015",)
    same = reply_to(start("c", "f"), delta("c", '{"a":1.0}'), whole("c", "f", {"a": 1}), FINISH)
    assert same.observations == ()
    renamed = reply_to(start("c", "f"), whole("c", "g", {}), FINISH)
    assert details(renamed, "T015") == ["the name 'f' changes to 'g'"]


def test_a_stream_that_is_cut_anywhere_leaves_no_call_whole_before_its_input() -> None:
    for length in range(len(STREAM)):
        reply = reply_to(*STREAM[:length], cut=True)
        for call in reply.tool_calls:
            available = 14 if call.id == "c1" else 15
            assert (call.status is CallStatus.COMPLETE) is (length > available), (length, call)
        assert not reply.terminated


def test_an_abort_ends_the_answer_and_not_its_calls() -> None:
    reply = reply_to(start("c", "f"), delta("c", "{}"), {"type": "abort"}, "[DONE]")
    assert (reply.terminated, reply.terminal_event) == (True, 2)
    assert reply.tool_calls[0].status is CallStatus.TRUNCATED


def test_an_error_is_reported() -> None:
    reply = reply_to({"type": "error", "errorText": "overloaded"}, "[DONE]")
    assert (reply.error, reply.terminated, codes(reply)) == ("overloaded", True, ["S005"])
    for error in ({"error": {"message": "busy"}}, {"error": "busy"}, {"message": "busy"}):
        assert reply_to({"type": "error", **error}).error == "busy"
    assert reply_to({"type": "error"}).error == '{"type": "error"}'


def test_an_input_that_the_application_refuses_keeps_what_the_model_wrote() -> None:
    reply = reply_to(
        start("c", "f"),
        delta("c", '{"a":'),
        failed("c", "f", '{"a":'),
        failed("d", "g", "no JSON"),
        failed("e", "h", {"a": 1}),
        FINISH,
    )
    assert [(c.name, c.arguments, c.status) for c in reply.tool_calls] == [
        ("f", '{"a":', CallStatus.TRUNCATED),
        ("g", "no JSON", CallStatus.MALFORMED),
        ("h", '{"a": 1}', CallStatus.COMPLETE),
    ]


def test_a_string_is_free_text_unless_it_holds_the_object() -> None:
    reply = reply_to(whole("c", "patch", "*** Begin"), whole("d", "f", '{"a":1}'), FINISH)
    assert [(c.kind, c.arguments, c.status) for c in reply.tool_calls] == [
        (CallKind.CUSTOM, "*** Begin", CallStatus.COMPLETE),
        (CallKind.FUNCTION, '"{\\"a\\":1}"', CallStatus.DOUBLE_ENCODED),
    ]


def test_what_the_provider_runs_is_not_a_call_of_the_application() -> None:
    reply = reply_to(
        start("c", "search", providerExecuted=True),
        whole("c", "search", {}, providerExecuted=True),
        start("d", "code"),
        whole("d", "code", {}, providerExecuted=True),
        whole("e", "fetch", {}, providerExecuted=True),
        FINISH,
    )
    assert reply.tool_calls == ()
    assert [c.name for c in reply.server_calls] == ["search", "code", "fetch"]


def test_what_the_client_throws_on_is_reported() -> None:
    reply = reply_to(
        {"type": "text-delta", "id": "0", "delta": "a"},
        {"type": "text-start", "id": "1"},
        {"type": "finish-step"},
        {"type": "text-end", "id": "1"},
        {"type": "reasoning-start", "id": "1"},
        {"type": "reasoning-delta", "id": "1"},
        delta("c", "{}"),
        {"type": "tool-input-delta", "inputTextDelta": " "},
        start("d", "f"),
        {"type": "tool-input-start", "toolName": "g"},
        FINISH,
        {"type": "text-delta", "id": "1", "delta": "b"},
    )
    assert details(reply, "S006") == [
        "a piece of text that never started",
        "the end of a text that never started",
        "a piece of reasoning without a delta",
        "arguments of a call that never started",
        "an event of a call does not say which one",
        "nothing says that the call of '' is whole",
        "nothing says that the call of 'f' is whole",
        "an event of a call does not say which one",
        "nothing says that the call of 'g' is whole",
        "content after the terminal event",
    ]
    assert codes(reply).count("T005") == 1
    assert [(c.id, c.name, c.arguments) for c in reply.tool_calls] == [
        ("c", None, "{} "),
        ("d", "f", ""),
        (None, "g", ""),
    ]


@pytest.mark.parametrize("frame", ["[1]", "{", '{"type":null}', '{"type":["text"]}'])
def test_what_is_not_an_event_is_reported_and_passed_over(frame: str) -> None:
    assert len(codes(reply_to(frame, FINISH))) == 1


@pytest.mark.slow
def test_no_value_of_any_type_anywhere_raises() -> None:
    for frames in spoilt(STREAM):
        reply_to(*frames)


def test_texts_may_interleave_and_each_needs_its_start() -> None:
    reply = reduced(
        AISDKUI(),
        events(
            {"type": "text-start", "id": "a"},
            {"type": "reasoning-start", "id": "a"},
            {"type": "text-delta", "id": "a", "delta": "1"},
            {"type": "reasoning-delta", "id": "a", "delta": "2"},
            {"type": "text-end", "id": "a"},
            {"type": "text-delta", "id": "a", "delta": "3"},
            {"type": "reasoning-end", "id": "a"},
            "[DONE]",
        ),
    )
    assert (reply.text, reply.reasoning) == ("13", "2")
    assert details(reply, "S006") == ["a piece of text that never started"]


def test_the_end_of_a_step_ends_its_texts() -> None:
    reply = reduced(
        AISDKUI(),
        events(
            {"type": "text-start", "id": "a"},
            {"type": "finish-step"},
            {"type": "text-delta", "id": "a", "delta": "1"},
            "[DONE]",
        ),
    )
    assert details(reply, "S006") == ["a piece of text that never started"]


def read(*messages: object) -> RequestSummary:
    return AISDKUI().read_request(json.dumps({"id": "x", "messages": messages}).encode(), "/")


def tool(state: str, **more: object) -> Json:
    return {"type": "tool-get", "toolCallId": "c", "state": state, "input": {"a": 1}, **more}


def test_what_is_not_an_object_asks_for_nothing() -> None:
    assert AISDKUI().read_request(b"", "/") is NOTHING_ASKED


def test_parts_are_text_calls_and_results() -> None:
    dynamic = {"type": "dynamic-tool", "toolCallId": "d", "toolName": "f", "state": "output-error"}
    asked = read(
        {"role": "user", "parts": [{"type": "text", "text": "hi"}, {"type": "file"}, 1]},
        {
            "role": "assistant",
            "parts": [
                {"type": "step-start"},
                {"type": "text", "text": "Let me"},
                tool("output-available", output="13"),
                {**dynamic, "errorText": "no"},
                tool("output-available", output=1, providerExecuted=True),
                {"type": "text", "text": " see"},
            ],
        },
        {"role": "user", "content": "old"},
        None,
    )
    assert (asked.known, asked.model, asked.stream, asked.tools) == (True, None, True, ())
    assert [(one.role, one.text, one.call_id) for one in asked.history] == [
        ("user", "hi", None),
        ("assistant", "Let me see", None),
        ("tool", "13", "c"),
        ("tool", "no", "d"),
        ("user", "old", None),
    ]
    assert asked.history[1].calls == (
        RepeatedCall(id="c", name="get", arguments='{"a": 1}'),
        RepeatedCall(id="d", name="f", arguments=""),
    )


def test_an_answer_does_not_change_the_digest_of_its_call() -> None:
    before = read({"role": "assistant", "parts": [tool("input-available")]})
    after = read({"role": "assistant", "parts": [tool("output-available", output={"b": 2})]})
    assert [one.call_id for one in after.history] == [None, "c"]
    assert before.history[0].digest == after.history[0].digest


def test_no_value_anywhere_in_a_request_raises() -> None:
    parts: list[object] = [{"type": "text", "text": "a"}, tool("output-available", output="o")]
    message: Json = {"role": "assistant", "content": "x", "parts": parts}
    for messages in spoilt([message]):
        assert read(*messages).known
