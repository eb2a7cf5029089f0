from dataclasses import replace

import pytest

from deltatape.model.exchange import EndReason
from deltatape.model.finding import Blame, Confidence, Finding, Severity
from deltatape.rules._notation import QUOTES, notation_of
from helpers import responses
from helpers.chat import FINISH, calls, choice, entry, request
from helpers.exchanges import call, found, one, pasted, timed

BAD = calls(entry(0, "c1", name="get", arguments='{"keywords": Dave}'))
CITY = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "unit": {"enum": ["C", "F"]}},
    "required": ["city"],
    "additionalProperties": False,
}
WHOLE = ['{"', "city", '":"', "Ge", "nt", '","', "unit", '":"', "C", '"}']


def streamed(*pieces: str) -> Finding:
    """The finding on a call whose arguments come in `pieces`."""
    chunks = [calls(entry(0, arguments=piece)) for piece in pieces]
    opened = calls(entry(0, "c1", name="get"))
    return one(pasted(opened, *chunks, FINISH, request=request(get=CITY)), "T002")


@pytest.mark.parametrize("asked", [request(get={"type": "object"}), None])
def test_another_notation_is_the_models_whether_or_not_the_schema_is_known(
    asked: dict[str, object] | None,
) -> None:
    finding = one(pasted(BAD, FINISH, request=asked), "T002")
    assert (finding.blame, finding.confidence) == (Blame.MODEL, Confidence.LIKELY)
    assert finding.message == (
        "the arguments of call 0 (get) are not JSON (unexpected 'D', expected a value at character"
        " 13): they are JSON with an unquoted value, a typical mistake of models"
    )


@pytest.mark.parametrize("text", ["{'city': True}", "{:city=>1}", '{"city"=>nil}', '{"a":1,}'])
def test_a_python_dict_and_a_ruby_hash_are_the_models_however_they_are_cut(text: str) -> None:
    for size in (1, 3, len(text)):
        finding = streamed(*(text[at : at + size] for at in range(0, len(text), size)))
        assert (finding.blame, finding.confidence) == (Blame.MODEL, Confidence.LIKELY)


@pytest.mark.parametrize("place", [0, 2, 5, 7])
def test_a_doubled_fragment_is_upstreams_wherever_it_stands(place: int) -> None:
    finding = streamed(*WHOLE[: place + 1], *WHOLE[place:])
    assert (finding.blame, finding.confidence) == (Blame.UPSTREAM, Confidence.LIKELY)
    assert (
        f"fragment {place + 2} of 11 (event {place + 2}) repeats the fragment before it; without it"
        " the arguments are JSON that the tool's schema allows" in finding.message
    )
    assert [each.explanation for each in finding.excluded] == [
        "the model wrote it so",
        "the app or its SDK did it",
    ]


@pytest.mark.parametrize("place", [0, 2, 5, 7])
def test_a_lost_fragment_is_upstreams_wherever_it_stood(place: int) -> None:
    finding = streamed(*WHOLE[:place], *WHOLE[place + 1 :])
    assert (finding.blame, finding.confidence) == (Blame.UPSTREAM, Confidence.LIKELY)
    assert "is missing" in finding.message


def test_two_fragments_in_the_wrong_order_are_upstreams() -> None:
    finding = streamed(WHOLE[1], WHOLE[0], *WHOLE[2:])
    assert (finding.blame, finding.confidence) == (Blame.UPSTREAM, Confidence.LIKELY)
    assert (
        "fragments 1 and 2 of 10 (events 1 and 2) are in the wrong order; swapped, the"
        " arguments are JSON"
        " that the tool's schema allows" in finding.message
    )


def test_a_stray_quote_that_a_lost_fragment_would_explain_too_accuses_no_model() -> None:
    finding = streamed('{"city":', '"5', '" tall', '"}')
    assert (finding.blame, finding.confidence) == (Blame.UPSTREAM, Confidence.LIKELY)


def test_quotes_inside_a_string_that_nothing_else_explains_are_the_models() -> None:
    finding = streamed('{"city": "the "big" one"}')
    assert finding.blame is Blame.MODEL
    assert "a quote inside a string that is not escaped" in finding.message


