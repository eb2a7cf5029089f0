import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

from deltatape.conversation import check_conversation
from deltatape.model.digest import DeliveredCall, Digest
from deltatape.model.finding import Blame, Confidence, Finding, Severity
from deltatape.model.reply import CallKind, CallStatus
from deltatape.model.request_summary import RepeatedCall
from deltatape.rules.edits import Following, breaks_schema, explain
from deltatape.rules.repeated import MAX_DIFFERENCES, differences
from helpers.chat import FINISH, calls, choice, entry
from helpers.exchanges import CALL_REPLY, USER, asks, assistant, call, digests, result, user

Json = dict[str, object]


def tool(**properties: object) -> Json:
    """`get` with these parameters, of which `city` is required."""
    schema = {"type": "object", "properties": properties, "required": ["city"]}
    return {"type": "function", "function": {"name": "get", "parameters": schema}}


def graded(
    delivered: str, repeated: str, *after: Json, pieces: int = 2, tools: Sequence[Json] = ()
) -> Finding:
    """What is found of a call whose arguments come in so many pieces."""
    size = -(-len(delivered) // pieces)
    cut = [delivered[at : at + size] for at in range(0, len(delivered), size)]
    chunks = [
        calls(entry(0, "c1", name="get", arguments="")),
        *(calls(entry(0, arguments=piece)) for piece in cut),
        FINISH,
    ]
    said = assistant(("c1", "get", repeated))
    tape = digests(
        (asks(USER, tools=list(tools)), chunks), (asks(USER, said, result("c1"), *after), [])
    )
    (finding,) = (each for each in check_conversation(tape) if each.code == "C002")
    return finding


def grade(finding: Finding) -> tuple[Severity, Blame | None, Confidence]:
    return finding.severity, finding.blame, finding.confidence


PROVEN = (Severity.ERROR, Blame.APP, Confidence.PROVEN)
LIKELY = (Severity.ERROR, Blame.APP, Confidence.LIKELY)
POSSIBLE = (Severity.WARNING, Blame.APP, Confidence.POSSIBLE)
FACT = (Severity.INFO, None, Confidence.PROVEN)
SHORT, LONG, HUGE = (f'{{"city":"{"Gent " * times}"}}' for times in (2, 60, 600))
MORE = user("And tomorrow?")


@pytest.mark.parametrize(
    ("delivered", "repeated", "expected", "says"),
    [
        (SHORT, SHORT[:11], PROVEN, "only fragment 1 of 2 is there"),
        (SHORT, SHORT + SHORT, PROVEN, "the arguments are there twice"),
        (SHORT, SHORT[:-3], PROVEN, "only the first 18 of 21 characters are there"),
        (LONG, LONG[:100], LIKELY, "only the first 100 of 311 characters are there"),
        (HUGE, HUGE[:100], POSSIBLE, "only the first 100 of 3011 characters are there"),
        (SHORT, "", PROVEN, "the repeated arguments are empty"),
        (SHORT, "{}", LIKELY, "the repeated arguments are an empty object"),
        (LONG, "", POSSIBLE, "the repeated arguments are empty"),
        (LONG, "{}", POSSIBLE, "the repeated arguments are an empty object"),
        ('{"city":null}', "{}", FACT, "an empty value was left out ($.city)"),
        (SHORT, '{"city":"gent gent"}', FACT, "a text was normalised ($.city)"),
        (SHORT, '{"city":"Rome"}', POSSIBLE, "no fragment of the reply explains the"),
    ],
)
def test_a_change_is_as_sure_as_what_it_is_made_of(
    delivered: str,
    repeated: str,
    expected: tuple[Severity, Blame | None, Confidence],
    says: str,
) -> None:
    finding = graded(delivered, repeated)
    assert grade(finding) == expected
    assert says in finding.message
    assert bool(finding.excluded) is (expected in (PROVEN, LIKELY))


def test_old_calls_may_be_left_out_of_a_history() -> None:
    assert grade(graded(SHORT, "", assistant(text="Hello"), MORE)) == POSSIBLE


def test_an_empty_object_lacks_what_the_schema_requires() -> None:
    free: Json = {
        "type": "function",
        "function": {"name": "get", "parameters": {"required": ["x"]}},
    }
    assert grade(graded('{"x":1}', "{}", tools=[free])) == LIKELY
    finding = graded(SHORT, "{}", tools=[tool(city={"type": "string"})])
    assert grade(finding) == LIKELY
    assert "requires members that an empty object" in finding.excluded[1].because


def test_a_reply_that_broke_off_blames_nobody() -> None:
    limited = [*call(), choice({}, "length")]
    tape = digests((asks(USER), limited), (asks(USER, assistant(("c1", "get", "")), MORE), []))
    assert not [each for each in check_conversation(tape) if each.code in ("C001", "C002", "C003")]


def test_what_is_left_of_whole_members_may_be_an_edit() -> None:
    chunks = [
        calls(entry(0, "c1", name="get", arguments='{"a":1')),
        calls(entry(0, arguments=',"b":2')),
        calls(entry(0, arguments="}")),
        FINISH,
    ]
    (finding,) = changed(("c1", "get", '{"a":1}'), chunks=chunks)
    assert grade(finding) == POSSIBLE
    assert "fragment 2 of 3 is missing" in finding.message
    null = [chunks[0], calls(entry(0, arguments=',"b":null')), *chunks[2:]]
    (finding,) = changed(("c1", "get", '{"a":1}'), chunks=null)
    assert grade(finding) == FACT


SAID = ("{", '"q":"', "flights", " to", " Ant", "werp", " on", " Mon", "day", " 1", "2", '"}')
"""A call as it usually comes: fragments are words, or parts of them."""


@pytest.mark.parametrize(
    ("missing", "expected"),
    [
        ({4, 5}, POSSIBLE),
        ({3, 8}, LIKELY),
        ({2, 3, 4, 5}, POSSIBLE),
        ({9, 10}, POSSIBLE),
        ({10}, POSSIBLE),
        ({3, 6}, POSSIBLE),
        ({3, 6, 9}, LIKELY),
        ({4}, LIKELY),
        ({5}, LIKELY),
    ],
)
def test_whole_words_that_are_missing_may_have_been_edited_out(
    missing: set[int], expected: tuple[Severity, Blame | None, Confidence]
) -> None:
    """A person shortens a query, a policy lowers a number; nobody cuts a word in two."""
    arguments = [calls(entry(0, "c1", name="get", arguments=""))]
    arguments += [calls(entry(0, arguments=piece)) for piece in SAID]
    kept = "".join(piece for at, piece in enumerate(SAID) if at not in missing)
    (finding,) = changed(("c1", "get", kept), chunks=[*arguments, FINISH])
    assert grade(finding) == expected
    assert "of 12 is missing" in finding.message


def test_a_text_that_was_shortened_at_a_word_may_have_been_edited() -> None:
    pieces = [calls(entry(0, "c1", name="get", arguments=""))]
    pieces += [calls(entry(0, arguments=each)) for each in ('{"a":1,"q":"to Ant', "werp now", '"}')]
    cut = {
        '{"a":1,"q":"to Ant"}': LIKELY,
        '{"a":1,"q":"to Antwerp now"}': None,
    }
    for repeated, expected in cut.items():
        found = changed(("c1", "get", repeated), chunks=[*pieces, FINISH])
        assert [grade(each) for each in found] == ([expected] if expected else [])
    words = [pieces[0], *(calls(entry(0, arguments=each)) for each in ('{"q":"to', ' Rome"}'))]
    (finding,) = changed(("c1", "get", '{"q":"to"}'), chunks=[*words, FINISH])
    assert grade(finding) == POSSIBLE


def test_what_a_parser_of_partial_json_makes_of_the_first_fragments_is_likely() -> None:
    finding = graded('{"city":"Antwerp","day":"Monday"}', '{"city":"Antw"}', pieces=3)
    assert grade(finding) == POSSIBLE
    finding = graded('{"city":"Antwerp","day":"Monday"}', '{"city":"An"}', pieces=3)
    assert grade(finding) == LIKELY
    assert (
        "only the first 1 of 3 fragments are there, closed by a partial-JSON parser"
        in finding.message
    )


TWICE = [*call("get"), *call("get", '{"a":2}', 1), FINISH]


def test_the_arguments_of_another_call_are_likely_unless_the_ids_went_round() -> None:
    found = changed(("c1", "get", '{"a":2}'), ("c2", "get", '{"a":2}'), chunks=TWICE)
    assert [grade(finding) for finding in found] == [LIKELY]
    assert "these are the arguments of call 1" in found[0].message
    found = changed(("c1", "get", '{"a":2}'), ("c2", "get", '{"a":1}'), chunks=TWICE)
    assert [grade(finding) for finding in found] == [POSSIBLE] * 2


def test_a_call_that_came_after_the_request_is_not_held_against_it() -> None:
    first, second = digests(
        (asks(USER), CALL_REPLY), (asks(USER, assistant(("c1", "get", "")), result("c1")), [])
    )
    assert [each.code for each in check_conversation([first, second])] == ["C002"]
    early = replace(second, t_ns=(first.calls[0].t_ns or 0) - 1)
    said = replace(first, said_ns=1)
    assert not check_conversation([said, early])


def changed(
    *repeated: tuple[str | None, str | None, str], chunks: Sequence[object]
) -> list[Finding]:
    after = asks(USER, assistant(*repeated), result("c1"))
    found = check_conversation(digests((asks(USER), chunks), (after, [])))
    return [finding for finding in found if finding.code == "C002"]


def test_the_message_names_both_texts_the_path_and_the_mistake() -> None:
    (finding,) = changed(("c1", "get", ""), chunks=CALL_REPLY)
    assert finding.message == (
        "call 0 (get, c1) of #1 was delivered with '{\"a\":1}', but the app repeats ''"
        " (first difference at $.a): the repeated arguments are empty"
    )
    assert finding.evidence == "(no arguments)"


def test_calls_that_were_never_delivered_are_mentioned() -> None:
    fragments = (("c1", "get", ""), (None, None, '{"a"'), (None, None, ":1}"))
    (finding,) = changed(*fragments, chunks=CALL_REPLY)
    assert "it also repeats 2 calls that the model never made" in finding.message


def test_a_value_that_nothing_explains_is_possible_only() -> None:
    (finding,) = changed(("c1", "get", '{"z":9}'), chunks=CALL_REPLY)
    assert "(first difference at $.a): no fragment of the reply explains the" in finding.message
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.POSSIBLE)
    assert "append" not in finding.hint


