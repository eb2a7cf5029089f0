import json

import pytest

from deltatape.dialects._chat import (
    DELTA,
    MESSAGE,
    ChatDelta,
    JsonSources,
    is_chat,
    is_completion,
    is_mistral,
    merge_name,
    read_entry,
    read_legacy,
)
from deltatape.dialects._json import WholeString
from deltatape.model.reply import CallKind, CallStatus, Reply
from deltatape.model.request_summary import NOTHING_ASKED, RequestSummary, ToolSpec
from deltatape.model.stream import Event
from helpers.chat import FINISH, calls, choice, codes, entry, reply_to, request, told
from helpers.events import event_of

A1 = '{"a":1}'
B2 = '{"b":2}'


def test_interleaved_calls_are_kept_apart_by_their_index() -> None:
    reply = reply_to(
        calls(entry(0, "c1", name="get", arguments="")),
        calls(entry(1, "c2", name="put", arguments='{"b"')),
        calls(entry(0, arguments=A1)),
        calls(entry(1, arguments=":2}")),
        FINISH,
    )
    assert told(reply) == [("c1", "get", A1), ("c2", "put", B2)]
    assert codes(reply) == []
    assert [call.wire_index for call in reply.tool_calls] == [0, 1]


def test_calls_are_in_the_order_in_which_they_were_opened() -> None:
    reply = reply_to(
        calls(entry(1, "c2", name="put", arguments=B2)),
        calls(entry(0, "c1", name="get", arguments=A1)),
        FINISH,
    )
    assert [(call.index, call.wire_index) for call in reply.tool_calls] == [(0, 1), (1, 0)]


def test_fragments_point_at_the_events_that_carried_them() -> None:
    reply = reply_to(
        choice({"role": "assistant"}),
        calls(entry(0, "c1", name="get", arguments='{"a"')),
        calls(entry(0, arguments=":1}")),
        FINISH,
    )
    (call,) = reply.tool_calls
    assert [(one.text, one.event) for one in call.fragments] == [('{"a"', 1), (":1}", 2)]
    assert (call.start_event, call.arguments_raw) == (1, A1)


@pytest.mark.parametrize(
    ("chunks", "expected", "seen"),
    [
        pytest.param(
            [calls(entry(0, "c1", name="get", arguments=A1)), calls(entry(0, "c2", arguments=B2))],
            [("c1", "get", A1), ("c2", None, B2)],
            ["T012"],
            id="another id after a whole object",
        ),
        pytest.param(
            [calls(entry(0, "c1", name="get")), calls(entry(0, "c2", name="put", arguments=B2))],
            [("c1", "get", ""), ("c2", "put", B2)],
            ["T012"],
            id="another id and name",
        ),
        pytest.param(
            [
                calls(entry(0, "c1", name="get", arguments="{}")),
                calls(entry(0, "c2", name="get", arguments=B2)),
            ],
            [("c1", "get", "{}"), ("c2", "get", B2)],
            ["T012"],
            id="another id after an empty object",
        ),
        pytest.param(
            [calls(entry(0, "c1", name="get")), calls(entry(0, "c2", arguments=A1))],
            [("c1", "get", A1)],
            ["T010"],
            id="another id on a call that is not whole",
        ),
        pytest.param(
            [calls(entry(0, name="get", arguments=A1)), calls(entry(0, "c2", arguments=B2))],
            [(None, "get", A1), ("c2", None, B2)],
            ["T005", "T012"],
            id="a first id with a second object",
        ),
        pytest.param(
            [calls(entry(0, name="get", arguments=A1)), calls(entry(0, "c2", arguments=" "))],
            [("c2", "get", A1 + " ")],
            [],
            id="a late id",
        ),
        pytest.param(
            [calls(entry(0, name="get", arguments=A1)), calls(entry(0, arguments=B2))],
            [(None, "get", A1), (None, None, B2)],
            ["T005", "T012"],
            id="no ids, another object",
        ),
        pytest.param(
            [
                calls(entry(0, name="get", arguments=A1)),
                calls(entry(0, name="get", arguments=A1)),
            ],
            [(None, "get", A1), (None, "get", A1)],
            ["T005", "T012", "T005"],
            id="no ids, the same call with its name",
        ),
        pytest.param(
            [calls(entry(0, name="get", arguments=A1)), *[calls(entry(0, arguments=A1))] * 3],
            [(None, "get", A1)],
            ["T005", "T014"],
            id="no ids, the same object again and again",
        ),
        pytest.param(
            [calls(entry(0, "c1", name="get", arguments=A1)), calls(entry(0, arguments=B2))],
            [("c1", "get", A1 + B2)],
            [],
            id="an id, then another object with nothing",
        ),
        pytest.param(
            [
                calls(entry(0, "c1", name="get", arguments=A1)),
                calls(entry(0, name="put", arguments=B2)),
            ],
            [("c1", "get", A1), (None, "put", B2)],
            ["T012", "T005"],
            id="another name and another object",
        ),
        pytest.param(
            [calls(entry(0, name="get", arguments="{}")), calls(entry(0, arguments=A1))],
            [(None, "get", A1)],
            ["T005", "T017"],
            id="an empty object in front",
        ),
    ],
)
def test_an_index_used_again_opens_a_call_only_if_the_wire_says_so(
    chunks: list[object], expected: list[tuple[str | None, str | None, str]], seen: list[str]
) -> None:
    reply = reply_to(*chunks, FINISH)
    assert told(reply) == expected
    assert codes(reply) == seen


