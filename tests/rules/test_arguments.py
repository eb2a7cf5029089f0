import json
from dataclasses import replace

import pytest

from deltatape.diagnose.check import check
from deltatape.model.exchange import Exchange
from deltatape.model.finding import Blame, Confidence, Finding, Severity
from deltatape.model.request_summary import ToolSpec
from deltatape.model.rule_settings import DEFAULTS
from deltatape.rules.arguments import required
from helpers import responses
from helpers.chat import FINISH, calls, choice, entry, request
from helpers.exchanges import call, found, one, pasted

EMPTY = calls(entry(0, "c1", name="get", arguments=""))
NEEDS = {"type": "object", "required": ["city"]}


def test_no_arguments_for_a_tool_that_requires_some_is_an_error() -> None:
    finding = one(pasted(EMPTY, FINISH, request=request(get=NEEDS)), "T001")
    assert finding.severity is Severity.ERROR
    assert finding.blame is Blame.UPSTREAM
    assert "requires city" in finding.message
    assert '"arguments": ""' in finding.evidence


def test_no_arguments_for_an_unknown_tool_is_a_warning_that_blames_nobody() -> None:
    finding = one(pasted(EMPTY, FINISH), "T001")
    assert finding.severity is Severity.WARNING
    assert finding.blame is None


def test_a_tool_that_requires_nothing_may_be_called_with_nothing() -> None:
    assert not found(pasted(EMPTY, FINISH, request=request(get={"type": "object"})), "T001")


def test_arguments_are_fine() -> None:
    assert not found(pasted(*call(), FINISH, request=request(get=NEEDS)), "T001")


def test_an_odd_schema_requires_nothing_that_is_known() -> None:
    assert required(ToolSpec(name="get", parameters={"required": True})) == ()
    assert required(ToolSpec(name="get", parameters={"required": [1, "a"]})) == ("a",)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ('"{\\"a\\": 1}"', "encoded twice"),
        ("[1]", "not an object"),
        ({"a": 1}, "instead of a string"),
        ([1], "instead of a string"),
    ],
)
def test_anything_but_a_string_with_an_object_is_reported_once(
    arguments: object, words: str
) -> None:
    exchange = pasted(calls(entry(0, "c1", name="get", arguments=arguments)), FINISH)
    assert words in one(exchange, "T006").message


def test_an_object_in_a_string_is_fine() -> None:
    assert not found(pasted(*call(), FINISH), "T006")


CITY = {
    "type": "object",
    "required": ["city"],
    "properties": {"city": {"type": "string"}, "code": {"pattern": "(a+)+b"}},
    "additionalProperties": False,
}


def test_a_missing_parameter_is_an_error_of_the_model() -> None:
    exchange = pasted(*call(arguments="{}"), FINISH, request=request(get=CITY))
    finding = one(exchange, "T008")
    assert (finding.severity, finding.blame) == (Severity.ERROR, Blame.MODEL)
    assert "$: 'city' is a required property" in finding.message


def test_an_unknown_parameter_is_a_warning() -> None:
    exchange = pasted(*call(arguments='{"city":"a","b":1}'), FINISH, request=request(get=CITY))
    assert one(exchange, "T008").severity is Severity.WARNING


def test_a_pattern_that_may_backtrack_is_skipped_and_that_is_said_once_for_each_tool() -> None:
    arguments = '{"city":"a","code":"b"}'
    chunks = [*call(arguments=arguments), *call(arguments=arguments, index=1), FINISH]
    finding = one(pasted(*chunks, request=request(get=CITY)), "T008")
    assert finding.severity is Severity.INFO
    assert finding.message.startswith("the arguments of call 0 (get) were only partly checked")
    assert "not checked: pattern '(a+)+b'" in finding.message


def test_what_was_skipped_is_said_with_a_violation_too() -> None:
    arguments = '{"code":"b"}'
    exchange = pasted(*call(arguments=arguments), FINISH, request=request(get=CITY))
    assert "required property (not checked: pattern" in one(exchange, "T008").message


def test_an_enormous_schema_is_not_used_and_that_is_said() -> None:
    exchange = pasted(*call(), FINISH, request=request(get=CITY))
    (finding,) = check(exchange, replace(DEFAULTS, schema_characters=20))
    assert "a schema of more than 20 characters" in finding.message
    (finding,) = check(exchange, replace(DEFAULTS, schema_characters=2))
    assert "arguments of more than 2 characters" in finding.message


def test_arguments_that_fit_and_tools_without_schema_are_fine() -> None:
    fits = request(get={"type": "object", "properties": {"a": {"type": "integer"}}})
    assert not found(pasted(*call(), FINISH, request=fits), "T008")
    assert not found(pasted(*call(), FINISH, request=request(get=None)), "T008")
    assert not found(pasted(*call(), FINISH), "T008")


