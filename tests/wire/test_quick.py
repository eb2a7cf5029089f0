from dataclasses import FrozenInstanceError, replace

import pytest

from deltatape.model.stream import Event, Place, Span
from deltatape.wire.quick import make_event, make_place


def test_a_place_is_the_one_that_the_constructor_makes() -> None:
    made = make_place(1, 2, 3, None)
    assert made == Place(span=Span(1, 2), t_ns=3, line=None)
    assert hash(made) == hash(replace(made))


def test_an_event_is_the_one_that_the_constructor_makes() -> None:
    place = make_place(0, 5, 7, 9)
    made = make_event(4, "x", "data", place, last_id="i", exception=True)
    expected = Event(
        number=4, type="x", data="data", id="i", retry=None, place=place, exception=True
    )
    assert (made, hash(made), repr(made)) == (expected, hash(expected), repr(expected))
    assert make_event(0, "message", "", place) == Event(
        number=0, type="message", data="", id="", retry=None, place=place
    )


def test_what_was_made_is_frozen() -> None:
    made = make_event(0, "x", "", make_place(0, 1, 0, None))
    with pytest.raises(FrozenInstanceError):
        made.data = "other"  # type: ignore[misc]
    assert replace(made, data="other").data == "other"
