"""Where the addon's words go: to the deltatape that started mitmproxy, else to mitmproxy's log."""

import asyncio
import logging
import socket
from collections.abc import Callable, Mapping
from typing import Protocol

from deltatape.gateway.tapes import OpenTape
from deltatape.mitm.ipc import VARIABLE, AddonMessage, AddonSocket, Fields

_log = logging.getLogger("deltatape")


class AddonLogger(Protocol):
    """Says what happens."""

    def say(self, word: AddonMessage, **fields: object) -> None:
        """One message; may be called from any thread."""

    async def connect(self) -> None:
        """From now on messages arrive; those before are kept."""


class MitmproxyLogHandler:
    """mitmproxy's own log: its terminal, its event log."""

    def say(self, word: AddonMessage, **fields: object) -> None:
        match word:
            case AddonMessage.LINE:
                _log.info("%s", fields["text"])
            case AddonMessage.ALARM:
                _log.warning("TAPING IN TROUBLE: %s", fields["text"])
            case AddonMessage.READY:
                _log.info("deltatape is taping: %s", fields["tape"] or "nothing, see above")
            case AddonMessage.ENDED:
                _log.info("%s", _summary(fields))
            case AddonMessage.STOPPING | AddonMessage.TRAFFIC | AddonMessage.PASSED:
                pass

    async def connect(self) -> None:
        """See `AddonLogger.connect`."""


class ParentLogHandler:
    """The deltatape that started this mitmproxy."""

    def __init__(self, line: AddonSocket, number: int) -> None:
        """Args: number: of the socket's descriptor."""
        self._line = line
        self._number = number
        self._loop = asyncio.get_running_loop()

    def say(self, word: AddonMessage, **fields: object) -> None:
        try:
            here = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            here = False
        if here:
            self._line.say(word, **fields)
        else:
            self._loop.call_soon_threadsafe(lambda: self._line.say(word, **fields))

    async def connect(self) -> None:
        sock = socket.socket(fileno=self._number)
        sock.setblocking(False)  # noqa: FBT003 - its only argument
        await self._loop.create_unix_connection(lambda: self._line, sock=sock)


def find_voice(
    environment: Mapping[str, str],
    heard: Callable[[str, Fields], None],
    gone: Callable[[], None],
) -> AddonLogger:
    """The voice for where this runs; see `talk.AddonSocket` for the others."""
    number = environment.get(VARIABLE, "")
    return (
        ParentLogHandler(AddonSocket(heard, gone), int(number))
        if number.isdecimal()
        else MitmproxyLogHandler()
    )


def _summary(fields: Fields) -> str:
    lost, taped = fields["lost_records"], fields["exchanges"]
    told = f"deltatape taped {taped} exchange{'' if taped == 1 else 's'}"
    return f"{told}; NOT ON THE TAPE: {lost} records" if lost else told


# What is said about an exchange that has ended.
#
# Where all of deltatape can be imported, its findings, in the gateway's own words; in a mitmproxy
# of another environment only that it ended, and how.


class LiveObserver(Protocol):
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


class PlainObserver:
    """Says that an exchange ended; see `LiveObserver`."""

    with_findings: int | None = None
    worst: str | None = None

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell

    def put(self, number: int, line: bytes) -> None:
        """See `LiveObserver.put`."""

    def begin(self, number: int) -> None:
        """See `LiveObserver.begin`."""

    def ended(self, tape: OpenTape, number: int, said: str) -> None:
        del tape
        self._tell(f"#{number} {said}")

    async def finish(self) -> None:
        """See `LiveObserver.finish`."""


MakeLive = Callable[[Callable[[str], None]], LiveObserver]
"""Makes a `LiveObserver` of what takes its lines."""


def find_live() -> MakeLive:
    """What can be had here; loads it."""
    try:
        from deltatape.mitm.live_analysis import MitmAnalyzer  # noqa: PLC0415 - needs what may not be here
    except ImportError:
        return PlainObserver
    return MitmAnalyzer
