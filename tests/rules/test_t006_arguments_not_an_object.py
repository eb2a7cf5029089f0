import pytest

from helpers.chat import FINISH, calls, entry
from helpers.exchanges import call, found, one, pasted


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ('"{\\"a\\": 1}"', "encoded twice"),
        ("[1]", "no object"),
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
