from dataclasses import replace

from deltatape.diagnose.check import check
from deltatape.diagnose.digest import digest
from deltatape.diagnose.fingerprint import fingerprint, request_identity, shape
from deltatape.model.exchange import Exchange
from helpers.chat import FINISH, calls, entry
from helpers.exchanges import pasted

ASK: dict[str, object] = {"role": "user", "content": "What is the weather?"}
OTHER: dict[str, object] = {"role": "user", "content": "What is the time?"}


def bad(*history: object, call_id: str = "call_a1", name: str = "get") -> Exchange:
    asked: dict[str, object] = {"model": "m", "messages": list(history)}
    return pasted(calls(entry(0, call_id, name=name, arguments="[1]")), FINISH, request=asked)


def printed(exchange: Exchange) -> str:
    (finding,) = check(exchange)
    return fingerprint(finding, request_identity(digest(exchange)))


def test_what_differs_from_run_to_run_is_left_out_of_a_message() -> None:
    assert shape("call 0 (get): 'call_a1' becomes 'call_b2' after 1.5 s") == (
        shape("call 3 (get): 'call_c4' becomes 'call_d5' after 27 s")
    )
    assert shape("call 0 (get)") != shape("call 0 (put)")


def test_it_is_the_same_when_it_is_recorded_again() -> None:
    again = replace(bad(ASK, call_id="call_b2"), tape="other.tape", number=7, id="x")
    assert printed(bad(ASK)) == printed(again)


def test_it_differs_by_call_and_by_what_was_asked() -> None:
    assert len({printed(bad(ASK)), printed(bad(ASK, name="put")), printed(bad(OTHER))}) == 3


def test_a_question_is_another_one_after_its_tools_have_answered() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "get", "arguments": "{}"}}
    said = {"role": "assistant", "content": None, "tool_calls": [call]}
    result = {"role": "tool", "tool_call_id": "c", "content": "1"}
    later = {"role": "tool", "tool_call_id": "c", "content": "2"}
    assert printed(bad(ASK)) != printed(bad(ASK, said, result))
    assert printed(bad(ASK, said, later)) == printed(bad(ASK, said, result))


def test_a_request_that_is_not_known_has_one_too() -> None:
    assert len(request_identity(digest(pasted(FINISH)))) == 16
