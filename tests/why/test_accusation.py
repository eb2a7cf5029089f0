"""Verdicts with a suspect."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from deltatape.diagnose.rebuild import analyse
from deltatape.model.exchange import Exchange, Tap
from deltatape.model.explanation import Explanation, VerdictKind
from deltatape.model.finding import Blame
from deltatape.model.request_summary import RepeatedCall
from deltatape.model.rule_settings import DEFAULTS
from deltatape.model.suspect import Symptom
from deltatape.model.tape_summary import LogEntry, LogStream
from deltatape.why.accusation import (
    AppHandling,
    app_handling,
    is_drop,
    is_open_to_suspicion,
    with_suspects,
    worth_naming,
)
from deltatape.why.explain import explain
from deltatape.why.survey import survey
from deltatape.why.tape_verdict import case_of
from deltatape.why.verdict import LOSS
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
ALIKE = [*call("get"), *call("get", '{"a":2}', 1), FINISH]
LAST = assistant(("c2", "get", '{"a":2}'))
THROWN = "Unexpected end of JSON input"
ANSWER = [TEXT, FINISH_TEXT]


def explained(tape: Sequence[Exchange], *errors: str) -> Explanation:
    return explain(tape, 1, errors=errors)


@pytest.mark.slow
def test_a_verdict_on_the_app_names_its_mistake() -> None:
    later = asks(USER, assistant(("c2", "put", "")), result("c2", THROWN))
    explanation = explained(conversation((asks(USER), TWO), (later, ANSWER)))
    assert explanation.suspects
    first = explanation.suspects[0]
    assert first.exact
    assert f"The app behaves like {first.name}" in explanation.verdict.summary
    assert explanation.verdict.summary.endswith(f": it {first.says}.")
    assert explanation.verdict.fix == first.fix


def test_nobody_is_suspected_where_calls_may_have_been_dropped_on_purpose() -> None:
    explanation = explained(conversation((asks(USER), TWO), (asks(USER, USER), ANSWER)))
    assert explanation.verdict.blame is None
    assert explanation.suspects == ()


def test_for_missing_calls_alone_a_suspect_is_one_way_to_lose_them() -> None:
    kept = asks(USER, LAST, result("c2"))
    explanation = explained(conversation((asks(USER), ALIKE), (kept, ANSWER)))
    assert (explanation.verdict.blame, explanation.verdict.code) == ("app", "C001")
    assert explanation.suspects
    assert all(each.drop for each in explanation.suspects)
    assert "would lose it the same way" in explanation.verdict.summary
    assert "behaves like" not in explanation.verdict.summary
    assert explanation.verdict.fix.startswith("check whether the app keeps one call at a time")
    assert ". If not: " in explanation.verdict.fix


def test_an_error_that_the_wire_does_not_explain_makes_the_app_likely() -> None:
    (exchange,) = conversation((asks(USER), [*call("get"), *call("put", '{"b":2}', 1), FINISH]))
    explanation = explained([exchange], THROWN)
    assert (explanation.verdict.blame, explanation.verdict.confidence) == ("app", "likely")
    assert f"the app says '{THROWN}'. It behaves like {explanation.suspects[0].name}" in (
        explanation.verdict.summary
    )


@pytest.mark.slow
def test_an_error_that_no_client_would_throw_changes_nothing() -> None:
    (exchange,) = conversation((asks(USER), [*call(), FINISH]))
    explanation = explained([exchange], "the disk is full")
    assert explanation.verdict == explained([exchange]).verdict
    assert not any(each.exact for each in explanation.suspects)


def test_on_a_broken_wire_nobody_else_is_suspected() -> None:
    cut = [pasted(*call()[:2], done=False)]
    explanation = explain(cut, 1, errors=(THROWN,))
    assert (explanation.verdict.code, explanation.verdict.blame) == ("S001", None)
    assert explanation.suspects == ()


def test_every_known_client_is_tried_where_that_is_asked_for() -> None:
    (exchange,) = conversation((asks(USER), TWO))
    explanation = explain([exchange], 1, clients=True)
    wrong = {each.name for each in explanation.tried if each.differs}
    assert "each-event-is-a-call" in wrong
    assert "first-arguments-dropped" not in wrong
    assert explain([exchange], 1).tried == ()


def test_what_the_app_says_is_quoted_where_nothing_else_tells_it() -> None:
    later = asks(USER, LAST, result("c2"))
    explanation = explained(
        conversation((asks(USER), ALIKE), (later, ANSWER)), "the first call is gone"
    )
    assert explanation.suspects
    assert "It says 'the first call is gone'." in explanation.verdict.summary


@pytest.mark.slow
def test_the_providers_side_of_what_a_page_was_told_wrongly_convicts_the_app() -> None:
    (upstream,) = conversation((asks(USER), [*call("get", '{"a":1}'), FINISH]))
    page = replace(app.told(app.call("get", {}), app.done()), tap=Tap.APP, number=9)
    page = replace(page, request=replace(page.request, t_ns=0), end=upstream.end)
    explanation = explained([upstream, page])
    assert (explanation.verdict.blame, explanation.verdict.confidence) == ("app", "likely")
    assert "the app sent its page something else" in explanation.verdict.summary


def test_a_verdict_on_somebody_else_stays_as_it_is() -> None:
    later = asks(USER, assistant(("c2", "put", "")), result("c2", THROWN))
    explanation = explained(conversation((asks(USER), TWO), (later, ANSWER)))
    upstream = replace(explanation.verdict, blame=Blame.UPSTREAM)
    handling = AppHandling(
        analysis=analyse(pasted(TEXT)), symptom=Symptom(errors=(THROWN,)), page=None
    )
    assert with_suspects(upstream, handling, explanation.suspects) == upstream
    assert with_suspects(upstream, handling, ()) == upstream


def test_of_an_exchange_that_the_tape_lacks_part_of_nobody_is_suspected() -> None:
    later = asks(USER, assistant(("c2", "put", "")), result("c2", THROWN))
    tape = conversation((asks(USER), TWO), (later, ANSWER))
    seen = survey(tape, DEFAULTS)
    case = case_of(seen, analyse(tape[0]))
    handling = handling_of(tape)
    assert handling
    verdict = explained(tape).verdict
    assert is_open_to_suspicion(case, verdict, handling)
    lost = replace(seen.about_reply(1)[0], code=LOSS)
    assert not is_open_to_suspicion(replace(case, findings=(lost,)), verdict, handling)


def test_where_nothing_speaks_against_the_app_no_suspect_is_looked_for() -> None:
    changed = (("c1", "get", '{"a":"by a person"}'), ("c2", "put", '{"b":"by a person"}'))
    later = asks(USER, assistant(*changed), result("c1"), result("c2"))
    tape = conversation((asks(USER), TWO), (later, ANSWER))
    handling = handling_of(tape)
    assert handling
    assert handling.symptom.calls
    case = case_of(survey(tape, DEFAULTS), analyse(tape[0]))
    blamed = explained(conversation((asks(USER), ALIKE), (asks(USER, LAST, result("c2")), ANSWER)))
    assert blamed.verdict.blame is Blame.APP
    nobody = replace(blamed.verdict, kind=VerdictKind.UNPROVABLE, blame=None, confidence=None)
    assert is_open_to_suspicion(case, blamed.verdict, handling)
    assert not is_open_to_suspicion(case, nobody, handling)
    assert is_open_to_suspicion(case, nobody, replace(handling, page=2))
    thrown = Symptom(calls=handling.symptom.calls, errors=(THROWN,))
    assert is_open_to_suspicion(case, nobody, replace(handling, symptom=thrown))
    dropped = replace(handling, symptom=Symptom(calls=()), one_off=False)
    assert is_open_to_suspicion(case, blamed.verdict, dropped)
    assert not is_open_to_suspicion(case, blamed.verdict, replace(dropped, one_off=True))
    assert not is_open_to_suspicion(case, nobody, replace(dropped, page=2))


def test_what_is_left_of_a_reply_is_a_drop_only_if_it_is_as_delivered() -> None:
    analysis = analyse(pasted(*TWO))

    def dropped(*calls: RepeatedCall, errors: tuple[str, ...] = ()) -> bool:
        symptom = Symptom(calls=calls, errors=errors)
        return is_drop(AppHandling(analysis=analysis, symptom=symptom, page=None))

    first = RepeatedCall(id="c1", name="get", arguments='{ "a": 1 }')
    assert dropped()
    assert dropped(first)
    assert not dropped(first, errors=(THROWN,))
    assert not dropped(replace(first, arguments="{}"))
    assert not dropped(first, RepeatedCall(id="c2", name="put", arguments='{"b":2}'))


@pytest.mark.slow
def test_a_suspect_that_only_comes_near_is_named_where_the_app_changed_something() -> None:
    later = asks(USER, assistant(("c2", "put", "")), result("c2", THROWN))
    explanation = explained(conversation((asks(USER), TWO), (later, ANSWER)))
    near = replace(explanation.suspects[0], exact=False)
    symptom = Symptom(calls=(RepeatedCall(id="c2", name="put", arguments=""),))
    handling = AppHandling(analysis=analyse(pasted(*TWO)), symptom=symptom, page=None)
    assert worth_naming(explanation.verdict, handling, (near,)) == (near,)
    nobody = replace(explanation.verdict, kind=VerdictKind.UNPROVABLE, blame=None, confidence=None)
    assert worth_naming(nobody, handling, (near,)) == ()


def test_a_suspect_that_would_lose_what_the_app_keeps_elsewhere_is_not_named() -> None:
    two = [*call("get"), *call("get", '{"a":2}', 1), FINISH]
    more = [*call("get", '{"a":3}', 4), *call("get", '{"a":4}', 5), FINISH]
    last = asks(USER, assistant(("c2", "get", '{"a":2}')), result("c2"))
    lost = conversation((asks(USER), two), (last, [TEXT, FINISH_TEXT]))
    assert [each.name for each in explain(lost, 1).suspects][:1] == ["single-current-call"]
    asked: dict[str, object] = {"role": "user", "content": "Another question."}
    kept = assistant(("c5", "get", '{"a":3}'), ("c6", "get", '{"a":4}'))
    good = asks(asked, kept, result("c5"), result("c6"))
    tape = conversation(
        (asks(asked), more),
        (good, [TEXT, FINISH_TEXT]),
        (asks(USER), two),
        (last, [TEXT, FINISH_TEXT]),
    )
    explanation = explain(tape, 3)
    assert (explanation.verdict.code, explanation.verdict.blame) == ("C001", Blame.APP)
    assert explanation.suspects == ()


REPORTED = f"failed to parse tool arguments: {THROWN}"


def handling_of(
    tape: Sequence[Exchange], number: int = 1, logs: Sequence[LogEntry] = (), *errors: str
) -> AppHandling | None:
    """What is known about an exchange of a tape."""
    seen = survey(tape, DEFAULTS, logs)
    analysis = analyse(next(each for each in tape if each.number == number))
    return app_handling(case_of(seen, analysis), analysis, tape, errors, DEFAULTS)


def symptom(
    tape: Sequence[Exchange], number: int = 1, logs: Sequence[LogEntry] = (), *errors: str
) -> Symptom | None:
    """The symptom alone."""
    found = handling_of(tape, number, logs, *errors)
    return found.symptom if found else None


def printed(line: bytes, at_s: float) -> LogEntry:
    return LogEntry(t_ns=round(at_s * 1e9), stream=LogStream.STDERR, line=line)


def test_the_calls_that_a_request_repeats_wrongly_are_the_symptom() -> None:
    later = asks(USER, assistant(("c2", "put", "")), result("c2", THROWN))
    found = symptom(conversation((asks(USER), TWO), (later, ANSWER)))
    assert found
    assert found.calls
    assert [(each.id, each.name, each.arguments) for each in found.calls] == [("c2", "put", "")]
    assert found.errors[0].startswith(THROWN)


def test_a_call_that_is_repeated_as_delivered_is_not_a_symptom() -> None:
    later = asks(USER, assistant(("c1", "get", '{"a":1}')), result("c1"))
    assert symptom(conversation((asks(USER), [*call(), FINISH]), (later, ANSWER))) is None


def test_an_error_in_its_result_is_one_if_it_speaks_of_the_call() -> None:
    for text, errors in ((REPORTED, (THROWN,)), (THROWN, None)):
        later = asks(USER, assistant(("c1", "get", '{"a":1}')), result("c1", text))
        found = symptom(conversation((asks(USER), [*call(), FINISH]), (later, ANSWER)))
        assert found == (Symptom(errors=errors) if errors else None)


def test_going_on_without_any_call_is_one() -> None:
    found = symptom(conversation((asks(USER), TWO), (asks(USER, USER), ANSWER)))
    assert found == Symptom(calls=())


def test_silence_is_one() -> None:
    tape = watched(conversation(CALLS), 42.5, stop="child-exit", exit_code=0)
    assert symptom(tape) == Symptom(calls=())


def test_what_the_app_prints_soon_after_the_reply_is_one_and_the_user_knows_better() -> None:
    tape = conversation((asks(USER), [*call(), FINISH]))
    lines = [printed(REPORTED.encode(), 1.0), printed(b"listening", 1.0)]
    assert symptom(tape, 1, lines) == Symptom(errors=(THROWN,))
    assert symptom(tape, 1, [printed(REPORTED.encode(), 99.0)]) is None
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
        found = handling_of(tape, number)
        assert found
        assert found.page == 9
        assert found.analysis.exchange.number == 1
        assert found.symptom.calls
        assert [(each.name, each.arguments) for each in found.symptom.calls] == [(None, "10")]


def test_a_page_that_is_told_the_same_however_spelled_is_not_a_symptom() -> None:
    (upstream,) = conversation((asks(USER), [*call("get", '{"a": 1}'), FINISH]))
    assert symptom([upstream, page(upstream, app.call(), app.done())]) is None
    assert symptom([upstream, page(upstream, app.call(), app.done())], 9) is None


def test_a_page_that_is_told_nothing_of_tools_is_not_a_symptom() -> None:
    (upstream,) = conversation((asks(USER), [*call(), FINISH]))
    tape = [upstream, page(upstream, app.text("Hi"), app.done())]
    assert symptom(tape) is None
    assert symptom(tape, 9) is None


def test_of_several_replies_behind_a_page_the_one_it_was_told_wrongly_is_meant() -> None:
    one, two = conversation(
        (asks(USER), [*call("put", '{"b":2}'), FINISH]), (asks(USER, USER), [*call(), FINISH])
    )
    both = replace(page(one, app.call("put", {"b": 2}), *BROKEN_PAGE), end=two.end)
    found = handling_of([one, two, both], 9)
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
