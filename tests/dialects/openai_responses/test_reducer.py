import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltatape.diagnose.check import check
from deltatape.diagnose.rebuild import rebuild
from deltatape.dialects.openai_responses.reducer import ResponsesReducer
from deltatape.model.request_summary import NOTHING_ASKED
from helpers.json_values import json_values
from helpers.responses import (
    added,
    call,
    codes,
    created,
    delta,
    done,
    ended,
    exchange,
    findings,
    function,
    message,
    numbered,
    part,
    reply_to,
    response,
    say,
    sse,
)

WHOLE = '{"a":1}'
USAGE = {"input_tokens": 3}
HEALTHY = (created(), *call(), ended(function(WHOLE), usage=USAGE))
SPOKEN = (created(), added(message()), say("Hi"), done(message("Hi")))


def test_the_terminal_event_brings_status_usage_and_model() -> None:
    reply = reply_to(*HEALTHY)
    assert (reply.finish_reason_raw, reply.usage, reply.model) == ("completed", USAGE, "m")
    assert (reply.terminated, reply.terminal_event, reply.error) == (True, 6, None)


@pytest.mark.parametrize("status", ["completed", "incomplete", "failed", "cancelled"])
def test_the_status_is_the_finish_reason(status: str) -> None:
    reply = reply_to(*SPOKEN, ended(message("Hi"), status=status))
    assert (reply.finish_reason_raw, reply.terminated) == (status, True)


def test_items_stand_where_their_index_says() -> None:
    first, second = message(item_id="msg_0"), message(item_id="msg_1")
    reply = reply_to(
        created(),
        added(second, 1),
        say("second", 1),
        added(first, 0),
        part("output_text.delta", 0, "msg_0", content_index=0, delta="first "),
        *call(index=3, number=2),
        *call(index=2, number=1),
    )
    assert reply.text == "first second"
    assert [each.id for each in reply.tool_calls] == ["call_1", "call_2"]


def test_items_that_share_an_index_stand_as_they_came() -> None:
    reply = reply_to(created(), *call(index=0, number=2), *call(index=0, number=1))
    assert [each.id for each in reply.tool_calls] == ["call_2", "call_1"]


def test_parts_stand_where_their_index_says() -> None:
    spoken = (created(), added(message()), say("world", content=1), say("hello ", content=0))
    assert reply_to(*spoken).text == "hello world"
    whole = message("hello ", "world")
    assert codes(*spoken, done(whole), ended(whole)) == []


def test_the_detail_of_an_incomplete_response_is_kept() -> None:
    end = ended(status="incomplete", incomplete_details={"reason": "content_filter"})
    assert reply_to(*SPOKEN, end).choices[0].finish_detail == "content_filter"


@pytest.mark.parametrize("status", ["in_progress", None, 3])
def test_a_status_that_is_no_end_gives_way_to_the_name_of_the_event(status: object) -> None:
    end = {"type": "response.completed", "response": {**response(), "status": status}}
    assert reply_to(*SPOKEN, end).finish_reason_raw == "completed"


def test_a_stream_that_breaks_off_has_no_finish() -> None:
    for length in range(1, len(HEALTHY)):
        reply = reply_to(*HEALTHY[:length])
        assert (reply.finish_reason_raw, reply.terminated) == (None, False)
        assert [one.status for one in reply.tool_calls] == (
            [] if length == 1 else ["truncated"] if length < 6 else ["complete"]
        )
        assert "S001" in codes(*HEALTHY[:length])


@pytest.mark.parametrize(
    "error",
    [
        {"type": "error", "code": "c", "message": "boom"},
        {"type": "error", "error": {"code": "c", "message": "boom"}},
        {"error": {"message": "boom"}},
        {"type": "response.failed", "response": response("failed", error={"message": "boom"})},
    ],
)
@pytest.mark.parametrize("lines", [True, False])
def test_every_shape_of_an_error_is_reported(error: dict[str, object], lines: bool) -> None:  # noqa: FBT001
    taken = exchange(sse(*SPOKEN, error, lines=lines))
    assert rebuild(taken).error == "boom"
    assert [one.code for one in check(taken)] == ["S005"]


