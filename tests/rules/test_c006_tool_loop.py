from deltatape.conversation import check_conversation
from deltatape.model.digest import Digest
from deltatape.model.finding import Confidence, Finding, Severity
from deltatape.rules.settings import DEFAULTS, Settings
from helpers.chat import FINISH
from helpers.exchanges import FINISH_TEXT, TEXT, USER, asks, assistant, call, digests, result

MORE: dict[str, object] = {"role": "user", "content": "Again, what is the weather?"}
Exchange = tuple[dict[str, object], list[object]]


def rounds(number: int, *, distinct: bool = False, name: str = "get") -> list[Exchange]:
    """An agent that calls a tool in every reply."""
    history, made = [USER], []
    for at in range(number):
        arguments = f'{{"a":{at if distinct else 1}}}'
        made.append((asks(*history), [*call(name, arguments), FINISH]))
        history += [assistant(("c1", name, arguments)), result("c1")]
    return made


def loops(tape: list[Digest], settings: Settings = DEFAULTS) -> list[Finding]:
    return [each for each in check_conversation(tape, settings) if each.code == "C006"]


def test_the_third_time_of_a_call_is_told_and_then_each_doubling() -> None:
    found = loops(digests(*rounds(7)))
    assert [finding.exchange for finding in found] == [3, 6]
    assert found[0].message == (
        "get is called with the same arguments 3 times since the user last spoke (first in #1)"
    )
    assert (found[0].severity, found[0].blame) == (Severity.INFO, None)
    assert (found[0].confidence, found[0].evidence) == (Confidence.PROVEN, '{"a":1}')
    assert found[0].against is not None
    assert found[0].against.exchange == 1


def test_the_limits_are_settings() -> None:
    assert [each.exchange for each in loops(digests(*rounds(2)), Settings(loop_calls=2))] == [2]
    short = Settings(loop_turns=3, loop_calls=100)
    assert [each.exchange for each in loops(digests(*rounds(3)), short)] == [3]


def test_calls_of_other_arguments_are_no_repetition_but_a_cycle_without_a_word() -> None:
    found = loops(digests(*rounds(11, distinct=True)))
    assert [finding.exchange for finding in found] == [10]
    assert found[0].message == (
        "10 replies in a row called tools and said nothing to the user; this one calls get"
    )
    assert found[0].against is None


def test_many_and_nameless_calls_are_named_in_short() -> None:
    short = Settings(loop_turns=1, loop_calls=100)
    many = [each for at in range(5) for each in call(f"t{at}", "{}", at)]
    (finding,) = loops(digests((asks(USER), [*many, FINISH])), short)
    assert finding.message.endswith("this one calls t0, t1, t2 and 2 more")
    (finding,) = loops(digests((asks(USER), [*call(name=""), FINISH])), short)
    assert finding.message.endswith("this one calls a tool without a name")


def test_a_question_of_the_user_begins_anew() -> None:
    two = rounds(2)
    again = [*two[1][0]["messages"], assistant(("c1", "get", '{"a":1}')), result("c1")]  # type: ignore[misc]
    asked = asks(*again, assistant(text="Hi"), MORE)
    tape = digests(*two, (asks(*again), [TEXT, FINISH_TEXT]), (asked, [*call(), FINISH]))
    assert not loops(tape)


def test_a_word_to_the_user_ends_a_cycle() -> None:
    made = rounds(4, distinct=True)
    made[2] = (made[2][0], [TEXT, *made[2][1]])
    assert not loops(digests(*made), Settings(loop_turns=3))


def test_calls_that_the_application_drops_from_its_history_are_counted_all_the_same() -> None:
    history, made = [USER], []
    for at in range(3):
        made.append((asks(*history), [*call(index=at), FINISH]))
        history.append(result(f"c{at + 1}"))
    found = loops(digests(*made), Settings(loop_turns=3))
    assert [finding.message.partition(" (")[0] for finding in found] == [
        "get is called with the same arguments 3 times since the user last spoke",
        "3 replies in a row called tools and said nothing to the user; this one calls get",
    ]


def test_what_came_before_the_tape_is_counted_from_the_history() -> None:
    last = rounds(3)[-1:]
    (finding,) = loops(digests(*last))
    assert finding.message.endswith("3 times since the user last spoke")
    assert finding.against is None
    assert len(loops(digests(*last), Settings(loop_turns=3))) == 2


def test_the_same_request_again_is_no_further_round() -> None:
    made = rounds(3)
    assert [each.exchange for each in loops(digests(*made, made[-1]))] == [3]