def test_another_spelling_and_mended_arguments_of_a_broken_call_are_fine() -> None:
    half = [calls(entry(0, "c1", name="get", arguments='{"a":')), FINISH]
    assert not changed(("c1", "get", '{ "a": 1 }'), chunks=CALL_REPLY)
    assert not changed(("c1", "get", "{}"), chunks=half)


def test_fragments_that_were_stripped_are_no_normalisation() -> None:
    chunks = [
        calls(entry(0, "c1", name="get", arguments='{"city":"New')),
        calls(entry(0, arguments=" York")),
        calls(entry(0, arguments=' City on"}')),
        FINISH,
    ]
    (finding,) = changed(("c1", "get", '{"city":"NewYorkCity on"}'), chunks=chunks)
    assert grade(finding) == PROVEN
    assert finding.hint.startswith("append fragments unchanged")


def test_words_that_are_glued_where_fragments_meet_are_likely_stripped_fragments() -> None:
    finding = graded('{"t":"ab cd ef gh ij"}', '{"t":"abcdefghij"}', pieces=8)
    assert grade(finding) == LIKELY
    assert finding.hint.startswith("append fragments unchanged")


def test_who_takes_the_deltas_of_a_call_whose_last_event_has_others_did_nothing_wrong() -> None:
    (reply, later) = digests(
        (asks(USER), [*call("get", '{"a":1}'), FINISH]),
        (
            asks(USER, assistant(("c1", "get", '{"a"1}')), result("c1", "Expecting ':' delimiter")),
            [],
        ),
    )
    (said,) = reply.calls
    mended = replace(reply, calls=(replace(said, fragments=('{"a"', "1}")),))
    found = check_conversation([mended, later])
    (told,) = [each for each in found if each.code == "C002"]
    assert (told.severity, told.blame) == (Severity.INFO, None)
    assert "the event that ends the call has other arguments (T015)" in told.message
    assert not [each for each in found if each.code == "C009"]


