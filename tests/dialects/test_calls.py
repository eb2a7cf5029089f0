import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltatape.dialects._calls import (
    CallDraft,
    CallEndCause,
    ObservationLog,
    judge,
    judge_call,
    repair_arguments,
)
from deltatape.model.reply import CallKind, CallStatus, ToolCall
from deltatape.model.request_summary import NOTHING_ASKED, RequestSummary, ToolSpec
from deltatape.model.stream import Event
from deltatape.wire.json_scan import ScanState, scan
from helpers.events import event_of


def event(number: int) -> Event:
    return event_of(number=number)


def draft(*pieces: str, kind: CallKind = CallKind.FUNCTION) -> CallDraft:
    made = CallDraft(3, kind, event(0))
    for number, piece in enumerate(pieces, 1):
        made.add(piece, event(number))
    return made


def test_fragments_keep_the_event_that_carried_them_and_empty_ones_are_none() -> None:
    made = draft('{"a":', "", "1}")
    assert [(one.text, one.event) for one in made.fragments] == [('{"a":', 1), ("1}", 3)]
    assert (made.raw, made.latest.number) == ('{"a":1}', 3)


def test_a_draft_tells_whether_it_holds_a_whole_object() -> None:
    def told(*pieces: str) -> tuple[bool, bool, bool]:
        made = draft(*pieces)
        return made.holds_object, made.holds_empty_object, made.begun

    assert told() == (False, False, False)
    assert told('{"a"') == (False, False, True)
    assert told("x") == (False, False, True)
    assert told("{}") == (False, True, False)
    assert told('{"a":1}', " ") == (True, False, False)
    assert told('{"a":1}', "}") == (True, False, False)
    assert told("[1]") == (False, False, False)
    assert told("{}", '{"a":') == (False, False, True)
    assert told("{}", '{"a":1}') == (True, False, False)


def test_the_first_value_is_reported_without_what_leaked_in_front_or_follows() -> None:
    assert draft("{}", ' {"a":', "1} ", "x").value == '{"a":1}'
    made = draft('{"a":1}', '{"a":1}')
    assert (made.value, made.value) == ('{"a":1}', '{"a":1}')


def test_the_input_of_a_custom_tool_is_never_taken_for_json() -> None:
    assert not draft('{"a":1}', kind=CallKind.CUSTOM).holds_object


def test_a_surrogate_pair_cut_between_fragments_is_one_character() -> None:
    assert draft('{"a":"\ud83d', '\ude00"}').raw == '{"a":"\U0001f600"}'


def judged(made: CallDraft, *, ids: bool = False) -> ToolCall:
    return made.judged(2, CallEndCause.NORMAL, NOTHING_ASKED, ids=ids)


def test_a_call_is_built_with_its_first_id_and_the_codes_that_touched_it() -> None:
    made = draft("{}")
    made.identify("a", "get")
    made.identify("b", "put")
    made.identify(None, None)
    made.note("", "T010", "changed", "", event(1))
    made.note("", "S006", "odd", "", event(1))
    call = judged(made)
    assert (call.index, call.wire_index, call.id, call.ids) == (2, 3, "a", ("a", "b"))
    assert (call.name, call.repairs, call.start_event) == ("get", ("T010",), 0)
    assert (call.arguments, call.arguments_raw, call.status) == ("{}", "{}", CallStatus.COMPLETE)


def test_pieces_without_name_and_id_belong_to_nothing() -> None:
    call = judged(draft("{}"))
    assert (call.id, call.name, call.status) == (None, None, CallStatus.ORPHAN)
    assert judged(draft("{}", kind=CallKind.LEGACY)).status is CallStatus.NO_NAME


def test_a_call_without_id_is_noted_where_the_dialect_promises_one() -> None:
    for promised in (True, False):
        made = draft("{}")
        made.identify(None, "get")
        judged(made, ids=promised)
        assert made.notes.codes() == (("T005",) if promised else ())


def test_arguments_are_mended_unless_a_better_source_settles_them() -> None:
    made = draft("{}", '{"a":1}')
    made.identify("a", "get")
    assert (judged(made).arguments, judged(made).repairs) == ('{"a":1}', ("T017",))
    made = draft("{}", '{"a":1}')
    made.identify("a", "get")
    made.settle('{"a":2}')
    call = judged(made)
    assert (call.arguments, call.arguments_raw, call.repairs) == ('{"a":2}', '{}{"a":1}', ())


