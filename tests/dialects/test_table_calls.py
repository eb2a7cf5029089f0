from collections.abc import Sequence

from deltatape.dialects._choice import DialectPolicy
from deltatape.dialects._table import (
    CallsById,
    CallsByIndex,
    DialectTable,
    TableReducer,
    TableStep,
    path,
)
from deltatape.dialects._table_calls import (
    CallDelta,
    CallEnd,
    CallStart,
    CallWhole,
    Strings,
    ValueCondition,
)
from deltatape.dialects._table_steps import TerminalStep
from deltatape.model.reply import CallKind, CallStatus, Reply
from deltatape.model.request_summary import NOTHING_ASKED
from helpers.fed import codes, events, said

_INDEX = CallsByIndex(path("i"))
_ID = path("id")
_NAME = path("name")
_START = CallStart(key=_INDEX, entry=path("call"), id=_ID, name=_NAME, fragment=path("text"))
_DELTA = CallDelta(key=_INDEX, entry=path("call"), fragment=path("text"))
_WHOLE = CallWhole(key=_INDEX, id=(_ID,), name=(_NAME,), arguments=(path("in"),))
_TABLE: dict[str, Sequence[TableStep]] = {
    "start": (_START,),
    "delta": (_DELTA,),
    "end": (CallEnd(key=_INDEX),),
    "last": (TerminalStep(),),
}


def reply_to(*frames: object, **more: Sequence[TableStep]) -> Reply:
    table = DialectTable(
        name="toy",
        terminator="last",
        policy=DialectPolicy(explicit_end=True, ids=False),
        type_keys=("type",),
        events={**_TABLE, **more},
    )
    reducer = TableReducer(table, NOTHING_ASKED)
    for event in events(*frames, {"type": "last"}):
        reducer.feed(event)
    return reducer.finish(cut=False)


def start(index: int | None, **call: object) -> dict[str, object]:
    return {"type": "start", "i": index, "call": call}


def delta(index: int | None, text: object) -> dict[str, object]:
    return {"type": "delta", "i": index, "call": {"text": text}}


def end(index: int | None) -> dict[str, object]:
    return {"type": "end", "i": index}


def told(reply: Reply) -> list[tuple[str | None, str, CallStatus]]:
    return [(call.name, call.arguments, call.status) for call in reply.tool_calls]


def test_a_condition_holds_for_its_values_and_nothing_else() -> None:
    when = ValueCondition(path("a.b"), (True, "x"))
    assert when.holds({"a": {"b": "x"}})
    assert not when.holds({"a": {"b": [1]}})
    assert not when.holds({})


def test_a_start_may_bring_the_first_piece() -> None:
    reply = reply_to(start(0, id="c", name="f", text="{"), delta(0, "}"), end(0))
    assert told(reply) == [("f", "{}", CallStatus.COMPLETE)]
    assert codes(reply) == []


def test_a_first_piece_that_is_json_is_its_source_and_told() -> None:
    name: dict[str, object] = {"name": "f", "text": {"a": 1}}
    for calls in (name, [name]):
        reply = reply_to({"type": "start", "i": 0, "call": calls}, {"type": "end", "i": 0})
        assert [one.arguments for one in reply.tool_calls] == ['{"a": 1}']
        assert codes(reply) == ["T006"]


def test_a_second_start_is_the_same_call_unless_the_id_differs() -> None:
    same = reply_to(start(0, id="c", name="f"), start(0, name="f"), delta(0, "{}"), end(0))
    assert told(same) == [("f", "{}", CallStatus.COMPLETE)]
    assert said(same, "S006") == ["the call starts a second time"]
    nameless = reply_to(start(0, name="f"), start(0, id="c"), delta(0, "{}"), end(0))
    assert [call.id for call in nameless.tool_calls] == ["c"]
    other = reply_to(start(0, id="c"), end(0), start(0, id="d"), delta(0, "{}"), end(0))
    assert [call.repairs for call in other.tool_calls] == [(), ("T012",)]


def test_calls_of_a_list_are_keyed_by_their_place_from_the_index_on() -> None:
    reply = reply_to(
        {"type": "start", "i": 2, "call": [{"name": "f"}, {"name": "g"}]},
        {"type": "delta", "i": 2, "call": [{"text": "{}"}, 5, {"text": "[]"}]},
        delta(3, {"a": 1}),
        end(2),
        end(3),
    )
    assert [(call.wire_index, call.name, call.arguments) for call in reply.tool_calls] == [
        (2, "f", "{}"),
        (3, "g", '{"a": 1}'),
        (4, None, "[]"),
    ]
    listing = '{"type":"delta","i":0,"call":[{"text":"x"},{"text":{ "a":1}}]}'
    assert reply_to(start(1, name="f"), listing).tool_calls[0].arguments == '{ "a":1}'


def test_a_call_without_its_key_is_the_last_one() -> None:
    reply = reply_to(start(None, name="f"), delta(None, "{}"), end(None))
    assert told(reply) == [("f", "{}", CallStatus.COMPLETE)]
    assert codes(reply) == ["T011"]
    assert codes(reply_to(start(0, name="f"), delta(None, "{}"), end(0))) == ["T011"]


def test_a_piece_without_a_fragment_says_nothing() -> None:
    reply = reply_to({"type": "delta", "i": 0, "call": {"more": 1}})
    assert (reply.tool_calls, reply.observations) == ((), ())


