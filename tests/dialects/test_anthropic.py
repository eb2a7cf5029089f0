import json

import pytest

from deltatape.diagnose.rebuild import rebuild
from deltatape.dialects._anthropic import is_document, is_error, is_event, read_request
from deltatape.dialects.anthropic_messages import AnthropicMessages
from deltatape.model.exchange import Exchange
from deltatape.model.reply import CallKind, CallStatus
from deltatape.model.request_summary import NOTHING_ASKED, RepeatedCall, RequestSummary
from helpers.chat import codes, told
from helpers.messages import (
    END,
    PING,
    STOP,
    URL,
    Frame,
    delta,
    document,
    piece,
    reason,
    reply_to,
    request,
    sse,
    start,
    stop,
    text,
    text_block,
    tool_block,
)

CALL = (tool_block(1), piece("", 1), piece('{"a"', 1), piece(": 1}", 1), stop(1))
HEALTHY = (start(), text_block(), PING, text("Hel"), text("lo"), stop(), *CALL, *END)
NEEDS_NOTHING = request(get={"type": "object"})


def test_a_healthy_stream_is_rebuilt_without_a_word() -> None:
    reply = reply_to(*HEALTHY)
    assert reply.text == "Hello"
    assert told(reply) == [("c1", "get", '{"a": 1}')]
    assert [call.wire_index for call in reply.tool_calls] == [1]
    assert (reply.finish_reason_raw, reply.terminated, reply.model) == ("tool_use", True, "m")
    assert reply.terminal_event == len(HEALTHY) - 1
    assert reply.observations == ()


@pytest.mark.parametrize("at", range(2, len(HEALTHY) - 1))
def test_a_stream_cut_anywhere_before_its_end_is_not_whole(at: int) -> None:
    reply = reply_to(*HEALTHY[:at])
    assert not reply.terminated
    assert reply.observations == ()
    finished = reply.finish_reason_raw is not None
    stopped = at > HEALTHY.index(CALL[-1])
    whole = CallStatus.COMPLETE if finished or stopped else CallStatus.TRUNCATED
    assert {call.status for call in reply.tool_calls} <= {whole}


def test_a_call_without_argument_bytes_is_judged_by_its_schema() -> None:
    frames = (start(), tool_block(), piece(""), stop(), *END)
    (call,) = reply_to(*frames, request=NEEDS_NOTHING).tool_calls
    assert (call.arguments, call.status) == ("", CallStatus.EMPTY_OK)
    (call,) = reply_to(*frames).tool_calls
    assert call.status is CallStatus.EMPTY_SUSPECT


def test_a_limit_cuts_the_call_although_its_block_stops() -> None:
    frames = (start(), tool_block(), piece('{"a": "b'), stop(), reason("max_tokens"), STOP)
    (call,) = reply_to(*frames).tool_calls
    assert call.status is CallStatus.TRUNCATED


def test_eager_arguments_may_be_not_json() -> None:
    frames = (start(), tool_block(), piece('{"words": Dave}'), stop(), *END)
    (call,) = reply_to(*frames).tool_calls
    assert (call.arguments, call.status) == ('{"words": Dave}', CallStatus.MALFORMED)


def test_counts_of_later_events_replace_earlier_ones() -> None:
    reply = reply_to(
        start(usage={"input_tokens": 7, "output_tokens": 1}),
        reason(None, output_tokens=3),
        reason("end_turn", output_tokens=9, input_tokens=None, cache_read=None),
        STOP,
    )
    assert reply.usage == {"input_tokens": 7, "output_tokens": 9, "cache_read": None}
    assert reply.observations == ()


def test_a_refusal_comes_with_its_category() -> None:
    ending = reason("refusal")
    ending["delta"] = {"stop_reason": "refusal", "stop_details": {"category": "cyber"}}
    choice = reply_to(start(), ending, STOP).choices[0]
    assert (choice.finish_reason_raw, choice.finish_detail) == ("refusal", "cyber")


