"""The lines of a tape as values: the header, records, and what every payload can do."""

from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

from deltatape.model.exchange import Source
from deltatape.tape.fields import Fields, MalformedError, seen

VERSION = 1
"""The format's version: the value of the header's `deltatape`."""
NO_HEADER = f'a tape starts with {{"deltatape":{VERSION},...}}'


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """The first line of a tape."""

    id: str
    """A ULID that no other tape has."""
    tool: str
    """Who wrote it: `deltatape 0.1.0`; "" if unknown."""
    recorded_at: str
    """RFC 3339 in UTC: the instant from which all times on the tape count."""
    source: Source

    def to_json(self) -> object:
        """Return the header's object, keys in canonical order."""
        return {
            "deltatape": VERSION,
            "id": self.id,
            "tool": self.tool,
            "recorded_at": self.recorded_at,
            "source": self.source.value,
        }

    @classmethod
    def from_json(cls, value: object) -> "Header":
        """The inverse of `to_json`; keys that are not known are ignored."""
        if not isinstance(value, dict) or "deltatape" not in value:
            raise MalformedError(NO_HEADER)
        version = value["deltatape"]
        if type(version) is not int or version != VERSION:
            raise MalformedError(f"format version {seen(version)}; this deltatape reads {VERSION}")
        read = Fields.read(value)
        return cls(
            id=read.text("id"),
            tool=read.text("tool", ""),
            recorded_at=read.text("recorded_at"),
            source=read.choice("source", Source),
        )


class Payload(Protocol):
    """A record's payload."""

    @property
    def code(self) -> str:
        """The record's code."""

    def to_json(self) -> object:
        """Return the JSON value that `from_json` reads."""


class Record(NamedTuple):
    """A line of a tape: when, of which exchange (0: the tape itself), what."""

    t_ns: int
    exchange: int
    payload: Payload


ReadRecord: TypeAlias = tuple[int, int, bytes]
"""The record of a read whose bytes are text: time, exchange, bytes. Such ones are the bulk of every
tape, and a named tuple would take four times as long to make.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """The payload of a code that this version does not know; kept, and otherwise ignored."""

    code: str
    value: object

    def to_json(self) -> object:
        return self.value