DEFAULTED = {
    "type": "object",
    "required": ["city", "unit", "days"],
    "properties": {
        "city": {"type": "string"},
        "unit": {"type": "string", "enum": ["C", "F"], "default": None},
        "days": {"$ref": "#/$defs/days", "default": 3},
        "tags": {"type": "array", "items": {"type": "string", "default": None}},
        "mode": {"$ref": "#/$defs/mode"},
        "span": {"type": "object", "properties": {"to": {"type": "integer", "default": ""}}},
    },
    "$defs": {"days": {"type": "integer"}, "mode": {"type": "string", "default": 0}},
}


@pytest.mark.parametrize(
    "arguments",
    [
        '{"city":"a","unit":null,"days":3}',
        '{"city":"a"}',
        '{"city":"a","tags":[null]}',
        '{"city":"a","mode":0}',
        '{"city":"a","span":{"to":""}}',
    ],
)
def test_what_the_schema_names_as_a_default_is_allowed(arguments: str) -> None:
    exchange = pasted(*call(arguments=arguments), FINISH, request=request(get=DEFAULTED))
    assert not found(exchange, "T008")


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        ('{"unit":null}', "$: 'city' is a required property"),
        ('{"city":null}', "$.city: "),
        ('{"city":"a","days":"3"}', "$.days: "),
        ('{"city":"a","mode":false}', "$.mode: "),
        ('{"city":"a","tags":[1]}', "$.tags[0]: "),
    ],
)
def test_another_value_than_the_default_is_not(arguments: str, path: str) -> None:
    exchange = pasted(*call(arguments=arguments), FINISH, request=request(get=DEFAULTED))
    assert path in one(exchange, "T008").message


def test_a_default_behind_what_does_not_lead_there_allows_nothing() -> None:
    patterns = {"patternProperties": {"c": {"enum": [1], "default": 2}}}
    exchange = pasted(*call(arguments='{"c":2}'), FINISH, request=request(get=patterns))
    assert one(exchange, "T008").message.endswith("$.c: 2 is not one of [1]")
    deep = {"properties": {"e": {"additionalProperties": {"items": {"type": "string"}}}}}
    exchange = pasted(*call(arguments='{"e":{"f":[1]}}'), FINISH, request=request(get=deep))
    assert "$.e.f[0]: " in one(exchange, "T008").message
    tuples = {"properties": {"d": {"prefixItems": [{"type": "string"}]}}}
    exchange = pasted(*call(arguments='{"d":[1]}'), FINISH, request=request(get=tuples))
    assert "$.d[0]: " in one(exchange, "T008").message


def test_a_doubled_or_exchanged_fragment_is_upstreams_and_not_the_models() -> None:
    enum = {"type": "object", "properties": {"city": {"enum": ["Gent"]}}}
    pieces = ['{"city":"', "Ge", "Ge", 'nt"}'], ['{"city":"', "nt", "Ge", '"}']
    says = "fragment 3 of 4 (event 3) repeats", "fragments 2 and 3 of 4 (events 2 and 3) are in the"
    for texts, clause in zip(pieces, says, strict=True):
        chunks = [calls(entry(0, arguments=text)) for text in texts]
        opened = calls(entry(0, "c1", name="get"))
        finding = one(pasted(opened, *chunks, FINISH, request=request(get=enum)), "T008")
        assert (finding.blame, finding.confidence) == (Blame.UPSTREAM, Confidence.LIKELY)
        assert clause in finding.message


def test_the_evidence_is_the_delta_that_violates_the_schema() -> None:
    asked: dict[str, object] = {"tools": [{"type": "function", "name": "get", "parameters": CITY}]}
    bad = responses.function('{"town":"a"}')
    events = (responses.created(), *responses.call('{"city":"a"}')[:-2], responses.done(bad))
    found_on = responses.findings(*events, responses.ended(bad), request=asked)
    (finding,) = (each for each in found_on if each.code == "T008")
    assert finding.evidence == '{"town":"a"}'
    assert finding.blame is Blame.UPSTREAM
    assert finding.message.endswith("; the joined deltas fit it")
    (sources,) = (each for each in found_on if each.code == "T015")
    assert sources.hint.startswith("in the client, take the arguments from the joined deltas:")


def test_deltas_that_fit_no_better_leave_it_with_the_model() -> None:
    asked: dict[str, object] = {"tools": [{"type": "function", "name": "get", "parameters": CITY}]}
    bad = responses.function('{"town":"a"}')
    events = (responses.created(), *responses.call('{"village":"a"}')[:-2], responses.done(bad))
    found_on = responses.findings(*events, responses.ended(bad), request=asked)
    (finding,) = (each for each in found_on if each.code == "T008")
    assert finding.blame is Blame.MODEL
    (sources,) = (each for each in found_on if each.code == "T015")
    assert sources.hint.startswith("neither source has arguments that the tool")


DATED = {
    "type": "object",
    "required": ["city", "day"],
    "properties": {"city": {"type": "string"}, "day": {"type": "string"}},
}


def _in_pieces(*pieces: str) -> Finding:
    """What T008 says of a call whose arguments come in these pieces."""
    opened = calls(entry(0, "c1", name="get"))
    chunks = [calls(entry(0, arguments=piece)) for piece in pieces]
    return one(pasted(opened, *chunks, FINISH, request=request(get=DATED)), "T008")


