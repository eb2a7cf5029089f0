"""The hints of a response about its dialect, and the dialects that claim it."""

from collections.abc import Sequence

from deltatape.dialects import DIALECTS, Hints
from deltatape.model.exchange import Exchange
from deltatape.model.stream import Event, Format
from deltatape.wire.json_value import parse


def hints(
    *first: dict[str, object],
    form: Format = Format.SSE,
    types: tuple[str, ...] = (),
    headers: Sequence[str] = (),
) -> Hints:
    """The hints of a response whose first events carry `first` and have `types`."""
    return Hints(format=form, headers="\n".join(["", *headers, ""]), first=first, types=types)


def claimants(exchange: Exchange, form: Format, events: Sequence[Event]) -> list[str]:
    """The dialects that claim the response of `exchange` when they see these `events` of it."""
    values = (parse(event.data).value for event in events)
    fields = exchange.response.headers if exchange.response else ()
    seen = Hints(
        format=form,
        headers="\n".join(["", *(name.decode().lower() for name, _ in fields), ""]),
        first=tuple(value for value in values if isinstance(value, dict)),
        types=tuple(event.type for event in events),
    )
    return [dialect.name for dialect in DIALECTS if dialect.claims(seen)]