@pytest.mark.parametrize(
    ("delivered", "repeated", "expected", "similar"),
    [
        ('{"city":"Größe, São Tomé"}', '{"city": "Grße, São Tomé"}', POSSIBLE, "ß"),
        ('{"city":"東京, 大阪"}', '{"city":"東, 大阪"}', POSSIBLE, "大"),
        # None of the script is left; or something else is missing, too, or is new.
        ('{"city":"Besançon🌧FR"}', '{"city":"BesançonFR"}', FACT, ""),
        ('{"city":"Besançon東"}', '{"city":"Besançon"}', POSSIBLE, ""),
        ('{"city":"Größe, São Tomé"}', '{"city":"Grße, São"}', POSSIBLE, ""),
        ('{"city":"Größe, São Tomé"}', '{"city":"Grüße, São Tomé"}', POSSIBLE, ""),
    ],
)
def test_characters_that_are_missing_may_have_been_edited_out(
    delivered: str,
    repeated: str,
    expected: tuple[Severity, Blame | None, Confidence],
    similar: str,
) -> None:
    finding = graded(delivered, repeated, pieces=1)
    assert grade(finding) == expected
    assert ("similar characters are there" in finding.message) is bool(similar)
    assert similar in finding.message
    assert ("one incremental UTF-8 decoder" in finding.hint) is bool(similar)