def test_after_a_reused_index_fragments_go_to_their_id_or_to_the_newest_call() -> None:
    reply = reply_to(
        calls(entry(0, "c1", name="get", arguments=A1)),
        calls(entry(0, "c2", name="put", arguments='{"b"')),
        calls(entry(0, "c1", arguments=" ")),
        calls(entry(0, arguments=":2}")),
        FINISH,
    )
    assert told(reply) == [("c1", "get", A1 + " "), ("c2", "put", B2)]
    assert codes(reply) == ["T012", "T010"]


def test_two_entries_with_one_index_in_one_chunk_are_one_call() -> None:
    reply = reply_to(calls(entry(0, "c1", name="get", arguments="{"), entry(0, arguments="}")))
    assert told(reply) == [("c1", "get", "{}")]


@pytest.mark.parametrize(
    ("chunks", "expected", "seen"),
    [
        pytest.param(
            [
                calls(entry(0, "c1", name="get", arguments='{"a"')),
                calls(entry(1, "c1", arguments=":1}")),
            ],
            [("c1", "get", A1)],
            ["T020"],
            id="a call that moved",
        ),
        pytest.param(
            [
                calls(entry(0, "c1", name="get", arguments='{"a"')),
                calls(entry(1, "c1", arguments=":")),
                calls(entry(1, arguments="1}")),
            ],
            [("c1", "get", A1)],
            ["T020"],
            id="a call that moved and stayed",
        ),
        pytest.param(
            [
                calls(entry(0, "c1", name="get", arguments=A1)),
                calls(entry(1, "c1", name="get", arguments='{"a": 1}')),
            ],
            [("c1", "get", A1)],
            ["T020"],
            id="a call sent again",
        ),
        pytest.param(
            [
                calls(entry(0, "c1", name="get", arguments=A1)),
                calls(entry(1, "c1", name="get", arguments="")),
                calls(entry(1, arguments='{"a":')),
                calls(entry(1, arguments="1}")),
            ],
            [("c1", "get", A1)],
            ["T020"],
            id="a call sent again in pieces",
        ),
        pytest.param(
            [calls(entry(0, "c1", name="get", arguments=A1)), calls(entry(1, "c1", name="get"))],
            [("c1", "get", A1)],
            ["T020"],
            id="the head of a call sent again",
        ),
        pytest.param(
            [
                calls(entry(0, "c1", name="get", arguments=A1)),
                calls(entry(1, "c1", name="put", arguments='{"b"')),
                calls(entry(1, "c1", arguments=":2}")),
            ],
            [("c1", "get", A1), ("c1", "put", B2)],
            ["T010", "T010"],
            id="two calls with one id",
        ),
    ],
)
def test_one_id_at_two_indexes_is_one_call_unless_its_arguments_differ(
    chunks: list[object], expected: list[tuple[str | None, str | None, str]], seen: list[str]
) -> None:
    reply = reply_to(*chunks, FINISH)
    assert told(reply) == expected
    assert codes(reply) == seen


def test_fragments_of_nothing_are_an_orphan() -> None:
    reply = reply_to(calls(entry(0, arguments=A1)), FINISH)
    (call,) = reply.tool_calls
    assert (call.status, call.id, call.name, call.arguments) == (CallStatus.ORPHAN, None, None, A1)
    assert codes(reply) == []


def test_an_entry_that_says_nothing_opens_no_call() -> None:
    assert reply_to(calls(entry(0), {"index": 1, "function": None}), FINISH).tool_calls == ()


def test_a_call_without_name_has_no_name() -> None:
    (call,) = reply_to(calls(entry(0, "c1", arguments=A1)), FINISH).tool_calls
    assert (call.status, call.name) == (CallStatus.NO_NAME, None)


@pytest.mark.parametrize(("first", "code"), [("0", []), (0, []), (1, ["T013"]), (2, ["T013"])])
def test_indexes_start_at_zero(first: object, code: list[str]) -> None:
    reply = reply_to(calls(entry(first, "c1", name="get", arguments=A1)), FINISH)
    assert told(reply) == [("c1", "get", A1)]
    assert codes(reply) == code


