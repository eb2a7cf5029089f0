from helpers.responses import added, call, created, done, ended, findings, function, message, say

SPOKEN = (created(), added(message()), say("Hi"), done(message("Hi")))


def told(*events: object) -> list[str]:
    return [one.severity for one in findings(*events) if one.code == "S008"]


def test_a_final_response_without_the_calls_that_came_is_a_warning() -> None:
    assert told(created(), *call(), ended()) == ["warning"]


def test_without_any_call_it_is_one_too() -> None:
    assert told(*SPOKEN, ended()) == ["warning"]


def test_a_final_response_that_lists_what_came_is_fine() -> None:
    assert told(*SPOKEN, ended(message("Hi"))) == []
    assert told(created(), *call(), ended(function('{"a":1}'))) == []
    assert told(created(), ended()) == []