@pytest.mark.parametrize("word", ["pause_turn", "refusal", "model_context_window_exceeded"])
def test_a_message_that_stops_early_need_not_have_whole_calls(word: str) -> None:
    reply = reply_to(start(), tool_block(), stop(), reason(word), STOP, request=NEEDS_NOTHING)
    assert (reply.finish_reason_raw, reply.terminated) == (word, True)
    assert reply.tool_calls[0].status is CallStatus.TRUNCATED


def test_events_without_names_are_noted_once() -> None:
    reply = reply_to(*HEALTHY, "data: [DONE]\n\n", "data: \n\n", named=False)
    assert codes(reply) == ["W008"]
    assert told(reply) == [("c1", "get", '{"a": 1}')]


def test_an_event_with_a_name_and_without_data_is_not_json() -> None:
    assert codes(reply_to(start(), "event: message_stop\ndata: \n\n")) == ["W004"]


def test_an_error_event_ends_the_reply_and_keeps_what_came_before() -> None:
    error: Frame = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    reply = reply_to(start(), text_block(), text("Hel"), error)
    assert (reply.text, reply.error, reply.terminated) == ("Hel", "Overloaded", False)
    assert codes(reply) == ["S005"]


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        ({"error": {"message": "bad gateway"}}, "bad gateway"),
        ({"type": "error", "message": "flat"}, "flat"),
        ({"type": "error"}, "an error event without a message"),
        ({"type": "error", "error": "text"}, "text"),
    ],
)
def test_an_error_has_many_shapes(frame: Frame, message: str) -> None:
    assert reply_to(start(), frame, named=False).error == message


def test_an_error_after_the_stop_makes_the_reply_not_whole() -> None:
    reply = reply_to(start(), *END, {"type": "error", "error": {"message": "late"}})
    assert (reply.error, reply.terminated) == ("late", False)


def test_a_repeated_message_start_says_nothing() -> None:
    reply = reply_to(start(), text_block(), text("a"), start(), text("b"), stop(), *END)
    assert reply.text == "ab"
    assert codes(reply) == ["S006"]


def test_a_retry_behind_what_it_replaces_is_the_whole_answer() -> None:
    reply = reply_to(
        start("msg_1", usage={"input_tokens": 4}),
        text_block(),
        text("given up"),
        stop(),
        tool_block(1, "c1"),
        piece('{"a": "b', 1),
        start("msg_2", model="other"),
        tool_block(0, "c2"),
        piece('{"a": 1}'),
        stop(),
        *END,
    )
    assert (reply.text, told(reply)) == ("", [("c2", "get", '{"a": 1}')])
    assert (reply.model, reply.usage) == ("other", {"output_tokens": 5})
    assert codes(reply) == ["S006"]


def test_a_message_behind_another_one_adds_to_it() -> None:
    reply = reply_to(start("msg_1"), *CALL, *END, start("msg_2"), text_block(), text("Done."), *END)
    assert (reply.text, len(reply.tool_calls)) == ("Done.", 1)
    assert codes(reply) == ["T013", "S006", "S006"]


def test_a_message_may_begin_with_whole_blocks() -> None:
    block = {"type": "tool_use", "id": "c1", "name": "get", "input": {"a": 1}}
    reply = reply_to(start(content=[block], stop_reason="tool_use"), STOP)
    assert told(reply) == [("c1", "get", '{"a": 1}')]
    assert (reply.finish_reason_raw, reply.terminated) == ("tool_use", True)
    assert reply.observations == ()


def test_whole_blocks_that_are_none_are_left_out() -> None:
    reply = reply_to(start(content=[None, {"type": "text", "text": "Hi"}]), STOP)
    assert (reply.text, codes(reply)) == ("Hi", ["S006"])


