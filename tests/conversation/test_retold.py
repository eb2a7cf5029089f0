"""Histories as real clients change them: who is right is not accused, who is wrong mostly found."""

import json
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from deltatape.conversation import check_conversation, read_backs
from deltatape.model.finding import Blame, Confidence, Finding, Severity
from helpers.rewritten_history import (
    CHANGING,
    KEEPING,
    Transformation,
    begun_late,
    branched,
    dropped,
    emptied,
    renamed,
    renumbered,
    retried,
    scripts,
)
from helpers.scripted import SCRIPT_DIALECTS, Call, Message, ScriptDialect, Turn, digests

OF_READ_BACKS = frozenset({"C001", "C002", "C003"})
TRANSFORMATIONS = (*KEEPING, *CHANGING)
SEEDS = st.integers(0, 10_000)


def accusations(dialect: ScriptDialect, turns: Sequence[Turn]) -> list[Finding]:
    """The errors of which the application is accused."""
    return [
        finding
        for finding in check_conversation(digests(dialect, turns))
        if finding.blame is Blame.APP
        and finding.severity is Severity.ERROR
        and finding.code.startswith("C")
    ]


def retold(turns: list[Turn], steps: Sequence[Transformation], seed: int) -> list[Turn]:
    """`turns` after `steps`. What is missed at the beginning is missed of a client as it is.

    Else a tape may hold one of two answers to a question, and not the one that the client took:
    without ids, nothing tells that from a client that changed the calls of the other one. And who
    asks again sends the same again, whatever that is.
    """
    rng = random.Random(seed)
    order: Sequence[Transformation] = (begun_late, retried)
    for step in sorted(steps, key=lambda step: order.index(step) if step in order else 0.5):
        turns = step(turns, rng)
    return turns


@pytest.mark.slow
@pytest.mark.parametrize("dialect", SCRIPT_DIALECTS, ids=lambda dialect: dialect.name)
@settings(max_examples=25)
@given(
    turns=st.one_of(scripts(), scripts().map(renumbered)),
    steps=st.lists(st.sampled_from(TRANSFORMATIONS), max_size=3),
    seed=SEEDS,
)
def test_a_correct_client_is_never_accused(
    dialect: ScriptDialect, turns: list[Turn], steps: list[Transformation], seed: int
) -> None:
    turns = retold(turns, steps, seed)
    assert [finding.message for finding in accusations(dialect, turns)] == []


@pytest.mark.slow
@pytest.mark.parametrize("dialect", SCRIPT_DIALECTS, ids=lambda dialect: dialect.name)
@settings(max_examples=20)
@given(turns=scripts())
def test_every_answer_with_calls_is_read_back(dialect: ScriptDialect, turns: list[Turn]) -> None:
    links = read_backs(digests(dialect, turns))
    with_calls = [place for place, turn in enumerate(turns, 1) if turn.answer.calls]
    linked = [link for link in links if link.reply.calls]
    assert [link.reply.exchange for link in linked] == with_calls
    assert [link.later.exchange for link in linked] == [place + 1 for place in with_calls]
    assert all(not link.lost and not link.extra for link in linked)
    assert all(link.confidence is Confidence.PROVEN for link in linked)


Mistake = Callable[[Sequence[Message], Call], tuple[Message, ...]]
MISTAKES: Mapping[Mistake, str] = {dropped: "C001", emptied: "C002", renamed: "C003"}


@dataclass(frozen=True)
class Mistaken:
    """A client with one mistake: how it keeps one call of one answer."""

    turns: list[Turn]
    answer: Message
    mistake: Mistake

    def numbers(self, turns: Sequence[Turn]) -> set[int]:
        """The exchanges of `turns` that hold the answer, or the one in its place beside it."""
        own = {call.id for call in self.answer.calls}
        found = enumerate(turns, 1)
        return {
            place for place, turn in found if own & {i.id.lstrip("x") for i in turn.answer.calls}
        }