def test_a_default_in_place_of_null_is_the_schemas() -> None:
    unit: Json = {"type": ["string", "null"], "default": "celsius"}
    finding = graded(
        '{"city":"Gent","unit":null}', '{"city":"Gent","unit":"celsius"}', tools=[tool(unit=unit)]
    )
    assert grade(finding) == FACT
    assert "a default of the schema was filled in" in finding.message


LENGTH = choice({}, "length")
CUT: Sequence[object] = [
    calls(entry(0, "c1", name="write", arguments="")),
    calls(entry(0, arguments='{"text":"Dear An')),
]
NOTHING: Sequence[object] = CUT[:1]
MADE = '{"text":"Dear An"}'


def ran(tape: list[Digest]) -> list[Finding]:
    return [each for each in check_conversation(tape) if each.code == "C016"]


def cut(
    arguments: str = MADE,
    text: str = "saved",
    chunks: Sequence[object] = CUT,
    end: object = LENGTH,
) -> list[Digest]:
    history = [assistant(("c1", "write", arguments)), result("c1", text)]
    return digests((asks(USER), [*chunks, end]), (asks(USER, *history), []))


def test_a_call_that_the_limit_cut_and_the_app_completed() -> None:
    (finding,) = ran(cut())
    assert finding.message == (
        "call 0 (write, c1) of #1 hit the output limit in the middle of its arguments; the app"
        ' completed them to {"text":"Dear An"} and ran the call'
    )
    assert (finding.exchange, finding.severity) == (2, Severity.ERROR)
    assert (finding.blame, finding.confidence) == (Blame.APP, Confidence.LIKELY)
    assert finding.excluded[0].because == "its result is 'saved'"
    assert "ask again with a higher limit" in finding.hint
    assert finding.against
    assert finding.against.exchange == 1