def test_content_outside_of_a_message_counts_and_is_noted() -> None:
    late = (text_block(1), text("b", 1), stop(1), STOP)
    reply = reply_to(text_block(), text("a"), stop(), *END, *late)
    assert reply.text == "ab"
    assert [seen.detail for seen in reply.observations] == [
        "content without message_start",
        "content after message_stop",
        "message_stop comes again",
    ]


def test_a_second_stop_reason_counts_and_is_noted() -> None:
    reply = reply_to(start(), reason("end_turn"), reason("tool_use"), STOP)
    assert (reply.finish_reason_raw, codes(reply)) == ("tool_use", ["S004"])


def test_unknown_events_and_deltas_say_nothing() -> None:
    reply = reply_to(
        start(),
        {"type": "content_block_start", "index": 0, "content_block": {"type": "compaction"}},
        delta(0, type="compaction_delta", content="short"),
        delta(0, type="citations_delta", citation={}),
        stop(),
        {"type": "message_hint", "hint": 1},
        *END,
    )
    assert (reply.text, reply.observations) == ("", ())


def test_a_missing_type_is_taken_from_the_event_line() -> None:
    reply = reply_to(start(), text_block(), text("a"), stop(), "event: message_stop\ndata: {}\n\n")
    assert reply.terminated
    assert codes(reply) == ["S006"]
    assert not reply_to(start(), "event: other\ndata: {}\n\n").terminated


def test_a_message_that_is_not_streamed_is_read_whole() -> None:
    source = '{"a" : 1.0}'
    reply = document(
        '{"id":"msg_1","type":"message","role":"assistant","model":"m","content":['
        '{"type":"thinking","thinking":"hm"},{"type":"text","text":"Hi"},'
        '{"type":"tool_use","id":"c1","name":"get","input":' + source + "},"
        '{"type":"tool_use","id":"c2","name":"get","input":{}},'
        '{"type":"tool_use","id":"c3","name":"get"},'
        '{"type":"server_tool_use","id":"s1","name":"web_search","input":{"q":1}}],'
        '"stop_reason":"tool_use","usage":{"output_tokens":3}}'
    )
    assert (reply.reasoning, reply.text, reply.usage) == ("hm", "Hi", {"output_tokens": 3})
    assert [call.arguments for call in reply.tool_calls] == [source, "{}", ""]
    assert [call.name for call in reply.server_calls] == ["web_search"]
    assert (reply.terminated, reply.observations) == (True, ())


def test_an_error_answer_is_read() -> None:
    value = {"type": "error", "error": {"type": "not_found_error", "message": "no such model"}}
    reply = document(value, status=404)
    assert (reply.dialect, reply.error) == ("anthropic-messages", "no such model")


JUNK: tuple[object, ...] = (None, 0, True, "", "x", [], [1], {}, {"type": 1}, 1.5)


@pytest.mark.parametrize("junk", JUNK, ids=repr)
def test_members_of_a_wrong_type_are_never_more_than_odd(junk: object) -> None:
    frames: list[Frame] = [
        {"type": "message_start", "message": junk},
        start(junk, content=junk, model=junk, usage=junk, stop_reason=junk),
        start("other", content=[junk]),
        {"type": "content_block_start", "index": junk, "content_block": junk},
        text_block(junk, junk),
        tool_block(junk, junk, name=junk, input=junk),
        {"type": "content_block_delta", "index": junk, "delta": junk},
        text(junk, junk),
        delta(0, thinking=junk),
        delta(0, type=junk),
        piece(junk, junk),
        stop(junk),
        {"type": "message_delta", "delta": junk, "usage": junk},
        reason(junk),
        {"type": junk},
        {"type": "error", "error": junk},
    ]
    noticed = set(codes(reply_to(*frames))) | set(codes(reply_to(*frames, named=False)))
    known = {"S004", "S005", "S006", "T005", "T006", "T011", "T012", "T013", "T014", "T015", "W008"}
    assert noticed <= known


