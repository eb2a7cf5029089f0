"""Events as they are compared."""

import base64
import json

import pytest

from deltatape.compare.comparable_events import (
    DEEPEST,
    VOLATILE,
    FieldFilter,
    canonical,
    contributions_of,
    identities,
    is_deep,
    units_of,
    value_of,
)
from deltatape.diagnose.rebuild import analyse
from deltatape.errors import UsageError
from deltatape.model.stream import Event
from helpers.chat import FINISH, choice
from helpers.compared import analysed, anthropic_stream, call, chat, units, words
from helpers.events import event_of
from helpers.mutated import recorded


def event(data: str) -> Event:
    return event_of(data, "chunk")


def test_the_same_said_in_another_spelling_has_the_same_key() -> None:
    one, other = (
        units(analysed(body))
        for body in (b'data: {"a":1,"b":2}\n\n', b'data: {"b": 2, "a": 1}\n\n')
    )
    assert one[0].key == other[0].key


def test_a_type_counts_only_where_the_data_tells_none() -> None:
    named = units(anthropic_stream('event: ping\ndata: {"type":"ping"}'))
    bare = units(anthropic_stream('data: {"type":"ping"}'))
    assert named[0].key == bare[0].key
    one, other = (units(analysed(f"event: {x}\ndata: {{}}\n\n".encode())) for x in "ab")
    assert one[0].key != other[0].key


def test_text_that_is_not_json_is_compared_as_it_is() -> None:
    (unit,) = units(chat())
    assert (unit.forms, unit.key) == (None, "message [DONE]")


def test_tokens_tell_what_is_brought_to_which_call() -> None:
    found = units(chat(*words("a"), *call("{}"), choice({"content": ""}), FINISH))
    tokens = [[(each.what.value, each.owner, each.text) for each in one.tokens] for one in found]
    assert tokens == [
        [("text", None, "a")],
        [("open", (0, 0), "get (c0)")],
        [("arguments", (0, 0), "{}")],
        [],
        [("finish", None, "tool_calls")],
        [("end", None, "")],
    ]


def test_a_call_without_name_and_id_is_reported_as_such() -> None:
    found = units(chat(choice({"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]})))
    assert [each.text for one in found for each in one.tokens if each.what == "open"] == [" ()"]


def test_in_a_stream_that_nobody_can_read_the_data_is_what_comes() -> None:
    analysis = analysed(b"data: hello\n\n", "http://127.0.0.1/x")
    assert [each.text for things in contributions_of(analysis).values() for each in things] == [
        "hello"
    ]


def test_what_amazon_wraps_is_compared_without_its_wrapping() -> None:
    analysis = analyse(recorded("bedrock-invoke"))
    assert units_of(analysis, FieldFilter(()))[0].key.startswith(' {"message":')


def test_a_wrapping_that_holds_nothing_readable_stays() -> None:
    for inner in ("?", base64.b64encode(b"\xff").decode(), base64.b64encode(b"[1]").decode()):
        wrapped = json.dumps({"bytes": inner})
        assert value_of(event(wrapped), wrapped=True) == (True, {"bytes": inner})
    assert value_of(event('{"bytes":"e30="}'), wrapped=False) == (True, {"bytes": "e30="})
    assert value_of(event('{"bytes":"e30="}'), wrapped=True) == (True, {})
    assert value_of(event('{"bytes":1}'), wrapped=True) == (True, {"bytes": 1})
    assert value_of(event("[1]"), wrapped=True) == (True, [1])
    assert value_of(event("{"), wrapped=True) == (False, None)
    deep = base64.b64encode(b'{"a":' * 200 + b"1" + b"}" * 200).decode()
    assert value_of(event(json.dumps({"bytes": deep})), wrapped=True) == (True, {"bytes": deep})


def test_events_of_one_sort_have_one_slot() -> None:
    found = units(chat(*words("a", "b"), "[1]", "[2]"))
    assert found[0].slot == found[1].slot
    assert found[2].sort == found[3].sort == "message list"
    assert found[0].sort == " choices" or found[0].sort == "message choices"


CHUNK = {
    "id": "chatcmpl-1",
    "created": 5,
    "choices": [{"index": 0, "delta": {"tool_calls": [{"index": 1, "id": "c1"}]}}],
}


def test_ids_and_times_of_an_answer_are_left_out_and_told() -> None:
    forms = FieldFilter(VOLATILE).forms(CHUNK)
    assert forms.value == {"choices": CHUNK["choices"]}
    assert forms.ignored == {"created": "5", "id": '"chatcmpl-1"'}


def test_the_id_of_a_part_or_a_call_is_compared() -> None:
    part = {"type": "text-delta", "id": "t1", "delta": "a"}
    assert FieldFilter(VOLATILE).forms(part).value == part
    start = {"type": "message-start", "id": "m1"}
    assert FieldFilter(VOLATILE).forms(start).value == {"type": "message-start"}


def test_paths_go_through_arrays_and_objects() -> None:
    forms = FieldFilter(["choices.delta.tool_calls.id", "choices.index"]).forms(CHUNK)
    assert forms.value == {**CHUNK, "choices": [{"delta": {"tool_calls": [{"index": 1}]}}]}


@pytest.mark.parametrize("path", ["choices.*.index", "$.choices[0].index", "choices[*].index"])
def test_places_in_arrays_do_not_count(path: str) -> None:
    forms = FieldFilter([path]).forms(CHUNK)
    assert forms.ignored == {"choices.index": "0"}


def test_a_path_that_is_none_is_refused() -> None:
    with pytest.raises(UsageError, match="invalid path"):
        FieldFilter(["a..b"])


def test_nothing_is_ignored_when_nothing_is_to_be() -> None:
    forms = FieldFilter(()).forms(CHUNK)
    assert (forms.value, forms.ignored) == (CHUNK, {})
    assert FieldFilter(["id"]).forms({"id": 1, "type": "x"}).value == {"id": 1, "type": "x"}


def test_what_is_not_an_object_is_compared_as_it_is() -> None:
    for value in ([{"created": 1}], "created", None, 5):
        assert FieldFilter(VOLATILE).forms(value).value == value


def test_without_identity_the_same_delta_of_two_calls_is_equal() -> None:
    ignoring = FieldFilter(VOLATILE)
    one = ignoring.forms({"type": "d", "index": 0, "delta": [{"item_id": "a", "text": "x"}]})
    other = ignoring.forms({"type": "d", "index": 1, "delta": [{"text": "x"}]})
    assert one.whole != other.whole
    assert one.nameless == other.nameless


def test_the_order_of_keys_does_not_count() -> None:
    assert canonical({"a": 1, "b": 2}) == canonical({"b": 2, "a": 1})


def test_identities_are_reported_with_their_paths() -> None:
    assert sorted(identities(CHUNK)) == [
        ("choices.delta.tool_calls.id", '"c1"'),
        ("choices.delta.tool_calls.index", "1"),
        ("choices.index", "0"),
        ("id", '"chatcmpl-1"'),
    ]
    assert list(identities("x")) == []


def test_depth_is_that_of_arrays_and_objects() -> None:
    value: object = 1
    for at in range(DEEPEST):
        value = [value] if at % 2 else {"a": value}
    assert not is_deep(value)
    assert is_deep([value])
    assert not is_deep("x")
