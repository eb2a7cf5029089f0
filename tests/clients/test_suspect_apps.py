"""The applications with a mistake each do what is committed of them, run by Node again."""

from helpers.clients import SDKS, available
from helpers.suspect_apps import apps, measured, written


def test_each_application_does_what_is_written() -> None:
    available(SDKS[1])
    assert measured() == written()


def test_each_mistake_shows_in_a_stream() -> None:
    assert {one.app for one in written()} == set(apps()[1:])


def test_there_are_applications_for_more_than_ten_mistakes() -> None:
    assert len(apps()) > 20