def test_a_body_that_is_not_a_message_has_an_empty_reply() -> None:
    exchange = Exchange.from_body(b"data: []\n\n", content_type="text/event-stream", url=URL)
    reply = rebuild(exchange)
    assert (reply.dialect, reply.text, codes(reply)) == ("anthropic-messages", "", ["S006"])


def test_every_fragment_and_piece_tells_the_event_that_brought_it() -> None:
    reply = reply_to(*HEALTHY)
    body = sse(*HEALTHY)
    assert [piece.event for piece in reply.choices[0].pieces] == [3, 4]
    for fragment in reply.tool_calls[0].fragments:
        begin, end = fragment.place.span
        assert f'"index": {reply.tool_calls[0].wire_index}'.encode() in body[begin:end]


def test_the_model_that_went_on_is_the_one_that_answered() -> None:
    def switch(target: object) -> Frame:
        block = {"type": "fallback", "from": {"model": "m"}, "to": target}
        return {"type": "content_block_start", "index": 0, "content_block": block}

    rest = (stop(), text_block(1), text("Hi", 1), stop(1), *END)
    assert reply_to(start(), switch({"model": "other"}), *rest).model == "other"
    assert reply_to(start(), switch(None), *rest).model == "m"


def test_events_are_known_by_their_type() -> None:
    assert is_event({"type": "content_block_delta"})
    assert not is_event({"type": "ping"})
    assert not is_event({"type": ["message_start"]})


def test_a_document_has_blocks_and_a_stop_reason() -> None:
    message: dict[str, object] = {"type": "message", "content": [], "stop_reason": None}
    assert is_document(message)
    assert not is_document({**message, "content": "text"})
    assert not is_document({"type": "message", "content": []})


def test_errors_of_others_have_codes_or_numbers() -> None:
    error: dict[str, object] = {"type": "error", "error": {"type": "api_error", "message": "no"}}
    assert is_error(error)
    assert not is_error({**error, "sequence_number": 2})
    assert not is_error({"type": "error", "error": {"type": "server_error", "code": None}})
    assert not is_error({"type": "error", "error": {"message": "no"}})
    assert not is_error({"type": "error", "message": "no"})
    assert not is_error({"error": {"type": "api_error"}})


def test_interleaved_blocks_are_told_apart_by_their_index() -> None:
    reply = reply_to(
        start(),
        text_block(0),
        tool_block(1, "c1"),
        tool_block(2, "c2"),
        piece('{"a"', 1),
        text("Hi", 0),
        piece('{"b"', 2),
        piece(": 1}", 1),
        piece(": 2}", 2),
        stop(2),
        stop(1),
        stop(0),
        *END,
    )
    assert told(reply) == [("c1", "get", '{"a": 1}'), ("c2", "get", '{"b": 2}')]
    assert (reply.text, reply.observations) == ("Hi", ())


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("server_tool_use", CallKind.SERVER),
        ("mcp_tool_use", CallKind.MCP),
        ("browser_tool_use", CallKind.SERVER),
    ],
)
def test_what_the_provider_runs_is_not_a_call_of_the_applications(
    kind: str, expected: CallKind
) -> None:
    result = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}
    reply = reply_to(
        start(),
        tool_block(0, "s1", kind),
        piece('{"q": 1}'),
        stop(),
        {"type": "content_block_start", "index": 1, "content_block": result},
        stop(1),
        *END,
    )
    assert reply.tool_calls == ()
    (call,) = reply.server_calls
    assert (call.kind, call.arguments, call.status) == (expected, '{"q": 1}', CallStatus.COMPLETE)
    assert reply.observations == ()


