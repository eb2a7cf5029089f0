from collections.abc import Sequence
from dataclasses import replace

import pytest

from deltatape.conversation import check_conversation
from deltatape.model.digest import Digest
from deltatape.model.finding import Blame, Confidence, Finding, Severity
from helpers.chat import FINISH, calls, choice, entry
from helpers.exchanges import FINISH_TEXT, asks, assistant, digests, result, system, user

Json = dict[str, object]
Asked = tuple[Json, Sequence[object]]


def says(text: str) -> list[object]:
    return [choice({"content": text}), FINISH_TEXT]


def gets(call_id: str, arguments: str, name: str = "get") -> list[object]:
    return [calls(entry(0, call_id, name=name, arguments=arguments)), FINISH]


def found(tape: Sequence[Digest], code: str) -> list[Finding]:
    return [each for each in check_conversation(tape) if each.code == code]


def foreign(*asked: Asked) -> list[Finding]:
    return found(digests(*asked), "C014")


ORDER, BILL = user("Where is my order?"), user("I need my bill.")
SHIPPED, INVOICE = "Your order 4711 was shipped.", "Your invoice is attached here."
THANKS = user("Thank you very much!")
FIRST: Asked = (asks(ORDER), says(SHIPPED))
SECOND: Asked = (asks(BILL), says(INVOICE))
WRONG: Asked = (asks(BILL, assistant(text=SHIPPED), THANKS), [])


def test_the_reply_to_another_user_is_reported_with_both_places() -> None:
    (finding,) = foreign(FIRST, SECOND, WRONG)
    assert finding.message == (
        "the request contains the reply of #1 from another conversation instead of the reply of #2"
    )
    assert (finding.exchange, finding.blame) == (3, Blame.APP)
    assert (finding.severity, finding.confidence) == (Severity.ERROR, Confidence.LIKELY)
    assert finding.against is not None
    assert (finding.against.exchange, finding.against.evidence) == (1, SHIPPED)
    assert len(finding.excluded) == 2


def test_replies_that_took_each_others_places_are_reported_as_that() -> None:
    other: Asked = (asks(ORDER, assistant(text=INVOICE), THANKS), [])
    first, second = foreign(FIRST, SECOND, WRONG, other)
    assert first.message.endswith(
        "instead of the reply of #2; that conversation has the reply of #2"
    )
    assert second.message.endswith(
        "instead of the reply of #1; that conversation has the reply of #1"
    )


def test_a_reply_that_stands_in_place_of_none_may_have_been_asked_for_elsewhere() -> None:
    beside = asks(BILL, assistant(text=INVOICE), THANKS, assistant(text=SHIPPED), THANKS)
    (finding,) = foreign(FIRST, SECOND, (beside, []))
    assert finding.message.endswith("another conversation")
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.POSSIBLE)
    assert finding.excluded == ()


def test_a_call_of_another_user_is_recognised_by_an_id_that_is_nobody_elses() -> None:
    said = ("call_9fA3kQz1bT", "get", '{"a":1}')
    asked = (asks(ORDER), gets("call_9fA3kQz1bT", '{"a":1}'))
    told: Asked = (
        asks(BILL, assistant(text=INVOICE), THANKS, assistant(said), result(said[0])),
        [],
    )
    (finding, *_) = foreign(asked, SECOND, told)
    assert finding.confidence is Confidence.LIKELY
    assert foreign(asked, SECOND, (asks(BILL, assistant(said), result(said[0])), []))
    counted = (asks(ORDER), gets("call_1", '{"a":1}'))
    repeated = assistant(("call_1", "get", '{"a":1}'))
    assert not foreign(counted, SECOND, (asks(BILL, repeated, result("call_1")), []))


SYSTEM = system("You are a lawyer.")
ASK = user("Somebody says: Where is my order? Look it up.")


@pytest.mark.parametrize(
    "tape",
    [
        [FIRST, SECOND, (asks(BILL, assistant(text=INVOICE), THANKS), [])],
        [
            FIRST,
            (asks(SYSTEM, BILL), says(INVOICE)),
            (asks(SYSTEM, BILL, assistant(text=SHIPPED), THANKS), []),
        ],
        [FIRST, (asks(ASK), says(INVOICE)), (asks(ASK, assistant(text=SHIPPED), THANKS), [])],
        [FIRST, (asks(THANKS, assistant(text=SHIPPED), BILL), [])],
        [FIRST, SECOND, (asks(BILL, ORDER, assistant(text=SHIPPED), THANKS), [])],
        [FIRST, FIRST, SECOND, WRONG],
        [(asks(ORDER), says("Yes.")), SECOND, (asks(BILL, assistant(text="Yes."), THANKS), [])],
        [(asks(), says(SHIPPED)), SECOND, WRONG],
    ],
    ids=["right", "other agent", "quoted", "summary", "shared", "twice", "short", "no question"],
)
def test_what_may_be_meant_is_silent(tape: Sequence[Asked]) -> None:
    assert not foreign(*tape)


def test_a_reply_that_had_not_come_yet_is_not_the_one() -> None:
    tape = digests(FIRST, SECOND, WRONG)
    assert found(tape, "C014")
    assert not found([tape[0], tape[1], replace(tape[2], t_ns=1)], "C014")
    assert found([tape[0], tape[1], replace(tape[2], tape="y.tape", t_ns=1)], "C014")


ROME, GENT = '{"city":"Rome"}', '{"city":"Gent"}'
OF_ROME = "In Rome it is 21 degrees now."


