from collections.abc import Sequence
from dataclasses import replace

import pytest

from deltatape.conversation import check_conversation
from deltatape.model.digest import Digest
from deltatape.model.finding import Blame, Confidence, Finding, Severity
from deltatape.model.rule_settings import DEFAULTS, Settings
from helpers.chat import FINISH, choice
from helpers.exchanges import (
    CALL_MESSAGE,
    CALL_REPLY,
    TEXT,
    TEXT_REPLY,
    USER,
    asks,
    assistant,
    call,
    digests,
    result,
    system,
    user,
)

MORE = user("Again, what is the weather?")
Exchange = tuple[dict[str, object], list[object]]


def rounds(number: int, *, distinct: bool = False, name: str = "get") -> list[Exchange]:
    """An agent that calls a tool in every reply."""
    history, made = [USER], []
    for at in range(number):
        arguments = f'{{"a":{at if distinct else 1}}}'
        made.append((asks(*history), [*call(name, arguments), FINISH]))
        history += [assistant(("c1", name, arguments)), result("c1")]
    return made


def c006_findings(tape: list[Digest], settings: Settings = DEFAULTS) -> list[Finding]:
    return [each for each in check_conversation(tape, settings) if each.code == "C006"]


def test_the_third_time_of_a_call_is_reported_and_then_each_doubling() -> None:
    found = c006_findings(digests(*rounds(7)))
    assert [finding.exchange for finding in found] == [3, 6]
    assert found[0].message == (
        "get is called with the same arguments 3 times since the user last spoke (first in #1)"
    )
    assert (found[0].severity, found[0].blame) == (Severity.INFO, None)
    assert (found[0].confidence, found[0].evidence) == (Confidence.PROVEN, '{"a":1}')
    assert found[0].against is not None
    assert found[0].against.exchange == 1


def test_the_limits_are_settings() -> None:
    assert [
        each.exchange for each in c006_findings(digests(*rounds(2)), Settings(loop_calls=2))
    ] == [2]
    short = Settings(loop_turns=3, loop_calls=100)
    assert [each.exchange for each in c006_findings(digests(*rounds(3)), short)] == [3]


def test_calls_of_other_arguments_are_no_repetition_but_a_cycle_without_a_word() -> None:
    found = c006_findings(digests(*rounds(11, distinct=True)))
    assert [finding.exchange for finding in found] == [10]
    assert found[0].message == (
        "10 replies in a row called tools without any text for the user; this one calls get"
    )
    assert found[0].against is None


def test_many_and_nameless_calls_are_named_in_short() -> None:
    short = Settings(loop_turns=1, loop_calls=100)
    many = [each for at in range(5) for each in call(f"t{at}", "{}", at)]
    (finding,) = c006_findings(digests((asks(USER), [*many, FINISH])), short)
    assert finding.message.endswith("this one calls t0, t1, t2 and 2 more")
    (finding,) = c006_findings(digests((asks(USER), [*call(name=""), FINISH])), short)
    assert finding.message.endswith("this one calls a tool without a name")


def test_a_question_of_the_user_begins_anew() -> None:
    two = rounds(2)
    again = [*two[1][0]["messages"], CALL_MESSAGE, result("c1")]  # type: ignore[misc]
    asked = asks(*again, assistant(text="Hi"), MORE)
    tape = digests(*two, (asks(*again), TEXT_REPLY), (asked, CALL_REPLY))
    assert not c006_findings(tape)


def test_a_word_to_the_user_ends_a_cycle() -> None:
    made = rounds(4, distinct=True)
    made[2] = (made[2][0], [TEXT, *made[2][1]])
    assert not c006_findings(digests(*made), Settings(loop_turns=3))


def test_calls_that_the_application_drops_from_its_history_are_counted_all_the_same() -> None:
    history, made = [USER], []
    for at in range(3):
        made.append((asks(*history), [*call(index=at), FINISH]))
        history.append(result(f"c{at + 1}"))
    found = c006_findings(digests(*made), Settings(loop_turns=3))
    assert [finding.message.partition(" (")[0] for finding in found] == [
        "get is called with the same arguments 3 times since the user last spoke",
        "3 replies in a row called tools without any text for the user; this one calls get",
    ]


