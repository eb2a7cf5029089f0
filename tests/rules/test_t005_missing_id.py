from helpers.chat import FINISH, calls, choice, entry
from helpers.exchanges import call, found, one, pasted


def test_a_call_without_an_id_is_reported() -> None:
    exchange = pasted(calls(entry(0, name="get", arguments="{}")), FINISH)
    assert one(exchange, "T005").message.startswith("call 0 (get): ")


def test_an_id_in_the_first_fragment_is_enough_and_function_call_has_none() -> None:
    legacy = choice({"function_call": {"name": "get", "arguments": "{}"}})
    assert not found(pasted(*call(), FINISH), "T005")
    assert not found(pasted(legacy, choice({}, "function_call")), "T005")
