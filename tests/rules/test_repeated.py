import pytest

from deltatape.model.asked import RepeatedCall
from deltatape.model.digest import SaidCall
from deltatape.model.reply import CallKind, CallStatus
from deltatape.rules.repeated import first_difference, is_derived, relation, same_id, same_name


def said(
    arguments: str,
    *fragments: str,
    kind: CallKind = CallKind.FUNCTION,
    index: int = 0,
    ids: tuple[str, ...] = ("c1",),
) -> SaidCall:
    return SaidCall(
        index=index,
        id=ids[0] if ids else None,
        ids=ids,
        name="get",
        kind=kind,
        arguments=arguments,
        fragments=fragments or (arguments,),
        status=CallStatus.COMPLETE,
    )


def heard(arguments: str, name: str | None = "get", call_id: str | None = "c1") -> RepeatedCall:
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
    assert first_difference(said(one), heard(other)) is None


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
    assert first_difference(said(one), heard(other)) == path


def test_free_text_is_compared_as_it_is() -> None:
    custom = said('{"a":1}', kind=CallKind.CUSTOM)
    assert first_difference(custom, heard('{"a": 1}')) == "$"


def test_values_as_deep_as_the_parser_allows_are_compared() -> None:
    deep = '{"a":' * 500 + "1" + "}" * 500
    assert first_difference(said(deep), heard(deep.replace("1", "2"))) == "$" + ".a" * 500


@pytest.mark.parametrize(
    ("text", "clause"),
    [
        ("", "the app repeats no arguments at all"),
        ("{}", "the app repeats an empty object"),
        ('{"b":2}', "these are the arguments of call 1"),
        ('{"city":"Rome"}{"b":2}', "the arguments of call 0 and call 1 are glued together"),
        ('{"b":2}{"city":"Rome"}', "the arguments of call 0 and call 1 are glued together"),
        ('"Rome"', "it is fragment 2 of 3 alone"),
        ('{"city":"Rome"}{"city":"Rome"}', "it is the arguments twice"),
        ('"Rome"}', "fragment 1 of 3 is missing"),
        ('{"city":"Ro', "it is the first 11 of 15 characters"),
        ('me"}', "it is the last 4 of 15 characters"),
        ('{"city":{"b":2}"Rome"', "the fragments of call 0 and call 1 are mixed"),
        ("something else", ""),
    ],
)
def test_the_clause_says_what_the_text_is_made_of(text: str, clause: str) -> None:
    one = said('{"city":"Rome"}', '{"city":', '"Rome"', "}")
    other = said('{"b":2}', index=1)
    assert relation(one, heard(text), (one, other)).startswith(clause)
    assert bool(relation(one, heard(text), (one, other))) is bool(clause)


def test_names_and_ids_that_never_came_cannot_be_repeated() -> None:
    assert same_id(said("", ids=()), heard("", call_id="anything"))
    assert same_id(said("", ids=("c1", "c2")), heard("", call_id="c2"))
    assert not same_id(said(""), heard("", call_id=None))
    assert same_name(said(""), heard(""))
    assert not same_name(said(""), heard("", name=None))


def test_an_id_made_of_the_delivered_one_is_derived() -> None:
    assert is_derived(said(""), heard("", call_id="c1c1"))
    assert is_derived(said(""), heard("", call_id="c"))
    assert not is_derived(said(""), heard("", call_id="x9"))
    assert not is_derived(said(""), heard("", call_id=None))