def test_an_error_that_comes_in_both_shapes_is_one_error() -> None:
    failed = ended(status="failed", error={"message": "boom"})
    flat = {"type": "error", "message": "boom"}
    assert codes(*SPOKEN, flat, failed) == ["S005"]


def test_a_failure_without_a_reason_and_alone_is_one_all_the_same() -> None:
    assert reply_to(ended(status="failed")).error == "the response failed"
    assert codes(ended(status="failed")) == ["S005"]


def test_an_error_may_come_first() -> None:
    error = {"type": "error", "sequence_number": 0, "message": "boom"}
    assert codes(error, {"type": "response.in_progress", "response": {}}) == ["S005"]


def test_a_stream_begins_with_its_creation() -> None:
    assert codes(*HEALTHY[1:]) == ["S006"]
    assert codes({}, *HEALTHY[1:]) == ["S006", "S006"]


def test_an_unreadable_first_event_may_have_been_its_creation() -> None:
    assert codes('{"type": "response.cre', *HEALTHY[1:]) == ["W004"]


def test_gaps_and_repeats_in_the_numbers_are_reported_once() -> None:
    events = numbered(*HEALTHY)
    assert codes(*events) == []
    assert codes(*events[:3], *events[4:]) == ["T015", "S007"]
    assert codes(*events[:2], events[1], *events[2:]).count("S007") == 1


def test_unknown_events_count_and_errors_do_not() -> None:
    ping: dict[str, object] = {"type": "keepalive"}
    events = numbered(*HEALTHY[:2], ping, {"type": "response.brand_new"}, *HEALTHY[2:])
    assert codes(*events) == []
    lost = {"type": "error", "sequence_number": 0, "message": "boom"}
    assert "S007" not in codes(*numbered(*HEALTHY[:3]), lost)
    assert codes(*numbered(*HEALTHY, {"type": "response.brand_new"})) == []


def test_numbers_of_another_type_are_ignored() -> None:
    assert codes(*({**event, "sequence_number": True} for event in HEALTHY)) == []


def test_a_sentinel_says_nothing() -> None:
    assert codes(*HEALTHY, "[DONE]") == []
    assert "S001" in codes(*HEALTHY[:-1], "[DONE]")


def test_event_lines_are_not_needed_and_enough() -> None:
    bare = exchange(sse(*HEALTHY, lines=False))
    assert rebuild(bare).tool_calls[0].arguments == WHOLE
    assert check(bare) == ()
    body = b"".join(
        f"event: {event.pop('type')}\ndata: {json.dumps(event)}\n\n".encode()
        for event in map(dict, HEALTHY)
    )
    assert rebuild(exchange(body)).tool_calls[0].arguments == WHOLE


def test_events_after_the_end_are_reported_and_left_out() -> None:
    assert codes(*HEALTHY, delta("x")) == ["S006"]
    assert codes(*HEALTHY, HEALTHY[-1]) == ["S004"]
    assert reply_to(*HEALTHY, delta("x")).tool_calls == reply_to(*HEALTHY).tool_calls


def test_another_response_in_the_same_stream_is_reported() -> None:
    other = {"type": "response.in_progress", "response": {**response(), "id": "resp_other"}}
    assert codes(created(), other, *HEALTHY[1:]) == ["S006"]


def test_items_came_and_the_final_response_has_none() -> None:
    assert codes(*HEALTHY[:-1], ended()) == ["S008"]
    assert [one.severity for one in findings(*HEALTHY[:-1], ended())] == ["warning"]
    assert [one.severity for one in findings(*SPOKEN, ended())] == ["warning"]
    assert codes(*SPOKEN, ended(status="cancelled")) == []


