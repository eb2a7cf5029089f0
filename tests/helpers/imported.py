"""Exchanges as they are imported from a file's bytes."""

from deltatape.importers import import_capture
from deltatape.importers.parts import ImportSource
from deltatape.model.exchange import Exchange


def source(
    data: bytes, name: str = "x", /, request: bytes | None = None, response: bytes | None = None
) -> ImportSource:
    """A file, and what a user says beside it."""
    return ImportSource(name=name, files={name: data}, request=request, response=response)


def imported(data: bytes, **described: bytes) -> tuple[Exchange, ...]:
    """All exchanges of a file."""
    return import_capture(source(data, **described)).exchanges


def only(data: bytes, **described: bytes) -> Exchange:
    """The exchange of a file with one."""
    (exchange,) = imported(data, **described)
    return exchange


def notes(exchange: Exchange) -> list[str]:
    """The texts of its notes."""
    return [note.text for note in exchange.notes]
