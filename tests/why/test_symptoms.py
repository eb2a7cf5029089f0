"""What is known of what an application made of a reply, through `tell`, which asks for it."""

from collections.abc import Sequence
from dataclasses import replace

from deltatape.diagnose.rebuild import analyse
from deltatape.model.exchange import Exchange, Tap
from deltatape.model.log import LogEntry, LogStream
from deltatape.model.suspect import Symptom
from deltatape.rules.settings import DEFAULTS
from deltatape.why.ruling import case_of
from deltatape.why.survey import survey
from deltatape.why.symptoms import Matter, matter_of
from helpers import app
from helpers.chat import FINISH
from helpers.exchanges import (
    FINISH_TEXT,
    TEXT,
    USER,
    asks,
    assistant,
    call,
    conversation,
    pasted,
    result,
)
from helpers.watched import CALLS, watched

TWO = [*call("get"), *call("put", '{"b":2}', 1), FINISH]
THROWN = "Unexpected end of JSON input"
TOLD = f"failed to parse tool arguments: {THROWN}"
ANSWER = [TEXT, FINISH_TEXT]


def matter(
    tape: Sequence[Exchange], number: int = 1, logs: Sequence[LogEntry] = (), *errors: str
) -> Matter | None:
    """What is known about an exchange of a tape."""
    seen = survey(tape, DEFAULTS, logs)
    analysis = analyse(next(each for each in tape if each.number == number))
    return matter_of(case_of(seen, analysis), analysis, tape, errors, DEFAULTS)


def symptom(
    tape: Sequence[Exchange], number: int = 1, logs: Sequence[LogEntry] = (), *errors: str
) -> Symptom | None:
    """The symptom alone."""
    found = matter(tape, number, logs, *errors)
    return found.symptom if found else None


def printed(line: bytes, at_s: float) -> LogEntry:
    return LogEntry(t_ns=round(at_s * 1e9), stream=LogStream.STDERR, line=line)


def test_the_calls_that_a_request_repeats_wrongly_are_the_symptom() -> None:
    heard = asks(USER, assistant(("c2", "put", "")), result("c2", THROWN))
    found = symptom(conversation((asks(USER), TWO), (heard, ANSWER)))
    assert found
    assert found.calls
    assert [(each.id, each.name, each.arguments) for each in found.calls] == [("c2", "put", "")]
    assert found.errors[0].startswith(THROWN)


def test_a_call_that_is_repeated_as_delivered_is_no_symptom() -> None:
    heard = asks(USER, assistant(("c1", "get", '{"a":1}')), result("c1"))
    assert symptom(conversation((asks(USER), [*call(), FINISH]), (heard, ANSWER))) is None


def test_an_error_in_its_result_is_one_if_it_speaks_of_the_call() -> None:
    for text, errors in ((TOLD, (THROWN,)), (THROWN, None)):
        heard = asks(USER, assistant(("c1", "get", '{"a":1}')), result("c1", text))
        found = symptom(conversation((asks(USER), [*call(), FINISH]), (heard, ANSWER)))
        assert found == (Symptom(errors=errors) if errors else None)


def test_going_on_without_any_call_is_one() -> None:
    found = symptom(conversation((asks(USER), TWO), (asks(USER, USER), ANSWER)))
    assert found == Symptom(calls=())


def test_silence_is_one() -> None:
    tape = watched(conversation(CALLS), 42.5, stop="child-exit", exit_code=0)
    assert symptom(tape) == Symptom(calls=())


def test_what_the_app_prints_soon_after_the_reply_is_one_and_the_user_knows_better() -> None:
    tape = conversation((asks(USER), [*call(), FINISH]))
    lines = [printed(TOLD.encode(), 1.0), printed(b"listening", 1.0)]
    assert symptom(tape, 1, lines) == Symptom(errors=(THROWN,))
    assert symptom(tape, 1, [printed(TOLD.encode(), 99.0)]) is None
    assert symptom(tape, 1, lines, "KeyError") == Symptom(errors=("KeyError",))