def test_a_call_that_broke_off_with_the_stream() -> None:
    first, second = cut()
    (finding,) = ran([replace(first, failed=True, limited=False), second])
    assert "was cut off in the middle" in finding.message
    assert "send the request again" in finding.hint
    assert "limit" not in finding.hint


def test_a_call_without_its_end_in_a_reply_that_ended_as_it_should() -> None:
    (finding,) = ran(cut(end=FINISH))
    assert "stopped in the middle" in finding.message
    assert not ran(cut("{}", chunks=NOTHING, end=FINISH))


@pytest.mark.parametrize(
    "tape",
    [
        cut("{}", chunks=NOTHING),
        cut(MADE, chunks=NOTHING),
        cut("{}"),
        cut("{}", "La llamada se interrumpi\u00f3: la respuesta se cort\u00f3."),
        cut("{}", "The user is asked for the text and answers: Dear Ann."),
    ],
)
def test_arguments_that_have_nothing_of_the_delivered_ones_may_be_a_placeholder(
    tape: list[Digest],
) -> None:
    (finding,) = ran(tape)
    assert finding.message.endswith(": it may have run the call")
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.POSSIBLE)
    assert not finding.excluded


@pytest.mark.parametrize("arguments", [MADE, '{"text": ""}', '{"text": "Dear Ann"}'])
def test_arguments_made_of_the_delivered_ones_are_a_guess(arguments: str) -> None:
    (finding,) = ran(cut(arguments))
    assert finding.confidence is Confidence.LIKELY


@pytest.mark.parametrize(
    "text",
    [
        "Error: the arguments were incomplete",
        "The call was not executed.",
        "Interrupted by the user",
        "Could not parse the arguments",
        "Tool call denied",
    ],
)
def test_a_call_that_is_answered_with_an_error_is_answered_rightly(text: str) -> None:
    assert not ran(cut(text=text))
    assert not ran(cut("{}", text=text))


def test_arguments_that_nobody_completed_are_no_guess() -> None:
    assert not ran(cut('{"text":"Dear An'))


def test_a_whole_call_in_front_of_a_cut_one_may_be_run() -> None:
    whole = calls(entry(0, "c1", name="write", arguments=MADE))
    assert not ran(cut(chunks=[whole]))
    assert not ran(cut(chunks=[whole], end=FINISH))


def test_another_call_or_none_is_not_this_one() -> None:
    first = digests((asks(USER), [*CUT, LENGTH]))[0]
    for history in (
        [assistant(("c2", "write", MADE)), result("c2")],
        [assistant(("c1", "read", MADE)), result("c1")],
        [assistant(("c1", "write", MADE)), USER],
        [assistant(text="It was cut."), USER],
    ):
        tape = digests((asks(USER), [*CUT, LENGTH]), (asks(USER, *history), []))
        assert not ran(tape)
        assert tape[0].calls[0].status == first.calls[0].status


def test_a_second_attempt_that_brings_the_call_acquits() -> None:
    history = [assistant(("c1", "write", MADE)), result("c1", "saved")]
    whole = calls(entry(0, "c1", name="write", arguments=MADE))
    tape = digests(
        (asks(USER), [*CUT, LENGTH]), (asks(USER), [whole, FINISH]), (asks(USER, *history), [])
    )
    assert not ran(tape)


def test_what_the_recorder_lost_is_not_a_cut() -> None:
    first, second = cut()
    assert not ran([replace(first, lossy=True), second])
    assert not ran([replace(first, reply_id="r1"), replace(second, previous="r1")])


TWO = [*call("get"), *call("put", '{"b":2}', 1), FINISH]


def renamed(
    *repeated: tuple[str | None, str | None, str], answers: tuple[str, ...] = ()
) -> list[Finding]:
    chunks = CALL_REPLY if len(repeated) == 1 else TWO
    after = asks(USER, assistant(*repeated), *map(result, answers), MORE)
    found = check_conversation(digests((asks(USER), chunks), (after, [])))
    return [finding for finding in found if finding.code == "C003"]