def test_arguments_repeat_others_if_they_are_equal_as_json() -> None:
    assert draft('{"a":1, "b":2}').repeats(draft('{"b":2,', '"a":1}'))
    assert draft('{"a').repeats(draft(' {"a '))
    original = draft('{"a":1}')
    assert draft('{"a": 1}').repeats(original)
    assert draft('{"a" :1}').repeats(original)
    assert not draft('{"a":1}').repeats(draft('{"a":2}'))
    assert not draft('{"a').repeats(draft('{"b'))
    assert not draft('{"a":1}').repeats(draft('{"a":1'))


def asked(**tools: dict[str, object] | None) -> RequestSummary:
    specs = tuple(ToolSpec(name=name, parameters=schema) for name, schema in tools.items())
    return RequestSummary(
        known=True, model=None, stream=True, tools=specs, tool_choice=None, history=()
    )


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ('{"a":1}', CallStatus.COMPLETE),
        ("{}", CallStatus.COMPLETE),
        (' {"a":{"a":1}}\n', CallStatus.COMPLETE),
        ('{"a":', CallStatus.TRUNCATED),
        ('"{', CallStatus.TRUNCATED),
        ('code": 1}', CallStatus.MALFORMED),
        ('json\n{"a":1}', CallStatus.MALFORMED),
        ('{"a": NaN}', CallStatus.MALFORMED),
        ('{"a":"\x01"}', CallStatus.MALFORMED),
        ('{"a":1}}', CallStatus.EXTRA_DATA),
        ('{"a":1}</tool>', CallStatus.EXTRA_DATA),
        ('"{\\"a\\": 1}"', CallStatus.DOUBLE_ENCODED),
        ('"plain"', CallStatus.NOT_OBJECT),
        ('"[1]"', CallStatus.NOT_OBJECT),
        ("[1]", CallStatus.NOT_OBJECT),
        ("null", CallStatus.NOT_OBJECT),
        ("10", CallStatus.NOT_OBJECT),
    ],
)
@pytest.mark.parametrize("ending", [CallEndCause.NORMAL, CallEndCause.CUT])
def test_arguments_are_judged_by_themselves_when_there_are_any(
    text: str, status: CallStatus, ending: CallEndCause
) -> None:
    assert judge(text, "get", ending, NOTHING_ASKED) is status


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ('{"a":1}', CallStatus.TRUNCATED),
        ("10", CallStatus.TRUNCATED),
        ('{"a":', CallStatus.TRUNCATED),
        ("", CallStatus.TRUNCATED),
        ('{"a":1}}', CallStatus.EXTRA_DATA),
        ('code": 1}', CallStatus.MALFORMED),
    ],
)
def test_a_call_whose_end_signal_never_came_is_not_whole_even_as_json(
    text: str, status: CallStatus
) -> None:
    assert judge(text, "get", CallEndCause.OPEN, NOTHING_ASKED) is status


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (NOTHING_ASKED, CallStatus.EMPTY_SUSPECT),
        (asked(put={}), CallStatus.EMPTY_SUSPECT),
        (asked(get=None), CallStatus.EMPTY_OK),
        (asked(get={"type": "object"}), CallStatus.EMPTY_OK),
        (asked(get={"required": []}), CallStatus.EMPTY_OK),
        (asked(get={"required": ["a"]}), CallStatus.EMPTY_SUSPECT),
    ],
)
def test_empty_arguments_are_judged_by_the_tools_schema(
    request_: RequestSummary, status: CallStatus
) -> None:
    assert judge("", "get", CallEndCause.NORMAL, request_) is status
    assert judge(" ", "get", CallEndCause.NORMAL, request_) is status
    assert judge("", "get", CallEndCause.CUT, request_) is CallStatus.TRUNCATED


def test_a_call_without_name_cannot_be_run() -> None:
    status = judge_call(CallKind.FUNCTION, "{}", "", CallEndCause.NORMAL, NOTHING_ASKED)
    assert status is CallStatus.NO_NAME


def test_a_custom_tools_input_is_whole_if_its_end_was_seen() -> None:
    for text in ("", "free text", '{"a":'):
        ended = judge_call(CallKind.CUSTOM, text, "run", CallEndCause.NORMAL, NOTHING_ASKED)
        cut = judge_call(CallKind.CUSTOM, text, "run", CallEndCause.CUT, NOTHING_ASKED)
        assert (ended, cut) == (CallStatus.COMPLETE, CallStatus.TRUNCATED)


