import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltatape.suspects.call_slot import CallSlot, repaired
from deltatape.suspects.client import client_of
from deltatape.suspects.steps import ClientCallDelta, EntryPhase


def _slot(*mistakes: tuple[str, str], entries: list[ClientCallDelta]) -> CallSlot:
    slot = CallSlot(client_of(*mistakes))
    for at, entry in enumerate(entries):
        slot.add(entry, opening=not at)
    return slot


PIECES = [
    ClientCallDelta(0, EntryPhase.DELTA, index=3, id="c1", name="get", text='{"a":'),
    ClientCallDelta(1, EntryPhase.DELTA, index=3),
    ClientCallDelta(2, EntryPhase.DELTA, index=3, id="", name="", text="1}"),
]
ITEM = [
    ClientCallDelta(0, EntryPhase.START, id="c1", name="get", text="", item="fc"),
    ClientCallDelta(1, EntryPhase.DELTA, text="{}", item="fc"),
    ClientCallDelta(2, EntryPhase.DONE, text='{"b":1}', item="fc"),
    ClientCallDelta(3, EntryPhase.CLOSE, id="c1", name="get", text='{"c":1}', item="fc"),
    ClientCallDelta(4, EntryPhase.FINAL, id="c1", name="get", text='{"d":1}', item="fc"),
]


def _raw(*mistakes: tuple[str, str], entries: list[ClientCallDelta] = PIECES) -> str:
    return _slot(*mistakes, entries=entries).raw


def test_pieces_are_appended() -> None:
    assert _raw() == '{"a":1}'
    assert _raw(("arguments", "drop-first")) == "1}"
    assert _raw(("arguments", "first-only")) == '{"a":'
    assert _raw(("arguments", "replace")) == "1}"
    assert _raw(("arguments", "index")) == "333"
    assert _raw(("arguments", "event-number")) == "012"
    assert _raw(("absent", "undefined")) == '{"a":undefined1}'
    assert _raw(("arguments", "index"), entries=[ClientCallDelta(0, EntryPhase.DELTA)]) == "0"


def test_arguments_that_are_json_may_be_spoilt() -> None:
    bare = [ClientCallDelta(0, EntryPhase.DELTA, text='{"a":1}', unquoted=True)]
    assert _raw(entries=bare) == '{"a":1}'
    assert _raw(("value", "string"), entries=bare) == "[object Object]"


def test_the_source_decides_between_events_that_disagree() -> None:
    wanted = {
        "added": "",
        "deltas": "{}",
        "added+deltas": "{}",
        "arguments-done": '{"b":1}',
        "item-done": '{"c":1}',
        "completed": '{"d":1}',
    }
    assert _raw(entries=ITEM) == '{"c":1}'
    assert {source: _raw(("source", source), entries=ITEM) for source in wanted} == wanted


def test_ids_and_names_are_merged_as_the_axis_says() -> None:
    def call(*mistakes: tuple[str, str]) -> tuple[str | None, str | None]:
        made = _slot(*mistakes, entries=PIECES).call()
        return made.id, made.name

    assert call() == ("c1", "get")
    assert call(("id", "null-too"), ("name", "null-too")) == (None, None)
    assert call(("id", "empty-too")) == (None, "get")
    assert call(("id", "drop")) == (None, "get")
    assert call(("name", "concatenate")) == ("c1", "get")
    assert _slot(("id", "item"), entries=ITEM).call().id == "fc"
    kept = _slot(("id", "first"), entries=[*PIECES, ClientCallDelta(3, EntryPhase.DELTA, id="c2")])
    assert kept.call().id == "c1"


def test_a_call_may_be_used_before_its_end() -> None:
    assert _raw(("emit", "at-name")) == '{"a":'
    early = _slot(
        ("emit", "when-parses"), entries=[*PIECES, ClientCallDelta(3, EntryPhase.DELTA, text="x")]
    )
    assert (early.raw, early.frozen) == ('{"a":1}', True)
    assert not _slot(("emit", "when-parses"), entries=PIECES[:1]).frozen


def test_what_does_not_parse_is_treated_as_the_axis_says() -> None:
    def arguments(how: str, entries: list[ClientCallDelta] = PIECES) -> str:
        return _slot(("parse", how), entries=entries).call().arguments

    cut = PIECES[:1]
    assert arguments("swallow") == '{"a":1}'
    assert arguments("swallow", cut) == "{}"
    assert arguments("repair", cut) == "{}"
    assert arguments("repair-whole-members", cut) == "{}"
    assert arguments("fragments") == "{}"
    assert (
        arguments("fragments", [ClientCallDelta(0, EntryPhase.DELTA, text='{"a":1}')]) == '{"a": 1}'
    )
    assert arguments("fragments", ITEM[3:4]) == '{"c":1}'
    assert _slot(("parse", "drop"), entries=cut).is_dropped
    assert not _slot(("parse", "drop"), entries=PIECES).is_dropped


def test_arguments_may_be_spoilt_when_they_are_repeated() -> None:
    def written(how: str, entries: list[ClientCallDelta] = PIECES) -> str:
        return _slot(("written", how), entries=entries).call().arguments

    assert written("python-repr") == "{'a': 1}"
    assert written("object-text") == "[object Object]"
    assert written("twice") == '"{\\"a\\":1}"'
    assert written("twice", PIECES[:1]) == '{"a":'


def test_the_input_of_custom_tools_is_not_parsed() -> None:
    custom = [ClientCallDelta(0, EntryPhase.DELTA, id="c1", name="run", text="ls -", kind="custom")]
    for how in ("swallow", "drop", "fragments"):
        slot = _slot(("parse", how), entries=custom)
        assert (slot.call().arguments, slot.is_dropped, slot.parsed_texts) == ("ls -", False, [])


def test_what_a_parser_is_given_is_reported() -> None:
    assert _slot(entries=PIECES).parsed_texts == ['{"a":1}']
    assert _slot(("parse", "fragments"), entries=PIECES).parsed_texts == ['{"a":', "", "1}"]


@pytest.mark.parametrize(
    ("text", "closed", "whole_members"),
    [
        ('{"a":', {}, {}),
        ('{"a":1,"b":"xy', {"a": 1, "b": "xy"}, {"a": 1}),
        ('{"a":{"b":[1,2', {"a": {"b": [1, 2]}}, {"a": {"b": [1]}}),
        ('{"a":"\\"{', {"a": '"{'}, {}),
        ("}}", {}, {}),
        ('{"a":[1],"b":tru', {"a": [1]}, {"a": [1]}),
    ],
)
def test_both_schools_close_what_is_open(text: str, closed: object, whole_members: object) -> None:
    assert json.loads(repaired(text, whole_members=False)) == closed
    assert json.loads(repaired(text, whole_members=True)) == whole_members


@pytest.mark.slow
@given(st.text(alphabet='{}[],:"\\a1 ', max_size=40), st.booleans())
def test_any_text_becomes_json(text: str, whole: bool) -> None:  # noqa: FBT001
    json.loads(repaired(text, whole_members=whole))