def test_a_name_that_was_joined_is_an_error() -> None:
    (finding,) = renamed(("c1", "getget", '{"a":1}'), answers=("c1",))
    assert "the name 'getget' instead of 'get' (2 copies of the original)" in finding.message
    assert finding.severity is Severity.ERROR


def test_an_id_that_was_joined_throughout_works_by_luck() -> None:
    (finding,) = renamed(("c1c1c1", "get", '{"a":1}'), answers=("c1c1c1",))
    assert finding.message.endswith("(3 copies of the original), and so does its result")
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.PROVEN)


def test_a_lost_id_is_possible_until_its_result_carries_it() -> None:
    (finding,) = renamed(("", "get", '{"a":1}'))
    assert "the id empty instead of 'c1'" in finding.message
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.POSSIBLE)
    (finding,) = renamed(("", "get", '{"a":1}'), answers=("c1",))
    assert (finding.severity, finding.confidence) == (Severity.ERROR, Confidence.LIKELY)


def test_a_lost_name_is_likely_and_another_name_possible() -> None:
    (finding,) = renamed(("c1", "", '{"a":1}'), answers=("c1",))
    assert finding.confidence is Confidence.LIKELY
    (finding,) = renamed(("c1", "fetch", '{"a":1}'), answers=("c1",))
    assert finding.confidence is Confidence.POSSIBLE


@pytest.mark.parametrize("name", ["Get", "functions.get", "mcp__web__get"])
def test_a_name_in_another_spelling_is_a_repair(name: str) -> None:
    assert not renamed(("c1", name, '{"a":1}'), answers=("c1",))


def test_a_name_that_was_not_offered_may_be_repaired() -> None:
    tool = {"type": "function", "function": {"name": "fetch", "parameters": {}}}
    after = asks(USER, assistant(("c1", "fetch", '{"a":1}')), result("c1"))
    tape = digests((asks(USER, tools=[tool]), CALL_REPLY), (after, []))
    assert not [each for each in check_conversation(tape) if each.code == "C003"]


def test_an_id_of_its_own_is_the_applications_right_if_the_result_has_it_too() -> None:
    assert not renamed(("mine", "get", '{"a":1}'), answers=("mine",))


def test_an_id_made_unique_is_the_applications_right_if_the_result_has_it_too() -> None:
    assert not renamed(("resp_9:c1", "get", '{"a":1}'), answers=("resp_9:c1",))
    assert renamed(("resp_9:c1", "get", '{"a":1}'))


def test_a_foreign_id_without_result_may_belong_to_another_reply() -> None:
    assert not renamed(("other", "get", '{"a":1}'))


def test_a_foreign_id_beside_a_known_one_may_be_its_own() -> None:
    other = ("other", "put", '{"b":2}')
    assert not renamed(("c1", "get", '{"a":1}'), other, answers=("c1",))


def test_what_is_repeated_as_delivered_is_fine() -> None:
    assert not renamed(("c1", "get", '{"a":1}'), answers=("c1",))


def test_a_copy_of_a_call_under_another_id_is_reported() -> None:
    copy = ("x7", "get", '{"a": 1}')
    after = asks(USER, assistant(("c1", "get", '{"a":1}'), copy), result("c1"), result("x7"))
    tape = digests((asks(USER), CALL_REPLY), (after, []))
    (finding,) = [each for each in check_conversation(tape) if each.code == "C003"]
    assert finding.message == (
        "the next request repeats call 0 (get, c1) of #1 twice, the second time with the"
        " id 'x7' instead of 'c1'"
    )
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.POSSIBLE)
    assert finding.against is not None
    assert finding.against.request_span is not None


def test_a_further_call_that_says_something_else_is_not_a_copy() -> None:
    other = ("x7", "get", '{"a":2}')
    after = asks(USER, assistant(("c1", "get", '{"a":1}'), other), result("c1"), result("x7"))
    tape = digests((asks(USER), CALL_REPLY), (after, []))
    assert not [each for each in check_conversation(tape) if each.code == "C003"]


