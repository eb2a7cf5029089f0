import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltatape.wire.json_number import WHOLE_NUMBERS, NumberState, run_number


def whole(text: str) -> bool:
    """Whether `text`, after its sign, is a number."""
    body = text.removeprefix("-")
    state, end = run_number(NumberState.MINUS, body, 0)
    return end == len(body) and state in WHOLE_NUMBERS


@pytest.mark.parametrize("text", ["0", "-0", "10", "-1.5", "0.0e+00", "1E-7", "1e5"])
def test_numbers_of_the_grammar_are_whole(text: str) -> None:
    assert whole(text)


@pytest.mark.parametrize("text", ["", "-", "01", "1.", ".5", "1e", "1e+", "+1", "0x1", "\u0661"])
def test_what_the_grammar_does_not_know_is_no_number(text: str) -> None:
    assert not whole(text)


@settings(max_examples=60)
@given(st.text("0123456789.eE+-", min_size=1, max_size=8))
def test_the_table_agrees_with_the_standard_library(text: str) -> None:
    try:
        expected = isinstance(json.loads(text), int | float)
    except ValueError:
        expected = False
    assert whole(text) == expected