def test_an_answer_that_is_not_streamed_is_one_event() -> None:
    whole = response(output=[message("Hi"), function(WHOLE)], usage=USAGE)
    taken = exchange(json.dumps(whole).encode(), content_type="application/json")
    reply = rebuild(taken)
    assert (reply.dialect, reply.text, reply.usage) == ("openai-responses", "Hi", USAGE)
    assert [(one.id, one.arguments, one.status) for one in reply.tool_calls] == [
        ("call_1", WHOLE, "complete")
    ]
    assert (reply.finish_reason_raw, reply.terminated) == ("completed", True)
    assert check(taken) == ()


def test_a_response_in_the_background_has_not_ended() -> None:
    body = json.dumps(response("queued")).encode()
    reply = rebuild(exchange(body, content_type="application/json"))
    assert (reply.finish_reason_raw, reply.terminated) == (None, False)


def test_an_error_body_is_an_error() -> None:
    body = b'{"error": {"message": "no such model"}}'
    reply = rebuild(exchange(body, content_type="application/json"))
    assert (reply.dialect, reply.error) == ("openai-responses", "no such model")


@pytest.mark.parametrize(
    "odd",
    [
        {"type": "response.in_progress", "response": None},
        delta(3),
        say(None),
        part("function_call_arguments.done", arguments=None),
        {"sequence_number": 3},
        7,
    ],
)
def test_odd_shapes_are_reported_and_nothing_is_lost(odd: object) -> None:
    events = (*HEALTHY[:3], odd, *HEALTHY[3:])
    assert "S006" in codes(*events)
    assert reply_to(*events).tool_calls[0].arguments == WHOLE


def test_an_end_without_a_response_is_an_end() -> None:
    assert "S006" in codes(*SPOKEN, {"type": "response.completed"})
    assert reply_to(*SPOKEN, {"type": "response.completed"}).terminated


def test_pieces_without_text_are_nothing() -> None:
    events = (*SPOKEN[:2], say(""), part("output_text.done", 0, "msg_1", text=""), ended())
    assert reply_to(*events).choices[0].pieces == ()


JUNK = json_values(
    st.integers(-1, 3) | st.sampled_from(["", "x", "fc_1", "call_1"]),
    st.sampled_from(["id", "type", "text", "arguments"]),
    6,
)


@st.composite
def spoiled(draw: st.DrawFn) -> list[object]:
    """A healthy stream in which fields at any depth have another type, and events are moved."""
    base = [*SPOKEN, *call('{"b":2}', 1, 2), ended(message("Hi"), function('{"b":2}', 2))]
    events: list[object] = json.loads(json.dumps(numbered(*base)))
    for _ in range(draw(st.integers(1, 4))):
        holder = draw(st.sampled_from(events))
        while isinstance(holder, dict | list) and holder:
            keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
            key = draw(st.sampled_from(keys))
            inner = holder[key]
            if isinstance(inner, dict | list) and inner and draw(st.booleans()):
                holder = inner
                continue
            holder[key] = draw(JUNK)
            break
    return draw(st.permutations(events)) if draw(st.booleans()) else events


@pytest.mark.slow
@given(spoiled())
def test_fields_of_any_type_raise_nothing(events: list[object]) -> None:
    taken = exchange(sse(*events, lines=False))
    assert rebuild(taken) == rebuild(taken)
    check(taken)


def test_a_reply_to_nothing_is_empty() -> None:
    reply = ResponsesReducer("openai-responses", NOTHING_ASKED).finish(cut=True)
    assert (reply.text, reply.tool_calls, reply.terminated) == ("", (), False)


def test_an_error_by_the_name_that_gateways_give_it_is_one() -> None:
    error = {"type": "response.error", "error": {"message": "boom"}}
    assert reply_to(error).error == "boom"
    assert codes(error) == ["S005"]


def test_sound_and_a_question_for_the_user_are_an_answer() -> None:
    sound = {"type": "response.audio.delta", "delta": "aGk="}
    assert codes(created(), sound, ended()) == []
    question = {"id": "mcpr_1", "type": "mcp_approval_request", "name": "ask", "arguments": "{}"}
    assert codes(created(), added(question), done(question), ended(question)) == []