def test_thoughts_are_not_text_and_redacted_ones_say_nothing() -> None:
    thinking = {"type": "thinking", "thinking": "Let ", "signature": ""}
    redacted = {"type": "redacted_thinking", "data": "x"}
    reply = reply_to(
        start(),
        {"type": "content_block_start", "index": 0, "content_block": thinking},
        delta(0, thinking="me see"),
        delta(0, type="signature_delta", signature="s"),
        stop(),
        {"type": "content_block_start", "index": 1, "content_block": redacted},
        stop(1),
        text_block(2, "Hi "),
        text("you", 2),
        stop(2),
        *END,
    )
    assert (reply.reasoning, reply.text, reply.observations) == ("Let me see", "Hi you", ())


@pytest.mark.parametrize(
    ("first", "later", "kept", "noted"),
    [
        ("", ["s"], "s", []),
        ("s", ["s"], "s", []),
        ("", ["s1", "s2"], "s2", ["S006"]),
        ("s0", ["s1"], "s1", ["S006"]),
    ],
)
def test_a_later_signature_of_a_block_replaces_the_one_before(
    first: str, later: list[str], kept: str, noted: list[str]
) -> None:
    block = {"type": "thinking", "thinking": "a", "signature": first}
    reply = reply_to(
        start(),
        {"type": "content_block_start", "index": 0, "content_block": block},
        *(delta(0, type="signature_delta", signature=each) for each in later),
        stop(),
        *END,
    )
    (thought,) = reply.choices[0].thoughts
    assert (thought.signature, codes(reply)) == (kept, noted)


def test_a_stop_reason_without_usage_is_noted() -> None:
    end: Frame = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}
    reply = reply_to(start(), text_block(), text("Hi"), stop(), end, STOP)
    assert (reply.finish_reason_raw, codes(reply)) == ("end_turn", ["S006"])


def test_a_signature_without_a_block_is_passed_over() -> None:
    reply = reply_to(start(), delta(7, type="signature_delta", signature="s"), *END)
    assert reply.choices[0].thoughts == ()


def test_the_input_at_the_start_counts_if_no_delta_brings_any() -> None:
    reply = reply_to(start(), tool_block(input={"a": 1}), piece(""), stop(), *END)
    assert told(reply) == [("c1", "get", '{"a": 1}')]
    assert reply.observations == ()


def test_deltas_count_more_than_the_input_at_the_start() -> None:
    frames = (tool_block(input={"a": 1}), piece('{"a": 2}'), stop(), *END)
    reply = reply_to(start(), *frames)
    assert (told(reply), codes(reply)) == ([("c1", "get", '{"a": 2}')], ["T015"])
    assert reply.tool_calls[0].repairs == ("T015",)


def test_the_same_input_at_the_start_and_in_deltas_is_a_repeat() -> None:
    reply = reply_to(start(), tool_block(input={"a": 1}), piece('{"a":1}'), stop(), *END)
    assert (told(reply), codes(reply)) == ([("c1", "get", '{"a":1}')], ["T014"])


def test_an_empty_object_that_leaked_into_the_deltas_is_left_out() -> None:
    reply = reply_to(start(), tool_block(), piece("{}"), piece('{"a": 1}'), stop(), *END)
    assert (told(reply), codes(reply)) == ([("c1", "get", '{"a": 1}')], ["T017"])


def test_input_that_is_not_a_string_is_its_exact_source() -> None:
    reply = reply_to(start(), tool_block(), piece({"a": 1}), piece(None), stop(), *END)
    assert (told(reply), codes(reply)) == ([("c1", "get", '{"a": 1}')], ["T006"])


def test_blocks_that_do_not_start_at_zero_are_noted() -> None:
    reply = reply_to(start(), tool_block(1), piece("{}", 1), stop(1), *END)
    assert (told(reply), codes(reply)) == ([("c1", "get", "{}")], ["T013"])


