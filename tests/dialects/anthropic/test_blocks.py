import pytest

from deltatape.model.reply import CallKind, CallStatus
from helpers.chat import codes, told
from helpers.messages import (
    END,
    Frame,
    delta,
    piece,
    reply_to,
    request,
    start,
    stop,
    text,
    text_block,
    tool_block,
)


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
def test_what_the_provider_runs_is_no_call_of_the_applications(
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


def test_thoughts_are_no_text_and_redacted_ones_say_nothing() -> None:
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


def test_input_that_is_no_string_is_its_exact_source() -> None:
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


def test_missing_ids_and_names_are_told() -> None:
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
