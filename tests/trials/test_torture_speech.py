"""Which lines are an application's own words about an error."""

import re

import pytest

from deltatape.trials.torture_speech import SPEAKS, Known, own_words

PATTERNS = (re.compile(SPEAKS, re.IGNORECASE),)


def words(output: str, *known: str) -> str:
    return own_words(output, Known(known), PATTERNS)


def test_the_first_line_with_a_new_word_about_an_error_is_given() -> None:
    assert words("all is well\n  TypeError: x \nfailed\n") == "TypeError: x"
    assert words("all is well\n") == ""


@pytest.mark.parametrize(
    ("line", "known", "own"),
    [
        ("took 31 ms, 0 errors", "took 4 ms, 0 errors", False),
        ("3 retries in all, ok", "0 retries in all, ok", False),
        ("it is closed [connection lost]", "it is closed on Mondays", True),
        ("an error occurred", "there was an error in line 3", True),
        ("error: cut", "the error is in line 3", True),
        ("Error", "Error: in line 3", False),
        (r"said: caf\u00e9 closed", "caf\u00e9 closed today", False),
    ],
)
def test_a_word_counts_in_new_company_alone(line: str, known: str, *, own: bool) -> None:
    assert bool(words(line, known)) is own


def test_a_pattern_that_matches_no_word_is_about_the_line() -> None:
    dots = (re.compile("^[.]{3}$"),)
    assert own_words("a\n...\n", Known(["a b"]), dots) == "..."
    assert own_words("a\n...\n", Known(["a\n...\nb"]), dots) == ""
