"""What the program that was being recorded printed."""

import enum
from dataclasses import dataclass


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