def test_an_id_that_changes_is_listed_and_the_first_one_kept() -> None:
    reply = reply_to(
        calls(entry(0, "c1", name="get", arguments="{")),
        calls(entry(0, "c2")),
        calls(entry(0, "c3", arguments="}")),
        calls(entry(0, "null", arguments=" ")),
        FINISH,
    )
    (call,) = reply.tool_calls
    assert (call.id, call.ids, call.repairs) == ("c1", ("c1", "c2", "c3"), ("T010",))


def test_repeats_are_reported_once_per_call() -> None:
    again = [calls(entry(0, "c1", name="get", arguments="")) for _ in range(5)]
    assert codes(reply_to(*again, done=False)) == ["T010", "T009"]


def test_arguments_that_came_as_an_object_keep_their_source() -> None:
    source = '{ "a" : 1.50 }'
    head = '{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"arguments":'
    raw = head + source + ',"name":"g"}}]}}]}'
    reply = reply_to(raw, FINISH)
    (call,) = reply.tool_calls
    assert (call.arguments, call.status) == (source, CallStatus.COMPLETE)
    assert call.repairs == ("T006",)


def test_a_predecessors_arguments_that_came_as_an_object_keep_their_source() -> None:
    source = '{ "a" : 1.50 }'
    raw = '{"choices":[{"delta":{"function_call":{"name":"g","arguments":' + source + "}}}]}"
    (call,) = reply_to(raw, FINISH).tool_calls
    assert (call.kind, call.arguments, call.repairs) == (CallKind.LEGACY, source, ("T006",))


def test_a_custom_tools_input_is_free_text() -> None:
    reply = reply_to(
        calls({"index": 0, "id": "c1", "type": "custom"}),
        calls({"index": 0, "custom": {"name": "run", "input": "{}"}}),
        calls({"index": 0, "custom": {"input": '{"a"'}}),
        FINISH,
    )
    (call,) = reply.tool_calls
    assert (call.kind, call.name, call.arguments) == (CallKind.CUSTOM, "run", '{}{"a"')
    assert call.status is CallStatus.COMPLETE


def test_an_odd_entry_is_reported_and_its_call_kept() -> None:
    reply = reply_to(calls({"index": 0, "id": 7, "function": {"name": "get", "arguments": A1}}))
    assert told(reply) == [(None, "get", A1)]
    assert codes(reply) == ["S006", "T005"]


def legacy(**function: object) -> dict[str, object]:
    return choice({"function_call": function})


def test_a_legacy_call_is_one_per_choice_and_needs_no_id() -> None:
    reply = reply_to(legacy(name="get", arguments='{"a"'), legacy(arguments=":1}"), FINISH)
    (call,) = reply.tool_calls
    assert (call.kind, call.name, call.arguments) == (CallKind.LEGACY, "get", A1)
    assert codes(reply) == []


def test_a_call_sent_in_both_forms_is_one_call() -> None:
    both = {
        "tool_calls": [entry(0, "c1", name="get", arguments=A1)],
        "function_call": {"name": "get", "arguments": A1},
    }
    reply = reply_to(choice(both), FINISH)
    assert told(reply) == [("c1", "get", A1)]
    assert (codes(reply), reply.tool_calls[0].repairs) == (["T020"], ("T020",))


def test_a_legacy_call_of_another_name_is_another_call() -> None:
    reply = reply_to(legacy(name="get", arguments=A1), calls(entry(0, "c1", name="put")), FINISH)
    assert told(reply) == [(None, "get", A1), ("c1", "put", "")]


def test_a_legacy_call_with_other_arguments_is_another_call() -> None:
    both = [entry(0, "c1", name="get", arguments=A1)]
    reply = reply_to(legacy(name="get", arguments='{"a":2}'), calls(*both), FINISH)
    assert sorted(told(reply), key=str) == [("c1", "get", A1), (None, "get", '{"a":2}')]
    assert codes(reply) == []


def opened(index: int, name: str) -> object:
    """The first fragment of a call whose id all calls have."""
    return calls(entry(index, "c", name=name, arguments=""))


def goes_on(index: int, arguments: str) -> object:
    return calls(entry(index, arguments=arguments))


@pytest.mark.parametrize(
    ("one", "other"), [("{}", "{}"), ("", ""), (A1, A1), (A1, '{"a":2}'), ("", A1)]
)
def test_calls_of_different_tools_may_share_an_id(one: str, other: str) -> None:
    """The index tells them apart. Seen in https://github.com/HKUDS/nanobot/issues/3943."""
    in_turn = (opened(0, "get"), goes_on(0, one), opened(1, "put"), goes_on(1, other))
    mixed = (opened(0, "get"), opened(1, "put"), goes_on(0, one), goes_on(1, other))
    for chunks in (in_turn, mixed):
        reply = reply_to(*chunks, FINISH)
        assert told(reply) == [("c", "get", one), ("c", "put", other)]
        assert codes(reply) == ["T010"]