def test_a_block_without_a_stop_is_noted_only_where_the_message_has_its_own() -> None:
    frames = (start(), tool_block(), piece('{"a": 1}'))
    reply = reply_to(*frames, *END)
    assert [seen.detail for seen in reply.observations] == ["block 0 has no content_block_stop"]
    assert reply.tool_calls[0].status is CallStatus.COMPLETE
    cut = reply_to(*frames)
    assert (cut.observations, cut.tool_calls[0].status) == ((), CallStatus.TRUNCATED)


def test_an_index_may_be_used_for_a_second_call() -> None:
    reply = reply_to(
        start(),
        text_block(),
        text("Hi"),
        stop(),
        tool_block(0, "c1"),
        piece('{"a": 1}'),
        stop(),
        tool_block(0, "c2"),
        piece('{"b": 2}'),
        stop(),
        text_block(),
        text(" there"),
        stop(),
        *END,
    )
    assert told(reply) == [("c1", "get", '{"a": 1}'), ("c2", "get", '{"b": 2}')]
    assert (reply.text, codes(reply)) == ("Hi there", ["T012", "T012", "S006"])


def test_a_start_that_comes_again_opens_nothing() -> None:
    for identifier in ("c1", None):
        opened = tool_block(0, identifier)
        reply = reply_to(start(), opened, piece('{"a"'), opened, piece(": 1}"), stop(), *END)
        assert [call.arguments for call in reply.tool_calls] == ['{"a": 1}']
        assert "S006" in codes(reply)
    reply = reply_to(start(), text_block(), text("a"), text_block(), text("b"), stop(), *END)
    assert (reply.text, codes(reply)) == ("ab", ["S006"])


def test_a_whole_block_may_be_streamed_after_all() -> None:
    block = {"type": "tool_use", "id": "c1", "name": "get", "input": {"a": 1}}
    reply = reply_to(start(content=[block]), tool_block(), piece('{"a": 1}'), stop(), *END)
    assert (told(reply), codes(reply)) == ([("c1", "get", '{"a": 1}')], ["T014"])


def test_another_block_at_the_index_of_a_whole_one_is_fine() -> None:
    block = {"type": "tool_use", "id": "c1", "name": "get", "input": {}}
    reply = reply_to(start(content=[block]), text_block(), text("Hi"), stop(), *END)
    assert (told(reply), reply.text, codes(reply)) == ([("c1", "get", "{}")], "Hi", [])


def test_arguments_under_an_index_that_never_started_go_to_the_open_call() -> None:
    reply = reply_to(start(), tool_block(0), piece('{"a"', 1), piece(": 1}", 1), stop(), *END)
    assert (told(reply), codes(reply)) == ([("c1", "get", '{"a": 1}')], ["S006"])


def test_arguments_for_a_block_of_text_go_to_the_open_call() -> None:
    frames = (text_block(0), stop(0), tool_block(1), piece('{"a": 1}', 0), stop(1))
    reply = reply_to(start(), *frames, *END)
    assert (told(reply), codes(reply)) == ([("c1", "get", '{"a": 1}')], ["S006"])


def test_arguments_that_belong_to_no_call_are_an_orphan() -> None:
    reply = reply_to(start(), text_block(), piece('{"a"'), piece(": 1}"), stop(), *END)
    (call,) = reply.tool_calls
    assert (call.status, call.arguments) == (CallStatus.ORPHAN, '{"a": 1}')
    reply = reply_to(start(), piece("{}", 3), stop(3), *END)
    assert [call.wire_index for call in reply.tool_calls] == [3]


def test_events_without_index_belong_to_the_last_open_block() -> None:
    reply = reply_to(
        start(),
        text_block(None),
        text("Hi", None),
        stop(None),
        tool_block(None),
        piece('{"a": 1}', None),
        stop(None),
        stop(None),
        *END,
    )
    assert (reply.text, told(reply)) == ("Hi", [("c1", "get", '{"a": 1}')])
    assert codes(reply) == ["T011", "S006"]


