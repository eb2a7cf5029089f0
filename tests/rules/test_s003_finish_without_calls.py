from helpers.chat import FINISH
from helpers.exchanges import FINISH_TEXT, TEXT, call, codes, found, one, pasted


def test_promised_calls_that_never_came_are_reported_alone() -> None:
    exchange = pasted(TEXT, FINISH)
    assert one(exchange, "S003").evidence == "Hello"
    assert codes(exchange) == ["S003"]


def test_calls_that_came_and_none_that_were_promised_are_fine() -> None:
    assert not found(pasted(*call(), FINISH), "S003")
    assert not found(pasted(TEXT, FINISH_TEXT), "S003")
