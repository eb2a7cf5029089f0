import pytest

from deltatape.match.difference import MAX_DIFFERENCES, JsonDifference, compare


def test_equal_values_do_not_differ() -> None:
    assert compare({"a": [1, {"b": None}]}, {"a": [1, {"b": None}]}) == ()


def test_each_path_is_named_with_both_values() -> None:
    assert compare({"a": 1, "b": [1], "gone": 0}, {"a": 2, "b": [1, 2], "new": True}) == (
        JsonDifference(path="$.a", recorded="1", received="2"),
        JsonDifference(path="$.b.length", recorded="1", received="2"),
        JsonDifference(path="$.gone", recorded="0", received="(absent)"),
        JsonDifference(path="$.new", recorded="(absent)", received="true"),
    )


def test_numbers_and_booleans_are_different_things() -> None:
    assert compare([1], [True]) == (JsonDifference(path="$[0]", recorded="1", received="true"),)
    assert compare([1], {"a": 1})[0].path == "$"


def test_long_values_are_shortened_and_escaped() -> None:
    (difference,) = compare("\x1b" * 100, "")
    assert difference.recorded == '"' + "\\u001b" * 9 + "\\u..."
    assert len(difference.recorded) == 60


def test_long_texts_are_shown_where_they_begin_to_differ() -> None:
    same = "the same beginning of a long prompt, "
    (difference,) = compare(same + "one end", same + "another")
    assert difference.recorded == '"...a long prompt, one end"'
    assert difference.received == '"...a long prompt, another"'
    assert compare("abc", "abcdef")[0].received == '"abcdef"'


def test_differences_are_limited() -> None:
    assert len(compare(list(range(99)), [-1] * 99)) == MAX_DIFFERENCES


def test_a_path_of_endless_names_is_shortened() -> None:
    (found,) = compare({}, {"k" * 5000: 1})
    assert len(found.path) < 300


def test_what_must_not_be_shown_is_hidden_before_it_is_cut() -> None:
    def hide(text: str) -> str:
        return text.replace("fake-0000", "*********")

    long = "aei " * 10
    (difference,) = compare(f"{long}a fake-0000", f"{long}b fake-0000", hide)
    assert difference.received == '"...ei aei aei aei b *********"'
    (difference,) = compare({}, {"fake-0000": ["fake-0000"]}, hide)
    assert difference == JsonDifference(
        path="$.*********", recorded="(absent)", received='["*********"]'
    )


def test_a_string_whose_member_is_named_like_a_credential_is_not_told() -> None:
    (difference,) = compare({"a": {"api_key": ["x"]}}, {"a": {"api_key": ["y"]}})
    assert (difference.recorded, difference.received) == ("***", "***")
    (difference,) = compare({"token": 1}, {"token": 2})
    assert difference.received == "2"


@pytest.mark.parametrize("name", ["prompt_cache_key", "session_id", "x-idempotency-key"])
def test_the_id_of_a_session_is_not_taken_for_a_credential(name: str) -> None:
    (difference,) = compare({name: "0b9e-1"}, {name: "0b9e-2"})
    assert (difference.recorded, difference.received) == ('"0b9e-1"', '"0b9e-2"')


@pytest.mark.parametrize(
    "name", ["my_api_key", "cache_api_key", "session_token", "password", "cache_key_secret"]
)
def test_real_credentials_are_hidden_whatever_is_before_their_name(name: str) -> None:
    (difference,) = compare({name: "0b9e-1"}, {name: "0b9e-2"})
    assert (difference.recorded, difference.received) == ("***", "***")


def test_paths_with_colons_are_quoted() -> None:
    assert compare({"a:b": 1}, {"a:b": 2})[0].path == '$["a:b"]'
