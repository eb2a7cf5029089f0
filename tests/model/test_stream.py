from deltatape.model.stream import Event, Place, Span


def test_the_place_of_an_event_is_where_and_when_it_was_completed() -> None:
    event = Event(
        number=3, type="message", data="x", id="", retry=None, start=5, end=14, t_ns=7, line=2
    )
    assert event.place == Place(span=Span(5, 14), t_ns=7, line=2)
    assert not event.exception