def test_a_choice_without_an_index_is_noted_once() -> None:
    """SDKs that accumulate fail for it; the place in the array tells which choice it is."""
    chunks = [{"choices": [{"delta": {"content": each}}]} for each in ("Hel", "lo")]
    reply = reply_to(*chunks, choice({}, "stop"))
    assert (reply.text, codes(reply)) == ("Hello", ["S006"])


def test_the_schema_of_the_request_decides_about_empty_arguments() -> None:
    def status(**tools: object) -> CallStatus:
        chunks = [calls(entry(0, "c1", name="get", arguments="")), FINISH]
        return reply_to(*chunks, request=request(**tools)).tool_calls[0].status

    assert status(get={"type": "object"}) is CallStatus.EMPTY_OK
    assert status(get={"required": ["a"]}) is CallStatus.EMPTY_SUSPECT
    assert status(put={}) is CallStatus.EMPTY_SUSPECT


def test_the_offered_tools_decide_about_a_split_name() -> None:
    chunks = [calls(entry(0, "c1", name="old")), calls(entry(0, name="get", arguments=A1)), FINISH]
    assert told(reply_to(*chunks, request=request(get={}))) == [("c1", "get", A1)]
    assert told(reply_to(*chunks)) == [("c1", "oldget", A1)]


def asked(*names: str) -> RequestSummary:
    tools = tuple(ToolSpec(name=name, parameters=None) for name in names)
    return RequestSummary(
        known=True, model=None, stream=True, tools=tools, tool_choice=None, history=()
    )


@pytest.mark.parametrize(
    ("old", "new", "begun", "tools", "name", "code"),
    [
        ("", "get", True, (), "get", "T021"),
        ("get", "get", True, (), "get", "T009"),
        ("ge", "t", False, (), "get", "T021"),
        ("ge", "t", False, ("get",), "get", "T021"),
        ("old", "get", False, ("get",), "get", "T021"),
        ("ge", "get", False, (), "get", "T021"),
        ("get", "getget", False, ("getgetget",), "getgetget", "T021"),
        ("get", "put", True, ("put",), "get", "T021"),
        ("x" * 1001, "get", False, (), "x" * 1001, "T021"),
        ("edit_ex", "isting_file", False, ("other",), "edit_existing_file", "T021"),
    ],
)
def test_the_offered_tools_decide_whether_pieces_are_one_name(
    old: str,
    new: str,
    begun: bool,  # noqa: FBT001
    tools: tuple[str, ...],
    name: str,
    code: str,
) -> None:
    naming = merge_name(old, new, begun=begun, request=asked(*tools) if tools else NOTHING_ASKED)
    assert (naming.name, naming.code) == (name, code)
    assert repr(new) in naming.detail


def event(data: str) -> Event:
    return event_of(data)


def read(data: str) -> ChatDelta:
    entry = read_entry(json.loads(data), event(data))
    return entry.read_unquoted(WholeString(data)) if entry.unquoted else entry


def test_an_entry_is_read_into_plain_values() -> None:
    entry = read('{"index":2,"id":"c1","function":{"name":"get","arguments":"{"}}')
    assert (entry.wire_index, entry.id, entry.name, entry.text) == (2, "c1", "get", "{")
    assert (entry.kind, entry.unquoted, entry.unexpected) == (CallKind.FUNCTION, (), ())
    assert not entry.says_nothing


@pytest.mark.parametrize(
    "data",
    [
        "{}",
        '{"index":0}',
        '{"id":"","function":{"name":"","arguments":""}}',
        '{"id":"null","function":{"name":null,"arguments":null}}',
        '{"id":null,"type":null,"function":null}',
        '{"function":{},"custom":{}}',
    ],
)
def test_absent_values_have_many_spellings(data: str) -> None:
    entry = read(data)
    assert entry.says_nothing
    assert (entry.id, entry.name, entry.text, entry.unexpected) == ("", "", "", ())


def test_a_custom_tool_has_input_instead_of_arguments() -> None:
    entry = read('{"id":"c1","custom":{"name":"run","input":"ls"},"function":{}}')
    assert (entry.kind, entry.name, entry.text) == (CallKind.CUSTOM, "run", "ls")
    entry = read('{"function":{"name":"get"},"custom":{"name":"run"}}')
    assert (entry.kind, entry.name) == (CallKind.FUNCTION, "get")


@pytest.mark.parametrize("source", ['{ "a" : 1.0 }', "[]", "10", "false"])
def test_arguments_that_are_no_string_keep_their_exact_source(source: str) -> None:
    entry = read('{"function": {"arguments": ' + source + ' , "name":"get"}}')
    assert (entry.text, entry.unquoted) == (source, ("function", "arguments"))