@pytest.mark.parametrize(
    "pieces",
    [
        ('{"city":"Lisbo', '-05-07"}'),  # within a text that was two
        ('{"city":"Lisbon"', "}         "),  # a whole member, behind another
        ("{         ", '"city":"Lisbon"}'),  # and before one
    ],
)
def test_a_missing_parameter_that_a_lost_piece_may_have_held_blames_nobody(
    pieces: tuple[str, ...],
) -> None:
    finding = _in_pieces(*pieces)
    assert (finding.severity, finding.blame) == (Severity.ERROR, None)
    assert "lost between fragments 1 and 2 (events 1 and 2)" in finding.message


@pytest.mark.parametrize(
    "pieces",
    [
        ('{"city":"Lisbon"}',),  # nothing is lost within one piece
        ('{"', "city", '":"', "Lis", "bon", '"}'),  # none is long enough to hold a name
        ('{"city":"Lisbon","date":"20', '26-05-07"}'),  # it has another name
    ],
)
def test_a_missing_parameter_that_no_lost_piece_can_have_held_is_the_models(
    pieces: tuple[str, ...],
) -> None:
    assert _in_pieces(*pieces).blame is Blame.MODEL


def test_numbered_events_of_which_none_is_missing_exclude_a_lost_piece() -> None:
    asked: dict[str, object] = {"tools": [{"type": "function", "name": "get", "parameters": DATED}]}
    arguments = '{"city":"Lisbo-05-07"}'
    start, *_, end = responses.call(arguments)
    deltas = [responses.delta(piece) for piece in ('{"city":"Lisbo', '-05-07"}')]
    item = responses.function(arguments)
    events = (responses.created(), start, *deltas, end, responses.ended(item))
    for stream, blame in ((events, None), (responses.numbered(*events), Blame.MODEL)):
        found_on = responses.findings(*stream, request=asked)
        (finding,) = (each for each in found_on if each.code == "T008")
        assert finding.blame is blame


TWICE = r"def run():\n    return 1\n"


def of(value: object) -> Exchange:
    """A call with these arguments."""
    return pasted(calls(entry(0, "c1", name="write", arguments=json.dumps(value))), FINISH)


@pytest.mark.parametrize("value", [{"a": TWICE}, {"a": [{"b": TWICE}, 1], "c": "x"}])
def test_line_breaks_that_are_escaped_twice_are_possibly_the_models_mistake(value: object) -> None:
    finding = one(of(value), "T022")
    assert (finding.severity, finding.blame) == (Severity.WARNING, Blame.MODEL)
    assert "call 0 (write)" in finding.message


@pytest.mark.parametrize(
    "text",
    ["a\nb\n", "a\\nb", "print('a\\n' + 'b\\nc')", "a\nb\\n\\n", "C:\\new\\names", "\\n\\n\n"],
)
def test_line_breaks_and_escapes_that_are_meant_are_fine(text: str) -> None:
    assert not found(of({"a": text}), "T022")


def test_arguments_that_are_not_whole_are_the_business_of_others() -> None:
    cut = calls(entry(0, "c1", name="write", arguments=json.dumps({"a": TWICE})[:-1]))
    assert not found(pasted(cut, FINISH), "T022")


ARGUMENTS = '{"city":"Gent"}'


def whole_call(arguments: str) -> dict[str, object]:
    """A call with these arguments."""
    return calls(entry(0, "c1", name="get", arguments=arguments))


def test_arguments_that_are_shown_too_are_reported() -> None:
    for text in (ARGUMENTS, f"I look it up. {ARGUMENTS}", f"I look it up.\n{ARGUMENTS}\nSunny."):
        finding = one(pasted(choice({"content": text}), whole_call(ARGUMENTS), FINISH), "T023")
        assert (finding.severity, finding.blame) == (Severity.WARNING, Blame.UPSTREAM)
        assert finding.confidence is Confidence.LIKELY


@pytest.mark.parametrize(
    "text", ["I call it with {}.", "These are the arguments:\n{}", "{} is what I pass."]
)
def test_arguments_in_a_sentence_may_be_what_it_speaks_of(text: str) -> None:
    said = choice({"content": text.replace("{}", ARGUMENTS)})
    finding = one(pasted(said, whole_call(ARGUMENTS), FINISH), "T023")
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.POSSIBLE)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [(ARGUMENTS, "Gent"), ("{}", "{}"), ('{"a":1}', '{"a":1}'), (ARGUMENTS[:-1], ARGUMENTS)],
)
def test_other_text_and_arguments_that_say_little_are_fine(arguments: str, text: str) -> None:
    said = choice({"content": text})
    assert not found(pasted(said, whole_call(arguments), FINISH), "T023")


def test_arguments_that_are_no_object_are_the_business_of_others() -> None:
    said = choice({"content": '"a string that is long"'})
    assert not found(pasted(said, whole_call('"a string that is long"'), FINISH), "T023")
