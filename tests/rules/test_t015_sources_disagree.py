from helpers.responses import (
    added,
    call,
    created,
    delta,
    done,
    ended,
    findings,
    function,
    message,
    say,
)

WHOLE = '{"a":1}'


def told(*events: object) -> list[tuple[str, str]]:
    return [(one.severity, one.message) for one in findings(*events) if one.code == "T015"]


def test_arguments_that_differ_are_an_error_about_the_call() -> None:
    lost = (created(), added(function()), delta('{"a":'), done(function(WHOLE)))
    found = told(*lost, ended(function(WHOLE)))
    assert len(found) == 1
    assert found[0][0] == "error"
    assert found[0][1].startswith("call 0 (get): ")


def test_a_text_that_differs_is_a_warning() -> None:
    events = (created(), added(message()), say("Help"), done(message("Hello")))
    assert [severity for severity, _ in told(*events, ended(message("Hello")))] == ["warning"]


def test_sources_that_agree_are_fine() -> None:
    assert told(created(), *call(), ended(function(WHOLE))) == []
