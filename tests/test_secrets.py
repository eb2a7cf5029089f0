"""No report shows a key, and docs/secrets.md says where one can be read: the quick part of it.

`scripts/secrets-table --check` does the same with every spelling.
"""

from pathlib import Path

import pytest

from helpers.leaks import TITLES, Outcomes, cases, outcomes, rows, rows_of_page

PAGE = Path(__file__).resolve().parent.parent / "docs" / "secrets.md"


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    return outcomes(tmp_path_factory.mktemp("leaks"), cases(["plain"]))


def test_no_report_shows_a_key(found: Outcomes) -> None:
    assert {place: each.shown_by for place, each in found.items() if each.shown} == {}


def test_what_is_on_the_tape_is_found_and_overwritten(found: Outcomes) -> None:
    for outcome in found.values():
        assert set(outcome.on_tape) <= set(outcome.found)
        assert outcome.left == []


@pytest.mark.parametrize("known", [False, True])
def test_the_page_says_the_same(found: Outcomes, *, known: bool) -> None:
    page = rows_of_page(PAGE.read_text(), TITLES[known], "plain")
    assert page == rows(found, known=known, spellings=["plain"])
