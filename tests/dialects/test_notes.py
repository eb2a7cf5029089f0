from deltatape.dialects._notes import ObservationLog
from deltatape.model.stream import Event
from helpers.events import event_of


def event(number: int) -> Event:
    return event_of(number=number)


def test_a_kind_is_noted_once_per_code_and_anything_else_each_time() -> None:
    notes = ObservationLog()
    notes.once("again", "T009", "first", "e", event(0))
    notes.once("again", "T009", "second", "e", event(1))
    notes.once("again", "T010", "third", "e", event(2))
    notes.add("T010", "fourth", {"a": 1}, event(3))
    notes.add("T010", "fourth", {"a": 1}, event(3))
    seen = notes.observations(2, 5)
    assert [(one.code, one.detail) for one in seen] == [
        ("T009", "first"),
        ("T010", "third"),
        ("T010", "fourth"),
        ("T010", "fourth"),
    ]
    assert notes.codes() == ("T009", "T010")
    assert (seen[2].evidence, seen[2].event, seen[2].place) == ('{"a": 1}', 3, event(3).place)
    assert (seen[0].choice, seen[0].call) == (2, 5)
