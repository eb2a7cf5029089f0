import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltatape.conversation import check_conversation, findings_of_turn, read_backs, turns
from deltatape.diagnose.digest import digest
from deltatape.model.digest import Digest
from deltatape.model.exchange import Tap
from deltatape.model.finding import Confidence
from deltatape.model.rule_settings import DEFAULTS
from deltatape.model.turn import Turn
from helpers.chat import FINISH
from helpers.corpus import every_case, needs_corpus
from helpers.exchanges import (
    CALL_MESSAGE,
    CALL_REPLY,
    TEXT_REPLY,
    USER,
    asks,
    assistant,
    call,
    digests,
    result,
    user,
)
from helpers.rewritten_history import CHANGING, KEEPING, Transformation, scripts, summarised
from helpers.scripted import SCRIPT_DIALECTS, ScriptDialect
from helpers.scripted import Turn as Script
from helpers.scripted import digests as scripted

WHOLE = [each for each in (*KEEPING, *CHANGING) if each is not summarised]
"""A summary may stand in front of a result in place of its call: that result is an orphan."""
MORE = user("And tomorrow?")


def of(tape: list[Digest]) -> tuple[Turn, ...]:
    return turns(tape, read_backs(tape))


def test_a_turn_knows_what_is_new_in_it_and_where_it_goes_on_from() -> None:
    tape = digests(
        (asks(USER), CALL_REPLY),
        (asks(USER, CALL_MESSAGE, result("c1")), TEXT_REPLY),
        (asks(USER, CALL_MESSAGE, result("c1"), assistant(text="Hello"), MORE), []),
    )
    first, second, third = of(tape)
    assert [turn.news for turn in (first, second, third)] == [0, 1, 3]
    assert [turn.before for turn in (first, second, third)] == [None, tape[0], tape[1]]
    assert [len(turn.read_backs) for turn in (first, second, third)] == [0, 1, 1]


def test_a_branch_goes_on_from_the_nearest_request_before_it() -> None:
    said = [USER, CALL_MESSAGE, result("c1")]
    tape = digests(
        (asks(USER), CALL_REPLY),
        (asks(*said), TEXT_REPLY),
        (asks(*said, assistant(text="Hello"), MORE), TEXT_REPLY),
        (asks(*said, assistant(text="Hallo"), MORE), TEXT_REPLY),
        (asks(*said, assistant(text="Hello"), MORE, assistant(text="Hello"), MORE), []),
    )
    assert [turn.before for turn in of(tape)][2:] == [tape[1], tape[1], tape[2]]
    assert [turn.news for turn in of(tape)] == [0, 1, 3, 3, 5]


def test_the_same_request_again_brings_nothing_new() -> None:
    tape = digests(
        (asks(USER), CALL_REPLY),
        (asks(USER, CALL_MESSAGE, result("c1")), []),
        *[(asks(USER), CALL_REPLY)],
    )
    again = of(tape)[2]
    assert (again.news, again.before, again.again, again.silent_calls) == (1, None, (), 0)


def test_a_history_that_was_cut_in_front_stands_alone() -> None:
    tape = digests(
        (asks(USER), CALL_REPLY), (asks(MORE, CALL_MESSAGE, result("c1")), []), (asks(), [])
    )
    assert [(turn.news, turn.before) for turn in of(tape)] == [(0, None)] * 3


def test_what_was_taken_in_front_of_the_application_is_not_a_turn() -> None:
    (own,) = digests((asks(USER, result("c1")), CALL_REPLY))
    assert not of([replace(own, tap=Tap.APP)])


def test_a_call_without_id_is_found_by_its_name_in_the_reply_before() -> None:
    reply, later = digests((asks(USER), CALL_REPLY), (asks(USER, result("get")), []))
    (said,) = reply.calls
    nameless = replace(reply, calls=(replace(said, id=None, ids=()),))
    (orphan,) = of([nameless, later])[1].orphans
    assert orphan.delivered is not None
    assert orphan.delivered.call.name == "get"
    (orphan,) = of([later])[0].orphans
    assert orphan.delivered is None


def test_what_the_application_did_not_define_owns_its_results_too() -> None:
    (request,) = digests((asks(USER, assistant(text=""), result("m1")), []))
    user, said, told = request.history
    owning = replace(request, history=(user, replace(said, owns=("m1",)), told))
    assert of([request])[0].orphans
    assert not of([owning])[0].orphans


def test_a_request_that_names_messages_by_reference_has_no_orphans_and_misses_nothing() -> None:
    (request,) = digests((asks(USER, CALL_MESSAGE, MORE, result("c9")), []))
    assert of([request])[0].orphans
    assert of([request])[0].missing
    user, *rest = request.history
    by_reference = replace(request, history=(replace(user, role="item_reference"), *rest))
    (turn,) = of([by_reference])
    assert not turn.orphans
    assert not turn.missing


def test_attempts_are_the_failed_ones_right_before() -> None:
    tape = [replace(each, failed=True) for each in digests(*[(asks(USER), [])] * 4)]
    tape[2] = replace(tape[2], failed=False)
    assert [len(turn.attempts) for turn in of(tape)] == [0, 1, 2, 0]
    assert len(of([replace(tape[0], exchange=at) for at in range(150)])[-1].attempts) == 100


@pytest.mark.slow
@pytest.mark.parametrize("length", [200])
def test_each_message_of_a_long_conversation_is_taken_once(length: int) -> None:
    history: list[dict[str, object]] = [USER]
    requests: list[tuple[dict[str, object], list[object]]] = []
    for at in range(length):
        requests.append((asks(*history), [*call(arguments=f'{{"a":{at}}}'), FINISH]))
        history += [assistant(("c1", "get", f'{{"a":{at}}}')), result("c1", f"{at}")]
    found = of(digests(*requests))
    assert [turn.news for turn in found] == [0, *range(1, 2 * length - 2, 2)]
    assert found[-1].silent_calls == length
    assert not any(turn.orphans or turn.missing for turn in found)


@pytest.mark.slow
@needs_corpus
def test_no_request_of_a_real_application_is_found_wrong() -> None:
    made = [digest(case.exchange) for case in every_case()]
    assert [each.message for one in made for each in check_conversation([one])] == []
    tape = [replace(each, exchange=place) for place, each in enumerate(made, 1)]
    # Some of them asked the same: a fact, and nobody's fault.
    assert {(each.code, each.blame) for each in check_conversation(tape)} <= {("C018", None)}


@pytest.mark.slow
@given(
    script=scripts(),
    steps=st.lists(st.sampled_from(WHOLE), max_size=3),
    rng=st.randoms(use_true_random=False),
    dialect=st.sampled_from(SCRIPT_DIALECTS),
)
def test_a_client_that_keeps_calls_and_results_together_is_told_of_what_came_twice_at_most(
    script: list[Script], steps: list[Transformation], rng: random.Random, dialect: ScriptDialect
) -> None:
    for step in steps:
        script = step(script, rng)
    tape = scripted(dialect, script)
    found = [each for turn in of(tape) for each in findings_of_turn(turn, DEFAULTS)]
    assert {each.code for each in found} <= {"C006", "C018"}
    assert not {each.confidence for each in found if each.blame} - {Confidence.POSSIBLE}
