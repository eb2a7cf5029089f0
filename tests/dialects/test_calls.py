from deltatape.dialects._call_end import CallEndCause
from deltatape.dialects._calls import CallDraft
from deltatape.model.reply import CallKind, CallStatus, ToolCall
from deltatape.model.request_summary import NOTHING_ASKED
from deltatape.model.stream import Event
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


def test_the_first_value_is_told_without_what_leaked_in_front_or_follows() -> None:
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
