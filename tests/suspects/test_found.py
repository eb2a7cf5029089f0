"""Applications that others wrote, in another language: whose mistake is named, and how surely."""

from functools import cache
from pathlib import Path
from statistics import median

import pytest

from helpers.suspect_apps import Found, find_suspects, mistakes, page, written

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "suspects-found.md"


@cache
def results() -> tuple[Found, ...]:
    return tuple(map(find_suspects, written()))


@pytest.mark.slow
def test_applications_are_found_as_written_down() -> None:
    assert PAGE.read_text() == page(results())
    assert median(len(one.exact) for one in results()) <= 3


@pytest.mark.slow
def test_each_mistake_is_named_first_for_some_stream() -> None:
    named = {one.outcome.app[:2] for one in results() if one.place == 0}
    assert named == set(mistakes()) & {one.outcome.app[:2] for one in results()}
