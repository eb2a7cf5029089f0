from dataclasses import replace

import pytest

from deltatape.model.digest import DeliveredCall
from deltatape.model.reply import CallKind, CallStatus
from deltatape.model.request_summary import RepeatedCall
from deltatape.rules.repeated import (
    ArgumentsDamage,
    DerivedIds,
    SiblingCalls,
    first_difference,
    is_derived,
    is_distinctive,
    leaves,
    relation,
    same_but_masked,
    same_id,
    same_name,
)


def delivered_call(
    arguments: str,
    *fragments: str,
    kind: CallKind = CallKind.FUNCTION,
    index: int = 0,
    ids: tuple[str, ...] = ("c1",),
) -> DeliveredCall:
    return DeliveredCall(
        index=index,
        id=ids[0] if ids else None,
        ids=ids,
        name="get",
        kind=kind,
        arguments=arguments,
        fragments=fragments or (arguments,),
        status=CallStatus.COMPLETE,
    )


def repeated_call(
    arguments: str, name: str | None = "get", call_id: str | None = "c1"
) -> RepeatedCall:
    return RepeatedCall(id=call_id, name=name, arguments=arguments)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("", "{}"),
        ("", " {} "),
        ('{"a":1,"b":[2]}', '{ "b": [2.0], "a": 1 }'),
        ('{"a":"\\u00e9"}', '{"a":"é"}'),
        ("same text that is no JSON", "same text that is no JSON"),
    ],
)
def test_spelling_does_not_matter(one: str, other: str) -> None:
    assert first_difference(delivered_call(one), repeated_call(other)) is None


@pytest.mark.parametrize(
    ("one", "other", "path"),
    [
        ('{"a":{"b":[1,2]}}', '{"a":{"b":[1,3]}}', "$.a.b[1]"),
        ('{"a":[1]}', '{"a":[1,2]}', "$.a"),
        ('{"a":1}', '{"a":true}', "$.a"),
        ('{"a":1}', '{"a":"1"}', "$.a"),
        ('{"a":12345678901234567890}', '{"a":12345678901234567000}', "$.a"),
        ('{"a":1}', "{}", "$.a"),
        ("{}", '{"a":null}', "$.a"),
        ('{"a":{}}', '{"a":[]}', "$.a"),
        ('{"a":1}', '{"a":', "$"),
        ('{"a":1,"z":1}', '{"a":2,"z":2}', "$.a"),
    ],
)
def test_the_first_path_that_differs_is_named(one: str, other: str, path: str) -> None:
    assert first_difference(delivered_call(one), repeated_call(other)) == path


def test_free_text_is_compared_as_it_is() -> None:
    custom = delivered_call('{"a":1}', kind=CallKind.CUSTOM)
    assert first_difference(custom, repeated_call('{"a": 1}')) == "$"
    assert first_difference(custom, repeated_call('{"a":***}')) is None


def test_values_as_deep_as_the_parser_allows_are_compared() -> None:
    deep = '{"a":' * 500 + "1" + "}" * 500
    assert (
        first_difference(delivered_call(deep), repeated_call(deep.replace("1", "2")))
        == "$" + ".a" * 500
    )


@pytest.mark.parametrize(
    ("text", "clause"),
    [
        ("", "the repeated arguments are empty"),
        ("{}", "the repeated arguments are an empty object"),
        ('{"b":2}', "these are the arguments of call 1"),
        (
            '{"city":"Rome"}{"b":2}',
            "the arguments of call 0 and call 1 are joined together",
        ),
        (
            '{"b":2}{"city":"Rome"}',
            "the arguments of call 0 and call 1 are joined together",
        ),
        ('"Rome"', "only fragment 2 of 3 is there"),
        ('{"city":"Rome"}{"city":"Rome"}', "the arguments are there twice"),
        ('"Rome"}', "fragment 1 of 3 is missing"),
        ('{"city":"Ro', "only the first 11 of 15 characters are there"),
        ('me"}', "only the last 4 of 15 characters are there"),
        ('{"city":{"b":2}"Rome"', "the fragments of call 0 and call 1 are mixed"),
        ("something else", ""),
    ],
)
def test_the_clause_says_what_the_text_is_made_of(text: str, clause: str) -> None:
    one = delivered_call('{"city":"Rome"}', '{"city":', '"Rome"', "}")
    other = delivered_call('{"b":2}', index=1)
    found = relation(one, repeated_call(text), SiblingCalls((one, other)))
    assert (found.clause if found else "").startswith(clause)
    assert bool(found) is bool(clause)


