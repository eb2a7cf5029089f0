"""What is said about an exchange that has ended.

Where all of deltatape can be imported, its findings, in the gateway's own words; in a mitmproxy of
another environment only that it ended, and how.
"""

from collections.abc import Callable
from typing import Protocol

from deltatape.gateway.tapes import OpenTape


class Live(Protocol):
    """Looks at exchanges while they are taped."""

    with_findings: int | None
    """How many exchanges had findings; None where nothing is analysed."""
    worst: str | None
    """The worst finding's severity."""

    def put(self, number: int, line: bytes) -> None:
        """A line of an exchange that goes to the tape."""

    def begin(self, number: int) -> None:
        """A new exchange."""

    def ended(self, tape: OpenTape, number: int, said: str) -> None:
        """An exchange is over; `said` is what can be said without an analysis."""

    async def finish(self) -> None:
        """Say what is still being looked at."""


class Plain:
    """Says that an exchange ended; see `Live`."""

    with_findings: int | None = None
    worst: str | None = None

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell

    def put(self, number: int, line: bytes) -> None:
        """See `Live.put`."""

    def begin(self, number: int) -> None:
        """See `Live.begin`."""

    def ended(self, tape: OpenTape, number: int, said: str) -> None:
        """See `Live.ended`."""
        del tape
        self._tell(f"#{number} {said}")

    async def finish(self) -> None:
        """See `Live.finish`."""


MakeLive = Callable[[Callable[[str], None]], Live]
"""Makes a `Live` of what takes its lines."""


def find_live() -> MakeLive:
    """What can be had here; loads it."""
    try:
        from deltatape.mitm.analysed import Analysed  # noqa: PLC0415 - needs what may not be here
    except ImportError:
        return Plain
    return Analysed
