"""Applications that others wrote, in another language: whose mistake is named, and how surely."""

from pathlib import Path
from statistics import median

import pytest

from helpers.suspects_found import MISTAKES, found, page

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "suspects-found.md"


def test_applications_are_found_as_written_down() -> None:
    results = found()
    assert PAGE.read_text() == page(results)
    assert median(len(one.exact) for one in results) <= 3


@pytest.mark.exhaustive
def test_each_mistake_is_named_first_for_some_stream() -> None:
    named = {one.outcome.app[:2] for one in found() if one.place == 0}
    assert named == set(MISTAKES) & {one.outcome.app[:2] for one in found()}