def test_calls_that_go_on_alike_are_mixed_in_their_order() -> None:
    one = delivered_call("ax1", "a", "x", "1")
    other = delivered_call("bx2", "b", "x", "2", index=1)
    siblings = SiblingCalls((one, other))
    assert (
        siblings.mixed("abxx12") == siblings.mixed("abx1x2") == siblings.mixed("ax1bx2") == [0, 1]
    )
    assert siblings.mixed("bx2") == [1]
    assert siblings.mixed("abx2") == siblings.mixed("aa") == siblings.mixed("y") == []


def test_of_many_equal_calls_another_one_is_named() -> None:
    every = [delivered_call('{"b":2}', index=index) for index in range(4)]
    siblings = SiblingCalls(every)
    assert siblings.with_arguments('{"b":2}', every[3]) is every[0]
    assert siblings.with_arguments('{"b":2}', every[0]) is every[1]
    assert siblings.with_arguments("", every[0]) is None


def test_ids_are_derived_from_many_as_from_one() -> None:
    delivered = [delivered_call("", ids=(f"c{number}",)) for number in range(1, 50)]
    repeated = ["c1", "c1c1", "c", "c10", "c100", "x", None, ""]
    derived = DerivedIds(delivered, repeated)
    for call in delivered:
        found = set(derived.of(call.ids[0]))
        expected = (each for each in repeated if is_derived(call, repeated_call("", call_id=each)))
        assert found == set(expected)


def test_names_and_ids_that_never_came_cannot_be_repeated() -> None:
    assert same_id(delivered_call("", ids=()), repeated_call("", call_id="anything"))
    assert same_id(delivered_call("", ids=("c1", "c2")), repeated_call("", call_id="c2"))
    assert not same_id(delivered_call(""), repeated_call("", call_id=None))
    assert same_name(delivered_call(""), repeated_call(""))
    assert not same_name(delivered_call(""), repeated_call("", name=None))


def test_an_id_made_of_the_delivered_one_is_derived() -> None:
    assert is_derived(delivered_call(""), repeated_call("", call_id="c1c1"))
    assert is_derived(delivered_call(""), repeated_call("", call_id="c"))
    assert not is_derived(delivered_call(""), repeated_call("", call_id="x9"))
    assert not is_derived(delivered_call(""), repeated_call("", call_id=None))


@pytest.mark.parametrize(
    ("text", "clause", "hint"),
    [
        ('{"city":{"city":"Rome"}', "fragment 1 of 3 appears twice", "append each fragment once"),
        ('{"city":"Rome""Rome"}', "fragment 2 of 3 appears twice", "append each fragment once"),
        ('{"city":{"city":"Rome""Rome"}}', "every fragment appears twice", "append each fragment"),
        ('"{\\"city\\":\\"Rome\\"}"', "the arguments are encoded as JSON", "pass the"),
        (
            "[object Object]",
            "this is what JavaScript prints for an object",
            "pass the arguments on",
        ),
        ("{'city': 'Rome'}", "the arguments are in Python's notation", "pass the arguments on"),
        (
            '"Rome"}',
            "fragment 1 of 3 is missing",
            "also take the arguments of the event that opens",
        ),
        ('{"city":}', "fragment 2 of 3 is missing", "append every fragment"),
    ],
)
def test_the_relation_says_what_to_change(text: str, clause: str, hint: str) -> None:
    one = delivered_call('{"city":"Rome"}', '{"city":', '"Rome"', "}")
    found = relation(one, repeated_call(text), SiblingCalls((one,)))
    assert found is not None
    assert found.clause.startswith(clause)
    assert found.hint.startswith(hint)


@pytest.mark.parametrize("text", ['{"city":"Rome"}"Rome', '{"city":"Rome"}xxxxxxxx', "{'a': (}"])
def test_other_texts_are_made_of_nothing(text: str) -> None:
    one = delivered_call('{"city":"Rome"}', '{"city":', '"Rome"', "}")
    assert relation(one, repeated_call(text), SiblingCalls((one,))) is None
    assert (
        relation(delivered_call('{"a":', '{"a":'), repeated_call("'{'"), SiblingCalls(())) is None
    )


