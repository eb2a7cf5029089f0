from collections.abc import Sequence

from deltatape.dialects._json import WholeString
from deltatape.dialects._reply import DialectPolicy
from deltatape.dialects._table import (
    CallDelta,
    CallEnd,
    CallsById,
    CallsByIndex,
    CallStart,
    CallWhole,
    DialectTable,
    ErrorStep,
    ExpectObject,
    FinishStep,
    NonTextStep,
    Result,
    Strings,
    TableDraft,
    TableReducer,
    TableStep,
    TerminalStep,
    TextStep,
    UsageStep,
    ValueCondition,
    WholeTextStep,
    at,
    first_text,
    listed,
    path,
    source_at,
    text_at,
)
from deltatape.model.reply import CallKind, CallStatus, Channel, Reply
from deltatape.model.request_summary import NOTHING_ASKED
from helpers.events import codes, details, events

_TEXT = (path("text"),)
_STEPS = (TextStep(channel=Channel.TEXT, text=_TEXT),)


def table(**more: object) -> DialectTable:
    """A dialect of two types of events."""
    plain = DialectTable(
        name="toy",
        terminator="end",
        policy=DialectPolicy(),
        type_keys=("type", "kind"),
        events={"text": _STEPS, "end": (FinishStep(reason=path("why")), TerminalStep())},
    )
    names = {name: getattr(plain, name) for name in DialectTable.__dataclass_fields__}
    return DialectTable(**{**names, **more})


def reduced(made: DialectTable, *frames: object, types: tuple[str, ...] = ()) -> Reply:
    reducer = TableReducer(made, NOTHING_ASKED)
    for event in events(*frames, types=types):
        reducer.feed(event)
    return reducer.finish(cut=False)


def test_a_path_leads_into_objects() -> None:
    frame = {"a": {"b": "c"}, "n": 1}
    assert path("a.b") == ("a", "b")
    assert at(frame, path("")) is frame
    assert at(frame, path("a.b")) == "c"
    assert at(frame, path("a.x.y")) is None
    assert text_at(frame, path("n")) is None
    assert first_text(frame, (path("n"), path("x"), path("a.b"))) == "c"
    assert first_text(frame, ()) is None
    assert source_at(WholeString('{"a": {"b" : [1 ]}}'), path("a.b")).text == "[1 ]"


def test_an_object_or_the_objects_of_a_list_are_listed_with_their_place() -> None:
    assert list(listed({"a": 1})) == [(0, {"a": 1})]
    assert list(listed([1, {"a": 1}])) == [(1, {"a": 1})]
    assert list(listed(7)) == []


def test_a_key_is_an_index_or_an_id() -> None:
    assert CallsByIndex(path("a.i")).of({"a": {"i": "2"}}) == 2
    assert CallsByIndex(path("a.i")).of({"a": 3}) is None
    assert CallsByIndex(path("i")).of({"i": "x"}) is None
    assert CallsById(path("id")).of({"id": "x"}) == "x"
    assert CallsById(path("id")).of({"id": ""}) is None


def test_a_draft_knows_the_call_of_a_key_and_the_last_one() -> None:
    draft = TableDraft(table(), NOTHING_ASKED)
    (event,) = events({"calls": [{}, {"a": 1}], "more": [[]]})
    assert draft.find(None) is None
    first = draft.open(1, CallKind.FUNCTION, event)
    second = draft.open("x", CallKind.FUNCTION, event)
    third = draft.open(None, CallKind.FUNCTION, event)
    assert (draft.find(1), draft.find("x"), draft.find(None)) == (first, second, third)
    assert (first.wire_index, second.wire_index) == (1, None)
    assert draft.find(2) is None
    assert draft.element(path("calls"), 1, event).text == '{"a": 1}'
    assert draft.element(path("calls"), 0, event).text == "{}"
    assert draft.element(path("more"), 0, event).text == "[]"


def test_the_first_terminal_event_counts() -> None:
    draft = TableDraft(table(), NOTHING_ASKED)
    first, second = events({}, {})
    draft.note_late_content({}, first)
    draft.end(first, normal=False)
    draft.end(second, normal=True)
    draft.note_late_content({}, second)
    assert (draft.reply.terminal, draft.normal) == (first, False)
    assert [seen.code for seen in draft.reply.notes.observations(0, None)] == ["S006"]