def test_whole_deltas_before_a_broken_end_are_the_ones_to_take() -> None:
    broken = responses.function('{"a":1')
    broken["arguments"] = '{"a":1]'
    events = (responses.created(), *responses.call()[:-2], responses.done(broken))
    found_on = responses.findings(*events, responses.ended(broken))
    (finding,) = (each for each in found_on if each.code == "T002")
    assert finding.message.endswith(
        "the deltas are complete JSON, but the event that ends the call is not"
    )
    assert finding.hint == "in the client, take the arguments of this call from the deltas"
    (sources,) = (each for each in found_on if each.code == "T015")
    assert sources.hint.startswith("in the client, take the arguments from the joined deltas:")


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ('{"a": 1, "a": 2}', "the key 'a' appears twice"),
        ('{"a": "\\ud800"}', "half of a surrogate"),
    ],
)
def test_json_that_parsers_read_differently_is_a_warning(arguments: str, what: str) -> None:
    whole = calls(entry(0, "c1", name="get", arguments=arguments))
    finding = one(pasted(whole, FINISH), "T002")
    assert finding.severity is Severity.WARNING
    assert what in finding.message


def test_valid_arguments_are_fine() -> None:
    assert not found(pasted(*call(), FINISH), "T002")


@pytest.mark.parametrize("torn", ['code":"uptime"}', 'json\n{"a":1}', '{"a""b"}'])
def test_a_missing_piece_or_a_label_in_front_is_no_models_doing(torn: str) -> None:
    finding = one(pasted(*call(arguments=torn), FINISH, request=request(get={})), "T002")
    assert (finding.blame, finding.confidence) == (Blame.UPSTREAM, Confidence.LIKELY)


def test_a_call_in_text_that_is_not_json_is_the_models() -> None:
    written = '<tool>{"tool_name": "get", "arguments": {"a": Dave}}</tool>'
    finding = one(pasted(choice({"content": written}), choice({}, "stop")), "T002")
    assert (finding.blame, finding.confidence) == (Blame.MODEL, Confidence.LIKELY)
    assert "call 0 (get) in the text (tool) are not JSON" in finding.message


HALF = calls(entry(0, "c1", name="get", arguments='{"a":'))


def test_a_tail_lost_before_a_regular_end_is_upstreams_fault() -> None:
    finding = one(pasted(HALF, FINISH), "T003")
    assert finding.blame is Blame.UPSTREAM
    assert "end after 5 characters in 1 fragment: the reply" in finding.message
    assert finding.evidence == '{"a":'


def test_a_limit_blames_nobody() -> None:
    finding = one(pasted(HALF, choice({}, "length")), "T003")
    assert finding.blame is None
    assert "finish reason 'length'" in finding.message


def test_an_error_frame_is_upstreams() -> None:
    exchange = pasted(HALF, {"error": {"message": "overloaded"}}, done=False)
    assert one(exchange, "T003").blame is Blame.UPSTREAM


def test_the_end_of_a_pasted_stream_proves_nothing_and_of_a_taped_one_upstream() -> None:
    assert one(pasted(HALF, done=False), "T003").blame is None
    assert one(timed((0.1, HALF)), "T003").blame is Blame.UPSTREAM


@pytest.mark.parametrize(
    ("reason", "blame", "severity"),
    [
        (EndReason.UPSTREAM_RESET, Blame.TRANSPORT, Severity.ERROR),
        (EndReason.CLIENT_CLOSED, None, Severity.INFO),
        (EndReason.STOPPED, None, Severity.INFO),
        (None, None, Severity.INFO),
    ],
)
def test_a_cut_is_blamed_on_who_cut_and_on_nobody_who_only_left(
    reason: EndReason | None, blame: Blame | None, severity: Severity
) -> None:
    exchange = timed((0.1, HALF))
    assert exchange.end
    end = replace(exchange.end, reason=reason) if reason else None
    finding = one(replace(exchange, end=end), "T003")
    assert (finding.blame, finding.severity) == (blame, severity)


def test_arguments_that_only_look_cut_are_recognised_by_the_fragment_that_is_doubled() -> None:
    pieces = ['{"a":', '{"b":', '{"b":', "1}}"]
    doubled = [calls(entry(0, arguments=piece)) for piece in pieces]
    finding = one(pasted(calls(entry(0, "c1", name="get")), *doubled, FINISH), "T003")
    assert finding.message == (
        "the arguments of call 0 (get) end after 18 characters in 4 fragments and are incomplete:"
        " fragment 3 of 4 (event 3) repeats the fragment before it; without it the"
        " arguments are JSON"
    )
    assert (finding.blame, finding.confidence) == (Blame.UPSTREAM, Confidence.LIKELY)


