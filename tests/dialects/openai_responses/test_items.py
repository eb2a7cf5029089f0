import pytest

from helpers.responses import (
    Object,
    added,
    call,
    codes,
    created,
    delta,
    done,
    ended,
    function,
    message,
    numbered,
    part,
    reply_to,
    say,
)

WHOLE = '{"a":1}'


def told(*events: object) -> list[tuple[str | None, str]]:
    return [(call.id, call.arguments) for call in reply_to(*events).tool_calls]


def test_two_calls_are_kept_apart_by_their_place() -> None:
    events = [
        created(),
        added(function(number=1), 0),
        added(function(number=2), 1),
        delta('{"a":', 0),
        delta('{"b":', 1, "fc_2"),
        delta("1}", 0),
        delta("2}", 1, "fc_2"),
        done(function(WHOLE, 1), 0),
        done(function('{"b":2}', 2), 1),
        ended(function(WHOLE, 1), function('{"b":2}', 2)),
    ]
    assert told(*events) == [("call_1", WHOLE), ("call_2", '{"b":2}')]
    assert codes(*events) == []


def test_a_place_used_twice_is_told_and_ids_decide() -> None:
    events = [
        created(),
        added(function(number=1)),
        added(function(number=2)),
        delta('{"a":'),
        delta('{"b":2}', item_id="fc_2"),
        delta("1}"),
        done(function(WHOLE, 1)),
        done(function('{"b":2}', 2)),
        ended(function(WHOLE, 1), function('{"b":2}', 2)),
    ]
    assert told(*events) == [("call_1", WHOLE), ("call_2", '{"b":2}')]
    assert codes(*events) == ["T012"]


def test_a_message_and_a_call_may_share_a_place() -> None:
    events = [
        created(),
        added(message()),
        added(function()),
        part("output_text.delta", 0, None, delta="Hi"),
        part("function_call_arguments.delta", 0, None, delta=WHOLE),
        done(function(WHOLE)),
        done(message("Hi")),
        ended(message("Hi"), function(WHOLE)),
    ]
    assert told(*events) == [("call_1", WHOLE)]
    assert reply_to(*events).text == "Hi"
    assert codes(*events) == ["T012"]


def test_one_id_for_all_items_leaves_the_place_to_decide() -> None:
    one, two = function(id="fc"), function(number=2, id="fc")
    events = [
        created(),
        added(one, 0),
        added(two, 1),
        delta(WHOLE, 0, "fc"),
        delta('{"b":2}', 1, "fc"),
        done({**one, "arguments": WHOLE}, 0),
        done({**two, "arguments": '{"b":2}'}, 1),
    ]
    assert told(*events) == [("call_1", WHOLE), ("call_2", '{"b":2}')]


def test_wrong_places_of_pieces_are_told_and_the_id_decides() -> None:
    events = [created(), *call(), added(function(number=2), 1), delta('{"b":2}', 0, "fc_2")]
    assert told(*events)[1] == ("call_2", '{"b":2}')
    assert codes(*events, done(function('{"b":2}', 2), 1))[-1] == "S006"


def test_new_ids_in_every_event_leave_the_place_to_decide() -> None:
    events = [
        created(),
        added(function(id="a")),
        delta('{"a":', item_id="b"),
        delta("1}", item_id="c"),
        done(function(WHOLE, id="d")),
        ended(function(WHOLE, id="e")),
    ]
    assert told(*events) == [("call_1", WHOLE)]
    assert codes(*events) == ["T010"]


def test_pieces_for_an_item_that_is_done_still_belong_to_it() -> None:
    late = delta("x", item_id=None)
    assert told(created(), *call(), late) == [("call_1", WHOLE)]


def test_an_item_without_place_is_found_by_its_id() -> None:
    events = [created(), added(function(), None), delta(WHOLE, None), done(function(WHOLE), None)]
    assert told(*events) == [("call_1", WHOLE)]
    assert codes(*events, ended(function(WHOLE))) == ["S006"]


def test_an_item_added_or_done_twice_is_one_item() -> None:
    first, *rest = call()
    events = [created(), first, first, *rest, rest[-1], ended(function(WHOLE))]
    assert told(*events) == [("call_1", WHOLE)]
    assert codes(*events) == ["S006", "S006"]


@pytest.mark.parametrize("left_out", ["response.output_item.added", "response.output_item.done"])
def test_an_item_that_is_not_announced_or_not_ended_is_told(left_out: str) -> None:
    events = [event for event in call() if event["type"] != left_out]
    assert told(created(), *events, ended(function(WHOLE))) == [("call_1", WHOLE)]
    assert codes(created(), *events, ended(function(WHOLE))) == ["S006"]


def test_a_whole_item_and_no_more_is_told() -> None:
    assert codes(created(), done(function(WHOLE)), ended(function(WHOLE))) == ["S006"]
    assert codes(created(), ended(function(WHOLE))) == ["S006"]
    assert codes(created(), ended(message("Hi"))) == []


def test_a_second_whole_item_at_the_same_place_is_another_call() -> None:
    events = [created(), *call(), done(function("{}", 2))]
    assert told(*events) == [("call_1", WHOLE), ("call_2", "{}")]


def test_pieces_without_any_item_open_one() -> None:
    assert reply_to(created(), say("Hi"), say("!"), ended()).text == "Hi!"
    assert told(created(), delta("{"), delta("}"), ended()) == [(None, "{}")]