def test_a_piece_that_is_json_is_its_source_and_told_where_pieces_are_encoded() -> None:
    frames = (start(0, name="f"), delta(0, {"a": 1.0}), delta(0, None), end(0))
    plain = reply_to(*frames)
    assert (told(plain)[0][1], codes(plain)) == ('{"a": 1.0}', [])
    step = CallDelta(key=_INDEX, entry=path("call"), fragment=path("text"), encoded=True)
    encoded = reply_to(*frames, delta=(step,))
    assert (told(encoded), codes(encoded)) == (told(plain), ["T006"])


def test_what_belongs_to_no_call_is_odd_unless_it_may_be_something_else() -> None:
    frames = ({"type": "start"}, {"type": "delta"}, {"type": "end", "i": 3})
    assert codes(reply_to(*frames)) == ["S006"] * 3
    lenient = reply_to(
        *frames,
        start=(CallStart(key=_INDEX, entry=path("call"), id=_ID, name=_NAME, optional=True),),
        delta=(CallDelta(key=_INDEX, entry=path("call"), fragment=path("text"), optional=True),),
        end=(CallEnd(key=_INDEX, optional=True),),
    )
    assert codes(lenient) == []


def test_pieces_may_name_a_call_that_nothing_starts() -> None:
    step = CallDelta(key=CallsById(path("id")), fragment=path("text"), name=_NAME)
    reply = reply_to(
        {"type": "piece", "id": "c", "name": "f"},
        {"type": "piece", "id": "c", "text": "{}"},
        piece=(step,),
    )
    assert [(call.id, call.name, call.arguments) for call in reply.tool_calls] == [("c", "f", "{}")]
    assert said(reply, "S006") == ["nothing says that the call of 'f' is whole"]


def test_the_provider_may_say_that_a_call_is_its_own() -> None:
    step = CallStart(key=_INDEX, id=_ID, name=_NAME, server=ValueCondition(path("own"), (True,)))
    reply = reply_to(
        {"type": "begin", "i": 0, "name": "f", "own": True},
        end(0),
        {"type": "begin", "i": 1, "name": "g", "own": False},
        end(1),
        begin=(step,),
    )
    assert [call.name for call in reply.server_calls] == ["f"]
    assert [call.name for call in reply.tool_calls] == ["g"]


def test_a_whole_call_settles_what_the_pieces_said() -> None:
    begun = (start(0, name="f"), delta(0, '{"a":1'))
    reply = reply_to(*begun, {"type": "all", "i": 0, "id": "c", "in": {"a": 2}}, all=(_WHOLE,))
    assert told(reply) == [("f", '{"a": 2}', CallStatus.COMPLETE)]
    assert codes(reply) == ["T015"]
    again = {"type": "all", "i": 0, "in": {"a": 3}}
    last = reply_to(*begun, {"type": "all", "i": 0, "in": {"a": 2}}, again, all=(_WHOLE,))
    assert told(last) == [("f", '{"a": 3}', CallStatus.COMPLETE)]
    silent = reply_to(*begun, {"type": "all", "i": 0}, all=(_WHOLE,))
    assert told(silent) == [("f", '{"a":1', CallStatus.TRUNCATED)]


def test_a_weak_whole_call_leaves_the_pieces_alone() -> None:
    weak = CallWhole(key=_INDEX, id=(), name=(_NAME,), arguments=(path("in"),), weak=True)
    frame = {"type": "all", "i": 0, "name": "f", "in": {"a": 2}}
    begun = (start(0, name="f"), delta(0, '{"a":1}'))
    assert told(reply_to(*begun, frame, all=(weak,)))[0][1] == '{"a":1}'
    assert told(reply_to(frame, all=(weak,)))[0][1] == '{"a": 2}'


def test_strings_are_text_values_or_free() -> None:
    found = {}
    for strings in Strings:
        step = CallWhole(id=(), name=(_NAME,), arguments=(path("in"),), strings=strings)
        frame = {"type": "all", "name": "f", "in": "{}"}
        (call,) = reply_to(frame, all=(step,)).tool_calls
        (other,) = reply_to({**frame, "in": "x"}, all=(step,)).tool_calls
        found[strings] = (call.arguments, other.arguments, other.kind)
    assert found == {
        Strings.TEXT: ("{}", "x", CallKind.FUNCTION),
        Strings.VALUE: ('"{}"', '"x"', CallKind.FUNCTION),
        Strings.FREE: ('"{}"', "x", CallKind.CUSTOM),
    }


def test_whole_calls_of_a_list_may_lie_deeper_and_be_keyed_by_place() -> None:
    step = CallWhole(
        entry=path("list"),
        each=path("call"),
        ordered=True,
        id=(),
        name=(_NAME,),
        arguments=(path("in"),),
        server=ValueCondition(path("own"), (True,)),
    )
    first = {"call": {"name": "f", "in": {}}}
    second = {"call": {"name": "g", "in": {"b": 1}}}
    reply = reply_to(
        {"type": "all", "list": [first, {"text": "x"}, second]},
        {"type": "all", "list": [{"call": {"name": "f", "in": {}, "own": True}}]},
        {"type": "all", "list": 7},
        all=(step,),
    )
    assert [(call.name, call.arguments) for call in reply.tool_calls] == [("g", '{"b": 1}')]
    assert [call.name for call in reply.server_calls] == ["f"]
    assert codes(reply) == []