def test_what_came_before_the_tape_is_counted_from_the_history() -> None:
    last = rounds(3)[-1:]
    (finding,) = c006_findings(digests(*last))
    assert finding.message.endswith("3 times since the user last spoke")
    assert finding.against is None
    assert len(c006_findings(digests(*last), Settings(loop_turns=3))) == 2


def test_the_same_request_again_is_no_further_round() -> None:
    made = rounds(3)
    assert [each.exchange for each in c006_findings(digests(*made, made[-1]))] == [3]


NS = 1_000_000_000


def attempts(number: int, *, every_s: float = 1.0, lasts_s: float = 0.5) -> list[Digest]:
    """The same request again and again, each refused."""
    made = digests(*[(asks(USER), [])] * number)
    return [
        replace(
            each,
            t_ns=round(at * every_s * NS),
            end_ns=round((at * every_s + lasts_s) * NS),
            status=429,
            error="slow down",
            failed=True,
        )
        for at, each in enumerate(made)
    ]


def c008_findings(tape: list[Digest], settings: Settings = DEFAULTS) -> list[Finding]:
    return [each for each in check_conversation(tape, settings) if each.code == "C008"]


def test_the_fifth_attempt_in_a_minute_is_reported_and_then_each_doubling() -> None:
    found = c008_findings(attempts(11))
    assert [finding.exchange for finding in found] == [5, 10]
    assert found[0].message == (
        "the same request came 5 times in 4.0 s, each time after the previous one had"
        " failed (from #1 on): 429, 429, 429, 429"
    )
    assert (found[0].severity, found[0].blame) == (Severity.WARNING, Blame.APP)
    assert (found[0].confidence, found[0].evidence) == (Confidence.LIKELY, "slow down")
    assert found[0].against is not None
    assert (found[0].against.exchange, found[0].against.evidence) == (1, "slow down")


def test_the_limits_of_retries_are_settings() -> None:
    assert [each.exchange for each in c008_findings(attempts(3), Settings(retries=3))] == [3]
    assert not c008_findings(attempts(5), Settings(retries_time_s=3.5))


def test_whether_the_last_attempt_succeeds_does_not_matter_and_then_it_is_over() -> None:
    tape = attempts(10)
    tape[4] = replace(tape[4], failed=False, status=200, error=None)
    assert [each.exchange for each in c008_findings(tape)] == [5, 10]


def test_broken_and_missing_answers_are_failures_too() -> None:
    tape = attempts(5)
    tape[0] = replace(tape[0], status=200, error=None)
    tape[3] = replace(tape[3], status=None, error=None)
    (finding,) = c008_findings(tape)
    assert finding.message.endswith("): cut off, 429, 429, no response")
    assert finding.evidence == ""


def test_pauses_that_the_provider_asks_for_are_no_storm() -> None:
    tape = [replace(each, wait_s=10) for each in attempts(5, every_s=10.5)]
    assert not c008_findings(tape)
    assert c008_findings([replace(each, wait_s=11) for each in tape])
    tape = [replace(each, wait_s=1) for each in attempts(5)]
    assert not c008_findings(tape)
    assert c008_findings([*tape[:2], replace(tape[2], wait_s=0), *tape[3:]])


def test_who_polls_a_server_with_long_pauses_is_no_storm() -> None:
    assert not c008_findings(attempts(5, every_s=10))
    assert not c008_findings(attempts(5, every_s=5))
    assert c008_findings(attempts(5, every_s=4.5))


def test_requests_side_by_side_are_no_retries() -> None:
    assert not c008_findings(attempts(9, lasts_s=1.5))


def test_requests_without_times_or_without_history_tell_nothing() -> None:
    assert not c008_findings([replace(each, t_ns=None) for each in attempts(5)])
    empty = digests(*[(asks(), [])] * 5)
    assert not c008_findings([replace(each, failed=True) for each in empty])


def test_another_request_in_between_does_not_count() -> None:
    other = digests((asks(USER, USER), []))[0]
    tape = attempts(5)
    assert len(c008_findings([*tape[:3], other, *tape[3:]])) == 1