@st.composite
def mistaken(draw: st.DrawFn, mistakes: Sequence[Mistake], least: int = 1) -> Mistaken:
    """Clients that get one call of an answer with at least so many calls wrong."""
    turns = draw(scripts())
    answers = [turn.answer for turn in turns if len(turn.answer.calls) >= least]
    assume(answers)
    answer, mistake = draw(st.sampled_from(answers)), draw(st.sampled_from(mistakes))
    calls = [call for call in answer.calls if call.arguments or mistake is not emptied]
    alike = {(call.name, json.dumps(call.arguments or {})) for call in answer.calls}
    assume(calls and len(alike) == len(answer.calls))
    call = draw(st.sampled_from(calls))
    kept = [replace(turn, history=mistake(turn.history, call)) for turn in turns]
    return Mistaken(turns=kept, answer=answer, mistake=mistake)


def shown(dialect: ScriptDialect, client: Mistaken, turns: Sequence[Turn]) -> set[str]:
    """The codes of what is found about the answer that the client got wrong."""
    found = check_conversation(digests(dialect, turns))
    numbers = client.numbers(turns)
    return {each.code for each in found if _is_about(each, numbers)}


def _is_about(finding: Finding, numbers: set[int]) -> bool:
    return any(re.search(rf"of #{number}\b", finding.message) for number in numbers)


WITH_IDS = [each for each in SCRIPT_DIALECTS if each.has_ids and not each.previous]
WITHOUT_IDS = [each for each in SCRIPT_DIALECTS if not each.has_ids]
STORING = [each for each in SCRIPT_DIALECTS if each.previous]


@pytest.mark.slow
@pytest.mark.parametrize("dialect", WITH_IDS, ids=lambda dialect: dialect.name)
@settings(max_examples=25)
@given(client=mistaken(list(MISTAKES), least=2), step=st.sampled_from(KEEPING), seed=SEEDS)
def test_with_ids_a_mistake_is_found_whatever_goes_on_beside(
    dialect: ScriptDialect, client: Mistaken, step: Transformation, seed: int
) -> None:
    turns = retold(client.turns, [step], seed)
    assert MISTAKES[client.mistake] in shown(dialect, client, turns)


@pytest.mark.slow
@pytest.mark.parametrize("dialect", [*WITH_IDS, *WITHOUT_IDS], ids=lambda dialect: dialect.name)
@settings(max_examples=25)
@given(client=mistaken([dropped, emptied], least=2), branch=st.booleans(), seed=SEEDS)
def test_in_a_history_that_goes_on_a_lost_call_is_found_without_any_id(
    dialect: ScriptDialect,
    client: Mistaken,
    branch: bool,  # noqa: FBT001 - from a strategy
    seed: int,
) -> None:
    turns = retold(client.turns, [branched] if branch else [], seed)
    assert MISTAKES[client.mistake] in shown(dialect, client, turns)


@pytest.mark.slow
@pytest.mark.parametrize("dialect", STORING, ids=lambda dialect: dialect.name)
@settings(max_examples=25)
@given(
    client=mistaken([dropped, renamed], least=2),
    steps=st.lists(st.sampled_from(TRANSFORMATIONS), max_size=2),
    seed=SEEDS,
)
def test_where_the_provider_keeps_the_history_results_tell_which_calls_were_known(
    dialect: ScriptDialect, client: Mistaken, steps: list[Transformation], seed: int
) -> None:
    turns = retold(client.turns, steps, seed)
    assume(client.numbers(turns))
    if not any(step is branched for step in steps):
        assert MISTAKES[client.mistake] in shown(dialect, client, turns)


@pytest.mark.slow
@pytest.mark.parametrize("dialect", SCRIPT_DIALECTS, ids=lambda dialect: dialect.name)
@settings(max_examples=25)
@given(
    client=mistaken(list(MISTAKES)),
    steps=st.lists(st.sampled_from(TRANSFORMATIONS), max_size=3),
    seed=SEEDS,
)
def test_whoever_is_accused_is_accused_of_what_was_wrong(
    dialect: ScriptDialect, client: Mistaken, steps: list[Transformation], seed: int
) -> None:
    turns = retold(client.turns, steps, seed)
    numbers = client.numbers(turns)
    others = [each for each in accusations(dialect, turns) if not _is_about(each, numbers)]
    assert [each.message for each in others if each.code in OF_READ_BACKS] == []