def test_the_result_of_another_users_call_is_recognised_by_its_id() -> None:
    known = "call_9fA3kQz1bT"
    asked = (asks(ORDER), gets(known, ROME))
    (finding,) = foreign(asked, SECOND, (asks(BILL, assistant(text=INVOICE), result(known)), []))
    assert finding.message == (
        "the request contains the result of call 0 (get, call_9fA3kQz1bT) of #1 from"
        " another conversation"
    )
    assert finding.confidence is Confidence.LIKELY
    counted = (asks(ORDER), gets("call_1", ROME))
    assert not foreign(counted, SECOND, (asks(BILL, assistant(text=INVOICE), result("call_1")), []))


def of_rome(*, second: str = GENT, text: str = OF_ROME, question: Json = BILL) -> list[Finding]:
    """The same result in two conversations of which only the first asked for Rome."""
    one, other = assistant(("c1", "get", ROME)), assistant(("c2", "get", second))
    return foreign(
        (asks(ORDER), gets("c1", ROME)),
        (asks(ORDER, one, result("c1", text)), says("It is warm.")),
        (asks(question), gets("c2", second)),
        (asks(question, other, result("c2", text)), []),
    )


def test_the_result_of_another_users_call_is_recognised_by_what_it_says() -> None:
    (finding,) = of_rome()
    assert finding.message == (
        "the request contains the result of call 0 (get, c1) of #1 from another conversation,"
        " at a call of #3"
    )
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.POSSIBLE)
    assert not of_rome(second='{"city":"Rome","unit":"K"}')
    assert not of_rome(text="Sunny.")
    assert not of_rome(text="A sunny day everywhere.")
    assert not of_rome(text="Rome 21, Gent 13, Paris 12.")
    assert not of_rome(question=user("Not Rome, but my city."))
    assert not of_rome(question=ORDER)


BOTH = [
    calls(
        entry(0, "c1", name="get", arguments=ROME),
        entry(1, "c2", name="get", arguments=GENT),
    ),
    FINISH,
]
"""Calls for Rome and Gent."""


def both(one: str, other: str) -> tuple[Json, ...]:
    said = assistant(("c1", "get", ROME), ("c2", "get", GENT))
    return said, result("c1", one), result("c2", other)


def swapped(one: str, other: str, *before: tuple[str, str]) -> list[Finding]:
    """Results at calls for Rome and Gent, after those that an earlier user got."""
    earlier = [
        each
        for at, results in enumerate(before)
        for asked in [user(f"And today, {at}?")]
        for each in ((asks(asked), BOTH), (asks(asked, *both(*results)), []))
    ]
    after = asks(ORDER, *both(one, other))
    return found(digests(*earlier, (asks(ORDER), BOTH), (after, []), (after, [])), "C015")


RIGHT = ("Rome: 21 °C", "Gent: 13 °C")


def test_results_that_speak_of_each_others_arguments_are_swapped() -> None:
    (finding,) = swapped("Gent: 13 °C", "ROME: 21 °C", RIGHT)
    assert finding.message == (
        "the results of call 0 (get, c1) of #3 and call 1 (get, c2) of #3 are swapped:"
        " each mentions the arguments of the other call, and none of its own"
    )
    assert (finding.blame, finding.confidence) == (Blame.APP, Confidence.LIKELY)
    assert finding.evidence == 'the result for \'c1\' mentions {"city":"Gent"}'
    assert finding.excluded[0].because.startswith("2 earlier results of the tool name their own")


@pytest.mark.parametrize(
    "before",
    [
        [],
        [("21 °C", "13 °C")],
        [("21 °C", "13 °C"), RIGHT, RIGHT],
        [RIGHT, ("21 °C", "Gent: 13 °C")],
        [("Gent: 1 °C", "Rome: 2 °C")],
    ],
    ids=["alone", "plain", "plain first", "plain once", "swapped, too"],
)
def test_a_tool_that_does_not_always_name_its_arguments_may_speak_of_other_things(
    before: list[tuple[str, str]],
) -> None:
    """Two files mention each other; Pierre is the husband of Marie, and she is his wife."""
    finding = swapped("Gent: 13 °C", "ROME: 21 °C", *before)[-1]
    assert " may be swapped: " in finding.message
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.POSSIBLE)
    assert finding.excluded == ()


def test_results_of_calls_without_arguments_say_nothing_about_the_tool() -> None:
    ids = ("c1", "c2")
    bare = [calls(*(entry(at, each, name="get", arguments="{}") for at, each in enumerate(ids)))]
    said = assistant(*((each, "get", "{}") for each in ids))
    asked = user("And today?")
    after = asks(ORDER, *both("Gent: 13 °C", "Rome: 21 °C"))
    (finding,) = found(
        digests(
            (asks(asked), [*bare, FINISH]),
            (asks(asked, said, *map(result, ids)), []),
            (asks(THANKS), BOTH),
            (asks(THANKS, *both(*RIGHT)), []),
            (asks(ORDER), BOTH),
            (after, []),
        ),
        "C015",
    )
    assert finding.confidence is Confidence.LIKELY


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Rome: 21 °C", "Gent: 13 °C"),
        ("21 °C", "13 °C"),
        ("Gent: 13 °C", "13 °C"),
        ("Rome is warmer than Gent", "Gent is colder than Rome"),
    ],
)
def test_results_that_are_in_order_or_say_nothing_are_not(one: str, other: str) -> None:
    assert not swapped(one, other)
