"""Events as they are compared."""

import base64
import json

from deltatape.compare.comparable_events import things_of, units_of, value_of
from deltatape.compare.volatile import FieldFilter
from deltatape.diagnose.rebuild import analyse
from deltatape.model.stream import Event
from helpers.chat import FINISH, choice
from helpers.compared import analysed, call, chat, said, units, words
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
    named = units(said('event: ping\ndata: {"type":"ping"}'))
    bare = units(said('data: {"type":"ping"}'))
    assert named[0].key == bare[0].key
    one, other = (units(analysed(f"event: {x}\ndata: {{}}\n\n".encode())) for x in "ab")
    assert one[0].key != other[0].key


def test_text_that_is_no_json_is_compared_as_it_is() -> None:
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


def test_a_call_without_name_and_id_is_told_as_such() -> None:
    found = units(chat(choice({"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]})))
    assert [each.text for one in found for each in one.tokens if each.what == "open"] == [" ()"]


def test_in_a_stream_that_nobody_can_read_the_data_is_what_comes() -> None:
    analysis = analysed(b"data: hello\n\n", "http://127.0.0.1/x")
    assert [each.text for things in things_of(analysis).values() for each in things] == ["hello"]


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
