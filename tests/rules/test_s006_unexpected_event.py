from helpers.chat import choice
from helpers.exchanges import FINISH_TEXT, TEXT, found, one, pasted


def test_an_empty_finish_reason_is_reported() -> None:
    assert one(pasted(choice({"content": "a"}, ""), FINISH_TEXT), "S006").event == 0


def test_a_known_grammar_is_fine() -> None:
    assert not found(pasted(TEXT, FINISH_TEXT), "S006")
