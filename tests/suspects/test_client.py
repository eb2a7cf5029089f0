from dataclasses import asdict

import pytest

from deltatape.suspects.client import (
    AXES,
    CORRECT,
    ClientModel,
    client_of,
    cost_of,
    mistakes_of,
)
from deltatape.suspects.mistakes import MISTAKES, USUAL


def test_the_documented_client_makes_no_mistake() -> None:
    assert mistakes_of(CORRECT) == ()
    assert cost_of(CORRECT) == 0
    assert not {*asdict(CORRECT).items()} & {*MISTAKES}


def test_every_mistake_is_on_an_axis() -> None:
    assert {axis for axis, _ in MISTAKES} == {*AXES}


@pytest.mark.parametrize("one", MISTAKES)
def test_every_mistake_is_a_client_that_says_what_it_does(one: tuple[str, str]) -> None:
    mistake = MISTAKES[one].mistake
    assert mistakes_of(client_of(one)) == (mistake,)
    assert mistake.says[0].islower()
    assert not mistake.says.endswith(".")
    assert not mistake.fix.endswith(".")


def test_a_guard_costs_little_only_beside_another_mistake() -> None:
    guard, wrong = ("incomplete", "dropped"), ("key", "one")
    assert cost_of(client_of(guard)) == cost_of(client_of(wrong)) == 10
    assert cost_of(client_of(guard, wrong)) == 14


def test_what_the_documentation_leaves_open_is_not_a_mistake() -> None:
    assert mistakes_of(ClientModel(id="first", name="first")) == ()


def test_a_mistake_of_the_wild_has_the_usual_cost() -> None:
    assert MISTAKES["key", "one"].cost == USUAL