@pytest.mark.parametrize(
    ("delivered", "again", "copied"),
    [
        ('{"a":"***"}', '{"a":"secret"}', True),
        ('{"a":"secret"}', '{"a":"***"}', True),
        ('{"a":"***"}', '{"b":"secret"}', False),
        ('{"b":"secret"}', '{"a":"***"}', False),
    ],
)
def test_a_copy_may_be_masked(delivered: str, again: str, *, copied: bool) -> None:
    reply = [*call(arguments=delivered), FINISH]
    twice = assistant(("c1", "get", delivered), ("x7", "get", again))
    tape = digests((asks(USER), reply), (asks(USER, twice, result("c1"), result("x7")), []))
    found = [each for each in check_conversation(tape) if each.code == "C003"]
    assert bool(found) is copied


def test_a_copy_that_is_not_masked_comes_before_one_that_may_be() -> None:
    reply = [*call(arguments='{"a":1}'), *call(arguments='{"a":"***"}', index=1), FINISH]
    made = (("c1", "get", '{"a":1}'), ("c2", "get", '{"a":"***"}'), ("x7", "get", '{"a":1}'))
    results = [result(each) for each, _, _ in made]
    tape = digests((asks(USER), reply), (asks(USER, assistant(*made), *results), []))
    (found,) = [each for each in check_conversation(tape) if each.code == "C003"]
    assert "repeats call 0 (get, c1) of #1 twice" in found.message


SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "unit": {"enum": ["celsius", "kelvin"], "default": "celsius"},
        "days": {"type": "array", "items": {"properties": {"hour": {"default": 12}}}},
        "note": {"type": "string"},
        "place": {"type": "object", "properties": {"zip": {"default": "0"}}},
    },
    "required": ["city"],
}


def explained(
    one: object, other: object, *following: str, schema: dict[str, object] | None = SCHEMA
) -> str:
    """What explains the change of one value into the other; "" if nothing does."""
    delivered = DeliveredCall(
        index=0,
        id="c1",
        ids=("c1",),
        name="get",
        kind=CallKind.FUNCTION,
        arguments=json.dumps(one),
        fragments=(),
        status=CallStatus.COMPLETE,
    )
    repeated = RepeatedCall(id="c1", name="get", arguments=json.dumps(other))
    found = differences(delivered, repeated)
    return explain(found, schema, Following(following, found)) or ""