def test_a_call_that_the_final_response_leaves_out_is_told() -> None:
    other = message("Hi")
    events = [created(), *call(), added(message(), 1), say("Hi", 1), done(other, 1)]
    assert codes(*events, ended(other)) == ["T015"]
    assert codes(*events, ended()) == ["S008"]


def test_items_at_other_places_of_the_final_response_are_found_by_type() -> None:
    one = message("a", item_id="new_1")
    events = [
        created(),
        added({"id": "rs_1", "type": "reasoning"}, 0),
        done({"id": "rs_1", "type": "reasoning"}, 0),
        added(message(), 1),
        say("a", 1),
        done(message("a"), 1),
    ]
    assert reply_to(*events, ended(one)).text == "a"
    assert reply_to(*events, ended(one, message("b"))).text == "ab"


def test_a_place_taken_by_something_else_opens_an_item() -> None:
    events = [created(), added(message()), done(function(WHOLE))]
    assert told(*events) == [("call_1", WHOLE)]


def test_what_is_no_item_is_told() -> None:
    assert codes(created(), added(None), say("Hi"), done("x"), ended(3)).count("S006") == 3


def test_a_resumed_stream_may_begin_in_the_middle() -> None:
    rest = [*call()[2:], ended(function(WHOLE))]
    events = numbered(*rest, first=4)
    assert told(*events) == [("call_1", WHOLE)]
    assert codes(*events) == []
    assert reply_to(*events).tool_calls[0].arguments_raw == '":1}'


def test_a_resumed_text_is_whole_at_its_end() -> None:
    events = numbered(say("lo"), done(message("Hello")), ended(message("Hello")), first=5)
    assert reply_to(*events).text == "Hello"
    assert codes(*events) == []


def test_a_resumed_stream_may_list_what_came_before() -> None:
    events = numbered(ended(function(WHOLE)), first=9)
    assert told(*events) == [("call_1", WHOLE)]
    assert codes(*events) == []


def test_no_more_than_the_latest_of_many_items_with_one_name_are_looked_at() -> None:
    many = [added(function(number=at)) for at in range(40)]
    assert len(told(created(), *many, delta(WHOLE, item_id="fc_39"))) == 40


def nowhere(*events: Object) -> list[Object]:
    """`events` without places and without internal ids."""
    for event in events:
        event.pop("output_index", None)
        event.pop("item_id", None)
    return list(events)


def test_pieces_without_place_and_id_belong_to_the_newest_item_that_is_not_done() -> None:
    items = [{**function(each, 1 + at), "id": None} for at, each in enumerate((WHOLE, '{"b":2}'))]
    events = []
    for item in items:
        arguments = str(item["arguments"])
        pieces = [delta(arguments[:3]), delta(arguments[3:])]
        events += nowhere(added({**item, "arguments": ""}), *pieces, done(item))
    events = [created(), *events, ended(*items)]
    assert told(*events) == [("call_1", WHOLE), ("call_2", '{"b":2}')]
    assert codes(*events) == ["S006"]


def test_a_whole_text_without_place_and_id_is_that_of_its_pieces() -> None:
    text = message("Hello", item_id="")
    frames = nowhere(added(message(item_id="")), say("Hel"), say("lo"), done(text))
    assert reply_to(created(), *frames, ended(text)).text == "Hello"


def test_pieces_at_the_place_of_another_tool_that_is_done_open_a_call() -> None:
    remote = {"id": "mcp_1", "type": "mcp_call", "name": "ask", "arguments": "{}"}
    frames = [done(remote), delta(WHOLE), done(function(WHOLE))]
    reply = reply_to(created(), *frames, ended(remote, function(WHOLE)))
    assert [call.id for call in reply.tool_calls] == ["call_1"]
    assert [call.arguments for call in reply.server_calls] == ["{}"]


def test_texts_of_items_that_mix_stand_one_after_the_other() -> None:
    other = part("output_text.delta", 1, "msg_2", content_index=0)
    opened = [added(message(), 0), added(message(item_id="msg_2"), 1)]
    mixed = [say("Hel"), {**other, "delta": "wor"}, say("lo "), {**other, "delta": "ld"}]
    assert reply_to(created(), *opened, *mixed).text == "Hello world"


def test_a_call_that_is_sent_again_and_not_listed_is_one_call() -> None:
    again = [added(function(WHOLE, 1, id="fc_9"), 1), done(function(WHOLE, 1, id="fc_9"), 1)]
    events = [created(), *call(), *again, ended(function(WHOLE))]
    assert told(*events) == [("call_1", WHOLE)]
    assert codes(*events) == ["T020"]


def test_one_id_for_two_calls_is_told() -> None:
    second = function('{"b":2}', 2, call_id="call_1")
    frames = [added({**second, "arguments": ""}, 1), done(second, 1)]
    events = [created(), *call(), *frames, ended(function(WHOLE), second)]
    assert told(*events) == [("call_1", WHOLE), ("call_1", '{"b":2}')]
    assert codes(*events) == ["T010"]


@pytest.mark.parametrize("identifier", ["msg_1", None])
def test_a_text_whose_item_was_not_announced_is_kept_and_noted(identifier: str | None) -> None:
    said = part("output_text.delta", 0, "msg_1", delta="Hi")
    said = {**said, "item_id": identifier}
    reply = reply_to(created(), said)
    assert (reply.text, reply.tool_calls) == ("Hi", ())
    assert "S006" in codes(created(), said)