UTF8 = '{"q":"café, café and naïve"}'


@pytest.mark.parametrize(
    "text",
    [
        '{"q":"cafÃ©, cafÃ© and naÃ¯ve"}',
        '{"q":"caf��, café and naïve"}',
    ],
    ids=["latin-1", "replacement"],
)
def test_text_that_was_decoded_wrongly(text: str) -> None:
    one = delivered_call(UTF8)
    found = relation(one, repeated_call(text), SiblingCalls((one,)))
    assert found is not None
    assert found.clause == "characters outside ASCII were decoded wrongly"


def test_a_character_that_is_only_missing_was_not_decoded_wrongly() -> None:
    one = delivered_call(UTF8)
    text = '{"q":"caf, café and naïve"}'
    assert relation(one, repeated_call(text), SiblingCalls((one,))) is None


@pytest.mark.parametrize(
    "text",
    [
        '{"q":"caf, caf and nave"}',
        '{"q":"cafe, café and naïve"}',
        '{"q":"café, café and naïve!"}',
        '{"q":"� café and naïve"}',
        '{"q":7}',
    ],
)
def test_text_that_was_changed_on_purpose(text: str) -> None:
    one = delivered_call(UTF8)
    assert relation(one, repeated_call(text), SiblingCalls((one,))) is None
    ascii_only = delivered_call('{"q":"x"}')
    assert relation(ascii_only, repeated_call('{"q":"y"}'), SiblingCalls((ascii_only,))) is None


@pytest.mark.parametrize(
    ("call_id", "is_random"),
    [
        ("call_9pw3jHXkQYzDhq", True),
        ("toolu_01A09q90qw90lq917835lq9", True),
        ("9fA3kQz1b", True),
        ("call_0", False),
        ("functions.get_weather:0", False),
        ("call_xxxxxxxx", False),
        ("call_00000000", False),
        ("get_weather_call_1", False),
        ("REDACTED", False),
        ("", False),
    ],
)
def test_an_id_is_distinctive_if_nobody_makes_it_up(call_id: str, is_random: bool) -> None:  # noqa: FBT001 - a table
    assert is_distinctive(call_id) is is_random


def test_the_leaves_of_arguments_are_their_texts_and_numbers() -> None:
    assert sorted(leaves('{"a":["x",{"b":7}],"c":true,"d":null,"e":1.5}')) == ["1.5", "7", "x"]
    assert list(leaves("no JSON")) == []


@pytest.mark.parametrize(
    ("pieces", "text", "is_closed"),
    [
        (('{"a":{"b":["x","y', 'z"]}}'), '{"a":{"b":["x","y"]}}', True),
        (('{"a":"x\\"', 'y"}'), '{"a":"x\\""}', True),
        (('{"a":"x\\', '"y"}'), '{"a":"x"}', False),
        (('{"a":1,"b', '":2}'), '{"a":1}', False),
        (('{"a":[[1],"q', 'r"],"b":2}'), '{"a":[[1],"q"]}', True),
        (('{"a":"xy"', "}"), '{"a":"x"}', False),
        (('{"a":"x', 'y"}'), '"x"', False),
        (('{"a":"x', 'y"}'), '{"a":"z"}', False),
    ],
)
def test_an_early_end_of_partial_json_counts_inside_a_text(
    pieces: tuple[str, ...],
    text: str,
    is_closed: bool,  # noqa: FBT001 - a table
) -> None:
    one = delivered_call("".join(pieces), *pieces)
    found = relation(one, repeated_call(text), SiblingCalls((one,)))
    assert (found is not None and "closed by a partial-JSON parser" in found.clause) is is_closed