def test_a_limit_explains_cut_arguments_whatever_their_fragments() -> None:
    pieces = ['{"a":', '{"b":', '{"b":', "1}}"]
    doubled = [calls(entry(0, arguments=piece)) for piece in pieces]
    opened = calls(entry(0, "c1", name="get"))
    finding = one(pasted(opened, *doubled, choice({}, "length")), "T003")
    assert finding.message.endswith("the provider cut the reply (finish reason 'length')")


def test_whole_arguments_are_fine() -> None:
    assert not found(pasted(*call(), FINISH), "T003")


def test_a_brace_too_many_is_reported() -> None:
    finding = one(pasted(calls(entry(0, "c1", name="get", arguments='{"a":1}}')), FINISH), "T016")
    assert finding.blame is Blame.UPSTREAM
    assert ": they are complete after 7 characters" in finding.message
    assert finding.evidence


def test_a_last_fragment_that_comes_twice_is_named() -> None:
    pieces = ['{"a"', ':"x', '"}', '"}']
    doubled = [calls(entry(0, arguments=piece)) for piece in pieces]
    finding = one(pasted(calls(entry(0, "c1", name="get")), *doubled, FINISH), "T016")
    assert finding.message == (
        "extra data after the arguments of call 0 (get): they are complete after 9"
        " characters, then '\"}' follows:"
        " fragment 4 of 4 (event 4) repeats the fragment before it; without it the"
        " arguments are JSON"
    )
    assert (finding.blame, finding.confidence) == (Blame.UPSTREAM, Confidence.LIKELY)


def test_a_healthy_call_is_fine() -> None:
    assert not found(pasted(*call(), FINISH), "T016")


def test_what_follows_a_call_in_text_is_the_models() -> None:
    written = '<tool>{"tool_name": "get", "arguments": {"a": 1}}></tool>'
    finding = one(pasted(choice({"content": written}), choice({}, "stop")), "T016")
    assert finding.blame is Blame.MODEL
    assert (
        "call 0 (get) in the text (tool): its JSON is complete, then '>' follows" in finding.message
    )


def test_blanks_and_fences_around_a_call_in_text_are_fine() -> None:
    fenced = '<tool>\n```json\n{"tool_name": "get", "arguments": {}}\n```\n</tool>'
    assert not found(pasted(choice({"content": fenced}), choice({}, "stop")), "T016")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("{'a': True, 'b': None}", "a Python dict"),
        ('{"a": (1, 2.5), "b": -3e4}', "a Python dict"),
        ("{:a=>1, :b=>:c}", "a Ruby hash"),
        ('{"a"=>nil}', "a Ruby hash"),
        ("{a: 1, b: [undefined]}", "an object in JavaScript's notation"),
        ('{"a": `x`}', "an object in JavaScript's notation"),
        ("{'a': 'it\\'s', 'b': {}}", "an object in single quotes"),
        ('{"a": 1,}', "JSON with a comma before its end"),
        ('{"a": [1, 2,]}', "JSON with a comma before its end"),
        ('{"a": Dave Smith }', "JSON with an unquoted value"),
        ('{"a": 1 /* one */, "b": [], // two\n "c": {} # three\n}', "JSON with a comment"),
        ('{"a": "x\ny"}', "JSON with a raw control character in a string"),
        ('{"a": "C:\\dir"}', "JSON with an escape that JSON does not have"),
        ('{"a" = 1}', "JSON with = in place of a colon"),
        ('{"a": NaN}', "JSON with NaN"),
        ('{{"a": 1}}', "an object in two pairs of braces, as in templates"),
        ("a: 1\nb:\n  - c: x", "YAML"),
    ],
)
def test_a_notation_that_models_write_is_known(text: str, name: str) -> None:
    found = notation_of(text)
    assert found is not None
    assert found.name == name


def test_quotes_that_are_not_escaped_are_a_habit_of_their_own() -> None:
    found = notation_of('{"a": "the "big" one"}')
    assert found is not None
    assert found.habits == {QUOTES}


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1}',
        '{"city""Gent"}',
        'city":"Gent"}',
        '{"a":}',
        '{"a": 1} more',
        '{"a": "x',
        '{"a": "x\\',
        '{"a": 1 "b": 2}',
        '{"a": [1 2]}',
        '{"a" 1}',
        "{1: 2}",
        '{"a": ]}',
        "[1]",
        "",
        '{"a":' * 100 + "1" + "}" * 100,
        "{" + " " * 200_000,
    ],
)
def test_what_is_json_or_torn_is_in_no_other_notation(text: str) -> None:
    assert notation_of(text) is None
