import json

from hypothesis import given, settings
from hypothesis import strategies as st

from deltatape.dialects.gemini.partial import PartialArguments

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3)
        | st.dictionaries(st.text(max_size=3), inner, min_size=1, max_size=3)
    ),
    max_leaves=8,
)


def test_nothing_is_an_empty_object_or_nothing() -> None:
    arguments = PartialArguments()
    assert (arguments.text(), arguments.beginning()) == ("{}", "")
    assert not arguments.has_gaps


def test_values_stand_where_their_paths_say() -> None:
    arguments = PartialArguments()
    assert arguments.put_string("$.a[0].b", "on", is_open=True)
    assert arguments.put_string("$['a'][0]['b']", "e", is_open=False)
    assert arguments.put("$.a[1]", "1.50")
    assert arguments.put("$.c", "null")
    assert arguments.text() == '{"a":[{"b":"one"},1.50],"c":null}'


def test_a_later_value_of_another_kind_replaces() -> None:
    arguments = PartialArguments()
    arguments.put_string("$.a", "x", is_open=True)
    arguments.put("$.a", "5")
    assert arguments.text() == '{"a":5}'
    arguments.put_string("$.a", "y", is_open=False)
    assert arguments.text() == '{"a":"y"}'


def test_a_value_cannot_stand_inside_another_one() -> None:
    arguments = PartialArguments()
    assert arguments.put("$.a", "1")
    assert arguments.put("$.b.c", "2")
    for path in ("$.a.b", "$.a[0]", "$.b", "$.b[0]", "$[0]", "$.b.*.["):
        assert not arguments.put(path, "3")
        assert not arguments.put_string(path, "3", is_open=False)
    assert arguments.text() == '{"a":1,"b":{"c":2}}'


def test_elements_are_in_the_order_of_their_indexes() -> None:
    arguments = PartialArguments()
    arguments.put("$.a[10]", "2")
    arguments.put("$.a[9]", "1")
    assert arguments.text() == '{"a":[1,2]}'
    assert arguments.has_gaps


def test_the_beginning_ends_where_the_values_do() -> None:
    arguments = PartialArguments()
    arguments.put("$.a[0].b", "1")
    assert arguments.beginning() == '{"a":[{"b":1'
    arguments.put_string("$.c", 'Bo"]}', is_open=True)
    assert arguments.beginning() == '{"a":[{"b":1}],"c":"Bo\\"]}'
    arguments.put_string("$.c", "", is_open=False)
    assert arguments.beginning() == '{"a":[{"b":1}],"c":"Bo\\"]}"'


def test_half_pairs_of_surrogates_are_joined_or_escaped() -> None:
    arguments = PartialArguments()
    arguments.put_string("$.a", "é\ud83d", is_open=True)
    arguments.put_string("$.a", "\ude00\n", is_open=True)
    assert arguments.text() == '{"a":"é\U0001f600\\n"}'
    arguments.put_string("$.b", "\ud83d", is_open=False)
    assert arguments.text().endswith('"b":"\\ud83d"}')


def flat(value: object, path: str) -> list[tuple[str, object]]:
    """The values in `value` that hold no others, with their paths."""
    if isinstance(value, dict):
        return [
            one for key, each in value.items() for one in flat(each, f"{path}[{json.dumps(key)}]")
        ]
    if isinstance(value, list):
        return [one for at, each in enumerate(value) for one in flat(each, f"{path}[{at}]")]
    return [(path, value)]


@given(st.dictionaries(st.text(max_size=3), VALUES, max_size=4), st.data())
@settings(max_examples=60)
def test_any_value_comes_back_from_its_paths(value: dict[str, object], data: st.DataObject) -> None:
    arguments = PartialArguments()
    for path, each in data.draw(st.permutations(flat(value, "$"))):
        if isinstance(each, str):
            middle = len(each) // 2
            arguments.put_string(path, each[:middle], is_open=True)
            arguments.put_string(path, each[middle:], is_open=False)
        else:
            arguments.put(path, json.dumps(each))
    assert json.loads(arguments.text()) == value
    assert not arguments.has_gaps