def test_an_index_may_be_a_number_in_a_string() -> None:
    frames = (text_block("0"), text("Hi", "0"), stop("0"), tool_block("1"), piece("{}", "1"))
    reply = reply_to(start(), *frames, stop("1"), *END)
    assert (reply.text, told(reply), codes(reply)) == ("Hi", [("c1", "get", "{}")], [])


def test_deltas_after_a_stop_count_and_are_noted() -> None:
    frames = (text_block(), stop(), text("Hi"), tool_block(1), stop(1), piece("{}", 1), stop(1))
    reply = reply_to(start(), *frames, *END)
    assert (reply.text, told(reply)) == ("Hi", [("c1", "get", "{}")])
    assert codes(reply) == ["S006", "S006", "S006"]


def test_text_for_a_block_that_is_none_of_text_counts_and_is_noted() -> None:
    reply = reply_to(start(), tool_block(), text("Hi"), stop(), text("!", 7), stop(7), *END)
    assert reply.text == "Hi!"
    assert codes(reply) == ["S006", "S006", "S006"]


def test_missing_ids_and_names_are_reported() -> None:
    reply = reply_to(
        start(),
        tool_block(0, None),
        stop(0),
        tool_block(1, "c2", name=None),
        stop(1),
        *END,
        request=request(get={}),
    )
    assert codes(reply) == ["T005"]
    assert [call.status for call in reply.tool_calls] == [CallStatus.EMPTY_OK, CallStatus.NO_NAME]


def test_texts_of_blocks_that_mix_stand_one_after_the_other() -> None:
    mixed = (text("Hel", 0), text("wor", 1), text("lo ", 0), text("ld", 1))
    reply = reply_to(start(), text_block(0), text_block(1), *mixed, stop(0), stop(1), *END)
    assert (reply.text, reply.observations) == ("Hello world", ())
    assert [piece.text for piece in reply.choices[0].pieces] == ["Hel", "lo ", "wor", "ld"]


def test_texts_without_index_stay_where_they_are() -> None:
    unindexed: Frame = {
        "type": "content_block_delta",
        "delta": {"type": "text_delta", "text": "l"},
    }
    reply = reply_to(start(), text_block(), text("Hel"), unindexed, text("o"), stop(), *END)
    assert reply.text == "Hello"
    assert reply_to(start(), unindexed, *END).text == "l"


USER = {"role": "user", "content": "Hi"}
CACHED = {"role": "user", "content": [{"type": "text", "text": "Hi", "cache_control": {"ttl": 1}}]}


def asked(**members: object) -> RequestSummary:
    return read_request(json.dumps({"model": "m", "messages": [], **members}).encode())


def test_what_is_not_an_object_asks_nothing() -> None:
    assert read_request(b"[]") == NOTHING_ASKED


def test_model_and_stream_are_read() -> None:
    found = asked(stream=True)
    assert (found.known, found.model, found.stream) == (True, "m", True)
    assert not asked(stream="yes").stream


def test_tools_of_the_provider_have_no_schema() -> None:
    schema = {"type": "object"}
    tools = asked(
        tools=[
            {"name": "get", "input_schema": schema},
            {"type": "web_search_20250305", "name": "web_search"},
            {"type": "mcp_toolset"},
            None,
        ]
    ).tools
    assert [(tool.name, tool.parameters) for tool in tools] == [
        ("get", schema),
        ("web_search", None),
    ]


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ({"type": "auto"}, "auto"),
        ({"type": "none"}, "none"),
        ({"type": "any"}, "required"),
        ({"type": "tool", "name": "get"}, "get"),
        ({"type": "new"}, None),
        ("auto", None),
        (None, None),
    ],
)
def test_tool_choice_is_said_in_common_words(choice: object, expected: str | None) -> None:
    assert asked(tool_choice=choice).tool_choice == expected


def test_the_system_prompt_is_the_first_message() -> None:
    history = asked(system="Be kind.", messages=[USER]).history
    assert [(one.role, one.text) for one in history] == [("system", "Be kind."), ("user", "Hi")]
    blocks = asked(system=[{"type": "text", "text": "Be kind."}]).history
    assert blocks[0] == history[0]


