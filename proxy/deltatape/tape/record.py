"""The lines of a tape as values: the header, records, and what every payload can do."""

from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

from deltatape.model.exchange import Source
from deltatape.tape.fields import Fields, MalformedError, seen

VERSION = 1
"""The format's version: the value of the header's `deltatape`."""
NO_HEADER = f'a tape starts with {{"deltatape":{VERSION},...}}'


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """The part of a recording that a tape has, where several processes record together.

    Their tapes share `recorded_at` and the numbering of exchanges, so that they can be read as one.
    """

    recording: str
    """A ULID that only the tapes of this recording share."""
    index: int
    """The number of the process that wrote the tape, from 1."""
    count: int
    """How many processes record at the same time."""
    begun_ns: int = 0
    """When the tape was begun, since `recorded_at`."""
    name: str | None = None
    """The name by which requests called the tape; None: for requests that named none."""

    def to_json(self) -> object:
        """Return the object, keys in canonical order."""
        named = {} if self.name is None else {"name": self.name}
        return {
            "recording": self.recording,
            "index": self.index,
            "count": self.count,
            "begun_ns": self.begun_ns,
            **named,
        }

    @classmethod
    def from_json(cls, value: object) -> "Shard":
        """The inverse of `to_json`."""
        read = Fields.read(value)
        shard = cls(
            recording=read.text("recording"),
            index=read.number("index"),
            count=read.number("count"),
            begun_ns=read.number("begun_ns"),
            name=read.text("name") if "name" in read.of else None,
        )
        if not 1 <= shard.index <= shard.count:
            raise MalformedError(
                f"shard {shard.index} of {shard.count}: 1 to the count is expected"
            )
        return shard


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
    shard: Shard | None = None
    """None: the tape is the whole recording."""
    volatile: tuple[str, ...] = ()
    """What may differ in requests of a replay: see `match.volatile`."""

    def to_json(self) -> object:
        """Return the header's object, keys in canonical order."""
        shard = {} if self.shard is None else {"shard": self.shard.to_json()}
        volatile = {"volatile": [*self.volatile]} if self.volatile else {}
        return {
            "deltatape": VERSION,
            "id": self.id,
            "tool": self.tool,
            "recorded_at": self.recorded_at,
            "source": self.source.value,
            **shard,
            **volatile,
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
            shard=Shard.from_json(value["shard"]) if "shard" in value else None,
            volatile=_texts(value.get("volatile", [])),
        )


def _texts(value: object) -> tuple[str, ...]:
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return tuple(value)
    raise MalformedError(f"volatile: {seen(value)} where a list of strings is expected")


class Payload(Protocol):
    """A record's payload."""

    @property
    def code(self) -> str:
        """The record's code."""

    def to_json(self) -> object:
        """Return the JSON value that `from_json` reads."""


class Record(NamedTuple):
    """A line of a tape: its time, its exchange (0: the tape itself), its payload."""

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
