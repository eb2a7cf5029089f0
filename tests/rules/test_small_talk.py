import pytest

from deltatape.rules.settings import DEFAULTS
from deltatape.rules.small_talk import small_talk


def words(text: str) -> str:
    return small_talk(text, DEFAULTS.small_talk_words, DEFAULTS.small_talk)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Hi", "hi"),
        ("  Thanks!! \U0001f44b\n", "thanks"),
        ("thanks, that's all I need, bye!", "thanks thats all i need bye"),
        ("Thank you so much; see you tomorrow.", "thank you so much see you tomorrow"),
        ("Tschüß!", "tschuss"),
        ("À bientôt", "a bientot"),
    ],
)
def test_greetings_thanks_and_farewells(text: str, said: str) -> None:
    assert words(text) == said


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\U0001f44b",
        "yes, thanks",
        "ok",
        "stop",
        "Hello?",
        "Thanks, and tomorrow",
        "hello world",
        "thanks <note>",
        "bye 2",
        "thanks " * 13,
        "bye" + " " * 400,
    ],
)
def test_what_says_anything_else_is_none(text: str) -> None:
    assert words(text) == ""


def test_phrases_and_the_length_are_settings() -> None:
    assert small_talk("Ahoy, matey", 2, ["ahoy", "MATEY"]) == "ahoy matey"
    assert small_talk("Ahoy, matey", 1, ["ahoy", "matey"]) == ""
    assert small_talk("ahoy", 9, []) == ""
