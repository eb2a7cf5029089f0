from collections.abc import Callable, Mapping, Sequence

import pytest

from deltatape.model.exchange import Exchange
from deltatape.mutate._calls import (
    CallSite,
    calls,
    chat_calls,
    converse_calls,
    echoed,
    entries,
    message_calls,
    needs,
    response_calls,
)
from deltatape.mutate._draft import MutableExchange
from deltatape.wire.json_edit import at
from helpers import chat as shape
from helpers.mutated import NEEDS, ONE, TWO, WHOLE, chat, draft_of, recorded

STREAMED: Mapping[str, Callable[[MutableExchange], Sequence[CallSite]]] = {
    "openai-chat": chat_calls,
    "openai-responses": response_calls,
    "anthropic-messages": message_calls,
    "bedrock-invoke": message_calls,
    "bedrock-converse": converse_calls,
}


@pytest.mark.parametrize("stem", STREAMED)
def test_the_calls_of_a_recording_are_found(stem: str) -> None:
    draft = draft_of(recorded(stem))
    found = STREAMED[stem](draft)
    assert [call.name for call in found] == ["get_weather", "get_forecast"]
    assert [call.text for call in found] == [
        '{"city":"Gent","unit":"celsius"}',
        '{"city":"São Tomé","days":3}',
    ]
    assert [call.text for call in calls(draft)] == [call.text for call in found]
    assert all(copy.text == call.text for call in found for copy in call.copies)
    assert len(found[0].copies) == (3 if stem == "openai-responses" else 0)


@pytest.mark.parametrize(
    ("start", "end", "text", "expected"),
    [
        (0, 0, "X", ["", 'X{"a"', ':"b c"', "}"]),
        (0, 2, "", ["", 'a"', ':"b c"', "}"]),
        (3, 7, "-", ["", '{"a-', ' c"', "}"]),
        (11, 11, "}", ["", '{"a"', ':"b c"', "}}"]),
        (4, 4, "?", ["", '{"a"', '?:"b c"', "}"]),
        (1, 11, "", ["", "{", "", ""]),
    ],
)
def test_arguments_are_replaced_in_their_pieces(
    start: int, end: int, text: str, expected: list[str]
) -> None:
    (call,) = chat_calls(draft_of(ONE))
    call.splice(start, end, text)
    assert [piece.text for piece in call.pieces] == expected


def test_arguments_of_a_call_that_has_none_go_to_its_first_piece() -> None:
    (call,) = chat_calls(draft_of(chat(shape.calls(shape.entry(0, "c", name="f", arguments="")))))
    call.splice(0, 0, "{}")
    assert call.text == "{}"


def test_copies_are_changed_with_the_pieces() -> None:
    draft = draft_of(recorded("openai-responses"))
    call = response_calls(draft)[0]
    call.spread("abc")
    assert {copy.text for copy in call.copies} == {"abc"} == {call.text}


def test_another_id_under_an_index_is_another_call() -> None:
    exchange = chat(
        shape.calls(shape.entry(0, "c1", name="f", arguments="{}")),
        shape.calls(shape.entry(0, "c2", name="g", arguments="{}"), 7),
        shape.calls(shape.entry(0, arguments=" ")),
        shape.calls(shape.entry(0, "c2", arguments={})),
    )
    found = chat_calls(draft_of(exchange))
    assert [(call.id, call.name, len(call.entries), call.text) for call in found] == [
        ("c1", "f", 1, "{}"),
        ("c2", "g", 3, "{} "),
    ]


def test_a_call_without_id_and_name_is_one_too() -> None:
    (call,) = chat_calls(draft_of(chat(shape.calls({"index": 0}))))
    assert (call.id, call.name, call.pieces) == ("", "", [])