@pytest.mark.parametrize(
    ("pieces", "text", "is_trimmed"),
    [
        (('{"a":"New', " York", ' City on"}'), '{"a":"NewYorkCity on"}', True),
        (('{"a":"New ', 'York and"}'), '{"a": "NewYork and"}', False),
        (('{"a":"New ', ' York and"}'), '{"a": "New York and"}', False),
        (('{"a":"New ', "York ", 'City on"}'), '{"a":"NewYorkCity on"}', True),
        (('{"a":"New', " York", ' City"}'), '{"a":"NewYorkCity"}', False),
        (('{"a":"New', " York", ' City on"}'), '{"a":"New YorkCity"}', False),
        (('{"a":"New', ' York"}'), '{"a":"New York', False),
        (('{"a":', ' "x y"}'), '{"a":"x z"}', False),
    ],
)
def test_spaces_that_are_missing_where_fragments_end_were_stripped(
    pieces: tuple[str, ...],
    text: str,
    is_trimmed: bool,  # noqa: FBT001 - a table
) -> None:
    one = delivered_call("".join(pieces), *pieces)
    found = relation(one, repeated_call(text), SiblingCalls((one,)))
    assert (found is not None and "white space" in found.clause) is is_trimmed


@pytest.mark.parametrize(
    ("whole", "says"),
    [
        (
            ('{"t":"Dinner', " with", " Ana", " at", ' eight"}'),
            "words run together where",
        ),
        (('{"t":"Ana', " at", ' eight"}'), None),  # too few for a text
        (('{"t":"12', " 34", " 56", " 78", ' 90"}'), None),  # a number
        (('{"t":"Dinner with', ' Ana at eight"}'), None),  # it was cleared of all of them
    ],
)
def test_words_that_are_glued_where_fragments_meet(
    whole: tuple[str, ...], says: str | None
) -> None:
    one = delivered_call("".join(whole), *whole)
    found = relation(one, repeated_call(one.arguments.replace(" ", "")), SiblingCalls((one,)))
    assert (found is None) == (says is None)
    if found and says:
        assert found.clause.startswith(says)
        assert found.damage is ArgumentsDamage.GLUED


def torn(*fragments: str, at: tuple[int, ...]) -> DeliveredCall:
    """A call in whose fragments at these places a network read cut a character."""
    return replace(delivered_call("".join(fragments), *fragments), torn=at)


@pytest.mark.parametrize(
    ("text", "at", "says"),
    [
        (
            '{"q": "tr\u00e8s bien, a cté"}',
            (1,),
            "'ô' is missing: a chunk boundary splits its bytes",
        ),
        ('{"q":"trs bien, a côt"}', (0,), None),  # it has no é
        (
            '{"q":"trs bien, a côté"}',
            (0,),
            "'è' is missing: a chunk boundary splits its bytes",
        ),
        ('{"q":"trs bien, a côté"}', (1,), None),
        ('{"q":"tr bien, a côté"}', (0,), None),
        ('{"q":7}', (0,), None),
    ],
)
def test_characters_that_reads_cut_are_missing(
    text: str, at: tuple[int, ...], says: str | None
) -> None:
    one = torn('{"q":"très bien', ', a côté"}', at=at)
    found = relation(one, repeated_call(text), SiblingCalls((one,)))
    assert (found is None) == (says is None)
    if found and says:
        assert found.clause.startswith(says)
        assert found.damage is ArgumentsDamage.DECODED
        assert "one incremental UTF-8 decoder" in found.hint


def test_an_app_that_leaves_nothing_outside_ascii_may_filter_it() -> None:
    one = torn('{"q":"caf', 'é!"}', at=(1,))
    found = relation(one, repeated_call('{"q":"caf!"}'), SiblingCalls((one,)))
    assert found
    assert found.damage is ArgumentsDamage.TORN


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("sk-fake-000000", "**************"),
        ("sk-fake-000000", "***"),
        ("write to a@b.example now", "write to [REDACTED] now"),
        ("write to a@b.example now", "write to <redacted:email> now"),
        ("one two three four", "one *** three ***"),
        ("one two three four", "\u2022\u2022\u2022 two [Filtered] four"),
        ("", "{removed}"),
    ],
)
def test_a_masked_text_is_the_same_on_either_side(text: str, masked: str) -> None:
    assert same_but_masked(text, masked)
    assert same_but_masked(masked, text)


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("one", "two"),
        ("one two", "one ** two"),
        ("one two", "two ***"),
        ("one two", "*** one"),
        ("one two three", "one *** four *** three"),
        ("one two", "one t*** two"),
        ("aa", "aa***a"),
        ("", "a***"),
    ],
)
def test_what_shows_beside_the_mask_has_to_be_there(text: str, masked: str) -> None:
    assert not same_but_masked(text, masked)