def test_the_first_key_that_holds_a_text_says_the_type() -> None:
    reply = reduced(
        table(),
        {"type": "text", "text": "a"},
        {"type": 1, "kind": "text", "text": "b"},
        {"type": "new", "kind": "text", "text": "c"},
        {"kind": "end", "why": "stop"},
    )
    assert (reply.dialect, reply.text, reply.finish_reason_raw) == ("toy", "ab", "stop")
    assert (reply.terminated, reply.observations) == (True, ())


def test_without_keys_the_framing_says_the_type() -> None:
    made = table(type_keys=())
    reply = reduced(made, {"text": "a"}, {"type": "text", "text": "b"}, types=("text", "other"))
    assert reply.text == "a"


def test_an_object_without_a_type_is_a_document_an_error_or_odd() -> None:
    assert reduced(table(document=_STEPS), {"text": "a"}).text == "a"
    assert reduced(table(), {"error": {"message": "down"}}).error == "down"
    assert reduced(table(), {"type": "new", "error": "down"}).error == "down"
    assert details(reduced(table(), {"text": "a"}), "S006") == [
        "an object that does not say its type"
    ]
    assert codes(reduced(table(), "no JSON")) == ["W004"]


def test_the_sentinel_ends_where_the_table_says_so() -> None:
    assert not reduced(table(), "[DONE]").terminated
    assert reduced(table(sentinel=True), " [DONE]").terminated
    assert reduced(table(sentinel=True), "[DONE]").observations == ()


def test_a_call_needs_its_end_only_where_the_table_promises_one() -> None:
    step = CallDelta(key=CallsById(path("id")), fragment=path("text"), name=path("name"))
    made = {"text": (step,), "end": (TerminalStep(),)}
    frames = {"type": "text", "id": "x", "name": "f", "text": "{}"}, {"type": "end"}
    assert codes(reduced(table(events=made), *frames)) == []
    ending = table(events=made, policy=DialectPolicy(explicit_end=True))
    assert codes(reduced(ending, *frames)) == ["S006"]
    assert codes(reduced(ending, frames[0])) == []


def test_an_abnormal_end_says_why_a_call_has_no_end() -> None:
    step = CallDelta(key=CallsById(path("id")), fragment=path("text"), name=path("name"))
    made = {"text": (step,), "end": (FinishStep(reason=path("why")), TerminalStep())}
    policy = DialectPolicy(explicit_end=True, abnormal=frozenset({"limit"}))
    cut = table(events=made, policy=policy)
    call = {"type": "text", "id": "x", "name": "f", "text": "{}"}
    assert codes(reduced(cut, call, {"type": "end", "why": "limit"})) == []
    assert codes(reduced(cut, call, {"type": "end", "why": "done"})) == ["S006"]


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
    assert details(same, "S006") == ["the call starts a second time"]
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
    assert details(reply, "S006") == ["nothing says that the call of 'f' is whole"]


def test_a_piece_that_changes_the_name_of_its_call_is_reported() -> None:
    step = CallDelta(key=CallsById(path("id")), fragment=path("text"), name=_NAME)
    pieces = [{"type": "piece", "id": "c", "name": name, "text": "1"} for name in ("f", "f", "g")]
    assert details(reply_to(*pieces, piece=(step,)), "T015") == ["the name 'f' changes to 'g'"]


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


Json = dict[str, object]
_SHOWN: list[Json] = [{"a": {}}, {"b": {"c": 1}}, {"b": 1, "a": None}]


def reply_by(step: TableStep, *frames: Json) -> Reply:
    table = DialectTable(
        name="toy",
        terminator="t",
        policy=DialectPolicy(),
        type_keys=("type",),
        events={"x": (step,), "end": (TerminalStep(),)},
    )
    reducer = TableReducer(table, NOTHING_ASKED)
    for event in events(*({"type": "x", **frame} for frame in frames)):
        reducer.feed(event)
    return reducer.finish(cut=False)


def test_what_has_to_be_an_object_is_told_otherwise() -> None:
    step = ExpectObject(entry=path("a.b"), what="the b")
    assert codes(reply_by(step, {"a": {"b": {}}})) == []
    wrongs: list[Json] = [{}, {"a": 1}, {"a": {"b": []}}, {"a": {"b": None}}]
    for wrong in wrongs:
        assert details(reply_by(step, wrong), "S006") == ["the b is not an object"]


def test_each_element_has_to_be_an_object_if_there_is_any() -> None:
    step = ExpectObject(entry=path("a"), what="an element", each=True)
    fines: list[Json] = [{}, {"a": 1}, {"a": []}, {"a": [{}]}]
    for fine in fines:
        assert codes(reply_by(step, fine)) == []
    assert details(reply_by(step, {"a": [{}, 1, None]}), "S006") == ["an element is not an object"]