def test_pauses_that_grow_are_how_it_should_be() -> None:
    grows = [
        replace(each, t_ns=round(2**at * NS), end_ns=round((2**at + 0.1) * NS))
        for at, each in enumerate(attempts(5))
    ]
    assert not c008_findings(grows)
    hasty = [replace(grows[0], end_ns=grows[1].t_ns), *grows[1:]]
    assert c008_findings(hasty)


Json = dict[str, object]
NAMED = {"type": "function", "function": {"name": "get"}}
OTHER = [*call("get", '{"a":2}'), FINISH]
ROUND = [CALL_MESSAGE, result("c1")]
TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": {}}} for name in ("get", "answer")
]


def c010_findings(
    choice: object, chunks: list[object], after: Sequence[Json] = ROUND, tools: int = 1
) -> list[Finding]:
    offered = TOOLS[:tools]
    tape = digests(
        (asks(USER, tool_choice=choice, tools=offered), CALL_REPLY),
        (asks(USER, *after, tool_choice=choice, tools=offered), chunks),
    )
    return [finding for finding in check_conversation(tape) if finding.code == "C010"]


def test_a_named_tool_that_is_still_forced_when_its_result_is_there() -> None:
    (finding,) = c010_findings(NAMED, CALL_REPLY)
    assert finding.message == (
        "the request has tool results but still tool_choice 'get': the model cannot"
        " answer, it must call get again"
    )
    assert (finding.exchange, finding.severity) == (2, Severity.WARNING)
    assert (finding.blame, finding.confidence) == (Blame.APP, Confidence.LIKELY)
    assert len(finding.excluded) == 2
    assert finding.evidence == '{"a":1}'


@pytest.mark.parametrize(
    "choice", ["required", {"type": "function", "function": {"name": "press"}}]
)
def test_a_tool_that_does_something_may_be_called_twice_on_purpose(choice: object) -> None:
    """A game is played by calls alone."""
    tools = [{"type": "function", "function": {"name": "press", "parameters": {}}}]
    pressed = (assistant(("c1", "press", '{"key":"A"}')), result("c1", "The dialogue continues."))
    chunks = [*call("press", '{"key":"A"}'), FINISH]
    tape = digests(
        (asks(USER, tool_choice=choice, tools=tools), chunks),
        (asks(USER, *pressed, tool_choice=choice, tools=tools), chunks),
    )
    (finding,) = [each for each in check_conversation(tape) if each.code == "C010"]
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.POSSIBLE)
    assert finding.hint.startswith("if the model should be able to answer")
    assert finding.excluded == ()


def test_where_the_model_may_choose_only_a_repeated_call_tells() -> None:
    assert not c010_findings("required", OTHER)
    (finding,) = c010_findings("required", CALL_REPLY)
    assert "tool_choice 'required'" in finding.message


def test_a_tool_that_was_not_called_yet_may_end_the_run() -> None:
    assert not c010_findings("required", CALL_REPLY, tools=2)
    assert c010_findings(NAMED, CALL_REPLY, tools=2)


@pytest.mark.parametrize(
    "after",
    [
        [CALL_MESSAGE, result("c1", "1 validation error: city is missing")],
        [*ROUND, user("And in Rome?")],
    ],
    ids=["correction", "new question"],
)
def test_a_correction_and_a_new_question_are_no_loop(after: Sequence[Json]) -> None:
    assert not c010_findings(NAMED, CALL_REPLY, after)


@pytest.mark.parametrize(
    ("choice", "chunks"), [("auto", CALL_REPLY), (None, CALL_REPLY), (NAMED, TEXT_REPLY)]
)
def test_what_may_be_answered_is_not_a_loop(choice: object, chunks: list[object]) -> None:
    assert not c010_findings(choice, chunks)


def test_it_is_reported_once_in_a_conversation() -> None:
    tape = digests(
        (asks(USER, tool_choice=NAMED), CALL_REPLY),
        (asks(USER, *ROUND, tool_choice=NAMED), CALL_REPLY),
        (asks(USER, *ROUND, *ROUND, tool_choice=NAMED), CALL_REPLY),
    )
    found = [finding for finding in check_conversation(tape) if finding.code == "C010"]
    assert [finding.exchange for finding in found] == [2]


STEP = (USER, CALL_MESSAGE, result("c1"))
SAME_TOOLS = [{"type": "function", "function": {"name": "get"}}]


