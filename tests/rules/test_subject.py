import pytest

from deltatape.model.exchange import Exchange
from deltatape.model.reply import CallStatus
from deltatape.model.stream import AnomalyKind
from deltatape.rules import EXCHANGE_RULES
from deltatape.rules.finish import FinishMeaning
from deltatape.rules.subject import Subject, subjects_of
from helpers.chat import FINISH, calls, choice, entry, request
from helpers.contexts import context_of
from helpers.corpus import every_case
from helpers.exchanges import TEXT, from_bytes, pasted, timed
from helpers.taped import taped
from helpers.vectors import VECTORS, Vector


def unasked(exchange: Exchange) -> list[str]:
    """The rules that are not asked about `exchange`; each is shown to have nothing to report."""
    context = context_of(exchange)
    subjects = subjects_of(context)
    left = [rule for rule in EXCHANGE_RULES if not rule.is_about(subjects)]
    for rule in left:
        assert not list(rule.findings(context)), rule.code
    return [rule.code for rule in left]


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector.name)
def test_who_is_not_asked_has_nothing_to_report_on_a_vector(vector: Vector) -> None:
    assert unasked(from_bytes(vector.body))
    assert unasked(taped([(10, vector.body)]))


def test_who_is_not_asked_has_nothing_to_report_on_the_corpus() -> None:
    for case in every_case():
        assert unasked(case.exchange)


def test_of_a_healthy_exchange_few_are_asked() -> None:
    whole = entry(0, "c1", name="get", arguments='{"a":1}')
    chunks = ((0.1, TEXT), (0.2, calls(whole)), (0.3, choice({}, "tool_calls")))
    exchange = timed(*chunks, request=request(get={}))
    assert len(EXCHANGE_RULES) - len(unasked(exchange)) <= 20


def test_subjects_are_what_there_is() -> None:
    assert subjects_of(context_of(pasted(TEXT, FINISH))) == {FinishMeaning.TOOLS}
    cut = subjects_of(context_of(pasted(calls(entry(0, "c1", name="get", arguments="[1]")))))
    assert {CallStatus.NOT_OBJECT, Subject.CALLS} <= cut
    assert FinishMeaning.OTHER in cut
    written = '<tool_call>{"name":"get","arguments":{}}</tool_call>'
    assert Subject.WRITTEN in subjects_of(context_of(pasted(choice({"content": written}), FINISH)))


def test_no_word_stands_for_two_subjects() -> None:
    kinds = (
        Subject,
        FinishMeaning,
        CallStatus,
        AnomalyKind,
        [rule.code for rule in EXCHANGE_RULES],
    )
    words = [str(word) for kind in kinds for word in kind]
    assert len(words) == len(set(words))


def test_rules_are_about_subjects_that_there_are() -> None:
    words = {*Subject, *FinishMeaning, *CallStatus, *AnomalyKind}
    for rule in EXCHANGE_RULES:
        assert rule.about <= words | {rule.code}, rule.code


def test_a_rule_about_nothing_in_particular_is_always_asked() -> None:
    assert [rule.code for rule in EXCHANGE_RULES if rule.is_about(frozenset())] == [
        "S005",
        "D002",
        "X002",
    ]
