from dataclasses import replace

from deltatape.model.exchange import Tap
from deltatape.why.explain import explain
from deltatape.why.reproduction import needed
from helpers.chat import FINISH
from helpers.exchanges import FINISH_TEXT, TEXT, USER, asks, assistant, call, conversation, result
from helpers.watched import CALLS, watched

BEFORE = assistant(("c0", "get", "{}"))
FIRST = asks(USER, BEFORE, result("c0"))
OTHER = asks({"role": "user", "content": "Something else."})
BROKEN = asks(USER, BEFORE, result("c0"), assistant(("c1", "get", "")), result("c1"))
CALL = [*call(), FINISH]


def test_what_the_conversation_began_with_and_what_repeats_the_reply_are_needed() -> None:
    tape = conversation(
        (asks(USER), [*call("get", "{}"), FINISH]),
        (OTHER, [TEXT, FINISH_TEXT]),
        (FIRST, CALL),
        (OTHER, [TEXT, FINISH_TEXT]),
        (BROKEN, [TEXT, FINISH_TEXT]),
    )
    assert needed(explain(tape, 3), tape) == frozenset({1, 3, 5})


def test_what_the_app_told_its_page_meanwhile_is_needed() -> None:
    first, later = conversation((FIRST, CALL), (BROKEN, [TEXT, FINISH_TEXT]))
    page = replace(first, number=7, tap=Tap.APP)
    tape = [first, page, later]
    assert needed(explain(tape, 1), tape) == frozenset({1, 2, 7})


def test_a_silence_needs_the_whole_tape() -> None:
    tape = watched(conversation(CALLS), 42.5, stop="child-exit", exit_code=0)
    assert needed(explain(tape), tape) is None


def test_an_error_in_a_result_needs_the_whole_tape() -> None:
    thrown = result("c1", "Unexpected end of JSON input")
    heard = asks(USER, assistant(("c1", "get", '{"a":1}')), thrown)
    tape = conversation((asks(USER), CALL), (heard, [TEXT, FINISH_TEXT]))
    assert needed(explain(tape, 1), tape) is None
