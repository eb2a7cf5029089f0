"""Events and their places, made at a third of the cost: they are most of what framing costs.

The `__init__` of a frozen dataclass looks up `object.__setattr__` for each field. Here the fields
are written by the descriptors of their slots, once. The values are the same, and as frozen.
"""

from collections.abc import Callable
from typing import Any

from deltatape.model.stream import Event, Place, Span


def _setter(holder: type, name: str) -> Callable[[object, object], None]:
    """What writes the slot `name` of a new `holder`."""
    slot: Any = holder.__dict__[name]
    write: Callable[[object, object], None] = slot.__set__
    return write


_new = object.__new__
_set_span = _setter(Place, "span")
_set_t_ns = _setter(Place, "t_ns")
_set_line = _setter(Place, "line")
_set_number = _setter(Event, "number")
_set_type = _setter(Event, "type")
_set_data = _setter(Event, "data")
_set_id = _setter(Event, "id")
_set_retry = _setter(Event, "retry")
_set_place = _setter(Event, "place")
_set_exception = _setter(Event, "exception")


def make_place(start: int, end: int, t_ns: int, line: int | None) -> Place:
    """`Place(span=Span(start, end), t_ns=t_ns, line=line)`."""
    place = _new(Place)
    _set_span(place, Span(start, end))
    _set_t_ns(place, t_ns)
    _set_line(place, line)
    return place


def make_event(
    number: int, kind: str, data: str, place: Place, *, last_id: str = "", exception: bool = False
) -> Event:
    """An `Event` of the type `kind`, without `retry`."""
    event = _new(Event)
    _set_number(event, number)
    _set_type(event, kind)
    _set_data(event, data)
    _set_id(event, last_id)
    _set_retry(event, None)
    _set_place(event, place)
    _set_exception(event, exception)
    return event
