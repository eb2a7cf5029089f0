import json
from collections.abc import Callable, Iterator, Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltatape.dialects import _anthropic as anthropic
from deltatape.dialects import _chat_request as chat
from deltatape.dialects import _request as request_bodies
from deltatape.dialects import ai_sdk_ui
from deltatape.dialects import gemini_interactions as interactions
from deltatape.dialects._json import JsonSource
from deltatape.dialects._request import (
    SMALL,
    content_text,
    exact,
    make_message,
    message_digest,
    objects_at,
    read_body,
    read_history,
    source_of,
    tool_spec,
    tool_specs,
)
from deltatape.dialects.gemini import request as gemini
from deltatape.dialects.openai_responses import request as responses
from deltatape.model.request_summary import RepeatedCall, RequestSummary, ToolSpec
from deltatape.wire.json_value import parse


def test_only_a_json_object_is_read() -> None:
    found = read_body(b' {"a": [1, 2]}')
    assert found is not None
    assert found.value == {"a": [1, 2]}
    for body in (b"", b"[]", b"{", b"\xff", b"null"):
        assert read_body(body) is None


def test_the_text_of_a_content_is_its_string_or_its_text_parts() -> None:
    assert content_text("Hi") == "Hi"
    assert (
        content_text([{"type": "text", "text": "a"}, 5, {"type": "image"}, {"text": "b"}]) == "ab"
    )
    assert content_text(None) == ""


def test_a_tool_has_a_name_and_perhaps_a_schema() -> None:
    schema = {"type": "object"}
    assert tool_spec({"name": "f", "parameters": schema}) == ToolSpec(name="f", parameters=schema)
    assert tool_spec({"name": "f", "input_schema": schema}, "input_schema") == ToolSpec(
        name="f", parameters=schema
    )
    assert tool_spec({"name": "f", "parameters": 5}) == ToolSpec(name="f", parameters=None)
    assert tool_spec({"parameters": schema}) is None


def test_a_digest_knows_no_order_of_keys() -> None:
    assert message_digest({"a": 1, "b": 2}) == message_digest({"b": 2, "a": 1})
    assert message_digest({"a": 1}) != message_digest({"a": 2})


def test_arguments_are_a_strings_text_or_the_exact_source() -> None:
    found = read_body(b'{"a": "{}", "b": { "x" : 1.0 }, "c": null}')
    assert found is not None
    told = [exact(found.value, key, found.source) for key in ("a", "b", "c", "d")]
    assert told == ["{}", '{ "x" : 1.0 }', "", ""]


def test_objects_of_an_array_come_with_their_source() -> None:
    found = read_body(b'{"a": [{"x":1}, 5, null, { "x": 2 }], "b": {}}')
    assert found is not None
    told = [(one, where.text) for one, where in objects_at(found.value, "a", found.source)]
    assert told == [({"x": 1}, '{"x":1}'), ({"x": 2}, '{ "x": 2 }')]
    assert list(objects_at(found.value, "b", found.source)) == []
    assert list(objects_at(found.value, "c", found.source)) == []


def test_tools_are_those_that_have_a_name() -> None:
    schema = {"type": "object"}
    entries = [{"name": "f", "parameters": schema}, {}, None, 5, {"name": "g"}]
    assert tool_specs(entries) == (
        ToolSpec(name="f", parameters=schema),
        ToolSpec(name="g", parameters=None),
    )
    assert tool_specs([{"name": "f", "s": schema}], "s") == tool_specs(entries[:1])


def test_a_message_has_the_digest_of_what_it_is_told_by() -> None:
    call = RepeatedCall(id="c1", name="f", arguments="{}")
    message = make_message("assistant", "Hi", {"a": 1}, calls=[call], call_id="c0")
    assert (message.role, message.text, message.calls) == ("assistant", "Hi", (call,))
    assert (message.call_id, message.digest) == ("c0", message_digest({"a": 1}))
    assert (make_message("user", "", 1).calls, make_message("user", "", 1).call_id) == ((), None)


