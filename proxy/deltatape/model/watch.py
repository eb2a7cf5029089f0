"""How long a tape was watched, and what ended that: silence is proven only meanwhile."""

from dataclasses import dataclass

CHILD_EXIT = "child-exit"
"""Why recording ended: the application that the recorder ran has ended."""
ROTATED = "rotated"
"""Why recording ended: it went on with another tape."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """What is known of a tape as a whole. Times are nanoseconds since `recorded_at`."""

    until_ns: int
    """The last moment at which the recorder is known to have watched: that of any record."""
    stop: str | None = None
    """Why recording ended; None: it goes on, or a crash ended it."""
    exit_code: int | None = None
    """The exit code of the application that the recorder ran."""
    recording: bool = False
    """Whether the tape was still being written when it was read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientChange:
    """A client connection, counted from 1, was opened or closed."""

    t_ns: int
    connection: int
    opened: bool