def c018_findings(tape: list[Digest]) -> list[Finding]:
    return [each for each in check_conversation(tape) if each.code == "C018"]


def test_the_same_question_again_is_a_fact() -> None:
    (finding,) = c018_findings(digests((asks(USER), TEXT_REPLY), (asks(USER), TEXT_REPLY)))
    assert finding.message == (
        "the request of #1 came again 10.0 s later, after it had been answered completely"
    )
    assert (finding.exchange, finding.severity) == (2, Severity.INFO)
    assert (finding.blame, finding.confidence) == (None, Confidence.PROVEN)
    assert finding.against
    assert finding.against.exchange == 1


def test_the_same_step_of_an_agent_again_may_be_the_application() -> None:
    tape = digests((asks(USER), CALL_REPLY), (asks(*STEP), TEXT_REPLY), (asks(*STEP), TEXT_REPLY))
    (finding,) = c018_findings(tape)
    assert "came again with the same tool results 10.0 s later" in finding.message
    assert (finding.exchange, finding.severity) == (3, Severity.WARNING)
    assert (finding.blame, finding.confidence) == (Blame.APP, Confidence.POSSIBLE)


def test_a_conversation_that_is_run_again_is_a_fact() -> None:
    question, step = (asks(USER), CALL_REPLY), (asks(*STEP), TEXT_REPLY)
    found = c018_findings(digests(question, step, question, step))
    assert [(each.exchange, each.blame) for each in found] == [(3, None), (4, None)]


def test_at_once_is_not_told_in_seconds() -> None:
    first, second = digests((asks(USER), TEXT_REPLY), (asks(USER), TEXT_REPLY))
    (finding,) = c018_findings([first, replace(second, t_ns=first.t_ns)])
    assert finding.message == "the request of #1 came again at once, before its answer had ended"


def test_side_by_side_it_is_a_fact_of_an_agent_too() -> None:
    first, second = digests((asks(*STEP), TEXT_REPLY), (asks(*STEP), TEXT_REPLY))
    (finding,) = c018_findings([replace(first, end_ns=(second.t_ns or 0) + 1), second])
    assert finding.message.endswith("before its answer had ended")
    assert finding.blame is None


def test_it_is_told_whenever_the_number_has_doubled() -> None:
    found = c018_findings(digests(*[(asks(*STEP), TEXT_REPLY)] * 9))
    assert [each.exchange for each in found] == [2, 4, 8]
    assert (
        found[1].message == "the same request with the same tool results came 4 times, first as #1"
    )
    assert found[1].blame is None


@pytest.mark.parametrize(
    "other",
    [
        asks(USER, model="another"),
        asks(USER, tools=SAME_TOOLS),
        asks(system("Be kind."), USER),
        asks(user("And tomorrow?")),
        asks(USER, tool_choice="none"),
        {"input": "What?"},
    ],
)
def test_another_request_is_another(other: dict[str, object]) -> None:
    assert not c018_findings(digests((asks(USER), TEXT_REPLY), (other, TEXT_REPLY)))


def test_attempts_after_a_failure_are_none() -> None:
    first, second = digests((asks(USER), TEXT_REPLY), (asks(USER), TEXT_REPLY))
    assert not c018_findings([replace(first, whole=False, failed=True), second])
    assert not c018_findings([replace(first, lossy=True), second])
    assert not c018_findings(digests((asks(USER), [choice({}, "stop")]), (asks(USER), TEXT_REPLY)))


def test_without_times_and_on_another_tape() -> None:
    first, second = digests((asks(USER), TEXT_REPLY), (asks(USER), TEXT_REPLY))
    (finding,) = c018_findings([first, replace(second, t_ns=None)])
    assert finding.message == "the request of #1 came again, after it had been answered completely"
    assert not c018_findings([first, replace(second, tape="other.tape")])


def test_of_requests_that_nobody_can_read_nothing_is_known() -> None:
    unread = [
        replace(each, known=False)
        for each in digests((asks(USER), TEXT_REPLY), (asks(USER), TEXT_REPLY))
    ]
    assert not c018_findings(unread)
    stored = [
        replace(each, history=())
        for each in digests((asks(USER), TEXT_REPLY), (asks(USER), TEXT_REPLY))
    ]
    assert [each.evidence for each in c018_findings(stored)] == [""]