def test_deltas_of_what_was_never_opened_belong_to_no_call() -> None:
    deltas = (
        '{"type":"response.function_call_arguments.delta","output_index":0,"delta":"x"}',
        '{"type":"response.function_call_arguments.done","output_index":0,"arguments":"x"}',
        '{"response":{"output":[{"type":"function_call","arguments":"x"},{}]}}',
        '{"index":0,"delta":{"type":"input_json_delta","partial_json":"x"}}',
        '{"contentBlockIndex":0,"delta":{"toolUse":{"input":"x"}}}',
        '{"contentBlockIndex":0,"start":{"toolUse":{"name":"f","type":"server_tool_use"}}}',
    )
    assert calls(draft_of(chat(*deltas))) == []


def test_an_entry_that_was_all_takes_its_event_with_it() -> None:
    draft = draft_of(TWO)
    for entry in reversed([*entries(draft)]):
        entry.remove()
    result = draft.result()
    assert result
    assert b"tool_calls" not in result.body.replace(b'"tool_calls"}', b"")
    assert result.body.count(b"data: ") == 3


def test_an_event_that_says_more_than_an_entry_stays() -> None:
    both = shape.choice({"content": "x", "tool_calls": [shape.entry(0, "a"), shape.entry(1, "b")]})
    draft = draft_of(chat(both))
    first, second = entries(draft)
    second.remove()
    assert len([*entries(draft)]) == 1
    first.remove()
    assert not draft.units[0].removed
    assert at(draft.units[0].value, "choices", 0, "delta") == {"content": "x"}


def test_an_echo_says_nothing_but_its_piece() -> None:
    exchange = chat(
        shape.choice({"content": "x", "tool_calls": [shape.entry(0, "a", arguments="{}")]}, "stop"),
        shape.calls(shape.entry(1, "b", arguments="1"), shape.entry(2, "c", arguments="2")),
    )
    first, _, last = (call.pieces[0] for call in chat_calls(draft_of(exchange)))
    echo = echoed(first)
    assert at(echo.unit.value, "choices", 0) == {
        "index": 0,
        "delta": {"tool_calls": [shape.entry(0, "a", arguments="{}")]},
        "finish_reason": None,
    }
    assert echoed(last).text == "2"
    draft = draft_of(recorded("anthropic-messages"))
    piece = message_calls(draft)[0].pieces[1]
    assert echoed(piece).text == piece.text


def test_an_echo_of_an_event_without_a_finish_reason_has_none() -> None:
    exchange = chat({"choices": [{"delta": {"tool_calls": [shape.entry(0, "a", arguments="")]}}]})
    (call,) = chat_calls(draft_of(exchange))
    assert at(echoed(call.pieces[0]).unit.value, "choices", 0) == {
        "delta": {"tool_calls": [shape.entry(0, "a", arguments="")]}
    }


def test_what_is_no_entry_is_none() -> None:
    exchange = chat(shape.calls("x", 1), {"choices": 3})
    assert [*entries(draft_of(exchange))] == []
    assert len([*entries(draft_of(WHOLE))]) == 1


FREE = {"type": "object", "properties": {}}


def asked(request: dict[str, object]) -> Exchange:
    """An exchange whose request is this."""
    return Exchange.from_body(b"{}", content_type="", url="http://127.0.0.1/", request=request)


@pytest.mark.parametrize(
    "tool",
    [
        lambda schema: {"function": {"name": "f", "parameters": schema}},
        lambda schema: {"name": "f", "parameters": schema},
        lambda schema: {"name": "f", "input_schema": schema},
    ],
)
def test_what_a_tool_requires_is_read_in_each_way_of_declaring_it(tool: object) -> None:
    assert callable(tool)
    assert needs(asked({"tools": [{"name": "g"}, tool(NEEDS)]}), "f") is True
    assert needs(asked({"tools": [tool(FREE)]}), "f") is False


def test_what_converse_declares_is_read() -> None:
    spec = {"toolSpec": {"name": "f", "inputSchema": {"json": NEEDS}}}
    assert needs(asked({"toolConfig": {"tools": [spec]}}), "f") is True


def test_a_tool_without_schema_and_one_that_is_not_there_are_unknown() -> None:
    request: dict[str, object] = {"tools": [{"name": "f"}]}
    assert needs(asked(request), "f") is None
    assert needs(asked(request), "g") is None
    assert needs(asked({}), "f") is None