def test_unexpected_shapes_are_reported_and_otherwise_absent() -> None:
    entry = read('{"index":"x","id":5,"function":[1]}')
    assert entry.unexpected == (
        "function is not an object",
        "id is not a string",
        "index is not a number",
    )
    assert (entry.wire_index, entry.says_nothing) == (None, True)
    assert read('{"function":{"name":1}}').unexpected == ("name is not a string",)


def test_a_legacy_call_has_no_index_and_no_id() -> None:
    data = '{"name":"get","arguments":{"a": 1}}'
    entry = read_legacy(json.loads(data), event(data)).read_unquoted(WholeString(data))
    assert (entry.kind, entry.wire_index, entry.id) == (CallKind.LEGACY, None, "")
    assert (entry.name, entry.text, entry.unquoted) == ("get", '{"a": 1}', ("arguments",))


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        pytest.param(
            [entry(None, "c1", name="get"), entry(arguments='{"a"'), entry(arguments=":1}")],
            [("c1", "get", A1)],
            id="fragments",
        ),
        pytest.param(
            [
                entry(None, "c1", name="get", arguments='{"a"'),
                entry(None, "c2", name="put", arguments='{"b"'),
                entry(None, "c1", arguments=":1}"),
                entry(None, "c2", arguments=":2}"),
            ],
            [("c1", "get", A1), ("c2", "put", B2)],
            id="fragments with ids",
        ),
        pytest.param(
            [entry(name="get", arguments=A1), entry(name="get", arguments=A1)],
            [(None, "get", A1), (None, "get", A1)],
            id="whole calls with names",
        ),
        pytest.param(
            [entry(name="get", arguments='{"a"'), entry(name="get", arguments=":1}")],
            [(None, "get", A1)],
            id="a name on each fragment",
        ),
        pytest.param(
            [entry(arguments='{"a"'), entry(name="get", arguments=":1}")],
            [(None, "get", A1)],
            id="a late name",
        ),
        pytest.param(
            [entry(None, "c1", name="get", arguments='{"a"'), entry(None, "c2", arguments=":1}")],
            [("c1", "get", A1)],
            id="an id that changes",
        ),
        pytest.param(
            [entry(name="get", arguments='{"a"'), entry(name="get", arguments='{"a":1}')],
            [(None, "get", A1)],
            id="cumulative with names",
        ),
        pytest.param(
            [entry(name="get", arguments=text) for text in ('{"a"', '{"a":', '{"a":1', '{"a":1}')],
            [(None, "get", A1)],
            id="cumulative in many pieces",
        ),
        pytest.param(
            [entry(name="get", arguments='{"a"'), entry(name="put", arguments=B2)],
            [(None, "get", '{"a"'), (None, "put", B2)],
            id="a cut call and another",
        ),
        pytest.param(
            [entry(name="get", arguments='{"a"'), entry(name="get", arguments="{")],
            [(None, "get", '{"a"'), (None, "get", "{")],
            id="a cut call and the same tool again",
        ),
        pytest.param(
            [entry(name="get"), entry(name="put")],
            [(None, "get", ""), (None, "put", "")],
            id="names only",
        ),
        pytest.param(
            [
                entry(None, "get", name="get", arguments=A1),
                entry(None, "get", name="get", arguments=B2),
            ],
            [("get", "get", A1), ("get", "get", B2)],
            id="the name as id",
        ),
        pytest.param(
            [
                entry(None, "c1", name="get", arguments=A1),
                entry(None, "c1", name="get", arguments=A1),
            ],
            [("c1", "get", A1)],
            id="a whole call again",
        ),
        pytest.param(
            [entry(None, "c1", name="get", arguments=A1), entry(None, "c1", arguments=" ")],
            [("c1", "get", A1 + " ")],
            id="whitespace after a whole call",
        ),
    ],
)
def test_without_index_the_id_or_the_last_call_tells_where_an_entry_belongs(
    entries: list[dict[str, object]], expected: list[tuple[str | None, str | None, str]]
) -> None:
    reply = reply_to(*[calls(one) for one in entries], FINISH)
    assert told(reply) == expected
    assert "T011" in codes(reply)


STOP = choice({}, "stop")
TEXT = choice({"content": "Hi"})
ERROR = {"error": {"message": "overloaded", "code": 502}}


@pytest.mark.parametrize(
    ("chunks", "done", "terminated"),
    [
        ([TEXT, STOP], True, True),
        ([TEXT, STOP], False, True),
        ([TEXT], True, True),
        ([TEXT], False, False),
        ([], True, True),
        ([], False, False),
        ([TEXT, ERROR], True, False),
        ([TEXT, STOP, ERROR], True, True),
        ([TEXT, choice({}, "error"), ERROR], True, False),
        ([TEXT, "[DONE]", ERROR], True, True),
        ([TEXT, ERROR, "[DONE]"], True, False),
        ([TEXT, STOP, choice({"content": "x"}, index=1)], False, False),
        ([TEXT, STOP, choice({"content": "x"}, index=1)], True, True),
    ],
)
def test_a_finish_reason_or_the_sentinel_terminates(
    chunks: list[object],
    done: bool,  # noqa: FBT001
    terminated: bool,  # noqa: FBT001
) -> None:
    reply = reply_to(*chunks, done=done)
    assert (reply.terminated, reply.terminator) == (terminated, "finish_reason and [DONE]")


