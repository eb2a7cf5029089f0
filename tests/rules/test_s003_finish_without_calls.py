from dataclasses import replace

from deltatape.model.exchange import EndReason
from helpers.chat import FINISH
from helpers.exchanges import FINISH_TEXT, TEXT, call, codes, found, one, pasted, timed


def test_promised_calls_that_never_came_are_reported_alone() -> None:
    exchange = pasted(TEXT, FINISH)
    assert one(exchange, "S003").evidence == "Hello"
    assert codes(exchange) == ["S003"]


def test_calls_that_came_and_none_that_were_promised_are_fine() -> None:
    assert not found(pasted(*call(), FINISH), "S003")
    assert not found(pasted(TEXT, FINISH_TEXT), "S003")


def test_a_client_that_left_there_would_have_missed_a_later_call() -> None:
    exchange = timed((0.1, TEXT), (0.2, FINISH), end_s=0.3)
    assert exchange.end
    left = replace(exchange, end=replace(exchange.end, reason=EndReason.CLIENT_CLOSED))
    assert one(left, "S003").message.endswith(
        "no tool call before it; the client left here, so that one that came later would be lost"
        " to it"
    )
    assert one(exchange, "S003").message.endswith("but the reply has no tool call")
