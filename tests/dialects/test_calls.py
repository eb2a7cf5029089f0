from deltatape.dialects._calls import CallDraft
from deltatape.model.reply import CallKind, CallStatus
from deltatape.model.stream import Event, Place, Span


def event(number: int) -> Event:
    place = Place(span=Span(number, number + 1), t_ns=number, line=number)
    return Event(number=number, type="message", data="", id="", retry=None, place=place)


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


def test_a_call_is_built_with_its_first_id_and_the_codes_that_touched_it() -> None:
    made = draft("{}")
    made.ids = {"a": None, "b": None}
    made.note("", "T010", "changed", "", event(1))
    made.note("", "S006", "odd", "", event(1))
    call = made.build(2, "{}", CallStatus.COMPLETE)
    assert (call.index, call.wire_index, call.id, call.ids) == (2, 3, "a", ("a", "b"))
    assert (call.name, call.repairs, call.start_event) == (None, ("T010",), 0)
    assert (call.arguments, call.arguments_raw) == ("{}", "{}")
    assert draft().build(0, "", CallStatus.ORPHAN).id is None


def test_arguments_repeat_others_if_they_are_equal_as_json() -> None:
    assert draft('{"a":1, "b":2}').repeats(draft('{"b":2,', '"a":1}'))
    assert draft('{"a').repeats(draft(' {"a '))
    original = draft('{"a":1}')
    assert draft('{"a": 1}').repeats(original)
    assert draft('{"a" :1}').repeats(original)
    assert not draft('{"a":1}').repeats(draft('{"a":2}'))
    assert not draft('{"a').repeats(draft('{"b'))
    assert not draft('{"a":1}').repeats(draft('{"a":1'))