def test_usage_and_model_are_taken_wherever_they_come() -> None:
    reply = reply_to(
        {"model": "", "choices": [], "prompt_filter_results": []},
        {"model": "m-1", **TEXT},
        STOP,
        {"model": "m-2", "choices": [], "usage": {"total_tokens": 1}},
        {"usage": {"total_tokens": 2}},
        {"choices": [], "usage": None},
    )
    assert (reply.model, reply.usage, codes(reply)) == ("m-1", {"total_tokens": 2}, [])


@pytest.mark.parametrize(
    ("chunks", "message"),
    [
        ([ERROR], "overloaded"),
        ([{"choices": [], "error": "late"}], "late"),
        ([{"choices": [{"index": 0, "delta": {}, "error": {"message": "inner"}}]}], "inner"),
        ([choice({}, "error")], "finish_reason is 'error'"),
        ([{**choice({}, "error"), **ERROR}], "overloaded"),
        ([ERROR, {"error": "second"}], "overloaded"),
    ],
)
def test_an_error_frame_is_reported_with_its_message(chunks: list[object], message: str) -> None:
    reply = reply_to(TEXT, *chunks)
    assert (reply.error, reply.text) == (message, "Hi")
    assert set(codes(reply)) == {"S005"}


@pytest.mark.parametrize("data", ["{", "", '{"a":1}{"b":2}', ": OPENROUTER PROCESSING", "{NaN}"])
def test_data_that_is_not_json_is_reported_and_passed_over(data: str) -> None:
    reply = reply_to(TEXT, data, STOP)
    assert (reply.text, codes(reply)) == ("Hi", ["W004"])
    (seen,) = reply.observations
    assert seen.detail.startswith("the data is not JSON: ")
    assert "(offset " in seen.detail
    assert (seen.evidence, seen.event) == (data, 1)


@pytest.mark.parametrize(
    "chunk", ["[]", "5", {"choices": {}}, {"choices": [None]}, {"type": "ping"}, {"choices": "x"}]
)
def test_unexpected_shapes_are_reported_once(chunk: object) -> None:
    reply = reply_to(TEXT, chunk, chunk, STOP)
    assert (reply.text, codes(reply)) == ("Hi", ["S006"])


def test_reading_goes_on_after_a_finish_reason() -> None:
    reply = reply_to(FINISH, TEXT)
    assert (reply.text, reply.finish_reason_raw, codes(reply)) == ("Hi", "tool_calls", [])


def test_deltas_after_the_sentinel_are_reported_and_no_part_of_the_answer() -> None:
    reply = reply_to(TEXT, STOP, " [DONE] ", TEXT, TEXT, {"choices": [], "usage": {"n": 1}})
    assert (reply.text, reply.usage, codes(reply)) == ("Hi", {"n": 1}, ["S006"])


@pytest.mark.parametrize(
    ("index", "expected"), [(None, [0, 1]), ("1", [1]), (7, [7]), (-1, [0, 1])]
)
def test_a_choice_without_index_has_its_place(index: object, expected: list[int]) -> None:
    one: dict[str, object] = {"index": index, "delta": {"content": "x"}}
    reply = reply_to({"choices": [one, one]})
    assert [found.index for found in reply.choices] == expected


def test_an_id_that_changes_within_an_answer_is_noted_once() -> None:
    said = choice({"content": "a"})
    ids: list[object] = ["x", "", None, 5, "x"]
    assert codes(reply_to(*({**said, "id": one} for one in ids))) == []
    assert codes(reply_to(*({**said, "id": one} for one in ("x", "y", "z")))) == ["S006"]


def content(text: object, finish: object = None) -> dict[str, object]:
    return choice({"content": text}, finish)


def test_text_reasoning_and_refusal_are_concatenated() -> None:
    reply = reply_to(
        content(""),
        choice({"reasoning_content": "th", "reasoning": "th"}),
        choice({"reasoning": "ink"}),
        content("Hel"),
        content("lo"),
        choice({"refusal": "no"}, "stop"),
    )
    assert (reply.text, reply.reasoning, reply.choices[0].refusal) == ("Hello", "think", "no")
    assert codes(reply) == []