@pytest.mark.parametrize(
    ("one", "other", "says"),
    [
        ({}, {"unit": "celsius"}, "a default of the schema was filled in ($.unit)"),
        ({"unit": "celsius"}, {}, "a default of the schema was left out ($.unit)"),
        ({"days": [{}]}, {"days": [{"hour": 12}]}, "a default of the schema was filled in"),
        ({"place": {}}, {"place": {"zip": "0"}}, "a default of the schema was filled in"),
        ({}, {"note": None}, "an unset parameter was written out ($.note)"),
        ({"note": None}, {}, "an empty value was left out"),
        ({"note": ""}, {}, "an empty value was left out"),
        ({"extra": 7}, {}, "a field that the schema does not know was dropped ($.extra)"),
        ({"place": {"x": 7}}, {"place": {}}, "a field that the schema does not know was dropped"),
        ({"a": "3"}, {"a": 3}, "a value was converted to another type"),
        ({"a": 3}, {"a": "3"}, "a value was converted to another type"),
        ({"a": "yes"}, {"a": True}, "a value was converted to another type"),
        ({"a": False}, {"a": "off"}, "a value was converted to another type"),
        ({"a": "null"}, {"a": None}, "a value was converted to another type"),
        ({"a": 3}, {"a": [3]}, "a value was put into a list"),
        ({"a": [3]}, {"a": 3}, "a value was put into a list"),
        ({"a": '{"b":1}'}, {"a": {"b": 1}}, "a value was converted between JSON and its text"),
        ({"a": 9007199254740993}, {"a": 9007199254740992}, "digits beyond double precision"),
        (
            {"user_id": 7, "b_c": {"d": [1]}},
            {"userId": 7, "bC": {"d": [1]}},
            "members were renamed",
        ),
        ({"a": "Celsius "}, {"a": "celsius"}, "a text was normalised"),
        ({"a": "New_York"}, {"a": "new york"}, "a text was normalised"),
        ({"a": "caf\u00e9"}, {"a": "caf"}, "characters outside ASCII, or symbols, were removed"),
        ({"a": "\u00e9 \U0001f600"}, {"a": "\u00e9 "}, "characters outside ASCII, or symbols"),
        ({"a": "24/11/2026"}, {"a": "2026-11-24"}, "a date or number was written in another"),
        ({"a": [2, 1, 1]}, {"a": [1, 2]}, "a list was sorted or deduplicated"),
        ({"a": "x" * 99}, {"a": "xx... (97 characters)"}, "a long value was shortened"),
        ({"a": "x" * 99}, {"a": ["omitted"]}, "a long value was shortened"),
        ({"a": 1}, {"a": 1, "_": {"note": "truncated"}}, "a note about omitted content was added"),
    ],
)
def test_what_frameworks_and_histories_do_is_explained(
    one: object, other: object, says: str
) -> None:
    assert explained(one, other).startswith(says)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"city": "Gent"}, {"city": "Rome"}),
        ({"city": "Gent"}, {}),
        ({"a": 1}, {"a": 2}),
        ({"a": True}, {"a": 1}),
        ({"a": "3"}, {"a": 4}),
        ({"a": "x"}, {"a": 4}),
        ({"a": [1, 2]}, {"a": [1, 3]}),
        ({"a": 1}, {"a": 1, "b": "new"}),
        ({"a": {"b": 1}}, {"a": "other"}),
        ({"a": "one 1"}, {"a": "two 1"}),
    ],
)
def test_what_nothing_explains_is_left(one: object, other: object) -> None:
    assert explained(one, other) == ""


def test_every_difference_has_to_be_explained() -> None:
    both = {"city": "Rome", "unit": "celsius"}
    assert explained({"city": "Gent"}, both) == ""
    assert explained({"city": "Rome "}, both) == (
        "a text was normalised ($.city); a default of the schema was filled in ($.unit)"
    )


def test_without_a_schema_a_missing_field_is_a_change() -> None:
    assert explained({"a": 1, "b": 2}, {"a": 1}, schema=None) == ""
    assert explained({"a": 1, "b": 2}, {"a": 1}, schema={"type": "object"}) == ""


def test_what_follows_may_tell_of_an_edit() -> None:
    change = ({"city": "Gent"}, {"city": "Rome"})
    assert explained(*change, "", "Rome: 21 °C").startswith("what follows has the new value")
    assert explained(*change, "The user edited the call.").startswith("what follows says that")
    assert explained(*change, "From Gent to Rome") == ""
    assert explained({"a": 12}, {"a": 345}, "345 found").startswith("what follows has the new")
    assert explained({"city": "Gent"}, {}, "21 °C") == ""


def test_the_same_change_of_several_calls_is_announced_once_for_all() -> None:
    one, other = {"city": "Rome"}, {"city": "Paris"}
    assert (
        explained([one, one], [other, other], "Paris")
        == "what follows has the new value ($[0].city)"
    )


def test_many_differences_are_no_edit() -> None:
    one = {f"k{at}": "3" for at in range(MAX_DIFFERENCES)}
    assert explained(one, dict.fromkeys(one, 3)) == ""


def test_what_the_schema_requires() -> None:
    assert breaks_schema(SCHEMA, "{}") is True
    assert breaks_schema(SCHEMA, "") is True
    assert breaks_schema(SCHEMA, "[1]") is True
    assert breaks_schema(SCHEMA, '{"city":"Gent"}') is False
    assert breaks_schema({"type": "object"}, "{}") is None
    assert breaks_schema(None, "{}") is None