def test_of_a_stream_without_times_only_the_user_knows() -> None:
    tape = [pasted(*call(), FINISH)]
    assert symptom(tape, 1, [printed(THROWN.encode(), 0.0)]) is None
    assert symptom(tape, 1, (), THROWN) == Symptom(errors=(THROWN,))


def page(upstream: Exchange, *frames: object) -> Exchange:
    """The application's own answer to its page, meanwhile."""
    shown = replace(app.told(*frames), tap=Tap.APP, number=9, end=upstream.end)
    return replace(shown, request=replace(shown.request, t_ns=upstream.request.t_ns))


BROKEN_PAGE = (app.call(None, 10), app.done())


def test_the_calls_that_the_page_is_told_of_are_the_symptom_on_both_sides() -> None:
    (upstream,) = conversation((asks(USER), [*call(), FINISH]))
    tape = [upstream, page(upstream, *BROKEN_PAGE)]
    for number in (1, 9):
        found = matter(tape, number)
        assert found
        assert found.across
        assert found.analysis.exchange.number == 1
        assert found.symptom.calls
        assert [(each.name, each.arguments) for each in found.symptom.calls] == [(None, "10")]


def test_a_page_that_is_told_the_same_however_spelled_is_no_symptom() -> None:
    (upstream,) = conversation((asks(USER), [*call("get", '{"a": 1}'), FINISH]))
    assert symptom([upstream, page(upstream, app.call(), app.done())]) is None
    assert symptom([upstream, page(upstream, app.call(), app.done())], 9) is None


def test_a_page_that_is_told_nothing_of_tools_is_no_symptom() -> None:
    (upstream,) = conversation((asks(USER), [*call(), FINISH]))
    tape = [upstream, page(upstream, app.text("Hi"), app.done())]
    assert symptom(tape) is None
    assert symptom(tape, 9) is None


def test_of_several_replies_behind_a_page_the_one_it_was_told_wrongly_is_meant() -> None:
    one, two = conversation(
        (asks(USER), [*call("put", '{"b":2}'), FINISH]), (asks(USER, USER), [*call(), FINISH])
    )
    both = replace(page(one, app.call("put", {"b": 2}), *BROKEN_PAGE), end=two.end)
    found = matter([one, two, both], 9)
    assert found
    assert found.analysis.exchange.number == 2
    assert found.symptom.calls
    assert [each.arguments for each in found.symptom.calls] == ["10"]
    assert symptom([one, two, both], 1) == Symptom(calls=())  # it goes on without the reply


def test_an_answer_of_the_app_in_a_dialect_of_providers_is_none() -> None:
    (upstream,) = conversation((asks(USER), [*call(), FINISH]))
    other = replace(upstream, number=2, tap=Tap.APP)
    assert symptom([upstream, other]) is None
    assert symptom([upstream, other], 2) is None


def test_a_call_whose_result_is_sent_back_was_read_whatever_is_repeated() -> None:
    orphan = asks(USER, {"role": "assistant", "content": "One moment."}, result("c1"))
    tape = conversation((asks(USER), [*call(), FINISH]), (orphan, ANSWER))
    assert symptom(tape) is None


def test_calls_that_are_hidden_from_the_page_are_no_symptom() -> None:
    (upstream,) = conversation((asks(USER), TWO))
    assert symptom([upstream, page(upstream, app.call(), app.done())]) is None
    renamed = page(upstream, app.call("look up"), app.done())
    assert symptom([upstream, renamed]) is None


def test_with_two_pages_at_once_nobody_knows_which_was_told() -> None:
    (upstream,) = conversation((asks(USER), [*call(), FINISH]))
    first = page(upstream, *BROKEN_PAGE)
    assert symptom([upstream, first, replace(first, number=10)]) is None