PLAIN = [
    [],
    ['{"a":1}'],
    ['{"a":', "1}"],
    ["{}"],
    ['{"a":1}', " "],
    ['"{}"'],
    ["{", "}"],
    ['{"cmd":"ll ', 'll -l"}'],
    ['["a","b",', '"a","b"]'],
]


@pytest.mark.parametrize("pieces", PLAIN)
def test_pieces_that_make_one_value_are_never_mended(pieces: list[str]) -> None:
    assert repair_arguments(pieces)[:2] == ("".join(pieces), ())


@pytest.mark.parametrize(
    ("pieces", "text", "codes"),
    [
        (["{}", '{"a":', "1}"], '{"a":1}', ["T017"]),
        (["{}", "{}", '{"a":1}'], '{"a":1}', ["T017"]),
        (["{ }", " ", '{"a":1}'], '{"a":1}', ["T017"]),
        (["{}", "{}"], "{}", ["T017"]),
        (["{}", '{"a":'], '{"a":', ["T017"]),
        (['{"a":1}', '{"a":1}'], '{"a":1}', ["T014"]),
        (['{"a":', "1}", '{"a": 1}', '{"a":1}'], '{"a":1}', ["T014"]),
        (['{"a":1}{"a":1}'], '{"a":1}', ["T014"]),
        (['"{}"', '"{}"'], '"{}"', ["T014"]),
        (['{"a":', '{"a":1}'], '{"a":1}', ["T014"]),
        (['{"', '{"a', '{"a":1}'], '{"a":1}', ["T014"]),
        (["{", '{"a', '{"a', '{"a":1}'], '{"a":1}', ["T014"]),
        (['{"a"', ":1", '{"a":1', "}"], '{"a":1}', ["T014"]),
        (["{}", '{"a":1}', '{"a":1}'], '{"a":1}', ["T017", "T014"]),
        (["{}", '{"a":', '{"a":1}'], '{"a":1}', ["T017", "T014"]),
    ],
)
def test_what_gateways_add_is_taken_away(pieces: list[str], text: str, codes: list[str]) -> None:
    found = repair_arguments(pieces)
    assert (found.text, [code for code, _ in found.repairs]) == (
        text,
        codes,
    )


@pytest.mark.parametrize(
    "pieces",
    [
        ['{"a":'],
        ['{"a":1}', '{"a":2}'],
        ['{"a":1}', "}"],
        ["{", '{"a":1}'],
        ['{"', '{"a":1}'],
        ["{}", "}"],
        ["{}", "x"],
        [" ", '{"a":'],
        ['{"a":1', '{"a":1'],
        ['{"a":1', '{"a":1', '{"a":1,'],
        ["1", "x"],
    ],
)
def test_anything_else_stays_as_the_wire_said_it(pieces: list[str]) -> None:
    assert repair_arguments(pieces)[:2] == ("".join(pieces), ())


@given(st.lists(st.sampled_from(["{}", '{"a":', "1}", '{"a":1}', " ", "{", "}"]), max_size=6))
def test_mending_yields_one_value_or_what_is_left_of_the_wire(pieces: list[str]) -> None:
    found = repair_arguments(pieces)
    whole = scan(found.text).verdict is ScanState.COMPLETE
    repaired = [code for code, _ in found.repairs]
    assert whole or "T014" not in repaired
    assert repaired or found.text == "".join(pieces)
    assert found.text in "".join(pieces) or "T014" in repaired


def test_a_whole_object_is_reported_as_such() -> None:
    assert repair_arguments(['{"a":', "1}"]).is_object
    assert not repair_arguments(["[1]"]).is_object
    assert not repair_arguments(['{"a":']).is_object


def test_a_kind_is_noted_once_per_code_and_anything_else_each_time() -> None:
    notes = ObservationLog()
    notes.once("again", "T009", "first", "e", event(0))
    notes.once("again", "T009", "second", "e", event(1))
    notes.once("again", "T010", "third", "e", event(2))
    notes.add("T010", "fourth", {"a": 1}, event(3))
    notes.add("T010", "fourth", {"a": 1}, event(3))
    seen = notes.observations(2, 5)
    assert [(one.code, one.detail) for one in seen] == [
        ("T009", "first"),
        ("T010", "third"),
        ("T010", "fourth"),
        ("T010", "fourth"),
    ]
    assert notes.codes() == ("T009", "T010")
    assert (seen[2].evidence, seen[2].event, seen[2].place) == ('{"a": 1}', 3, event(3).place)
    assert (seen[0].choice, seen[0].call) == (2, 5)