def test_the_source_of_a_value_is_exact_for_strings_too() -> None:
    found = read_body(b'{"a": "{}", "b": { "x" : 1.0 }, "c": null}')
    assert found is not None
    told = [source_of(found.value, key, found.source) for key in ("a", "b", "c", "d")]
    assert told == ['"{}"', '{ "x" : 1.0 }', "", ""]


LONG = "x" * (SMALL // 2) + ' "messages":[{} é \u2028 \\'
Message = dict[str, object]


def forget() -> None:
    """No body is remembered any more."""
    request_bodies._memory = ()


@pytest.fixture(autouse=True)
def empty_memory() -> Iterator[None]:
    forget()
    yield
    forget()


class Reads:
    """Counts the elements that are read."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, element: Mapping[str, object], source: JsonSource) -> tuple[str]:
        self.count += 1
        assert parse(source.text).value == element
        return (source.text,)


def message(number: int, size: int = SMALL // 2) -> Message:
    return {"role": "user", "number": number, "content": f"{number} é " + "x" * size}


def body(*messages: object, key: str = "messages", **more: object) -> bytes:
    return json.dumps({"model": "m", key: list(messages), **more}, ensure_ascii=False).encode()


def read(reads: Reads, body: bytes, path: Sequence[str] = ("messages",)) -> list[str] | None:
    """What is read, and the same as without memory."""
    found = read_history(body, path, reads)
    kept = request_bodies._memory
    forget()
    count = reads.count
    anew = read_history(body, path, reads)
    request_bodies._memory = kept
    reads.count = count
    assert (found and found.entries) == (anew and anew.entries)
    return list(found.entries) if found else None


ONE, TWO, THREE, FOUR, FIVE = map(message, range(5))


def counted(*bodies: bytes, path: Sequence[str] = ("messages",)) -> list[int]:
    """How many elements are read of each of `bodies`, one after the other."""
    reads, counts = Reads(), []
    for each in bodies:
        before = reads.count
        read(reads, each, path)
        counts.append(reads.count - before)
    return counts


def test_what_the_request_before_had_too_is_not_read_again() -> None:
    history = [ONE, TWO, THREE, FOUR]
    assert counted(body(*history), body(*history, FIVE, ONE), body(*history, FIVE, ONE, TWO)) == [
        4,
        2,
        1,
    ]


def test_the_last_element_is_read_again_where_nothing_follows_it() -> None:
    assert counted(body(ONE, TWO, THREE), body(ONE, TWO, THREE)) == [3, 1]


def test_what_stands_before_and_behind_the_history_may_change() -> None:
    first = body(ONE, TWO, THREE, temperature=1)
    second = json.dumps({"temperature": 2, "messages": [ONE, TWO, THREE, FOUR], "model": ""})
    assert counted(first, second.encode()) == [3, 4]  # it spells its letters otherwise
    assert counted(first, body(ONE, TWO, THREE, FOUR, stream=True)) == [3, 1]


def test_marks_that_wander_along_the_history_cost_what_they_touch() -> None:
    marked = {**FOUR, "cache_control": {}}
    assert counted(body(ONE, TWO, THREE, marked), body(ONE, TWO, THREE, FOUR, FIVE)) == [4, 2]


def test_a_first_message_that_changes_is_read_alone() -> None:
    assert counted(body(ONE, TWO, THREE, FOUR), body(FIVE, TWO, THREE, FOUR, ONE)) == [4, 2]


def test_so_may_the_first_few() -> None:
    small: list[Message] = [{"role": "system"}, {"role": "user", "content": "It is 12:01."}]
    other: list[Message] = [{"role": "system", "content": ""}, {"role": "user"}]
    history = (TWO, THREE, FOUR)
    assert counted(body(*small, *history), body(*other, *history, ONE)) == [5, 3]


def test_a_history_that_loses_its_beginning_shares_the_rest() -> None:
    assert counted(body(ONE, TWO, THREE, FOUR, FIVE), body(ONE, THREE, FOUR, FIVE, TWO)) == [5, 2]
    forget()
    assert counted(body(ONE, TWO, THREE, FOUR), body(TWO, THREE, FOUR, FIVE)) == [4, 2]


def test_what_only_looks_like_an_element_of_the_history_is_none() -> None:
    other = body(FIVE, TWO, THREE, messages_before=[ONE, TWO, THREE, FOUR])
    assert counted(body(ONE, TWO, THREE, FOUR), other) == [4, 3]
    inside = body({"role": "user", "content": [TWO, THREE, FOUR]}, TWO, THREE, FOUR)
    forget()
    assert counted(inside, body(FIVE, THREE, FOUR, ONE)) == [4, 4]


def test_of_equal_keys_the_last_counts_here_too() -> None:
    twice = body(ONE, TWO, THREE, FOUR)[:-1] + b', "messages": [{"role": "user"}]}'
    assert counted(body(ONE, TWO, THREE), twice) == [3, 1]
    assert counted(twice, twice) == [1, 1]
    none = body(ONE, TWO, THREE, FOUR)[:-1] + b', "messages": 5}'
    assert counted(body(ONE, TWO, THREE), none) == [3, 0]


def test_what_is_not_json_is_not_read_however_it_begins() -> None:
    whole = body(ONE, TWO, THREE, FOUR)
    reads = Reads()
    assert read(reads, body(ONE, TWO, THREE)) is not None
    for broken in (
        whole[:-1],
        whole[:-2],
        whole + b"x",
        whole.replace(b"}, {", b"} {"),
        body(ONE, TWO, THREE)[:-2] + b",]}",
        b"[" + whole + b"]",
        b'{"messages": [' + b"[" * SMALL,
        b'{"messages": {"x": "' + b"y" * SMALL + b'"}}',
        b'{"model": "' + b"y" * SMALL + b'"}',
        b'{"model" "' + b"y" * SMALL + b'"}',
        b" " * SMALL,
        b'{"messages": [], "model": "' + b"y" * SMALL + b'"}',
    ):
        before = reads.count
        assert not read(reads, broken)
        assert reads.count == before


def test_elements_that_are_no_objects_are_passed_over() -> None:
    assert counted(body(1, ONE, None, TWO, THREE), body(1, ONE, None, TWO, THREE, FOUR)) == [3, 1]


def test_integers_of_any_length_are_shared() -> None:
    huge = json.dumps({"n": 1, **ONE}, ensure_ascii=False).replace("1", "1" * 5000, 1)
    history = f'{{"messages": [{huge}, {json.dumps(TWO)}'
    assert counted(f"{history}]}}".encode(), f'{history}, {{"a": 1}}]}}'.encode()) == [2, 1]


def test_an_array_further_inside_is_found() -> None:
    def nested(*messages: object) -> bytes:
        return json.dumps({"a": 1, "request": {"contents": messages}}).encode()

    path = ("request", "contents")
    assert counted(nested(ONE, TWO, THREE), nested(ONE, TWO, THREE, FOUR), path=path) == [3, 1]
    assert counted(b'{"request": 5}', path=path) == [0]


def test_bytes_that_are_no_utf_8_are_replaced_in_each_part_alike() -> None:
    first = body(ONE, TWO, THREE).replace("é".encode(), b"\xe2\x82")
    assert counted(first, first[:-2] + b', {"a": "\xff"}]}') == [3, 1]


def test_several_conversations_at_once_are_told_apart() -> None:
    one, two = [ONE, TWO, THREE], [FOUR, FIVE, TWO]
    bodies = [body(*one), body(*two), body(*one, FOUR), body(*two, ONE), body(*one, FOUR, FIVE)]
    assert counted(*bodies) == [3, 3, 1, 1, 1]


def test_small_bodies_and_other_readers_share_nothing() -> None:
    assert counted(body({"a": 1}), body({"a": 1}, {"a": 2})) == [1, 2]
    assert counted(body(ONE, TWO, THREE)) == [3]
    assert counted(body(ONE, TWO, THREE)) == [3]


def test_what_is_remembered_is_bounded() -> None:
    reads = Reads()
    for number in range(20):
        read(reads, body(*(message(100 * number + at) for at in range(3))))
    assert len(request_bodies._memory) == 8
    read(reads, body(message(1, 10_000_000)))
    read(reads, body(message(2, 10_000_000)))
    assert len(request_bodies._memory) == 1
    read(reads, body(message(3, 20_000_000)))
    assert len(request_bodies._memory) == 1


READERS: Mapping[str, tuple[str, Callable[[bytes], RequestSummary]]] = {
    "chat": ("messages", chat.read_request),
    "nameless": ("messages", lambda body: chat.read_request(body, nameless=True)),
    "anthropic": ("messages", anthropic.read_request),
    "ai-sdk-ui": ("messages", ai_sdk_ui.read_request),
    "responses": ("input", responses.read_request),
    "interactions": ("input", interactions.read_request),
    "gemini": ("contents", lambda body: gemini.read_request(body, "/v1/models/m:generateContent")),
}
CALL: Message = {"id": "c1", "name": "get", "arguments": '{"a":1}'}
ELEMENTS: Sequence[Message] = (
    {"role": "user", "content": LONG},
    {"role": "user", "content": [{"type": "text", "text": LONG}]},
    {"role": "assistant", "content": LONG, "tool_calls": [{"id": "c1", "function": CALL}]},
    {"role": "tool", "tool_call_id": "c1", "name": "get", "content": LONG},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "input": {"a": LONG}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": LONG}]},
    {"content": [{"type": "tool_addition", "tool": {"definition": {"name": "put"}}}]},
    {"role": "model", "parts": [{"functionCall": {"name": "get", "args": {"a": LONG}}}]},
    {"role": "user", "parts": [{"functionResponse": {"name": "get", "response": {"a": LONG}}}]},
    {"role": "assistant", "parts": [{"type": "tool-get", "toolCallId": "c1", "input": LONG}]},
    {"type": "function_call", "call_id": "c1", "name": "get", "arguments": LONG},
    {"type": "custom_tool_call", "call_id": "c2", "name": "x", "input": LONG},
    {"type": "function_call_output", "call_id": "c1", "output": LONG},
    {"type": "function_result", "call_id": "c1", "result": {"a": LONG}},
    {"type": "item_reference", "id": "rs_1"},
    {"type": "tool_search_output", "tools": [{"type": "function", "name": "found"}]},
)
EDITS = ("more", "more", "more", "trim", "change", "drop", "swap")


@st.composite
def histories(draw: st.DrawFn) -> list[list[Message]]:
    """Histories of a conversation, each made of the one before."""
    history = draw(st.lists(st.sampled_from(ELEMENTS), min_size=2, max_size=6))
    found = [list(history)]
    for edit in draw(st.lists(st.sampled_from(EDITS), min_size=1, max_size=6)):
        place = draw(st.integers(0, max(len(history) - 1, 0)))
        if edit == "trim":
            history = history[place:]
        elif edit == "drop":
            history = history[:place] + history[place + 1 :]
        elif edit == "swap":
            history = history[place:] + history[:place]
        elif edit == "change":
            history = [*history[:place], draw(st.sampled_from(ELEMENTS)), *history[place + 1 :]]
        else:
            history = [*history, *draw(st.lists(st.sampled_from(ELEMENTS), max_size=3))]
        found.append(list(history))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
@settings(max_examples=25)
@given(histories=histories(), tools=st.booleans(), separators=st.sampled_from([None, (",", ":")]))
def test_what_is_shared_changes_no_result(
    name: str,
    histories: list[list[Message]],
    tools: bool,  # noqa: FBT001 - from a strategy
    separators: tuple[str, str] | None,
) -> None:
    key, reader = READERS[name]
    bodies = []
    for place, history in enumerate(histories):
        search: list[Message] = [{"type": "x_search"}] if tools and place % 2 else []
        request = {"model": "m", key: history, "tools": search}
        bodies.append(json.dumps(request, separators=separators).encode())
    forget()
    shared_results = [reader(each) for each in bodies]
    alone = []
    for each in bodies:
        forget()
        alone.append(reader(each))
    assert shared_results == alone