def test_content_may_be_a_list_of_typed_parts() -> None:
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "th"}, 5]},
        {"type": "thinking", "thinking": "ink"},
        {"type": "text", "text": "Hi"},
        {"type": "text", "text": ""},
        {"type": "refusal", "refusal": "no"},
        {"type": "image"},
    ]
    reply = reply_to(content(parts, "stop"))
    assert (reply.text, reply.reasoning, reply.choices[0].refusal) == ("Hi", "think", "no")


def test_a_surrogate_pair_cut_between_deltas_is_one_character() -> None:
    half = '{"choices":[{"index":0,"delta":{"content":"%s"}}]}'
    assert reply_to(half % "\\ud83d", half % "\\ude00").text == "\U0001f600"


@pytest.mark.parametrize("last", ["stop", None])
def test_the_last_finish_reason_that_is_not_empty_counts(last: str | None) -> None:
    reply = reply_to(content("a"), content("b", "tool_calls"), choice({}, last))
    assert reply.finish_reason_raw == (last or "tool_calls")
    assert codes(reply) == (["S004"] if last else [])


@pytest.mark.parametrize(
    ("finishes", "seen"),
    [
        (["stop"] * 5, ["S004"]),
        (["stop", "stop"], []),
        ([None, "stop", None, "stop"], []),
        (["stop", None, None, None], []),
        (["tool_calls", "stop", "tool_calls"], ["S004"]),
    ],
)
def test_a_repeated_finish_reason_counts_if_it_differs_or_deltas_go_on(
    finishes: list[str | None], seen: list[str]
) -> None:
    reply = reply_to(*[content(str(n), finish) for n, finish in enumerate(finishes)])
    assert codes(reply) == seen
    assert reply.text == "".join(str(n) for n in range(len(finishes)))


@pytest.mark.parametrize("reason", ["", 0, [], False])
def test_a_finish_reason_that_is_none_is_reported_and_ignored(reason: object) -> None:
    reply = reply_to(content("a", reason), content("b", reason), content("c", "stop"))
    assert (reply.finish_reason_raw, codes(reply)) == ("stop", ["S006"])


def status(*chunks: object, done: bool) -> CallStatus:
    opened = calls(entry(0, "c1", name="get", arguments=""))
    return reply_to(opened, *chunks, done=done).tool_calls[0].status


@pytest.mark.parametrize("done", [True, False])
def test_empty_arguments_are_truncated_if_nothing_ended_the_call(done: bool) -> None:  # noqa: FBT001
    assert status(FINISH, done=done) is CallStatus.EMPTY_SUSPECT
    assert status(choice({}, "length"), done=done) is CallStatus.TRUNCATED
    assert status(choice({}, "content_filter"), done=done) is CallStatus.TRUNCATED
    unquoted = CallStatus.EMPTY_SUSPECT if done else CallStatus.TRUNCATED
    assert status(done=done) is unquoted
    assert status({"error": "overloaded"}, done=done) is CallStatus.TRUNCATED


def test_a_whole_object_stays_complete_without_any_terminal_signal() -> None:
    reply = reply_to(calls(entry(0, "c1", name="get", arguments="{}")), done=False)
    assert (reply.tool_calls[0].status, reply.terminated) == (CallStatus.COMPLETE, False)


def test_the_delta_of_a_chunk_comes_before_its_finish_reason() -> None:
    reply = reply_to(choice({"tool_calls": [entry(0, "c1", name="get")]}, "tool_calls"))
    assert len(reply.tool_calls) == 1


@pytest.mark.parametrize(
    "delta",
    [
        "x",
        [],
        {"content": 5},
        {"content": ["x"]},
        {"tool_calls": {"index": 0}},
        {"tool_calls": ["x"]},
        {"function_call": "get"},
    ],
)
def test_unexpected_shapes_are_reported_and_passed_over(delta: object) -> None:
    reply = reply_to(choice(delta), content("ok", "stop"))
    assert (reply.text, codes(reply)) == ("ok", ["S006"])


@pytest.mark.parametrize(
    "delta", [None, {}, {"tool_calls": None}, {"tool_calls": []}, {"content": None, "role": None}]
)
def test_deltas_that_say_nothing_are_no_finding(delta: object) -> None:
    reply = reply_to(choice(delta), content("ok", "stop"))
    assert (reply.text, codes(reply)) == ("ok", [])


def whole(message: object, **more: object) -> dict[str, object]:
    return {"choices": [{"index": 0, "message": message, "finish_reason": "stop", **more}]}


def test_a_whole_message_is_read_like_deltas_but_needs_no_index() -> None:
    entries = [entry(None, "c1", name="get", arguments="{}"), entry(None, "c2", name="put")]
    reply = reply_to(whole({"content": "Hi", "tool_calls": entries}))
    assert (reply.text, len(reply.tool_calls), codes(reply)) == ("Hi", 2, [])


