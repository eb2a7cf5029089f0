"""Events of no wire in particular."""

from deltatape.model.stream import Event


def event_of(
    data: str = "", kind: str = "message", number: int = 0, *, exception: bool = False
) -> Event:
    """An event whose bytes, time and line all follow from its number."""
    return Event(
        number=number,
        type=kind,
        data=data,
        id="",
        retry=None,
        start=number,
        end=number + 1,
        t_ns=number,
        line=number + 1,
        exception=exception,
    )
