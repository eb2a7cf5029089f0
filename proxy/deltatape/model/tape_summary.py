"""What a tape contains besides exchanges: recording times, connections, the program's output.

Silence is proven only while a tape was watched.
"""

import enum
from dataclasses import dataclass

CHILD_EXIT = "child-exit"
"""Why recording ended: the application that the recorder ran has ended."""
ROTATED = "rotated"
"""Why recording ended: it went on with another tape."""
REPLACED = "replaced"
"""Why recording ended: another recorder took the place; new requests came there from then on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TapeSummary:
    """Facts about a tape as a whole. Times are nanoseconds since `recorded_at`."""

    until_ns: int
    """The last moment at which the recorder is known to have watched: the time of any record."""
    stop: str | None = None
    """Why recording ended; None: it continues, or a crash ended it."""
    exit_code: int | None = None
    """The exit code of the application that the recorder ran."""
    recording: bool = False
    """Whether the tape was still being written when it was read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientChange:
    """A client connection, numbered from 1, was opened or closed."""

    t_ns: int
    connection: int
    opened: bool


class LogStream(enum.StrEnum):
    """Where a program printed."""

    STDOUT = "stdout"
    STDERR = "stderr"
    BOTH = "output"
    """stdout and stderr, which were one terminal, pipe or file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEntry:
    """A line that the recorded program printed. `t_ns` is nanoseconds since `recorded_at`."""

    t_ns: int
    """When the line was complete."""
    stream: LogStream
    line: bytes
    """Without its line feed; terminal escapes and carriage returns are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TapeContext:
    """What else is on a tape besides its exchanges, in order."""

    logs: tuple[LogEntry, ...] = ()
    clients: tuple[ClientChange, ...] = ()


ALONE = TapeContext()
"""For a list of exchanges without a tape."""