def test_a_call_twice_in_a_whole_message_is_one() -> None:
    twice = [entry(None, "c1", name="get", arguments="{}")] * 2
    reply = reply_to(whole({"tool_calls": twice}))
    assert (len(reply.tool_calls), codes(reply)) == (1, ["T020"])
    other = [entry(1, "c1", name="get", arguments="{}"), entry(1, "c1", name="x", arguments="[]")]
    reply = reply_to(whole({"tool_calls": [*other, {}]}))
    assert (len(reply.tool_calls), codes(reply)) == (2, ["T010"])


def test_a_message_beside_or_after_deltas_is_not_part_of_the_answer() -> None:
    beside = whole({"content": "Hello"}, delta={"content": "Hello"})
    assert reply_to(beside).text == "Hello"
    reply = reply_to(content("Hello"), whole({"content": "Hello"}), whole({"content": "Hello"}))
    assert (reply.text, codes(reply)) == ("Hello", ["S006"])


def test_a_message_of_an_unexpected_shape_is_reported() -> None:
    reply = reply_to(whole("x"), whole(None))
    assert (reply.text, codes(reply)) == ("", ["S006"])


def test_choices_are_kept_apart() -> None:
    reply: Reply = reply_to(
        choice({"content": "b"}, index=1),
        choice({"content": "a"}),
        choice({"tool_calls": [entry(0, "c1", name="get", arguments="{}")]}, "tool_calls", 1),
        choice({}, "stop"),
    )
    assert [(one.index, one.text, len(one.tool_calls)) for one in reply.choices] == [
        (0, "a", 0),
        (1, "b", 1),
    ]


@pytest.mark.parametrize("key", ["audio", "images"])
def test_what_is_not_text_is_an_answer(key: str) -> None:
    reply = reply_to(choice({"content": None, key: [{"index": 0}]}), choice({}, "stop"))
    assert reply.choices[0].media
    assert not reply_to(choice({"content": "", key: None}, "stop")).choices[0].media


DATA = """{"choices": [
  {"delta": {"tool_calls": [ {"a": 1.0}, {"b" : 2} ]}, "message": {"tool_calls": [ "m" ]}},
  {"delta": {"tool_calls": [ "other" ]}}
]}"""


def test_calls_have_the_exact_source_that_the_event_has() -> None:
    sources, one = JsonSources(), event(DATA)
    assert sources.call(one, (0, DELTA), 0).text == '{"a": 1.0}'
    assert sources.call(one, (0, DELTA), 1).text == '{"b" : 2}'
    assert sources.call(one, (0, MESSAGE), 0).text == '"m"'
    assert sources.call(one, (1, DELTA), 0).text == '"other"'
    assert sources.body(one, (1, DELTA)).text == '{"tool_calls": [ "other" ]}'


def test_what_is_known_of_an_event_is_forgotten_with_the_next() -> None:
    sources = JsonSources()
    assert sources.call(event(DATA), (0, DELTA), 0).text == '{"a": 1.0}'
    again = DATA.replace("1.0", "2.0")
    assert sources.call(event(again), (0, DELTA), 0).text == '{"a": 2.0}'


def test_each_kind_of_completion_is_told_from_the_others() -> None:
    hexadecimal = "0123456789abcdef" * 2
    chat = {"object": "chat.completion.chunk", "choices": [{"delta": {}}]}
    older = {"choices": [None, {"text": ""}]}
    assert (is_chat(chat), is_completion(chat), is_mistral(chat)) == (True, False, False)
    assert (is_chat(older), is_completion(older)) == (False, True)
    assert is_completion({"object": "text_completion"})
    assert is_mistral({**chat, "id": hexadecimal})
    assert not is_mistral({**chat, "id": hexadecimal.upper()})
    assert not is_mistral({"id": hexadecimal})
    assert not is_mistral({**chat, "id": hexadecimal, "choices": []})
    assert not is_chat({"choices": 5})
    assert is_chat({"choices": []})
    assert is_chat({"choices": ["a", {"index": 0}]})
    assert not is_chat({"choices": ["a", {"label": "yes", "votes": 3}]})


def test_others_whose_ids_are_like_those_of_mistral_have_members_of_their_own() -> None:
    chunk = {"id": "0123456789abcdef" * 2, "choices": [{"delta": {}}]}
    assert is_mistral(chunk)
    assert not is_mistral({**chunk, "system_fingerprint": ""})
    assert not is_mistral({**chunk, "choices": [{"delta": {}, "matched_stop": None}]})


def test_the_older_ids_of_mistral_count_for_its_own_models() -> None:
    chunk = {"id": "cmpl-" + "0123456789abcdef" * 2, "choices": [{"delta": {}}]}
    assert is_mistral({**chunk, "model": "mistral-tiny"})
    assert is_mistral({**chunk, "model": "open-mixtral-8x7b"})
    assert not is_mistral({**chunk, "model": "mistralai/Mistral-7B-Instruct"})
    assert not is_mistral(chunk)