def test_several_results_in_one_message_are_messages_of_their_own() -> None:
    content = [
        {"type": "tool_result", "tool_use_id": "c1", "content": "1"},
        {
            "type": "tool_result",
            "tool_use_id": "c2",
            "is_error": True,
            "content": [{"type": "text", "text": "2"}],
        },
        {"type": "tool_result", "tool_use_id": "c3"},
        {"type": "text", "text": "Go on."},
    ]
    history = asked(messages=[{"role": "user", "content": content}]).history
    assert [(one.role, one.text, one.call_id) for one in history] == [
        ("tool", "1", "c1"),
        ("tool", "2", "c2"),
        ("tool", "", "c3"),
        ("user", "Go on.", None),
    ]
    assert len({one.digest for one in history}) == 4
    alone = asked(messages=[{"role": "user", "content": content[:1]}]).history
    assert alone == history[:1]


def test_calls_are_repeated_with_their_exact_source() -> None:
    body = (
        b'{"messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"hm"},'
        b'{"type":"text","text":"Look: "},'
        b'{"type":"tool_use","id":"c1","name":"get","input":{"a" : 1.0}},'
        b'{"type":"server_tool_use","id":"s1","name":"web_search","input":{}},'
        b'{"type":"tool_use","id":"c2","name":"put"},7]}]}'
    )
    (message,) = read_request(body).history
    assert (message.role, message.text) == ("assistant", "Look: ")
    assert message.calls == (
        RepeatedCall(id="c1", name="get", arguments='{"a" : 1.0}'),
        RepeatedCall(id="c2", name="put", arguments=""),
    )


def test_marks_for_the_cache_do_not_change_what_was_said() -> None:
    plain, marked = asked(messages=[USER]).history, asked(messages=[CACHED]).history
    assert plain == marked
    other = asked(messages=[{"role": "user", "content": "Hi!"}]).history
    assert other[0].digest != plain[0].digest


def test_odd_messages_are_left_out_or_empty() -> None:
    history = asked(messages=[None, {"role": 1, "content": 2}]).history
    assert [(one.role, one.text, one.calls) for one in history] == [("", "", ())]


def test_tools_may_be_added_by_a_message() -> None:
    tool = {"type": "tool_definition", "definition": {"name": "later", "input_schema": {}}}
    reference = {"type": "tool_reference", "tool_name": "get"}
    blocks = [{"type": "tool_addition", "tool": each} for each in (tool, reference, None)]
    found = asked(messages=[{"role": "user", "content": blocks}, 1, USER])
    assert [spec.name for spec in found.tools] == ["later"]
    assert not found.tools_elsewhere


@pytest.mark.parametrize(
    ("tool", "expected"),
    [
        ({"type": "browser_toolset_20260801"}, True),
        ({"type": "mcp_toolset", "mcp_server_name": "s"}, False),
        ({"type": "bash_20250124", "name": "bash"}, False),
        ({}, False),
        (1, False),
    ],
)
def test_a_toolset_offers_tools_that_the_request_does_not_name(
    tool: object, *, expected: bool
) -> None:
    assert asked(tools=[tool]).tools_elsewhere is expected


def test_at_vertex_the_path_names_the_model() -> None:
    vertex = "/v1/projects/p/locations/l/publishers/anthropic/models/claude-fake@1"
    dialect = AnthropicMessages()
    asked = dialect.read_request(b'{"stream":true}', f"{vertex}:streamRawPredict")
    assert (asked.model, asked.stream) == ("claude-fake@1", True)
    assert dialect.read_request(b'{"model":"m"}', "/v1/messages").model == "m"
    assert dialect.read_request(b"", f"{vertex}:streamRawPredict") == NOTHING_ASKED
