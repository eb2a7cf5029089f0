import json

import pytest

from deltatape.dialects._chat.entry import ChatDelta, read_entry, read_legacy
from deltatape.dialects._source_text import WholeString
from deltatape.model.reply import CallKind
from deltatape.model.stream import Event
from helpers.events import event_of


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


def test_unexpected_shapes_are_told_and_otherwise_absent() -> None:
    entry = read('{"index":"x","id":5,"function":[1]}')
    assert entry.unexpected == ("function is no object", "id is no string", "index is no number")
    assert (entry.wire_index, entry.says_nothing) == (None, True)
    assert read('{"function":{"name":1}}').unexpected == ("name is no string",)


def test_a_legacy_call_has_no_index_and_no_id() -> None:
    data = '{"name":"get","arguments":{"a": 1}}'
    entry = read_legacy(json.loads(data), event(data)).read_unquoted(WholeString(data))
    assert (entry.kind, entry.wire_index, entry.id) == (CallKind.LEGACY, None, "")
    assert (entry.name, entry.text, entry.unquoted) == ("get", '{"a": 1}', ("arguments",))
