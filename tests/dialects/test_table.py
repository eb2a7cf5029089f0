from deltatape.dialects._choice import DialectPolicy
from deltatape.dialects._source_text import WholeString
from deltatape.dialects._table import (
    CallsById,
    CallsByIndex,
    DialectTable,
    TableDraft,
    TableReducer,
    at,
    first_text,
    listed,
    path,
    source_at,
    text_at,
)
from deltatape.dialects._table_calls import CallDelta
from deltatape.dialects._table_steps import FinishStep, TerminalStep, TextStep
from deltatape.model.reply import CallKind, Channel, Reply
from deltatape.model.request_summary import NOTHING_ASKED
from helpers.fed import codes, events, said

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
    draft.watch({}, first)
    draft.end(first, normal=False)
    draft.end(second, normal=True)
    draft.watch({}, second)
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
    assert said(reduced(table(), {"text": "a"}), "S006") == ["an object that does not say its type"]
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