def test_the_first_string_is_said_in_its_channel() -> None:
    step = TextStep(channel=Channel.REASONING, text=(path("a"), path("b.c")))
    reply = reply_by(step, {"a": "1"}, {"a": 2, "b": {"c": "2"}}, {"b": 3}, {"a": "", "b": "x"})
    assert (reply.reasoning, reply.text) == ("12", "")


def test_text_after_the_terminal_event_is_kept_and_told() -> None:
    step = TextStep(channel=Channel.TEXT, text=(path("a"),))
    reply = reply_by(step, {"a": "1"}, {"type": "end"}, {"a": "2"}, {"a": "3"})
    assert (reply.text, codes(reply)) == ("123", ["S006"])


def test_texts_of_a_list_are_said_in_order() -> None:
    step = TextStep(channel=Channel.TEXT, each=path("list"), text=(path("t"),))
    assert reply_by(step, {"list": [{"t": "1"}, {"u": 0}, 7, {"t": "2"}]}, {"list": 1}).text == "12"


def test_a_whole_text_counts_only_where_nothing_was_said() -> None:
    step = WholeTextStep(text=(path("t"),))
    assert reply_by(step, {"t": "a"}, {"t": "b"}).text == "a"
    assert reply_by(step, {"t": 1}).text == ""


def test_a_whole_text_is_kept_even_if_it_is_empty() -> None:
    step = WholeTextStep(text=(path("t"), path("u")))
    assert reply_by(step, {"t": "", "u": "a"}, {"t": "b"}).repeated_text == "a"
    assert reply_by(step, {"t": ""}, {"t": "b"}).repeated_text == ""
    assert reply_by(step, {"t": 1}).repeated_text is None


def test_results_are_taken_unless_they_are_preliminary() -> None:
    step = Result(id=(path("i"),), name=(path("n"),), preliminary=path("p"))
    reply = reply_by(step, {"i": "c", "n": "f"}, {"p": True}, {"p": False}, {"n": 1})
    assert [(one.call_id, one.name, one.event) for one in reply.results] == [
        ("c", "f", 0),
        (None, None, 2),
        (None, None, 3),
    ]


def test_a_reason_may_be_an_error() -> None:
    step = FinishStep(reason=path("why"), errors=frozenset({"bad"}))
    assert reply_by(step, {"why": "good"}).finish_reason_raw == "good"
    failed = reply_by(step, {"why": "bad"}, {"why": "bad"})
    assert (failed.error, codes(failed)) == ("why is 'bad'", ["S005"])
    assert details(reply_by(step, {"why": 1}, {}), "S006") == ["the finish reason is not a string"]


def test_the_end_may_need_a_proof() -> None:
    assert reply_by(TerminalStep(proof=path("why")), {"why": "x"}).terminated
    assert not reply_by(TerminalStep(proof=path("why")), {}).terminated
    assert reply_by(TerminalStep(normal=False), {}).terminated


def test_an_error_has_a_message_or_is_shown_whole() -> None:
    message = (path("a"), path("b.c"))
    assert reply_by(ErrorStep(message=message), {"b": {"c": "down"}}).error == "down"
    assert reply_by(ErrorStep(message=message), {}).error == '{"type": "x"}'
    assert reply_by(ErrorStep(message=message, optional=True), {"a": 1}).error is None


def test_usage_and_model_are_reported() -> None:
    step = UsageStep(usage=path("u"), model=path("m"))
    reply = reply_by(step, {"u": {"n": 1}, "m": "a"}, {"u": {"n": 2}, "m": "b"}, {"u": 3})
    assert (reply.usage, reply.model) == ({"n": 2}, "a")
    assert reply_by(UsageStep(model=path("m")), {"m": ""}).model is None
    assert reply_by(UsageStep(usage=path("u")), {"m": "a"}).model is None


def test_anything_that_stands_there_is_shown() -> None:
    step = NonTextStep(what=(path("a"), path("b.c")))
    assert [reply_by(step, frame).choices[0].media for frame in _SHOWN] == [True, True, False]
    each = NonTextStep(each=path("list"), what=(path("a"),))
    assert reply_by(each, {"list": [1, {}, {"a": 1}]}).choices[0].media
    assert not reply_by(each, {"list": [{}], "a": 1}).choices[0].media
